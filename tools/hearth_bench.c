// SPDX-License-Identifier: MIT
/* hearth bench turns: the same turns many times over, and the percentiles of their times. */
#include "hearth.h"

#include <getopt.h>
#include <string.h>
#include <sys/resource.h>

static const char help[] =
	"usage: hearth bench turns [OPTION...] FILE.wav...\n"
	"\n"
	"Each file is a conversation of its own, over the home as its file says.\n"
	"\n"
	"  -n, --rounds N       times each file is heard (default: 5)\n"
	"  The options of hearth turn that choose model, home, voice and budgets hold too.\n"
	"  -j, --json           as JSON\n";

int main_bench(int argc, char **argv)
{
	static const struct option options[] = { COMMON_OPTIONS, { "rounds", required_argument, NULL, 'n' }, { NULL, 0, NULL, 0 } };
	struct trace_stats *stats = NULL;
	struct hearth_err err = { 0 };
	struct voice *voice = NULL;
	struct common c;
	int opt, code = 0, i, turns = 0, answered = 0, early = 0;
	long rounds = 5;

	common_defaults(&c);
	while ((opt = getopt_long(argc, argv, COMMON_SHORT "n:", options, NULL)) != -1) {
		if (opt == 'h') {
			fputs(help, stdout);
			return EXIT_OK;
		}
		if (opt == '?')
			return EXIT_USAGE;
		if (opt == 'n') {
			code = common_number("--rounds", optarg, 1, 10000, &rounds);
			if (code)
				return code;
			continue;
		}
		code = common_option(&c, opt, optarg);
		if (code)
			return code;
	}
	if (optind >= argc || strcmp(argv[optind], "turns"))
		return complain(EXIT_USAGE, "hearth bench knows \"turns\"; hearth bench --help tells more");
	if (++optind >= argc)
		return complain(EXIT_USAGE, "no input: give one or more WAV files");
	stop_on_signals();
	code = common_open(&c, &voice);
	if (code)
		return code;
	stop_target(voice_sched(voice));
	if (trace_stats_new(&stats))
		code = complain(EXIT_OTHER, "out of memory");
	for (long r = 0; r < rounds && !code; r++)
		for (i = optind; i < argc && !code && !was_stopped(); i++) {
			struct turn_result res = { 0 };
			struct audio_in *in = NULL;

			if (voice_reset(voice, &err))
				code = complain(EXIT_OTHER, "%s", err.text);
			else if (audio_in_wav(argv[i], AUDIO_RATE, &in, &err))
				code = complain(EXIT_AUDIO, "%s", err.text);
			else if (sched_turn(voice_sched(voice), in, NULL, &res, &err))
				code = complain(EXIT_OTHER, "%s", err.text);
			else {
				turns++;
				answered += res.end == TURN_ANSWERED;
				early += res.early_used;
				if (res.end == TURN_FAILED)
					code = complain(exit_of(&res), "%s: %s", argv[i], res.err.text);
				else if (res.end == TURN_ANSWERED && trace_stats_add(stats, res.trace))
					code = complain(EXIT_OTHER, "out of memory");
			}
			audio_in_close(in);
			turn_result_free(&res);
		}
	if (was_stopped())
		code = EXIT_STOPPED;
	if (!code && c.json) {
		json_t *doc = trace_stats_json(stats);
		struct rusage u;

		getrusage(RUSAGE_SELF, &u);
		json_object_set_new(doc, "heard", json_integer(turns));
		json_object_set_new(doc, "answered", json_integer(answered));
		json_object_set_new(doc, "early_used", json_integer(early));
		json_object_set_new(doc, "max_rss", json_integer((json_int_t)u.ru_maxrss * 1024));
		json_object_set_new(doc, "tenants", voice_tenants(voice));
		json_object_set_new(doc, "plan", plan_json(voice_the_plan(voice)));
		code = put_json(doc, NULL);
		json_decref(doc);
	} else if (!code) {
		struct rusage u;

		getrusage(RUSAGE_SELF, &u);
		printf("%d turns, %d answered, %d begun in the pause\n", turns, answered, early);
		printf("compute     %s: %s\n\n", voice_the_plan(voice)->engine.backend, voice_the_plan(voice)->engine.why);
		trace_stats_write_table(stats, stdout);
		printf("\n  resident memory of the whole process, at most: %.1f MiB\n", (double)u.ru_maxrss / 1024);
	}
	stop_target(NULL);
	trace_stats_free(stats);
	voice_close(voice);
	return code;
}
