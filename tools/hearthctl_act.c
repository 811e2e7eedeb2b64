// SPDX-License-Identifier: MIT
/* hearthctl's acts: budget set, drop, watch, exec. */
#include "hearthctl.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mono.h"

static int parse_number(const char *text, long min, long max, long *ret_n)
{
	char *end;
	long v;

	errno = 0;
	v = strtol(text, &end, 10);
	if (errno || end == text || *end || v < min || v > max)
		return -EINVAL;
	*ret_n = v;
	return 0;
}

/* -- budget set --------------------------------------------------------------------- */

/* "max=1G" into the limit that it names. */
static int parse_limit(const char *text, struct hearth_budget *b)
{
	uint64_t *limits[] = { &b->min, &b->low, &b->high, &b->max };
	static const char *const names[] = { "min", "low", "high", "max" };
	const char *eq = strchr(text, '=');

	for (int i = 0; eq && i < 4; i++) {
		if ((size_t)(eq - text) == strlen(names[i]) &&
		    !strncmp(text, names[i], strlen(names[i])))
			return ctl_parse_bytes(eq + 1, limits[i]);
	}
	return -EINVAL;
}

/* What the tenant has in the pool now, so that what is not named stays. */
static int find_line(struct ctl *c, struct hearth_budget_line *line)
{
	struct hearth_state_row *rows = NULL;
	size_t n;
	int ret;

	ret = hearth_state(c->h, &rows, &n, NULL);
	if (ret)
		return ret;
	hearth_budget_defaults(&line->budget);
	line->cls = HEARTH_CLASS_OTHER;
	for (size_t i = 0; i < n; i++) {
		if (strcmp(rows[i].tenant, line->tenant))
			continue;
		line->cls = rows[i].cls;
		line->priority = rows[i].priority;
		if (!strcmp(rows[i].pool, line->pool))
			line->budget = rows[i].usage.budget;
	}
	free(rows);
	return 0;
}

int cmd_budget(struct ctl *c, int argc, char **argv)
{
	static const struct option options[] = {
		{ "class", required_argument, NULL, 'c' },
		{ "priority", required_argument, NULL, 'p' },
		{ NULL, 0, NULL, 0 },
	};
	struct hearth_budget_line line = { 0 };
	enum hearth_class cls = HEARTH_CLASS_COUNT;
	struct hearth_budget trial;
	long priority = -1;
	int opt, code, ret;

	if (argc < 2 || strcmp(argv[1], "set"))
		return ctl_usage("budget takes set TENANT POOL LIMIT=SIZE...");
	argc--;
	argv++;
	while ((opt = getopt_long(argc, argv, "c:p:", options, NULL)) != -1) {
		if (opt == 'c' && hearth_class_parse(optarg, &cls))
			return ctl_usage("%s is no class: stt, tts, llm, vad, vision, embed or other", optarg);
		if (opt == 'p' && parse_number(optarg, 0, 1000, &priority))
			return ctl_usage("%s is no priority from 0 to 1000", optarg);
		if (opt == '?')
			return ctl_bad_option(argv);
	}
	if (argc - optind < 2)
		return ctl_usage("budget set needs TENANT and POOL");
	line.tenant = argv[optind];
	line.pool = argv[optind + 1];
	if (argc - optind == 2 && cls == HEARTH_CLASS_COUNT && priority < 0)
		return ctl_usage("budget set needs something to set: min=, low=, high=, max=, --class or --priority");
	for (int i = optind + 2; i < argc; i++) {
		if (parse_limit(argv[i], &trial))
			return ctl_usage("%s is no limit like max=512M", argv[i]);
	}
	code = ctl_open(c, true);
	if (code)
		return code;
	ret = find_line(c, &line);
	if (ret)
		return ctl_fail(c, ret);
	for (int i = optind + 2; i < argc; i++)
		parse_limit(argv[i], &line.budget);
	if (cls != HEARTH_CLASS_COUNT)
		line.cls = cls;
	if (priority >= 0)
		line.priority = (int)priority;
	ret = hearth_budget_apply(c->h, &line, 1, NULL, &c->err);
	return ret ? ctl_fail(c, ret) : ctl_done(c);
}

int cmd_drop(struct ctl *c, int argc, char **argv)
{
	struct hearth_pool *pool;
	int code, ret;

	if (argc != 3)
		return ctl_usage("drop needs POOL and REGION");
	code = ctl_open(c, true);
	if (code)
		return code;
	pool = hearth_pool_named(c->h, argv[1]);
	if (!pool)
		return ctl_error(EX_NOT_THERE, "there is no pool %s", argv[1]);
	ret = hearth_region_drop(pool, argv[2], &c->err);
	return ret ? ctl_fail(c, ret) : ctl_done(c);
}

/* -- watch ---------------------------------------------------------------------------- */

static volatile sig_atomic_t stopped;

static void stop(int sig)
{
	stopped = 1;
}

static void print_event(struct ctl *c, const struct hearth_event *ev)
{
	bool pressure = ev->type == HEARTH_EVENT_PRESSURE, refused = ev->type == HEARTH_EVENT_REFUSED;
	char a[24], b[24], d[24];
	json_t *j;

	if (c->json) {
		j = json_pack("{s:I, s:I, s:s, s:I, s:I}", "seq", (json_int_t)ev->seq,
			      "time_ns", (json_int_t)ev->time_ns, "event", hearth_event_name(ev->type),
			      "bytes", (json_int_t)ev->bytes, "current", (json_int_t)ev->current);
		if (ev->tenant[0])
			json_object_set_new(j, "tenant", json_string(ev->tenant));
		if (ev->pool[0])
			json_object_set_new(j, "pool", json_string(ev->pool));
		if (pressure)
			json_object_set_new(j, "level", json_string(hearth_level_name(ev->level)));
		if (refused)
			json_object_set_new(j, "limit", json_string(
				hearth_why_name((enum hearth_why)ev->limit)));
		else
			json_object_set_new(j, "limit", ctl_json_bytes(ev->limit));
		if (ev->deadline_ns)
			json_object_set_new(j, "deadline_ns", json_integer((json_int_t)ev->deadline_ns));
		/* a line each: what reads it need not wait for an end */
		json_dumpf(j, stdout, JSON_COMPACT);
		putchar('\n');
		json_decref(j);
		fflush(stdout);
		return;
	}
	printf("%12.6f %8" PRIu64 " %-12s %-16s %-12s", (double)ev->time_ns / 1e9, ev->seq,
	       hearth_event_name(ev->type), ev->tenant[0] ? ev->tenant : "-",
	       ev->pool[0] ? ev->pool : "-");
	if (ev->type == HEARTH_EVENT_LOST) {
		printf(" %" PRIu64 " events were lost; hearthctl status has the figures", ev->bytes);
	} else {
		if (pressure)
			printf(" %s", hearth_level_name(ev->level));
		if (ev->bytes)
			printf(" bytes=%s", ctl_bytes(ev->bytes, a));
		printf(" current=%s", ctl_bytes(ev->current, b));
		if (refused)
			printf(" limit=%s", hearth_why_name((enum hearth_why)ev->limit));
		else if (ev->limit)
			printf(" limit=%s", ctl_bytes(ev->limit, d));
		if (ev->deadline_ns)
			printf(" deadline=%.6f", (double)ev->deadline_ns / 1e9);
	}
	putchar('\n');
	fflush(stdout);
}

/* Where events come from: the device, or (e NULL) netlink. */
struct source {
	struct hearth_events *e;
	struct ctl_netlink *n;
};

static int next_event(const struct source *from, struct hearth_event *ev)
{
	return from->e ? hearth_events_read(from->e, ev) : ctl_netlink_read(from->n, ev);
}

static int watch_loop(struct ctl *c, const struct source *from, const char *tenant, long count,
		      long seconds)
{
	struct pollfd p = { .events = POLLIN };
	int64_t end = mono_ns() + seconds * INT64_C(1000000000);
	struct hearth_event ev;
	int64_t left = -1;
	int ret;

	p.fd = from->e ? hearth_events_fd(from->e) : ctl_netlink_fd(from->n);
	while (!stopped && count) {
		if (seconds) {
			left = (end - mono_ns()) / 1000000;
			if (left <= 0)
				return EX_DONE;
		}
		ret = poll(&p, 1, (int)left);
		if (ret < 0 && errno != EINTR)
			return ctl_fail(c, -errno);
		if (ret <= 0)
			continue;
		while (count && (ret = next_event(from, &ev)) == 1) {
			if (tenant && ev.tenant[0] && strcmp(ev.tenant, tenant))
				continue;
			print_event(c, &ev);
			count -= count > 0;
		}
		if (ret < 0)
			return ctl_fail(c, ret);
		if (ferror(stdout))
			return EX_FAILED;
	}
	return EX_DONE;
}

int cmd_watch(struct ctl *c, int argc, char **argv)
{
	static const struct option options[] = {
		{ "tenant", required_argument, NULL, 't' },
		{ "count", required_argument, NULL, 'c' },
		{ "seconds", required_argument, NULL, 's' },
		{ "netlink", no_argument, NULL, 'n' },
		{ NULL, 0, NULL, 0 },
	};
	struct sigaction sa = { .sa_handler = stop };
	const char *tenant = NULL;
	long count = -1, seconds = 0;
	struct source from = { 0 };
	bool netlink = false;
	int opt, code, ret;

	while ((opt = getopt_long(argc, argv, "t:c:s:n", options, NULL)) != -1) {
		if (opt == 't')
			tenant = optarg;
		if (opt == 'n')
			netlink = true;
		if ((opt == 'c' && parse_number(optarg, 1, INT32_MAX, &count)) ||
		    (opt == 's' && parse_number(optarg, 1, 1000000, &seconds)))
			return ctl_usage("%s is no number from 1", optarg);
		if (opt == '?')
			return ctl_bad_option(argv);
	}
	if (optind != argc)
		return ctl_usage("watch does not take %s", argv[optind]);
	if (netlink) {
		ret = ctl_netlink_open(c, &from.n);
	} else {
		code = ctl_open(c, false);
		if (code)
			return code;
		ret = hearth_events_open(c->h, NULL, &from.e, &c->err);
	}
	if (ret)
		return ctl_fail(c, ret);
	sigaction(SIGINT, &sa, NULL);
	sigaction(SIGTERM, &sa, NULL);
	code = watch_loop(c, &from, tenant, count, seconds);
	hearth_events_close(from.e);
	ctl_netlink_close(from.n);
	return code;
}

/* -- exec ------------------------------------------------------------------------------ */

#define CHARGES_MAX 32

struct exec_args {
	const char *tenant;
	enum hearth_class cls;
	long priority, wait_ms;
	char *charges[CHARGES_MAX];
	int n_charges;
};

static int exec_parse(struct exec_args *x, int argc, char **argv)
{
	static const struct option options[] = {
		{ "tenant", required_argument, NULL, 't' },
		{ "class", required_argument, NULL, 'c' },
		{ "priority", required_argument, NULL, 'p' },
		{ "charge", required_argument, NULL, 'b' },
		{ "wait", required_argument, NULL, 'w' },
		{ NULL, 0, NULL, 0 },
	};
	uint64_t bytes;
	char *eq;
	int opt;

	while ((opt = getopt_long(argc, argv, "+t:c:p:b:w:", options, NULL)) != -1) {
		switch (opt) {
		case 't':
			x->tenant = optarg;
			break;
		case 'c':
			if (hearth_class_parse(optarg, &x->cls))
				return ctl_usage("%s is no class: stt, tts, llm, vad, vision, embed or other",
						 optarg);
			break;
		case 'p':
			if (parse_number(optarg, 0, 1000, &x->priority))
				return ctl_usage("%s is no priority from 0 to 1000", optarg);
			break;
		case 'w':
			if (parse_number(optarg, 0, 86400000, &x->wait_ms))
				return ctl_usage("%s is no time in milliseconds", optarg);
			break;
		case 'b':
			eq = strchr(optarg, '=');
			if (!eq || eq == optarg || ctl_parse_bytes(eq + 1, &bytes) || !bytes ||
			    bytes == HEARTH_UNLIMITED)
				return ctl_usage("%s is no charge like account=512M", optarg);
			if (x->n_charges == CHARGES_MAX)
				return ctl_usage("more than %d charges", CHARGES_MAX);
			x->charges[x->n_charges++] = optarg;
			break;
		default:
			return ctl_bad_option(argv);
		}
	}
	if (!x->tenant)
		return ctl_usage("exec needs --tenant NAME");
	if (optind == argc)
		return ctl_usage("exec needs a command after --");
	return EX_DONE;
}

int cmd_exec(struct ctl *c, int argc, char **argv)
{
	struct exec_args x = { .cls = HEARTH_CLASS_OTHER, .priority = 100 };
	struct hearth_pool *pool;
	struct hearth_tenant *t;
	char fd_text[16], *eq;
	uint64_t bytes = 0;
	int code, ret, fd;

	code = exec_parse(&x, argc, argv);
	if (code)
		return code;
	code = ctl_open(c, false);
	if (code)
		return code;
	ret = hearth_tenant_open(c->h, x.tenant, x.cls, (int)x.priority, &t, &c->err);
	if (ret)
		return ctl_fail(c, ret);
	for (int i = 0; i < x.n_charges; i++) {
		eq = strchr(x.charges[i], '=');
		*eq = '\0';
		pool = hearth_pool_named(c->h, x.charges[i]);
		if (!pool)
			return ctl_error(EX_NOT_THERE, "there is no pool %s", x.charges[i]);
		ctl_parse_bytes(eq + 1, &bytes);
		ret = hearth_charge(t, pool, bytes, (unsigned)x.wait_ms, &c->err);
		if (ret)
			return ctl_fail(c, ret);
	}
	/* the charge lives as long as the descriptor, so the command takes it along */
	fd = hearth_tenant_fd(t);
	if (fd < 0 || fcntl(fd, F_SETFD, 0))
		return ctl_error(EX_FAILED, "the tenant's descriptor cannot be handed on: %s",
				 strerror(fd < 0 ? -fd : errno));
	snprintf(fd_text, sizeof(fd_text), "%d", fd);
	if (setenv("HEARTH_TENANT", x.tenant, 1) || setenv("HEARTH_TENANT_FD", fd_text, 1))
		return ctl_error(EX_FAILED, "no memory for the environment");
	execvp(argv[optind], &argv[optind]);
	ret = errno;
	return ctl_error(ret == ENOENT ? EX_NO_PROGRAM : EX_CANNOT_RUN, "%s cannot be run: %s",
			 argv[optind], strerror(ret));
}
