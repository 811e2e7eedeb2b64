/* SPDX-License-Identifier: MIT */
/* Fibers, barriers, and a device made of host memory (kernels/emu/emu.h). */
#include "kernels/emu/emu.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include "kernels/emu/emu_knobs.h"
#include "kernels/kernels.h"

dim3 threadIdx, blockIdx, blockDim, gridDim;
bool hk_pdl;

enum { STACK = 64 * 1024, MAX_THREADS = 1024 };

static int fails(const char *what);

/*
 * ThreadSanitizer's fibers (EMU_RACE): a switch orders nothing, a barrier orders all who
 * met there. This file itself is not instrumented. A meeting has two names in turn,
 * so that who comes late from one does not take over what belongs to the next.
 */
#ifdef EMU_RACE
extern "C" {
void *__tsan_get_current_fiber(void);
void *__tsan_create_fiber(unsigned flags);
void __tsan_destroy_fiber(void *fiber);
void __tsan_switch_to_fiber(void *fiber, unsigned flags);
void __tsan_acquire(void *addr);
void __tsan_release(void *addr);
}
enum { NO_ORDER = 1 };
#else
static void *__tsan_get_current_fiber(void) { return NULL; }
static void *__tsan_create_fiber(unsigned) { return NULL; }
static void __tsan_destroy_fiber(void *) {}
static void __tsan_switch_to_fiber(void *, unsigned) {}
static void __tsan_acquire(void *) {}
static void __tsan_release(void *) {}
enum { NO_ORDER = 0 };
#endif

struct meeting { char name[2]; u32 gen; };

struct warp_state {
	u32 lanes, arrived, gen;
	u32 buf[2][32][4];
	char sync[2];
};

static struct {
	ucontext_t main, ctx[MAX_THREADS];
	char *stack[MAX_THREADS];
	u32 run[MAX_THREADS], head, tail;   /* ready fibers, a ring */
	u32 cur, live, at_barrier;
	u32 wait[MAX_THREADS];
	struct { u32 n, wait[MAX_THREADS]; meeting at; } bar[16];
	u32 met[MAX_THREADS];   /* how often, at bar[] */
	meeting all;
	char begin, end;
	void *fiber[MAX_THREADS], *main_fiber;
	emu_async asked[MAX_THREADS];
	warp_state warp[MAX_THREADS / 32];
	void (*fn)(void *);
	void *arg, *smem;
	size_t smem_size;
} M;

static u32 next_random(void)
{
	static uint64_t x;

	if (!x) {
		const char *e = getenv("SEED");

		x = (e ? strtoull(e, NULL, 0) : (uint64_t)time(NULL)) * 2 + 1;
	}
	x = x * 6364136223846793005ull + 1442695040888963407ull;
	return (u32)(x >> 33);
}

static void ready(u32 i)
{
	M.run[M.tail++ % MAX_THREADS] = i;
}

static void set_thread(u32 i)
{
	M.cur = i;
	threadIdx = dim3(i);
}

/* Leaves this fiber until somebody makes it ready. */
static void park(void)
{
	u32 me = M.cur;

	__tsan_switch_to_fiber(M.main_fiber, NO_ORDER);
	swapcontext(&M.ctx[me], &M.main);
	set_thread(me);
}

static void release_barrier(void)
{
	for (u32 i = 0; i < M.at_barrier; i++) {
		if (M.met[M.wait[i]] != M.met[M.wait[0]]) {
			fprintf(stderr, "emu: of threads at one __syncthreads() %u has met others %u times before, %u %u times:"
				" no race, but compute-sanitizer's racecheck takes it for one\n",
				M.wait[0], M.met[M.wait[0]], M.wait[i], M.met[M.wait[i]]);
			abort();
		}
		ready(M.wait[i]);
	}
	M.at_barrier = 0;
	M.all.gen++;
}

void __syncthreads(void)
{
	char *const name = &M.all.name[M.all.gen % 2];

	__tsan_release(name);
	M.wait[M.at_barrier++] = M.cur;
	if (M.at_barrier == M.live)
		release_barrier();
	park();
	__tsan_acquire(name);
}

void bar_sync(u32 id, u32 threads)
{
	auto &b = M.bar[id];

	if (!id || id > 15 || threads % 32) {
		fprintf(stderr, "emu: barrier %u of %u threads\n", id, threads);
		abort();
	}
	M.met[M.cur]++;
	char *const name = &b.at.name[b.at.gen % 2];

	__tsan_release(name);
	b.wait[b.n++] = M.cur;
	if (b.n == threads) {
		for (u32 i = 0; i < b.n; i++)
			ready(b.wait[i]);
		b.n = 0;
		b.at.gen++;
	}
	park();
	__tsan_acquire(name);
}

emu_async *emu_asked(void)
{
	return &M.asked[M.cur];
}

const u32 (*emu_warp(const u32 v[4]))[4]
{
	warp_state *w = &M.warp[M.cur / 32];
	u32 gen = w->gen;

	for (int i = 0; i < 4; i++)   /* no memcpy(): ThreadSanitizer would see that one */
		((volatile u32 *)w->buf[gen & 1][M.cur % 32])[i] = v[i];
	if (++w->arrived == w->lanes) {
		u32 base = M.cur / 32 * 32;

		w->arrived = 0;
		w->gen++;
		for (u32 i = base; i < base + w->lanes; i++)
			if (i != M.cur)
				ready(i);
	} else {
		park();
	}
	return w->buf[gen & 1];
}

void emu_warp_sync(void)
{
	const u32 none[4] = { 0, 0, 0, 0 };
	warp_state *w = &M.warp[M.cur / 32];
	char *const name = &w->sync[w->gen % 2];

	__tsan_release(name);
	emu_warp(none);
	__tsan_acquire(name);
}

void *emu_smem(void)
{
	return M.smem;
}

static void entry(void)
{
	set_thread(M.cur);
	__tsan_acquire(&M.begin);
	M.fn(M.arg);
	__tsan_release(&M.end);
	/* A thread that has left is not waited for. */
	M.live--;
	if (M.live && M.at_barrier == M.live)
		release_barrier();
	M.warp[M.cur / 32].lanes--;
	__tsan_switch_to_fiber(M.main_fiber, NO_ORDER);
	setcontext(&M.main);
}

int emu_launch_fn(dim3 grid, dim3 block, size_t smem, void (*fn)(void *), void *arg)
{
	u32 n = block.x;

	if (smem > HK_SMEM_MAX) {
		fprintf(stderr, "emu: a block wants %zu bytes of shared memory, %u are there (HK_SMEM_MAX)\n", smem, HK_SMEM_MAX);
		abort();
	}
	if (int rc = fails("a launch"))
		return rc;
	gridDim = grid;
	blockDim = block;
	M.fn = fn;
	M.arg = arg;
	M.main_fiber = __tsan_get_current_fiber();
	if (smem + 64 > M.smem_size) {
		free(M.smem);
		M.smem_size = smem + 64;
		M.smem = aligned_alloc(64, (M.smem_size + 63) / 64 * 64);
	}
	for (u32 b = 0; b < grid.x * grid.y * grid.z; b++) {
		u32 left;

		blockIdx = dim3(b % grid.x, b / grid.x % grid.y, b / grid.x / grid.y);
		memset(M.smem, 0xff, M.smem_size);   /* NaN to whoever reads it first */
		M.live = n;
		M.head = M.tail = M.at_barrier = 0;
		for (auto &x : M.bar)
			x.n = 0;
		memset(M.warp, 0, sizeof(M.warp));
		for (u32 i = 0; i < n; i++) {
			if (!M.stack[i])
				M.stack[i] = (char *)malloc(STACK);
			getcontext(&M.ctx[i]);
			M.ctx[i].uc_stack.ss_sp = M.stack[i];
			M.ctx[i].uc_stack.ss_size = STACK;
			M.ctx[i].uc_link = &M.main;
			makecontext(&M.ctx[i], entry, 0);
			M.warp[i / 32].lanes++;
			M.asked[i].n = M.asked[i].groups = M.met[i] = 0;
			M.fiber[i] = __tsan_create_fiber(0);
			ready(i);
		}
		__tsan_release(&M.begin);
		while (M.head != M.tail) {
			/* Any ready thread may be next: a missing barrier shows as a wrong
			 * result, sooner or later. */
			u32 pick = M.head + next_random() % (M.tail - M.head);

			M.cur = M.run[pick % MAX_THREADS];
			M.run[pick % MAX_THREADS] = M.run[M.head++ % MAX_THREADS];
			__tsan_switch_to_fiber(M.fiber[M.cur], NO_ORDER);
			swapcontext(&M.main, &M.ctx[M.cur]);
		}
		__tsan_acquire(&M.end);
		for (u32 i = 0; i < n; i++)
			__tsan_destroy_fiber(M.fiber[i]);
		left = M.live;
		if (left) {
			fprintf(stderr, "emu: %u threads of block %u wait for ever\n", left, b);
			abort();
		}
	}
	return 0;
}

/* -- the device -------------------------------------------------------------------- */

static struct emu_knobs K = { { "emulated", 8, 7, 2, false, true, true, false, 0, 0, (size_t)8 << 30, (size_t)8 << 30, HK_SMEM_MAX, true } };
static char text[400] = "emulated device";

struct emu_knobs *emu_knobs(void) { return &K; }
const char *hk_dev_error(void) { return text; }

/* Whether this is the call that fails (emu_knobs.h); EMU_LOSE names a file: with it the context is lost. */
static int fails(const char *what)
{
	static const char *const file = getenv("EMU_LOSE");

	K.calls++;
	if (file && !access(file, F_OK)) {
		K.fail_rc = -ENODEV;
		K.lost = true;
	}
	if (!K.lost && (!K.fail_at || --K.fail_at))
		return 0;
	K.lost |= K.fail_rc == -ENODEV;
	snprintf(text, sizeof(text), "%s failed on the emulated device: %s", what,
		 K.lost ? HK_LOST : "as the test wanted");
	return K.fail_rc;
}
#define TRY(what) do { int rc_ = fails(what); if (rc_) return rc_; } while (0)

int hk_dev_probe(int index, struct hk_dev_info *ret)
{
	int rc = hk_dev_served(&K.dev, text, sizeof(text));

	(void)index;
	if (!rc)
		*ret = K.dev;
	return rc;
}
int hk_dev_open(int index) { (void)index; TRY("cudaSetDevice"); return 0; }
int hk_dev_mem(size_t *f, size_t *t) { TRY("cudaMemGetInfo"); *f = *t = K.dev.mem_total; return 0; }
int hk_dev_alloc(size_t bytes, void **ret)
{
	TRY("cudaMalloc");
	/* exactly this size: an address sanitizer sees what reaches beyond */
	if (bytes > K.dev.mem_total || posix_memalign(ret, 256, bytes ? bytes : 1)) {
		snprintf(text, sizeof(text), "cudaMalloc of %zu MiB failed on the emulated device: out of memory; free GPU memory or use a smaller context", bytes >> 20);
		return -ENOMEM;
	}
	memset(*ret, 0xff, bytes);
	K.held++;
	return 0;
}
void hk_dev_free(void *p)
{
	K.held -= p != NULL;
	free(p);
}
int hk_host_alloc(size_t bytes, void **ret) { return hk_dev_alloc(bytes, ret); }
void hk_host_free(void *p) { hk_dev_free(p); }
int hk_host_register(void *p, size_t, bool read_only, void **ret)
{
	TRY("cudaHostRegister");
	if (read_only && K.no_read_only) {
		snprintf(text, sizeof(text), "cudaHostRegister failed on the emulated device: read-only memory");
		return -EIO;
	}
	K.held++;
	*ret = p;
	return 0;
}
void hk_host_unregister(void *) { K.held--; }
int hk_stream_open(void **ret)
{
	TRY("cudaStreamCreate");
	K.held++;
	*ret = (void *)1;
	return 0;
}
int hk_stream_open_urgent(void **ret) { return hk_stream_open(ret); }
void hk_stream_close(void *) { K.held--; }
int hk_stream_sync(void *) { TRY("a kernel of the step"); return 0; }
int hk_copy_in(void *, void *d, const void *s, size_t n) { TRY("copy to the GPU"); memcpy(d, s, n); return 0; }
int hk_copy_out(void *, void *d, const void *s, size_t n) { TRY("copy from the GPU"); memcpy(d, s, n); return 0; }
int hk_dev_copy(void *, void *d, const void *s, size_t n) { TRY("copy on the GPU"); memcpy(d, s, n); return 0; }
int hk_fill(void *, void *d, int v, size_t n) { TRY("cudaMemset"); memset(d, v, n); return 0; }
int hk_capture_begin(void *) { TRY("cudaStreamBeginCapture"); return -ENOTSUP; }   /* every step is launched anew */
int hk_capture_end(void *, void **) { return -ENOTSUP; }
int hk_graph_launch(void *, void *) { return -ENOTSUP; }
int hk_graph_upload(void *, void *) { return -ENOTSUP; }
void hk_graph_free(void *) {}
int hk_event_time(void *, int, float *ms) { if (ms) *ms = 0; return 0; }
