/* SPDX-License-Identifier: MIT */
/*
 * The rules that hold for every ioctl: sizes, tails, pointers, numbers; and
 * every flag bit and reserved field, one fault a call.
 */
#include "vm.h"

enum where { CONN, REGION };

struct op {
	const char *name;
	unsigned int cmd;
	uint32_t size;
	enum where where;
	bool out;        /* writes on success */
	int flags;       /* offset of a 32-bit flags field, -1: none */
	uint32_t known;  /* its known bits */
	int reserved[3]; /* offsets of 32-bit reserved fields, 0: no more */
};

#define OP(n, s, w, o, f, k, ...) { #n, HEARTH_IOC_##n, sizeof(struct s), w, o, f, k, { __VA_ARGS__ } }
#define F(s, f) offsetof(struct s, f)

static const struct op ops[] = {
	OP(INFO, hearth_ioc_info, CONN, true, -1, 0, 0),
	OP(ADMIN, hearth_ioc_admin, CONN, false, -1, 0, F(hearth_ioc_admin, reserved)),
	OP(JOIN, hearth_ioc_join, CONN, true, F(hearth_ioc_join, flags), 3,
	   F(hearth_ioc_join, reserved)),
	OP(POOL_CREATE, hearth_ioc_pool_create, CONN, true, F(hearth_ioc_pool_create, flags), 0,
	   F(hearth_ioc_pool_create, reserved)),
	OP(POOL_RESIZE, hearth_ioc_pool_resize, CONN, false, -1, 0, 0),
	OP(POOL_REMOVE, hearth_ioc_pool_remove, CONN, false, -1, 0, 0),
	OP(POOL_GET, hearth_ioc_pool_get, CONN, true, F(hearth_ioc_pool_get, flags), 3, 0),
	OP(TENANT_GET, hearth_ioc_tenant_get, CONN, true, F(hearth_ioc_tenant_get, flags), 3, 0),
	OP(TENANT_REMOVE, hearth_ioc_tenant_remove, CONN, false, -1, 0, 0),
	OP(BUDGET_GET, hearth_ioc_budget_get, CONN, true, F(hearth_ioc_budget_get, flags), 1, 0),
	OP(BUDGET_SET, hearth_ioc_budget_set, CONN, true, F(hearth_ioc_budget_set, flags), 0,
	   F(hearth_ioc_budget_set, reserved)),
	OP(CHARGE, hearth_ioc_charge, CONN, false, -1, 0, 0),
	OP(UNCHARGE, hearth_ioc_uncharge, CONN, false, -1, 0, 0),
	OP(ALLOC, hearth_ioc_alloc, CONN, true, F(hearth_ioc_alloc, flags), 3,
	   F(hearth_ioc_alloc, reserved)),
	OP(FIND, hearth_ioc_find, CONN, true, F(hearth_ioc_find, flags), 3, 0),
	OP(REGION_GET, hearth_ioc_region_get, CONN, true, F(hearth_ioc_region_get, flags), 1, 0),
	OP(DROP, hearth_ioc_drop, CONN, false, -1, 0, F(hearth_ioc_drop, reserved)),
	OP(WATCH, hearth_ioc_watch, CONN, true, F(hearth_ioc_watch, flags), 1, 0),
	OP(STATE, hearth_ioc_state, CONN, true, -1, 0, F(hearth_ioc_state, reserved)),
	OP(REGION_GET, hearth_ioc_region_get, REGION, true, F(hearth_ioc_region_get, flags), 0, 0),
	OP(SEAL, hearth_ioc_seal, REGION, false, -1, 0, F(hearth_ioc_seal, reserved)),
	OP(OFFER, hearth_ioc_offer, REGION, false, -1, 0, F(hearth_ioc_offer, reserved)),
	OP(TAKE_BACK, hearth_ioc_take_back, REGION, true, -1, 0, F(hearth_ioc_take_back, reserved),
	   F(hearth_ioc_take_back, reserved2)),
	OP(KEEP, hearth_ioc_keep, REGION, false, -1, 0, F(hearth_ioc_keep, reserved)),
	OP(SHARE, hearth_ioc_share, REGION, true, F(hearth_ioc_share, flags), 1,
	   F(hearth_ioc_share, reserved)),
	OP(EXPORT, hearth_ioc_export, REGION, true, F(hearth_ioc_export, flags), 1,
	   F(hearth_ioc_export, reserved)),
};
#define N_OPS (sizeof(ops) / sizeof(*ops))
#define BUF 16384

static int admin, region;
static uint32_t pool;
static unsigned char *buf;

static void set_up(void)
{
	admin = vm_admin();
	vm_join(admin, "ioctl");
	pool = vm_pool(admin, "ioctl", HEARTH_POOL_SCRATCH, 4 * MiB);
	region = vm_region(admin, pool, 64 * KiB);
	buf = mmap(NULL, BUF, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	EXPECT(buf != MAP_FAILED);
}

static void tear_down(void)
{
	struct hearth_ioc_pool_get p = vm_pool_get(admin, pool);

	/* Nothing but what set_up made: every refusal changed nothing. */
	EXPECT_EQ(p.out_regions, 1);
	EXPECT_EQ(p.out_charged, 64 * KiB);
	munmap(buf, BUF);
	close(region);
	vm_pool_remove(admin, pool);
	close(admin);
}

static int fd_of(const struct op *op)
{
	return op->where == CONN ? admin : region;
}

/* All zero but the size. */
static void fresh(const struct op *op)
{
	memset(buf, 0, BUF);
	*(uint32_t *)buf = op->size;
}

/* errno of the call on buf, 0 when it succeeded (and what it made is closed). */
static int call(const struct op *op, void *arg)
{
	int ret;

	errno = 0;
	ret = ioctl(fd_of(op), op->cmd, arg);
	if (ret && ret != -1)
		vm_fail(__FILE__, __LINE__, "%s gave %d", op->name, ret);
	if (!ret && op->cmd == HEARTH_IOC_SHARE && arg)
		close(((struct hearth_ioc_share *)arg)->out_fd);
	if (!ret && op->cmd == HEARTH_IOC_EXPORT && arg)
		close(((struct hearth_ioc_export *)arg)->out_fd);
	if (!ret && op->cmd == HEARTH_IOC_OFFER)
		vm_take_back(region);
	return ret ? errno : 0;
}

/* Sealing is for good, and a test of sizes must not lose its region. */
static bool harmless(const struct op *op)
{
	return op->cmd != HEARTH_IOC_SEAL;
}

static void want(const struct op *op, const char *what, int got, int wanted)
{
	if (got != wanted)
		vm_fail(__FILE__, __LINE__, "%s, %s: errno %d (%s), not %d", op->name, what, got,
			strerror(got), wanted);
}

static void short_structs_are_refused(void)
{
	uint32_t sizes[5];
	size_t i, k;

	set_up();
	for (i = 0; i < N_OPS; i++) {
		sizes[0] = 0;
		sizes[1] = 1;
		sizes[2] = 4;
		sizes[3] = ops[i].size / 2;
		sizes[4] = ops[i].size - 1;
		for (k = 0; k < 5; k++) {
			if (sizes[k] >= ops[i].size)
				continue;
			fresh(&ops[i]);
			*(uint32_t *)buf = sizes[k];
			want(&ops[i], "short", call(&ops[i], buf), EINVAL);
		}
	}
	tear_down();
}

static void longer_structs_with_a_zero_tail_are_taken(void)
{
	size_t i;
	int exact;

	set_up();
	for (i = 0; i < N_OPS; i++) {
		if (!harmless(&ops[i]))
			continue;
		fresh(&ops[i]);
		exact = call(&ops[i], buf);
		fresh(&ops[i]);
		*(uint32_t *)buf = ops[i].size + 1;
		want(&ops[i], "long by 1", call(&ops[i], buf), exact);
		fresh(&ops[i]);
		*(uint32_t *)buf = 4096;
		want(&ops[i], "long 4096", call(&ops[i], buf), exact);
	}
	tear_down();
}

static void longer_structs_with_a_tail_are_refused(void)
{
	size_t i;

	set_up();
	for (i = 0; i < N_OPS; i++) {
		fresh(&ops[i]);
		*(uint32_t *)buf = ops[i].size + 1;
		buf[ops[i].size] = 1;
		want(&ops[i], "tail 1", call(&ops[i], buf), E2BIG);
		fresh(&ops[i]);
		*(uint32_t *)buf = 4096;
		buf[4095] = 0x80;
		want(&ops[i], "last byte of the tail", call(&ops[i], buf), E2BIG);
		fresh(&ops[i]);
		*(uint32_t *)buf = 1 << 20;
		want(&ops[i], "longer than any", call(&ops[i], buf), E2BIG);
		*(uint32_t *)buf = ~0U;
		want(&ops[i], "longest", call(&ops[i], buf), E2BIG);
	}
	tear_down();
}

static void bad_pointers_are_refused(void)
{
	unsigned char *edge, *ro;
	size_t i;

	set_up();
	edge = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	EXPECT(edge != MAP_FAILED && !mprotect(edge + PAGE, PAGE, PROT_NONE));
	ro = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	EXPECT(ro != MAP_FAILED);
	for (i = 0; i < N_OPS; i++) {
		uint32_t size = ops[i].size;

		want(&ops[i], "NULL", call(&ops[i], NULL), EFAULT);
		want(&ops[i], "kernel address", call(&ops[i], (void *)-4096L), EFAULT);
		want(&ops[i], "no mapping", call(&ops[i], edge + PAGE), EFAULT);
		/* The last 4 bytes are not there; a call that never needs them is fine. */
		memset(edge, 0, PAGE);
		*(uint32_t *)(edge + PAGE - size + 4) = size;
		if (ops[i].out)
			want(&ops[i], "cut off", call(&ops[i], edge + PAGE - size + 4), EFAULT);
		/* The size is there, the tail is not. */
		memset(edge, 0, PAGE);
		*(uint32_t *)(edge + PAGE - size) = size + 8;
		want(&ops[i], "tail cut off", call(&ops[i], edge + PAGE - size), EFAULT);
		if (ops[i].out) {
			mprotect(ro, PAGE, PROT_READ | PROT_WRITE);
			memset(ro, 0, PAGE);
			*(uint32_t *)ro = size;
			mprotect(ro, PAGE, PROT_READ);
			want(&ops[i], "read-only", call(&ops[i], ro), EFAULT);
		}
	}
	munmap(edge, 2 * PAGE);
	munmap(ro, PAGE);
	tear_down();
}

static void unknown_numbers_are_refused(void)
{
	unsigned int nr;
	size_t i;

	set_up();
	for (nr = 0; nr < 256; nr++) {
		bool on_conn = false, on_region = false;
		unsigned int cmd = _IO(HEARTH_IOC_MAGIC, nr);

		for (i = 0; i < N_OPS; i++) {
			on_conn |= ops[i].cmd == cmd && ops[i].where == CONN;
			on_region |= ops[i].cmd == cmd && ops[i].where == REGION;
		}
		memset(buf, 0, BUF);
		if (!on_conn)
			EXPECT_ERR(ENOTTY, ioctl(admin, cmd, buf));
		if (!on_region)
			EXPECT_ERR(ENOTTY, ioctl(region, cmd, buf));
	}
	/* Right number, but direction and size bits, or another driver's letter. */
	EXPECT_ERR(ENOTTY, ioctl(admin, _IOWR(HEARTH_IOC_MAGIC, HEARTH_CMD_INFO, uint32_t), buf));
	EXPECT_ERR(ENOTTY, ioctl(admin, _IO('K', HEARTH_CMD_INFO), buf));
	tear_down();
}

static void unknown_flags_are_refused(void)
{
	unsigned int bit;
	size_t i;

	set_up();
	for (i = 0; i < N_OPS; i++) {
		if (ops[i].flags < 0)
			continue;
		for (bit = 0; bit < 32; bit++) {
			if (ops[i].known & (1U << bit))
				continue;
			fresh(&ops[i]);
			*(uint32_t *)(buf + ops[i].flags) = 1U << bit;
			want(&ops[i], "unknown flag", call(&ops[i], buf), EOPNOTSUPP);
		}
	}
	tear_down();
}

static void reserved_fields_must_be_zero(void)
{
	size_t i, k;

	set_up();
	for (i = 0; i < N_OPS; i++) {
		for (k = 0; k < 3 && ops[i].reserved[k]; k++) {
			fresh(&ops[i]);
			*(uint32_t *)(buf + ops[i].reserved[k]) = 1;
			want(&ops[i], "reserved", call(&ops[i], buf), EINVAL);
			*(uint32_t *)(buf + ops[i].reserved[k]) = 0x80000000U;
			want(&ops[i], "reserved, top bit", call(&ops[i], buf), EINVAL);
		}
	}
	tear_down();
}

/* A failing call leaves the struct as it was, byte for byte. */
static void failures_leave_the_struct(void)
{
	static unsigned char before[4096];
	size_t i;

	set_up();
	for (i = 0; i < N_OPS; i++) {
		int err;

		/* BUDGET_SET and FIND say that they write some outputs. */
		if (!harmless(&ops[i]) || ops[i].cmd == HEARTH_IOC_BUDGET_SET ||
		    ops[i].cmd == HEARTH_IOC_FIND)
			continue;
		memset(buf, 0xcc, BUF);
		*(uint32_t *)buf = ops[i].size;
		memcpy(before, buf, sizeof(before));
		err = call(&ops[i], buf);
		if (!err && (ops[i].cmd == HEARTH_IOC_INFO))
			continue;
		if (!err && !ops[i].out)
			continue;
		if (!err)
			vm_fail(__FILE__, __LINE__, "%s took 0xcc", ops[i].name);
		if (memcmp(before, buf, sizeof(before)))
			vm_fail(__FILE__, __LINE__, "%s changed its struct, errno %d", ops[i].name, err);
	}
	tear_down();
}

static void names_are_checked(void)
{
	static const char *const wrong[] = {
		"", ".hidden", "/abs", "a b", "a\nb", "\xc3\xa9", "a*", "a\x7f",
	};
	struct hearth_ioc_join j = { .size = sizeof(j), .flags = HEARTH_JOIN_CREATE };
	struct hearth_ioc_keep k = { .size = sizeof(k) };
	struct hearth_ioc_pool_create p = {
		.size = sizeof(p), .kind = HEARTH_POOL_ACCOUNT, .bytes = 4096,
	};
	int fd = vm_open();
	size_t i;

	set_up();
	for (i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		memset(j.name, 0, sizeof(j.name));
		memset(k.name, 0, sizeof(k.name));
		memset(p.name, 0, sizeof(p.name));
		strcpy(j.name, wrong[i]);
		strcpy(k.name, wrong[i]);
		strcpy(p.name, wrong[i]);
		EXPECT_ERR(EINVAL, ioctl(fd, HEARTH_IOC_JOIN, &j));
		EXPECT_ERR(EINVAL, ioctl(region, HEARTH_IOC_KEEP, &k));
		EXPECT_ERR(EINVAL, ioctl(admin, HEARTH_IOC_POOL_CREATE, &p));
	}
	/* No end, and rubbish behind the end. */
	memset(j.name, 'a', sizeof(j.name));
	EXPECT_ERR(EINVAL, ioctl(fd, HEARTH_IOC_JOIN, &j));
	memset(j.name, 0, sizeof(j.name));
	strcpy(j.name, "ok");
	j.name[10] = 'x';
	EXPECT_ERR(EINVAL, ioctl(fd, HEARTH_IOC_JOIN, &j));
	/* The longest one. */
	memset(j.name, 'a', sizeof(j.name) - 1);
	j.name[31] = 0;
	EXPECT(!ioctl(fd, HEARTH_IOC_JOIN, &j));
	tear_down();
}

static void info_tells_what_is_there(void)
{
	struct hearth_ioc_info a = { .size = sizeof(a) };

	set_up();
	EXPECT(!ioctl(admin, HEARTH_IOC_INFO, &a));
	EXPECT(a.out_caps & HEARTH_CAP_SEAL && a.out_caps & HEARTH_CAP_DMABUF);
	EXPECT_EQ(a.out_page_size, PAGE);
	EXPECT_EQ(a.out_block_size, 2 * MiB);
	EXPECT_EQ(a.out_admin, 1);
	EXPECT(a.out_tenant && a.out_pools && a.out_tenants && a.out_regions);
	tear_down();
}

static const struct vm_case cases[] = {
	CASE(short_structs_are_refused),
	CASE(longer_structs_with_a_zero_tail_are_taken),
	CASE(longer_structs_with_a_tail_are_refused),
	CASE(bad_pointers_are_refused),
	CASE(unknown_numbers_are_refused),
	CASE(unknown_flags_are_refused),
	CASE(reserved_fields_must_be_zero),
	CASE(failures_leave_the_struct),
	CASE(names_are_checked),
	CASE(info_tells_what_is_there),
};
VM_MAIN(cases)
