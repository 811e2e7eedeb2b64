// SPDX-License-Identifier: MIT
/*
 * What fails: a GPU that is not served, memory that cannot be registered, every call of
 * an open and of a step in turn, a context that is lost. On a real GPU only what
 * leaves it as it was.
 */
#include "tests/gpu/model_engine.h"

#include <errno.h>
#include <poll.h>
#include <unistd.h>

#include "engine/engine.h"
#include "kernels/emu/emu_knobs.h"
#include "tests/gpu/model.h"
#include "tests/unit/synth.h"

static struct emu_knobs *K;
static const char *model;

/* The n-th call from now fails with @rc, 0: none does. */
static void fail_at(uint32_t n, int rc)
{
	K->fail_at = n;
	K->fail_rc = rc;
	K->lost = false;
	K->calls = 0;
}

/* -- which GPU --------------------------------------------------------------------------- */

static void t_served(void)
{
	static const struct { int major, minor; size_t kib; bool code; int rc; const char *says; } row[] = {
		{ 7, 5, 64, true, -ENOTSUP, "compute capability 7.5" },
		{ 8, 6, 99, true, -ENOTSUP, "99 KiB of shared memory" },
		{ 12, 0, 99, true, -ENOTSUP, "(SM 12.0)" },
		{ 10, 0, 227, false, -ENOTSUP, "CUDA_ARCHS=100" },
		{ 8, 0, 163, true, 0, "" },
		{ 8, 7, 163, true, 0, "" },
		{ 9, 0, 227, true, 0, "" },
	};
	bool all = true;

	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		const struct hk_dev_info d = { .name = "a GPU", .major = row[i].major, .minor = row[i].minor,
					       .smem = row[i].kib << 10, .code = row[i].code };
		char why[400] = "";
		int rc = hk_dev_served(&d, why, sizeof(why));

		if (rc != row[i].rc || !strstr(why, row[i].says)) {
			printf("# SM %d.%d: %d, \"%s\"\n", row[i].major, row[i].minor, rc, why);
			all = false;
		}
	}
	tap(all, "a GPU is served, or refused with what it lacks");
}

static void t_refused_gpu(void)
{
	const struct hk_dev_info was = K->dev;
	const struct ops *ops;
	struct hearth_err err = { 0 };
	struct engine_opts eo;
	struct engine *e = NULL;
	int rc;

	K->dev.minor = 6;
	K->dev.smem = 99 << 10;
	ops_cuda_place(OPS_CUDA_AUTO);
	rc = ops_cuda(&ops, &err);
	tap(rc == -ENOTSUP && strstr(err.text, "emulated (SM 8.6)"), "what the kernels do not fit is no CUDA backend: %s", err.text);
	engine_defaults(&eo);
	eo.model = model;
	eo.ctx = 64;
	rc = engine_open(&eo, &e, &err);
	tap(!rc && strncmp(engine_the_plan(e)->backend, "cuda", 4), "and who asked for none in particular gets the CPU");
	engine_close(e);
	K->dev = was;
}

static void t_place(void)
{
	const struct ops *ops;
	struct hearth_err err = { 0 };
	int rc;

	K->dev.integrated = true;
	ops_cuda_place(OPS_CUDA_AUTO);
	rc = ops_cuda(&ops, &err);
	tap(!rc && strstr(ops_cuda_line(), "read in place") && !strstr(ops_cuda_line(), "not read"), "shared memory is read in place: %s", ops_cuda_line());
	K->no_read_only = true;
	ops_cuda_place(OPS_CUDA_AUTO);
	rc = ops_cuda(&ops, &err);
	tap(!rc && strstr(ops_cuda_line(), "copied to device memory (not read in place: cudaHostRegister failed"),
	    "where it cannot be registered weights are copied, and the line says why: %s", ops_cuda_line());
	ops_cuda_place(OPS_CUDA_IN_PLACE);
	rc = ops_cuda(&ops, &err);
	tap(rc == -ENOTSUP && strstr(err.text, "cannot read weights in place"), "or refused, where that was asked for: %s", err.text);
	K->no_read_only = false;
	K->dev.integrated = false;
	tap(!K->held, "and nothing stays registered");
}

/* -- every call of an open, and of a step ---------------------------------------------- */

static int open_small(struct runner *r, const struct ops *ops, const struct loaded *l, struct hearth_err *err)
{
	return run_open(r, ops, l->m, load_bytes(l->l), 2, 1, 64, KV_I8, 2, err);
}

static bool one_step(struct runner *r, struct hearth_err *err, int *ret_rc)
{
	static const uint32_t page[2] = { 0, 1 };
	const int32_t tok[2] = { 3, 4 };
	const uint32_t out = 1;
	const struct batch_seq s = { 0, 2, 0, page };
	const struct batch b = { .n = 2, .token = tok, .n_seq = 1, .seq = &s, .n_out = 1, .out = &out };
	const struct ops_pick p = { .top_p = 1, .rep_pen = 1 };
	int32_t token;
	float *l;

	*ret_rc = r->ops->forward(r->c, &b, err);
	if (!*ret_rc)
		*ret_rc = r->ops->pick(r->c, &p, 1, &token, err);
	if (!*ret_rc)
		*ret_rc = r->ops->logits(r->c, 0, &l, err);
	if (!*ret_rc)
		*ret_rc = r->ops->kv_copy(r->c, 1, 0, 2, err);
	return !*ret_rc;
}

static void t_calls(enum ops_cuda_where where, int code)
{
	const char *const lost = code == -ENODEV ? HK_LOST : "failed on the emulated device";
	const struct ops *ops;
	struct hearth_err err = { 0 };
	struct loaded l;
	struct runner r;
	uint32_t n, opens = 0, steps = 0, pinned = 0;
	bool ok = true;
	int rc;

	fail_at(0, 0);
	ops_cuda_place(where);
	if (ops_cuda(&ops, &err))
		die_err("ops_cuda", -1, &err);
	l = load_model(model, ops);
	for (n = 1;; n++) {
		err = (struct hearth_err){ 0 };
		fail_at(n, code);
		rc = open_small(&r, ops, &l, &err);
		if (!rc && !K->fail_at && K->calls >= n)
			pinned++;   /* results land in memory that is not pinned */
		else if (rc && (rc != code || !strstr(err.text, lost)))
			ok = false;
		if (!ok)
			printf("# call %u: %d, \"%s\"\n", n, rc, err.text);
		opens += rc != 0;
		n = rc || K->calls >= n ? n : 0;
		run_close(&r);
		if (K->held)
			printf("# call %u: %d not given back\n", n, K->held);
		ok &= !K->held;
		if (!n || !ok)
			break;
	}
	tap(ok && opens > 20 && pinned <= 1, "%s: each of %u calls of open fails with %d and a sentence, and gives all back",
	    where == OPS_CUDA_COPY ? "copied" : "in place", opens, code);

	fail_at(0, 0);
	rc = open_small(&r, ops, &l, &err);
	tap(!rc, "and the next open works");
	if (rc)
		die_err("open", rc, &err);
	for (n = 1; ok; n++) {
		err = (struct hearth_err){ 0 };
		fail_at(n, code);
		if (one_step(&r, &err, &rc))
			break;
		steps++;
		ok = rc == code && err.code == code && strstr(err.text, lost);
		if (code == -ENODEV)   /* whatever is called next */
			ok &= !one_step(&r, &err, &rc) && rc == code;
		if (!ok)
			printf("# call %u: %d, \"%s\"\n", n, rc, err.text);
	}
	fail_at(0, 0);
	tap(ok && steps > 10 && one_step(&r, &err, &rc), "each of %u calls of a step fails so, and the next step works on a device that does", steps);
	run_close(&r);
	unload(&l);
}

/* -- the engine ------------------------------------------------------------------------ */

struct told { uint32_t done; struct gen_result res; };

static void on_done(void *arg, const struct gen_result *res)
{
	struct told *t = arg;

	t->done++;
	t->res = *res;
}

static bool fail_now(void *arg, const struct gen_token *t)
{
	if (t->index == 1)
		fail_at(3, -ENODEV);
	return false;
}

static struct gen *begin(struct session *s, const int32_t *prompt, struct told *t, bool breaks, struct hearth_err *err)
{
	struct gen_request r;
	struct gen *g = NULL;

	memset(t, 0, sizeof(*t));
	gen_defaults(&r);
	r.tokens = prompt;
	r.n_tokens = 8;
	r.max_tokens = 20;
	r.ignore_eos = true;
	r.on_done = on_done;
	r.on_token = breaks ? fail_now : NULL;
	r.arg = t;
	if (gen_start(s, &r, &g, err))
		return NULL;
	return g;
}

static void t_engine_lost(void)
{
	struct engine_opts eo;
	struct hearth_err err = { 0 };
	struct engine *e = NULL;
	struct session *s[2];
	struct gen *g[2];
	struct told t[2];
	struct pollfd p;
	int32_t prompt[8] = { 1, 2, 3, 4, 5, 6, 7, 8 };
	uint32_t pages;
	char file[300];
	int rc;

	fail_at(0, 0);
	ops_cuda_place(OPS_CUDA_IN_PLACE);
	engine_defaults(&eo);
	eo.model = model;
	eo.ctx = 64;
	eo.chunk = 8;
	eo.sessions = 2;
	eo.backend = "cuda";
	if (engine_open(&eo, &e, &err) || session_open(e, &s[0], &err) || session_open(e, &s[1], &err))
		die_err("engine on cuda", -1, &err);
	fail_at(5, -EIO);
	g[0] = begin(s[0], prompt, &t[0], false, &err);
	gen_wait(g[0], -1, NULL);
	tap(t[0].res.finish == GEN_ERROR && t[0].res.err.code == -EIO && !engine_lost(e, &err), "a step that fails ends its generation: %s", t[0].res.err.text);
	gen_free(g[0]);
	g[0] = begin(s[0], prompt, &t[0], false, &err);
	gen_wait(g[0], -1, NULL);
	tap(t[0].res.finish == GEN_LENGTH && t[0].res.n_out == 20, "and the next one runs to its end");
	gen_free(g[0]);
	p = (struct pollfd){ .fd = engine_lost_fd(e), .events = POLLIN };
	tap(poll(&p, 1, 0) == 0, "nobody is told that the engine is lost");

	prompt[0] = 9;
	g[0] = begin(s[0], prompt, &t[0], true, &err);
	g[1] = begin(s[1], prompt, &t[1], false, &err);
	for (int i = 0; i < 2; i++)
		gen_wait(g[i], -1, NULL);
	tap(t[0].res.finish == GEN_ERROR && t[0].res.err.code == -ENODEV && strstr(t[0].res.err.text, HK_LOST) && t[0].done == 1,
	    "with the context its generation is lost, and says so: %s", t[0].res.err.text);
	tap(t[1].done == 1 && t[1].res.finish == GEN_ERROR && !strcmp(t[1].res.err.text, t[0].res.err.text), "and every other ends with that sentence");
	gen_free(g[0]);
	gen_free(g[1]);
	fail_at(0, 0);   /* whatever the device does now */
	err = (struct hearth_err){ 0 };
	g[0] = begin(s[0], prompt, &t[0], false, &err);
	tap(!g[0] && err.code == -ENODEV && strstr(err.text, HK_LOST), "a later one is refused with it");
	gen_free(g[0]);
	err = (struct hearth_err){ 0 };
	tap(poll(&p, 1, 5000) == 1 && engine_lost(e, &err) == -ENODEV && strstr(err.text, HK_LOST), "the engine says that it is lost");
	snprintf(file, sizeof(file), "%s.cache", model);
	rc = engine_cache_save(e, file, 0, false, &pages, &err);
	tap(rc == -ENODEV && access(file, F_OK), "and does not keep a cache that may be anything");
	session_close(s[0]);
	session_close(s[1]);
	engine_close(e);
	tap(!K->held, "what it held is given back");
}

/* -- memory ---------------------------------------------------------------------------- */

static void t_no_memory(void)
{
	float in[64], out[64];
	void *p = NULL, *g, *st;
	int rc;

	if (getenv("SANITIZED")) {
		tap(true, "memory that nobody has # SKIP compute-sanitizer counts every call that is refused");
		return;
	}
	for (int i = 0; i < 64; i++)
		in[i] = 1;
	GPU(hk_dev_open(0));
	GPU(hk_stream_open(&st));
	gpu_stream = st;
	rc = hk_dev_alloc((size_t)1 << 60, &p);
	tap(rc == -ENOMEM && strstr(hk_dev_error(), "free GPU memory"), "memory that nobody has is refused: %s", hk_dev_error());
	g = gpu_put(in, sizeof(in));
	rc = hk_swiglu(st, 1, 64, g, g, g);
	gpu_get(out, g, sizeof(out));
	tap(!rc && fabsf(out[63] - 0.7310586f) < 1e-4f, "and the next kernel runs");
	hk_dev_free(g);
	hk_stream_close(st);
}

void t_failures(const char *path)
{
	struct hearth_err err = { 0 };
	struct synth_opts o;

	K = emu_knobs ? emu_knobs() : NULL;
	model = path;
	t_served();
	t_no_memory();
	if (!K) {
		tap(true, "calls that fail # SKIP a real GPU: the emulation has them");
		return;
	}
	synth_defaults(&o);
	o.layers = 1;
	o.head_dim = 64;
	if (synth_model(path, &o))
		die_err("synth_model", -1, &err);
	t_refused_gpu();
	t_place();
	t_calls(OPS_CUDA_COPY, -EIO);
	t_calls(OPS_CUDA_IN_PLACE, -ENODEV);
	t_engine_lost();
	ops_cuda_place(OPS_CUDA_AUTO);
}
