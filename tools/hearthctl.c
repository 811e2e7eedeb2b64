// SPDX-License-Identifier: MIT
/*
 * hearthctl: looks at and sets what /dev/hearth shares out. This file reads
 * the command line, opens the device, and turns an errno into an exit code.
 */
#include "hearthctl.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/version.h"

static const struct command {
	const char *name;
	int (*run)(struct ctl *c, int argc, char **argv);
	const char *usage;
} commands[] = {
	{ "status", cmd_status, "status" },
	{ "pool", cmd_pool, "pool [list] | create NAME KIND SIZE [--node NODE] | resize NAME SIZE | remove NAME" },
	{ "tenant", cmd_tenant, "tenant [list | show NAME | remove NAME]" },
	{ "budget", cmd_budget, "budget set TENANT POOL [min=N] [low=N] [high=N] [max=N] [--class C] [--priority N]" },
	{ "apply", cmd_apply, "apply [--dry-run] FILE|DIRECTORY..." },
	{ "watch", cmd_watch, "watch [--tenant NAME] [--count N] [--seconds N] [--netlink]" },
	{ "regions", cmd_regions, "regions [POOL]" },
	{ "drop", cmd_drop, "drop POOL REGION" },
	{ "unload", cmd_unload, "unload" },
	{ "exec", cmd_exec, "exec --tenant NAME [--class C] [--priority N] [--charge POOL=N]... [--wait MS] -- COMMAND..." },
};

#define COMMANDS (sizeof(commands) / sizeof(commands[0]))

static void print_usage(FILE *to)
{
	fprintf(to, "usage: hearthctl [--device PATH] [--json] COMMAND\n");
	for (size_t i = 0; i < COMMANDS; i++)
		fprintf(to, "  %s\n", commands[i].usage);
	fprintf(to, "Sizes are bytes, with K, M, G or T for powers of 1024, or max.\n");
}

/* How errors are told; main knows before anything can fail. */
static bool json_errors;

static int complain(int code, const char *fmt, va_list ap, const char *hint)
{
	char text[4096];

	vsnprintf(text, sizeof(text), fmt, ap);
	if (json_errors) {
		json_t *j = json_pack("{s:s, s:i}", "error", text, "exit", code);

		json_dumpf(j, stderr, JSON_COMPACT);
		fputc('\n', stderr);
		json_decref(j);
	} else {
		fprintf(stderr, "hearthctl: %s%s\n", text, hint);
	}
	return code;
}

int ctl_error(int code, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	complain(code, fmt, ap, code == EX_NOT_THERE ?
		 " (hearthctl status and hearthctl regions list what is there)" : "");
	va_end(ap);
	return code;
}

int ctl_usage(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	complain(EX_USAGE_, fmt, ap, " (hearthctl --help lists the commands)");
	va_end(ap);
	return EX_USAGE_;
}

int ctl_bad_option(char **argv)
{
	return ctl_usage("%s is no option here, or lacks its value", argv[optind - 1]);
}

int ctl_done(struct ctl *c)
{
	if (c->json)
		ctl_print_json(json_pack("{s:b}", "done", 1));
	return EX_DONE;
}

static int exit_code(int ret)
{
	switch (ret) {
	case -ENODEV:
		return EX_NO_DEVICE;
	case -EPERM:
	case -EACCES:
		return EX_NOT_PERMITTED;
	case -ENOSPC:
	case -ETIMEDOUT:
		return EX_DOES_NOT_FIT;
	case -ENOENT:
		return EX_NOT_THERE;
	case -EBUSY:
	case -EEXIST:
		return EX_IN_USE;
	default:
		return EX_FAILED;
	}
}

int ctl_fail(struct ctl *c, int ret)
{
	return ctl_error(exit_code(ret), "%s", c->err.text[0] ? c->err.text : strerror(-ret));
}

static int open_device(struct ctl *c, bool admin)
{
	struct hearth_options o;
	int ret;

	hearth_options_defaults(&o);
	o.backend = HEARTH_BACKEND_DEVICE;
	if (c->device)
		o.device = c->device;
	ret = hearth_open(&o, &c->h, &c->err);
	return ret || !admin ? ret : hearth_admin(c->h, &c->err);
}

int ctl_open(struct ctl *c, bool admin)
{
	int ret = open_device(c, admin);

	return ret ? ctl_fail(c, ret) : EX_DONE;
}

int ctl_open_quietly(struct ctl *c)
{
	return open_device(c, false);
}

const char *ctl_bytes(uint64_t bytes, char *buf)
{
	static const char unit[] = "KMGT";
	double v = (double)bytes;
	int i = -1;

	if (bytes == HEARTH_UNLIMITED) {
		strcpy(buf, "max");
		return buf;
	}
	while (v >= 1024 && i < 3) {
		v /= 1024;
		i++;
	}
	if (i < 0)
		snprintf(buf, 24, "%" PRIu64, bytes);
	else
		snprintf(buf, 24, "%.1f%c", v, unit[i]);
	return buf;
}

int ctl_parse_bytes(const char *text, uint64_t *ret_bytes)
{
	static const char unit[] = "KMGT";
	unsigned long long v, scale = 1;
	const char *at;
	char *end;

	if (!strcmp(text, "max") || !strcmp(text, "unlimited")) {
		*ret_bytes = HEARTH_UNLIMITED;
		return 0;
	}
	if (text[0] < '0' || text[0] > '9')
		return -EINVAL;
	errno = 0;
	v = strtoull(text, &end, 10);
	if (errno)
		return -EINVAL;
	at = *end ? strchr(unit, *end >= 'a' ? *end - 'a' + 'A' : *end) : NULL;
	if (at) {
		for (const char *u = unit; u <= at; u++)
			scale *= 1024;
		end++;
		if (end[0] == 'i' && end[1] == 'B')
			end++;
	}
	if (*end == 'B')
		end++;
	if (*end || v > (UINT64_MAX - 1) / scale)
		return -EINVAL;
	*ret_bytes = v * scale;
	return 0;
}

json_t *ctl_json_bytes(uint64_t bytes)
{
	return bytes > INT64_MAX ? json_string("max") : json_integer((json_int_t)bytes);
}

void ctl_print_json(json_t *j)
{
	json_dumpf(j, stdout, JSON_INDENT(2));
	putchar('\n');
	json_decref(j);
}

/* Output that could not be written is a failure, not a success of nobody's. */
static int finish(int code)
{
	if (fflush(stdout) || ferror(stdout)) {
		ctl_error(EX_FAILED, "cannot write: %s", strerror(errno));
		return code ? code : EX_FAILED;
	}
	return code;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "device", required_argument, NULL, 'd' },
		{ "json", no_argument, NULL, 'j' },
		{ "help", no_argument, NULL, 'h' },
		{ "version", no_argument, NULL, 'V' },
		{ NULL, 0, NULL, 0 },
	};
	struct ctl c = { 0 };
	int opt, code = EX_USAGE_;
	size_t i;

	/* before anything can be wrong; it is understood after the command too */
	for (int k = 1; k < argc && strcmp(argv[k], "--"); k++) {
		if (strcmp(argv[k], "--json"))
			continue;
		c.json = json_errors = true;
		opterr = 0;
		memmove(&argv[k], &argv[k + 1], (size_t)(argc - k) * sizeof(*argv));
		argc--;
		break;
	}
	while ((opt = getopt_long(argc, argv, "+d:jhV", options, NULL)) != -1) {
		switch (opt) {
		case 'd':
			c.device = optarg;
			break;
		case 'j':
			c.json = json_errors = true;
			break;
		case 'h':
			print_usage(stdout);
			return finish(EX_DONE);
		case 'V':
			printf("hearthctl " HEARTH_VERSION "\n");
			return finish(EX_DONE);
		default:
			if (c.json)
				return ctl_bad_option(argv);
			print_usage(stderr);
			return EX_USAGE_;
		}
	}
	if (optind == argc) {
		if (c.json)
			return ctl_usage("there is no command");
		print_usage(stderr);
		return EX_USAGE_;
	}
	argc -= optind;
	argv += optind;
	optind = 0;  /* the command reads its own options, and says what is wrong itself */
	opterr = 0;
	for (i = 0; i < COMMANDS && strcmp(commands[i].name, argv[0]); i++)
		;
	if (i == COMMANDS)
		return ctl_usage("there is no command %s", argv[0]);
	code = commands[i].run(&c, argc, argv);
	hearth_close(c.h);
	return finish(code);
}
