/* SPDX-License-Identifier: MIT */
/* The parts of hearthctl. Each command is handed what follows its name. */
#ifndef HEARTH_TOOLS_HEARTHCTL_H
#define HEARTH_TOOLS_HEARTHCTL_H

#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>

#include "dev/hearth.h"

/* Exit codes; hearthctl(1) lists them. */
enum {
	EX_DONE = 0,
	EX_FAILED = 1,
	EX_USAGE_ = 2,
	EX_NO_DEVICE = 3,
	EX_NOT_PERMITTED = 4,
	EX_DOES_NOT_FIT = 5,
	EX_BAD_FILE = 6,
	EX_NOT_THERE = 7,
	EX_IN_USE = 8,
	EX_CANNOT_RUN = 126,
	EX_NO_PROGRAM = 127,
};

struct ctl {
	const char *device;
	bool json;
	struct hearth *h;         /* opened on demand */
	struct hearth_err err;
};

/* Opens the device (and, if wanted, as administrator); an exit code. */
int ctl_open(struct ctl *c, bool admin);
/* The same for what is only nice to have: 0 or -errno, and says nothing. */
int ctl_open_quietly(struct ctl *c);
/* Errors go to standard error, as a sentence or, with --json, as an object. */
int ctl_error(int code, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
int ctl_usage(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* getopt_long gave '?'. */
int ctl_bad_option(char **argv);
/* The exit code of an errno, after printing the sentence in c->err. */
int ctl_fail(struct ctl *c, int ret);
/* An act that has nothing to show is done. */
int ctl_done(struct ctl *c);

/* "512.0M", "max", "0"; buf of 24 bytes. */
const char *ctl_bytes(uint64_t bytes, char *buf);
/* 0 or -EINVAL: bytes, with K, M, G, T (powers of 1024), or "max". */
int ctl_parse_bytes(const char *text, uint64_t *ret_bytes);
/* A JSON number, or the string "max" for no limit. */
json_t *ctl_json_bytes(uint64_t bytes);
/* Prints and frees. */
void ctl_print_json(json_t *j);

/* Events by netlink; read gives 1 and an event, 0 when none waits, or -errno. */
struct ctl_netlink;
int ctl_netlink_open(struct ctl *c, struct ctl_netlink **ret_n);
int ctl_netlink_fd(const struct ctl_netlink *n);
int ctl_netlink_read(struct ctl_netlink *n, struct hearth_event *ret_ev);
void ctl_netlink_close(struct ctl_netlink *n);

int cmd_status(struct ctl *c, int argc, char **argv);
int cmd_pool(struct ctl *c, int argc, char **argv);
int cmd_tenant(struct ctl *c, int argc, char **argv);
int cmd_regions(struct ctl *c, int argc, char **argv);
int cmd_budget(struct ctl *c, int argc, char **argv);
int cmd_drop(struct ctl *c, int argc, char **argv);
int cmd_watch(struct ctl *c, int argc, char **argv);
int cmd_exec(struct ctl *c, int argc, char **argv);
int cmd_unload(struct ctl *c, int argc, char **argv);
int cmd_apply(struct ctl *c, int argc, char **argv);

#endif
