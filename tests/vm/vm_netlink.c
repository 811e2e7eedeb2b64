/* SPDX-License-Identifier: MIT */
/* The netlink family, spoken to without a library: requests, dumps, events. */
#include "vm.h"

#include <linux/genetlink.h>
#include <linux/hearth_netlink.h>
#include <linux/netlink.h>

static int admin, t, nl;
static uint32_t pool, id;
static uint16_t family, group;
static char buf[65536];
static int got;                 /* bytes in buf */

static int nl_open(void)
{
	struct sockaddr_nl a = { .nl_family = AF_NETLINK };
	struct timeval tv = { VM_PATIENCE / 1000000000, 0 };
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_GENERIC);

	EXPECT(fd >= 0);
	EXPECT(!bind(fd, (struct sockaddr *)&a, sizeof(a)));
	EXPECT(!setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv)));
	return fd;
}

struct msg {
	struct nlmsghdr h;
	struct genlmsghdr g;
	char data[512];
};

static void add(struct msg *m, int type, const void *p, int len)
{
	struct nlattr *a = (void *)((char *)m + NLMSG_ALIGN(m->h.nlmsg_len));

	a->nla_type = type;
	a->nla_len = NLA_HDRLEN + len;
	memcpy((char *)a + NLA_HDRLEN, p, len);
	m->h.nlmsg_len = NLMSG_ALIGN(m->h.nlmsg_len) + NLA_ALIGN(a->nla_len);
}

static struct msg request(uint16_t fam, uint8_t cmd, uint16_t flags)
{
	struct msg m = {
		.h = { NLMSG_LENGTH(GENL_HDRLEN), fam, NLM_F_REQUEST | flags, 1, 0 },
		.g = { cmd, 1, 0 },
	};

	return m;
}

/* Sends, and reads one answer; 0 or the errno it says. */
static int ask(struct msg *m)
{
	struct nlmsghdr *h = (void *)buf;

	EXPECT_EQ(send(nl, m, m->h.nlmsg_len, 0), m->h.nlmsg_len);
	got = recv(nl, buf, sizeof(buf), 0);
	EXPECT(got >= (int)sizeof(*h));
	if (h->nlmsg_type == NLMSG_ERROR)
		return -((struct nlmsgerr *)NLMSG_DATA(h))->error;
	return 0;
}

/* The attribute of a message, NULL: not there. */
static struct nlattr *attr(struct nlmsghdr *h, int type)
{
	char *p = (char *)NLMSG_DATA(h) + GENL_HDRLEN, *end = (char *)h + h->nlmsg_len;

	while (p + NLA_HDRLEN <= end) {
		struct nlattr *a = (void *)p;

		if ((a->nla_type & NLA_TYPE_MASK) == type)
			return a;
		p += NLA_ALIGN(a->nla_len);
		if (a->nla_len < NLA_HDRLEN)
			break;
	}
	return NULL;
}

static void *data(struct nlattr *a)
{
	return (char *)a + NLA_HDRLEN;
}

static uint32_t u32_of(struct nlmsghdr *h, int type)
{
	struct nlattr *a = attr(h, type);
	uint32_t v;

	EXPECT(a && a->nla_len == NLA_HDRLEN + 4);
	memcpy(&v, data(a), 4);
	return v;
}

static uint64_t u64_of(struct nlmsghdr *h, int type)
{
	struct nlattr *a = attr(h, type);
	uint64_t v;

	EXPECT(a && a->nla_len == NLA_HDRLEN + 8);
	memcpy(&v, data(a), 8);
	return v;
}

static void find_family(void)
{
	struct msg m = request(GENL_ID_CTRL, CTRL_CMD_GETFAMILY, 0);
	struct nlattr *groups, *g, *x;
	char *end;

	add(&m, CTRL_ATTR_FAMILY_NAME, HEARTH_FAMILY_NAME, sizeof(HEARTH_FAMILY_NAME));
	EXPECT_EQ(ask(&m), 0);
	x = attr((void *)buf, CTRL_ATTR_FAMILY_ID);
	EXPECT(x);
	memcpy(&family, data(x), 2);
	groups = attr((void *)buf, CTRL_ATTR_MCAST_GROUPS);
	EXPECT(groups);
	g = data(groups);
	end = (char *)g + g->nla_len;
	for (x = data(g); (char *)x < end; x = (void *)((char *)x + NLA_ALIGN(x->nla_len))) {
		if ((x->nla_type & NLA_TYPE_MASK) == CTRL_ATTR_MCAST_GRP_ID)
			memcpy(&group, data(x), 2);
		else
			EXPECT(!strcmp(data(x), HEARTH_MCGRP_EVENTS));
	}
	EXPECT(family && group);
}

static void set_up(void)
{
	admin = vm_admin();
	t = vm_open();
	id = vm_join(t, "nl");
	pool = vm_pool(admin, "nl", HEARTH_POOL_ACCOUNT, 1000);
	nl = nl_open();
	find_family();
}

static void tear_down(void)
{
	close(nl);
	close(t);
	vm_pool_remove(admin, pool);
	close(admin);
}

static void figures_are_those_of_the_ioctls(void)
{
	struct hearth_ioc_state s = { .size = sizeof(s) };
	struct nlmsghdr *h = (void *)buf;
	struct msg m;

	set_up();
	EXPECT(!vm_charge(t, pool, 321, 0, NULL));
	m = request(family, HEARTH_NL_CMD_POOL_GET, 0);
	add(&m, HEARTH_A_POOL_ID, &pool, 4);
	EXPECT_EQ(ask(&m), 0);
	EXPECT_EQ(u32_of(h, HEARTH_A_POOL_ID), pool);
	EXPECT_EQ(u64_of(h, HEARTH_A_POOL_CHARGED), 321);
	EXPECT(!strcmp(data(attr(h, HEARTH_A_POOL_NAME)), "nl"));
	m = request(family, HEARTH_NL_CMD_POOL_GET, 0);
	add(&m, HEARTH_A_POOL_NAME, "nl", 3);
	EXPECT_EQ(ask(&m), 0);
	EXPECT_EQ(u32_of(h, HEARTH_A_POOL_ID), pool);
	m = request(family, HEARTH_NL_CMD_TENANT_GET, 0);
	add(&m, HEARTH_A_TENANT_NAME, "nl", 3);
	EXPECT_EQ(ask(&m), 0);
	EXPECT_EQ(u32_of(h, HEARTH_A_TENANT_ID), id);
	m = request(family, HEARTH_NL_CMD_BUDGET_GET, 0);
	add(&m, HEARTH_A_BUDGET_TENANT, &id, 4);
	add(&m, HEARTH_A_BUDGET_POOL, &pool, 4);
	EXPECT_EQ(ask(&m), 0);
	EXPECT_EQ(u64_of(h, HEARTH_A_BUDGET_CURRENT), 321);
	EXPECT_EQ(u64_of(h, HEARTH_A_BUDGET_LIMIT_MAX), HEARTH_NOLIMIT);
	m = request(family, HEARTH_NL_CMD_STATE_GET, 0);
	EXPECT_EQ(ask(&m), 0);
	EXPECT(!ioctl(t, HEARTH_IOC_STATE, &s));
	EXPECT_EQ(u64_of(h, HEARTH_A_STATE_TOTAL), s.out_total);
	EXPECT(u64_of(h, HEARTH_A_STATE_SEQ) <= s.out_seq);
	tear_down();
}

static void wrong_requests_are_refused(void)
{
	uint32_t none = 4711;
	struct msg m;

	set_up();
	m = request(family, HEARTH_NL_CMD_POOL_GET, 0);
	EXPECT_EQ(ask(&m), EINVAL);
	add(&m, HEARTH_A_POOL_ID, &none, 4);
	EXPECT_EQ(ask(&m), ENOENT);
	m = request(family, HEARTH_NL_CMD_POOL_GET, 0);
	add(&m, HEARTH_A_POOL_ID, &none, 2);
	EXPECT_EQ(ask(&m), EINVAL);
	m = request(family, HEARTH_NL_CMD_POOL_GET, 0);
	add(&m, HEARTH_A_POOL_NAME, "no end", 6);
	EXPECT_EQ(ask(&m), EINVAL);
	m = request(family, HEARTH_NL_CMD_POOL_GET, 0);
	add(&m, HEARTH_A_POOL_NAME, "a name that is longer than any name may be", 43);
	EXPECT_EQ(ask(&m), EINVAL);
	m = request(family, HEARTH_NL_CMD_BUDGET_GET, 0);
	add(&m, HEARTH_A_BUDGET_TENANT, &id, 4);
	EXPECT_EQ(ask(&m), EINVAL);
	add(&m, HEARTH_A_BUDGET_POOL, &none, 4);
	EXPECT_EQ(ask(&m), ENOENT);
	m = request(family, HEARTH_NL_CMD_EVENT, 0);
	EXPECT_EQ(ask(&m), EOPNOTSUPP);
	m = request(family, 77, 0);
	EXPECT_EQ(ask(&m), EOPNOTSUPP);
	tear_down();
}

/* Objects of a dump, and the sum of one attribute of it. */
static int dump(uint8_t cmd, int name)
{
	struct msg m = request(family, cmd, NLM_F_DUMP);
	int n = 0;

	EXPECT_EQ(send(nl, &m, m.h.nlmsg_len, 0), m.h.nlmsg_len);
	for (;;) {
		struct nlmsghdr *h = (void *)buf;
		int left = recv(nl, buf, sizeof(buf), 0);

		EXPECT(left > 0);
		for (; NLMSG_OK(h, left); h = NLMSG_NEXT(h, left)) {
			if (h->nlmsg_type == NLMSG_DONE)
				return n;
			EXPECT_EQ(h->nlmsg_type, family);
			EXPECT(attr(h, name));
			n++;
		}
	}
}

static void dumps_are_whole(void)
{
	struct hearth_ioc_info i = { .size = sizeof(i) };
	uint32_t mem;
	int fd[200], r[200], k;

	set_up();
	mem = vm_pool(admin, "mem", HEARTH_POOL_KV, 4 * MiB);
	for (k = 0; k < 200; k++) {
		char name[16];

		snprintf(name, sizeof(name), "many%d", k);
		fd[k] = vm_tenant(name);
		r[k] = vm_region(fd[k], mem, 4096);
	}
	EXPECT(!ioctl(t, HEARTH_IOC_INFO, &i));
	EXPECT_EQ(dump(HEARTH_NL_CMD_TENANT_GET, HEARTH_A_TENANT_ID), i.out_tenants);
	EXPECT_EQ(dump(HEARTH_NL_CMD_POOL_GET, HEARTH_A_POOL_ID), i.out_pools);
	EXPECT_EQ(dump(HEARTH_NL_CMD_BUDGET_GET, HEARTH_A_BUDGET_TENANT), i.out_tenants * i.out_pools);
	EXPECT_EQ(dump(HEARTH_NL_CMD_REGION_GET, HEARTH_A_REGION_ID), i.out_regions);
	for (k = 0; k < 200; k++) {
		close(r[k]);
		close(fd[k]);
	}
	vm_pool_remove(admin, mem);
	tear_down();
}

static void listen_to_events(int fd)
{
	int g = group;

	EXPECT(!setsockopt(fd, SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, &g, sizeof(g)));
}

/* The next event of a kind about our pool. */
static struct nlmsghdr *event(int fd, uint32_t kind)
{
	struct nlmsghdr *h = (void *)buf;

	for (;;) {
		struct nlattr *a;

		got = recv(fd, buf, sizeof(buf), 0);
		EXPECT(got > 0);
		if (((struct genlmsghdr *)NLMSG_DATA(h))->cmd != HEARTH_NL_CMD_EVENT)
			continue;
		a = attr(h, HEARTH_A_EVENT_POOL);
		if (a && !memcmp(data(a), &pool, 4) && u32_of(h, HEARTH_A_EVENT_KIND) == kind)
			return h;
	}
}

static void events_are_multicast(void)
{
	struct nlmsghdr *h;
	uint64_t seq;

	set_up();
	listen_to_events(nl);
	EXPECT(!vm_budget(admin, "nl", pool, HEARTH_SET_MAX, 0, 0, 0, 500, NULL));
	h = event(nl, HEARTH_EV_BUDGET);
	EXPECT_EQ(u64_of(h, HEARTH_A_EVENT_LIMIT), 500);
	EXPECT(!strcmp(data(attr(h, HEARTH_A_EVENT_TENANT_NAME)), "nl"));
	EXPECT(!strcmp(data(attr(h, HEARTH_A_EVENT_POOL_NAME)), "nl"));
	seq = u64_of(h, HEARTH_A_EVENT_SEQ);
	EXPECT(!vm_charge(t, pool, 500, 0, NULL));
	h = event(nl, HEARTH_EV_PRESSURE);
	EXPECT_EQ(u32_of(h, HEARTH_A_EVENT_LEVEL), HEARTH_PRESSURE_CRITICAL);
	EXPECT_EQ(u64_of(h, HEARTH_A_EVENT_CURRENT), 500);
	EXPECT(u64_of(h, HEARTH_A_EVENT_SEQ) > seq);
	tear_down();
}

static void in_a_namespace(void *arg)
{
	int *pipes = arg;
	char c = 'r';

	EXPECT(!unshare(CLONE_NEWNET));
	nl = nl_open();
	find_family();
	listen_to_events(nl);
	EXPECT_EQ(write(pipes[1], &c, 1), 1);
	EXPECT_EQ(u64_of(event(nl, HEARTH_EV_REFUSED), HEARTH_A_EVENT_BYTES), 1001);
}

/*
 * A container: other namespaces, no capability, and only a descriptor that it
 * was handed. Level-triggered: what it did not hear it still sees.
 */
static void in_a_container(void *arg)
{
	struct hearth_ioc_state s = { .size = sizeof(s) };
	struct hearth_ioc_watch w = { .size = sizeof(w), .kinds = 1ULL << HEARTH_EV_PRESSURE };
	int *pipes = arg, conn = pipes[2];
	struct pollfd pfd = { conn, POLLPRI, 0 };
	struct hearth_event_record ev;
	char c = 'r';

	EXPECT(!unshare(CLONE_NEWNET | CLONE_NEWNS));
	/* A small kernel need not have these. */
	EXPECT(!unshare(CLONE_NEWIPC | CLONE_NEWUTS) || errno == EINVAL);
	EXPECT(!setresgid(1000, 1000, 1000) && !setresuid(1000, 1000, 1000));
	EXPECT_EQ(poll(&pfd, 1, 0), 0);
	EXPECT(!ioctl(conn, HEARTH_IOC_WATCH, &w));
	EXPECT_EQ(write(pipes[1], &c, 1), 1);
	EXPECT_EQ(poll(&pfd, 1, VM_PATIENCE / 1000000), 1);
	EXPECT(pfd.revents & POLLPRI);
	EXPECT_EQ(read(conn, &ev, sizeof(ev)), sizeof(ev));
	/* Everything is read, nothing new comes: it says so all the same. */
	EXPECT_EQ(poll(&pfd, 1, 0), 1);
	EXPECT_EQ(poll(&pfd, 1, 0), 1);
	EXPECT(!ioctl(conn, HEARTH_IOC_STATE, &s));
	EXPECT_EQ(s.out_pool, HEARTH_PRESSURE_CRITICAL);
	EXPECT_EQ(s.out_level, HEARTH_PRESSURE_CRITICAL);
	EXPECT_EQ(write(pipes[1], &c, 1), 1);
	UNTIL(!poll(&pfd, 1, 0));
}

static void containers_poll_the_level(void)
{
	int pipes[3];
	pid_t pid;
	char c;

	set_up();
	EXPECT(!pipe(pipes));
	pipes[2] = open("/dev/hearth", O_RDWR | O_CLOEXEC);
	pid = vm_fork(in_a_container, pipes);
	close(pipes[1]);
	EXPECT_EQ(read(pipes[0], &c, 1), 1);
	EXPECT(!vm_charge(t, pool, 1000, 0, NULL));
	EXPECT_EQ(read(pipes[0], &c, 1), 1);
	EXPECT(!vm_uncharge(t, pool, 1000));
	EXPECT_EQ(vm_wait(pid), 0);
	close(pipes[2]);
	tear_down();
}

static void other_namespaces_hear_too(void)
{
	int pipes[2];
	pid_t pid;
	char c;

	set_up();
	EXPECT(!pipe(pipes));
	pid = vm_fork(in_a_namespace, pipes);
	close(pipes[1]);
	EXPECT_EQ(read(pipes[0], &c, 1), 1);
	EXPECT_ERR(ENOSPC, vm_charge(t, pool, 1001, 0, NULL));
	EXPECT_EQ(vm_wait(pid), 0);
	tear_down();
}

/* A small receive buffer overflows; the sequence shows it, the state repairs it. */
static void losses_are_noticed(void)
{
	struct msg m;
	struct nlmsghdr *h = (void *)buf;
	int small = 4096, lost = 0, k, fd;
	uint64_t last = 0, seq;

	set_up();
	fd = nl_open();
	EXPECT(!setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small)));
	listen_to_events(fd);
	for (k = 0; k < 300; k++)
		close(vm_tenant("flicker"));
	fcntl(fd, F_SETFL, O_NONBLOCK);
	for (;;) {
		got = recv(fd, buf, sizeof(buf), 0);
		if (got < 0 && errno == ENOBUFS) {
			lost = 1;
			continue;
		}
		if (got < 0)
			break;
		seq = u64_of(h, HEARTH_A_EVENT_SEQ);
		EXPECT(seq > last);
		last = seq;
	}
	EXPECT_EQ(errno, EAGAIN);
	EXPECT(lost);
	m = request(family, HEARTH_NL_CMD_STATE_GET, 0);
	EXPECT_EQ(ask(&m), 0);
	EXPECT(u64_of(h, HEARTH_A_STATE_SEQ) > last);
	close(fd);
	tear_down();
}

/*
 * Asks and asks and never reads, joins and leaves the group, sends what is no
 * message at all; with a receive buffer that is always full.
 */
static void flooder(void *arg)
{
	unsigned int seed = *(unsigned int *)arg;
	int fd = -1, k, g = group, small = 2048;
	unsigned char junk[256];
	size_t i;

	for (k = 0; k < 400; k++) {
		struct msg m = request(family, rand_r(&seed) % 8, rand_r(&seed) % 2 ? NLM_F_DUMP : 0);
		uint32_t any = rand_r(&seed);

		if (k % 20 == 0) {
			close(fd);
			fd = nl_open();
			EXPECT(!setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small)));
			fcntl(fd, F_SETFL, O_NONBLOCK);
		}
		setsockopt(fd, SOL_NETLINK, rand_r(&seed) % 2 ? NETLINK_ADD_MEMBERSHIP : NETLINK_DROP_MEMBERSHIP,
			   &g, sizeof(g));
		add(&m, rand_r(&seed) % 30, &any, rand_r(&seed) % 5);
		(void)!send(fd, &m, m.h.nlmsg_len, MSG_DONTWAIT);
		/* The head of a message to the family, and rubbish behind it. */
		for (i = 0; i < sizeof(junk); i++)
			junk[i] = rand_r(&seed);
		memcpy(junk, &m.h, sizeof(m.h));
		((struct nlmsghdr *)junk)->nlmsg_len = sizeof(m.h) + rand_r(&seed) % (sizeof(junk) - sizeof(m.h));
		(void)!send(fd, junk, ((struct nlmsghdr *)junk)->nlmsg_len, MSG_DONTWAIT);
		if (rand_r(&seed) % 8 == 0)
			(void)!recv(fd, buf, sizeof(buf), MSG_DONTWAIT);
	}
}

static void floods_hurt_nobody(void)
{
	struct hearth_ioc_info i = { .size = sizeof(i) };
	unsigned int seeds[3] = { 1, 2, 3 }, k;
	struct msg m;
	pid_t pid[3];
	int fd;

	set_up();
	for (k = 0; k < 3; k++)
		pid[k] = vm_fork(flooder, &seeds[k]);
	/* Meanwhile there is much to tell, and others are served. */
	for (k = 0; k < 300; k++) {
		fd = vm_tenant("flicker");
		EXPECT(!vm_charge(fd, pool, 900, 0, NULL));
		EXPECT_ERR(ENOSPC, vm_charge(t, pool, 101, 0, NULL));
		close(fd);
	}
	m = request(family, HEARTH_NL_CMD_POOL_GET, 0);
	add(&m, HEARTH_A_POOL_ID, &pool, 4);
	EXPECT_EQ(ask(&m), 0);
	EXPECT_EQ(u64_of((void *)buf, HEARTH_A_POOL_CHARGED), 0);
	for (k = 0; k < 3; k++)
		EXPECT_EQ(vm_wait(pid[k]), 0);
	EXPECT(!ioctl(t, HEARTH_IOC_INFO, &i));
	EXPECT_EQ(dump(HEARTH_NL_CMD_TENANT_GET, HEARTH_A_TENANT_ID), i.out_tenants);
	tear_down();
}

static const struct vm_case cases[] = {
	CASE(figures_are_those_of_the_ioctls),
	CASE(wrong_requests_are_refused),
	CASE(dumps_are_whole),
	CASE(events_are_multicast),
	CASE(other_namespaces_hear_too),
	CASE(containers_poll_the_level),
	CASE(losses_are_noticed),
	CASE(floods_hurt_nobody),
};
VM_MAIN(cases)
