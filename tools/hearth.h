/* SPDX-License-Identifier: MIT */
/* What the subcommands of `hearth` share: exit codes, options, where files are. */
#ifndef HEARTH_TOOLS_HEARTH_H
#define HEARTH_TOOLS_HEARTH_H

#include <stdbool.h>
#include <stdio.h>

#include "voice/voice.h"

#include "paths.h"

/* Listed in docs/man/hearth.1. */
enum exit_code {
	EXIT_OK = 0,
	EXIT_OTHER = 1,
	EXIT_USAGE = 2,
	EXIT_HEARD_NOTHING = 3,
	EXIT_NO_COMMAND = 4,
	EXIT_AUDIO = 5,      /* the input cannot be read as audio */
	EXIT_MODEL = 6,
	EXIT_HOME = 7,
	EXIT_FIT = 8,        /* a budget or a context does not fit */
	EXIT_OUTPUT = 9,
	EXIT_DEVICE = 10,    /* sound card, microphone, /dev/hearth */
	EXIT_SPEECH = 11,    /* a speech engine or its data */
	EXIT_STOPPED = 130,
};

/* What several subcommands take. */
struct common {
	struct voice_opts voice;
	char model[4096], home[4096], weights[4096], stt_dir[4096], extra[4096];
	bool json, quiet;
};

void common_defaults(struct common *c);

/* The options of struct common for getopt_long(); values from 1000 on. */
#define COMMON_OPTIONS \
	{ "model", required_argument, NULL, 'm' }, \
	{ "home", required_argument, NULL, 'H' }, \
	{ "here", required_argument, NULL, 1000 }, \
	{ "voice", required_argument, NULL, 1001 }, \
	{ "ctx", required_argument, NULL, 'c' }, \
	{ "threads", required_argument, NULL, 't' }, \
	{ "kv", required_argument, NULL, 1002 }, \
	{ "budget", required_argument, NULL, 1003 }, \
	{ "device", no_argument, NULL, 1004 }, \
	{ "embedded", no_argument, NULL, 1005 }, \
	{ "end-wait", required_argument, NULL, 1006 }, \
	{ "fast", no_argument, NULL, 1007 }, \
	{ "no-early", no_argument, NULL, 1008 }, \
	{ "vad", required_argument, NULL, 1009 }, \
	{ "backend", required_argument, NULL, 1010 }, \
	{ "json", no_argument, NULL, 'j' }, \
	{ "quiet", no_argument, NULL, 'q' }, \
	{ "help", no_argument, NULL, 'h' }
#define COMMON_SHORT "m:H:c:t:jqh"

/* A whole number that option @what was given. 0, or an exit code after a sentence. */
int common_number(const char *what, const char *s, long min, long max, long *ret);

/* Takes one option. 0; 1 when it is none of ours; an exit code, after a sentence, when it is wrong. */
int common_option(struct common *c, int opt, const char *arg);

/* Opens the assistant; prints the sentence and returns the exit code when it cannot be. */
int common_open(struct common *c, struct voice **ret_voice);

/* "hearth: " and the sentence on stderr; returns @code. */
int complain(int code, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* The exit code of a turn. */
int exit_of(const struct turn_result *r);

/* "12.3 MiB" */
const char *mib(uint64_t bytes, char buf[32]);

void print_plan(FILE *out, const struct voice_plan *p);
json_t *plan_json(const struct voice_plan *p);
void print_tenants(FILE *out, json_t *tenants);

/* SIGINT and SIGTERM stop @sched; NULL: nothing yet, the program ends with EXIT_STOPPED at once. */
void stop_on_signals(void);
void stop_target(struct sched *sched);
bool was_stopped(void);

/* Whether a file can be put there, asked before the work that fills it. Exit code. */
int check_output(const char *path);
/* Writes @doc to stdout or, whole or not at all, to a file. Exit code. */
int put_json(json_t *doc, const char *path);
/* A text from outside as a JSON string, never NULL for want of UTF-8: a byte that is none becomes U+FFFD. */
json_t *text_json(const char *text);

int main_turn(int argc, char **argv);
int main_plan(int argc, char **argv);
int main_bench(int argc, char **argv);
int main_say(int argc, char **argv);
int main_eval(int argc, char **argv);

#endif
