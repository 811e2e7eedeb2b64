// SPDX-License-Identifier: MIT
/* hearth turn: one or more turns of a conversation, and where their time and memory went. */
#include "hearth.h"

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/utf8.h"

static const char help[] =
	"usage: hearth turn [OPTION...] FILE.wav...\n"
	"       hearth turn [OPTION...] --mic\n"
	"       hearth turn [OPTION...] --text COMMAND...\n"
	"\n"
	"Several files are the turns of one conversation.\n"
	"\n"
	"  -m, --model FILE     the language model, GGUF (default: the home model)\n"
	"  -H, --home FILE      the home, YAML (default: docs/examples/home.yaml)\n"
	"      --here AREA      where the microphone is\n"
	"  -o, --out FILE       write the answers to a WAV file (default: reply.wav; \"\" none)\n"
	"      --play           play the answers\n"
	"      --mic            listen to the microphone until Ctrl-C\n"
	"      --sound DEVICE   ALSA device of --play and --mic (default: default)\n"
	"      --text           the arguments are commands, not files\n"
	"      --voice NAME     voice of the answer (flite: slt, rms, awb, kal16; espeak-ng)\n"
	"  -c, --ctx N          context in tokens (default: 4096)\n"
	"  -t, --threads N      threads of the model (default: one per core)\n"
	"      --kv TYPE        int8 or f16\n"
	"      --budget T.P=N   the most that tenant T may take in pool P, like llm.kv=64M\n"
	"      --device         memory from /dev/hearth; --embedded: never from it\n"
	"      --end-wait MS    silence that ends a turn (default: 192 to 608, by how the sentence ends)\n"
	"      --fast           read the files as fast as can be, not at the speed of speech\n"
	"      --no-early       no work ahead in a pause\n"
	"      --vad KIND       silero or energy\n"
	"      --backend NAME   compute backend (cpu, cuda, ref)\n"
	"  -j, --json           print everything as one JSON document\n"
	"      --trace FILE     write the turns in Chrome's trace-event format (Perfetto draws it)\n"
	"  -q, --quiet          print the reply alone\n";

#define LOWEST_RATE 6000 /* Hz; below it a consonant is like another */

enum { OPT_PLAY = 2000, OPT_MIC, OPT_SOUND, OPT_TEXT, OPT_TRACE };

static const struct option options[] = {
	COMMON_OPTIONS,
	{ "out", required_argument, NULL, 'o' },
	{ "play", no_argument, NULL, OPT_PLAY },
	{ "mic", no_argument, NULL, OPT_MIC },
	{ "sound", required_argument, NULL, OPT_SOUND },
	{ "text", no_argument, NULL, OPT_TEXT },
	{ "trace", required_argument, NULL, OPT_TRACE },
	{ NULL, 0, NULL, 0 }
};

struct job {
	struct common c;
	const char *out, *sound, *trace;
	bool play, mic, text;
	struct voice *voice;
	struct sched_outs outs;
	json_t *turns;          /* for --json */
	struct trace **traces;
	size_t n_traces;
};

static void print_value(FILE *f, const json_t *v)
{
	char *s = json_dumps(v, JSON_COMPACT | JSON_ENCODE_ANY);

	fputs(json_is_string(v) ? json_string_value(v) : s ? s : "?", f);
	free(s);
}

static void print_call(FILE *f, const json_t *call)
{
	char *args = json_dumps(json_object_get(call, "arguments"), JSON_ENCODE_ANY);
	const json_t *result = json_object_get(call, "result"), *change, *v;
	const char *error = json_string_value(json_object_get(result, "error")), *key;
	size_t i;

	if (!json_is_string(json_object_get(call, "name"))) {
		fprintf(f, "tool call   malformed: %s\n", json_string_value(json_object_get(call, "error")));
		free(args);
		return;
	}
	fprintf(f, "tool call   %s %s\n", json_string_value(json_object_get(call, "name")), args ? args : "");
	free(args);
	if (error)
		fprintf(f, "  refused   %s\n", error);
	json_array_foreach(json_object_get(call, "changes"), i, change) {
		const json_t *from = json_object_get(change, "from"), *to = json_object_get(change, "to");

		fprintf(f, "  changed   %s:", json_string_value(json_object_get(change, "name")));
		json_object_foreach((json_t *)to, key, v) {
			fprintf(f, " %s ", key);
			if (json_object_get(from, key)) {
				print_value(f, json_object_get(from, key));
				fputs(" -> ", f);
			}
			print_value(f, v);
		}
		if (!json_object_size(to))
			fputs(" gone", f);
		fputc('\n', f);
	}
	if (!error && !json_array_size(json_object_get(call, "changes"))) {
		char *text = json_dumps(result, JSON_COMPACT);

		fprintf(f, "  answered  %s\n", text ? text : "");
		free(text);
	}
}

static json_t *result_json(const char *source, const struct turn_result *r)
{
	return json_pack("{s:o, s:s, s:o?, s:o, s:f, s:O, s:o, s:b, s:O, s:s, s:i, s:i, s:i, s:b, s:i, s:i, s:f, s:o, s:I, s:o}",
		"source", text_json(source), "end", turn_end_name(r->end), "error", r->err.text[0] ? text_json(r->err.text) : NULL,
		"transcript", text_json(r->transcript), "score", (double)r->score, "calls", r->calls, "reply", text_json(r->reply), "fallback", r->fallback,
		"phrases", r->phrases, "finish", gen_finish_name(r->finish), "prompt_tokens", (int)r->n_prompt, "cached_tokens", (int)r->n_cached,
		"generated_tokens", (int)r->n_out, "early_used", r->early_used, "early_discarded", (int)r->discarded, "forgotten_turns", r->forgot,
		"heard_s", r->heard_s, "unheard_s", r->unheard_s < 0 ? json_null() : json_real(r->unheard_s),
		"samples_out", (json_int_t)r->samples_out, "trace", trace_json(r->trace));
}

static void print_turn(const struct job *j, const char *source, const struct turn_result *r)
{
	FILE *f = stdout;
	size_t i;
	json_t *call;

	if (j->c.quiet) {
		if (*r->reply)
			fprintf(f, "%s\n", r->reply);
		return;
	}
	fprintf(f, "input       %s\n", source);
	if (r->end == TURN_NOTHING) {
		fprintf(f, "heard       nothing\n");
		return;
	}
	fprintf(f, "heard       %s%s\n", r->transcript, r->end == TURN_REJECTED ? "   (not a command)" : "");
	json_array_foreach(r->calls, i, call)
		print_call(f, call);
	fprintf(f, "reply       %s%s\n", r->reply, r->fallback ? "   (not the model's words)" : "");
	if (r->end == TURN_ANSWERED && r->finish != GEN_STOP)
		fprintf(f, "            the model was cut off: %s\n", gen_finish_name(r->finish));
	if (r->forgot)
		fprintf(f, "            the context was full: %d earlier turn%s forgotten\n", r->forgot, r->forgot == 1 ? " is" : "s are");
	if (r->unheard_s > 2)
		fprintf(f, "            %.1f s of the input after it were not heard\n", r->unheard_s);
	fputc('\n', f);
	trace_write_table(r->trace, f, 100);
	fputc('\n', f);
}

/* One turn; exit code. */
static int one(struct job *j, const char *source)
{
	struct hearth_err err = { 0 };
	struct turn_result r = { 0 };
	struct audio_in *in = NULL;
	struct trace **traces;
	int ret, code;

	if (j->text) {
		ret = sched_turn_text(voice_sched(j->voice), source, &j->outs, &r, &err);
	} else {
		if (j->mic)
			ret = audio_in_mic(j->sound, AUDIO_RATE, &in, &err);
		else
			ret = audio_in_wav(source, AUDIO_RATE, &in, &err);
		if (ret)
			return complain(j->mic ? EXIT_DEVICE : EXIT_AUDIO, "%s", err.text);
		if (audio_in_info(in) && audio_in_info(in)->rate < LOWEST_RATE) {
			code = complain(EXIT_AUDIO, "%s has a rate of %d Hz, which holds no words: %d Hz or more are needed", source,
					audio_in_info(in)->rate, LOWEST_RATE);
			audio_in_close(in);
			return code;
		}
		if (audio_in_remark(in) && !j->c.quiet)
			fprintf(stderr, "hearth: %s\n", audio_in_remark(in));
		if (j->mic && !j->c.quiet && !j->c.json)
			fputs("listening\n", stderr);
		ret = sched_turn(voice_sched(j->voice), in, &j->outs, &r, &err);
		audio_in_close(in);
	}
	if (ret)
		return complain(EXIT_OTHER, "%s", err.text);
	code = exit_of(&r);
	if (code == EXIT_OK || r.end == TURN_REJECTED || r.end == TURN_NOTHING) {
		if (!j->c.json)
			print_turn(j, j->mic ? "microphone" : source, &r);
	}
	if (j->c.json)
		json_array_append_new(j->turns, result_json(j->mic ? "microphone" : source, &r));
	if (r.end == TURN_NOTHING && r.unheard_s > 2)
		complain(code, "%s: %s in %.1f s; the %.1f s after them were not listened to", source, r.err.text, r.heard_s, r.unheard_s);
	else if (r.end == TURN_FAILED || r.end == TURN_REJECTED || r.end == TURN_NOTHING)
		complain(code, "%s%s%s", j->mic || j->text ? "" : source, j->mic || j->text ? "" : ": ", r.err.text);
	traces = realloc(j->traces, (j->n_traces + 1) * sizeof(*traces));
	if (traces) {
		j->traces = traces;
		j->traces[j->n_traces++] = r.trace;
		r.trace = NULL;
	}
	turn_result_free(&r);
	return code;
}

static json_t *rss_json(void)
{
	struct rusage u;

	getrusage(RUSAGE_SELF, &u);
	return json_integer((json_int_t)u.ru_maxrss * 1024);
}

static int finish(struct job *j, int code)
{
	json_t *tenants = voice_tenants(j->voice);
	struct hearth_err err = { 0 };
	struct rusage u;
	bool written = false;
	int ret;

	/* A failed or stopped run leaves no file behind: not half an answer. */
	if (code == EXIT_OK || code == EXIT_NO_COMMAND || code == EXIT_HEARD_NOTHING) {
		if (j->outs.file && audio_out_samples(j->outs.file)) {
			if (audio_out_commit(j->outs.file, &err))
				code = complain(EXIT_OUTPUT, "%s", err.text);
			else
				written = true;
		}
		if (j->outs.card)
			audio_out_commit(j->outs.card, NULL);
	}
	if (j->trace && code != EXIT_STOPPED && code != EXIT_OUTPUT) {
		json_t *doc = trace_chrome(j->traces, j->n_traces);

		ret = put_json(doc, j->trace);
		json_decref(doc);
		if (ret)
			code = ret;
	}
	if (j->c.json && code != EXIT_STOPPED) {
		json_t *doc = json_pack("{s:s, s:o, s:s?, s:s?, s:o?, s:O, s:O, s:o, s:o, s:o}", "backend", hearth_backend_text(voice_hearth(j->voice)),
			"home", text_json(j->c.voice.home), "vad_note", voice_vad_note(j->voice), "stt_note", voice_stt_note(j->voice), "out", written ? text_json(j->out) : NULL,
			"turns", j->turns, "tenants", tenants, "state", home_state(voice_home(j->voice)), "plan", plan_json(voice_the_plan(j->voice)),
			"max_rss", rss_json());

		ret = put_json(doc, NULL);
		json_decref(doc);
		if (ret)
			code = ret;
	} else if (!j->c.quiet && (code == EXIT_OK || code == EXIT_NO_COMMAND || code == EXIT_HEARD_NOTHING)) {
		print_tenants(stdout, tenants);
		getrusage(RUSAGE_SELF, &u);
		printf("\n  resident memory of the whole process, at most: %.1f MiB\n", (double)u.ru_maxrss / 1024);
		if (written)
			printf("  the answer is in %s\n", j->out);
	}
	json_decref(tenants);
	return code;
}

/* Two names of one ordinary file, which one of them would replace. */
static bool same_file(const char *a, const char *b)
{
	struct stat x, y;

	if (!a || !b || !*a || !*b || !strcmp(a, "-") || !strcmp(b, "-"))
		return false;
	if (stat(a, &x) || stat(b, &y))
		return !strcmp(a, b);
	return S_ISREG(x.st_mode) && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

int main_turn(int argc, char **argv)
{
	struct job j = { .out = "reply.wav", .sound = "default" };
	struct hearth_err err = { 0 };
	int opt, code, i, turns = 0, first = 0;
	size_t k;

	common_defaults(&j.c);
	while ((opt = getopt_long(argc, argv, COMMON_SHORT "o:", options, NULL)) != -1) {
		switch (opt) {
		case 'h': fputs(help, stdout); return EXIT_OK;
		case 'o': j.out = optarg; break;
		case OPT_PLAY: j.play = true; break;
		case OPT_MIC: j.mic = true; break;
		case OPT_SOUND: j.sound = optarg; break;
		case OPT_TEXT: j.text = true; break;
		case OPT_TRACE: j.trace = optarg; break;
		case '?': return EXIT_USAGE;
		default:
			code = common_option(&j.c, opt, optarg);
			if (code)
				return code;
		}
	}
	if (optind == argc && !j.mic)
		return complain(EXIT_USAGE, "no input: give a WAV file, --mic or --text; hearth turn --help tells more");
	if (optind < argc && j.mic)
		return complain(EXIT_USAGE, "--mic takes no files");
	for (i = optind; i < argc && !j.text; i++)
		if (same_file(argv[i], j.out) || same_file(argv[i], j.trace))
			return complain(EXIT_USAGE, "%s is what is to be heard: --out and --trace would replace it (give --out another name, or \"\" for none)", argv[i]);
	if (same_file(j.out, j.trace))
		return complain(EXIT_USAGE, "--out and --trace are one file: %s", j.out);
	/* A shell takes a sentence without quotes apart, and each word would be a command. */
	for (i = optind; j.text && argc - optind > 1 && i < argc && strlen(argv[i]) && !strpbrk(argv[i], " \t\r\n"); i++)
		;
	if (j.text && argc - optind > 1 && i == argc)
		return complain(EXIT_USAGE, "--text takes each argument for a command, and these are %d single words: a command of several stands in quotes, as in --text \"%.40s %.40s ...\"",
				argc - optind, argv[optind], argv[optind + 1]);
	stop_on_signals();
	j.c.voice.listen = !j.text;
	/* What cannot be read is said before seconds go into loading. */
	for (i = optind; i < argc && j.text; i++) {
		if (utf8_valid(argv[i], strlen(argv[i])) != strlen(argv[i]))
			return complain(EXIT_USAGE, "command %d is not UTF-8 text", i - optind + 1);
		if (!argv[i][strspn(argv[i], " \t\r\n")])
			return complain(EXIT_USAGE, "command %d is empty", i - optind + 1);
		if (strlen(argv[i]) >= STT_TEXT)
			return complain(EXIT_USAGE, "command %d has %zu bytes; at most %d can be taken", i - optind + 1, strlen(argv[i]), STT_TEXT - 1);
	}
	for (i = optind; i < argc && !j.text; i++) {
		struct audio_in *in = NULL;
		struct stat st;

		/* A pipe can be read only once. */
		if (strcmp(argv[i], "-") == 0 || (!stat(argv[i], &st) && S_ISFIFO(st.st_mode)))
			continue;
		if (audio_in_wav(argv[i], AUDIO_RATE, &in, &err))
			return complain(EXIT_AUDIO, "%s", err.text);
		audio_in_close(in);
	}
	code = *j.out && strcmp(j.out, "-") ? check_output(j.out) : 0;
	if (!code && j.trace)
		code = check_output(j.trace);
	if (!code)
		code = common_open(&j.c, &j.voice);
	if (code)
		return code;
	j.turns = json_array();
	stop_target(voice_sched(j.voice));
	if (!j.c.json && !j.c.quiet) {
		printf("memory      %s\n", hearth_backend_text(voice_hearth(j.voice)));
		printf("compute     %s: %s\n", voice_the_plan(j.voice)->engine.backend, voice_the_plan(j.voice)->engine.why);
		if (voice_vad_note(j.voice) && !j.text)
			printf("note        %s\n", voice_vad_note(j.voice));
		if (voice_stt_note(j.voice) && !j.text)
			printf("note        %s\n", voice_stt_note(j.voice));
		fflush(stdout);
	}
	if (*j.out && audio_out_wav(j.out, voice_rate(j.voice), &j.outs.file, &err))
		code = complain(EXIT_OUTPUT, "%s", err.text);
	if (!code && j.play && audio_out_card(j.sound, voice_rate(j.voice), &j.outs.card, &err))
		code = complain(EXIT_DEVICE, "%s", err.text);
	for (i = optind; !code && !was_stopped() && (j.mic || i < argc); i++, turns++) {
		code = one(&j, j.mic ? "microphone" : argv[i]);
		/* Where nothing was said, or no command, the conversation goes on. */
		if (code == EXIT_HEARD_NOTHING || code == EXIT_NO_COMMAND) {
			if (!j.mic && !first)
				first = code;
			code = 0;
		}
	}
	if (!code)
		code = first;
	if (was_stopped())
		code = j.mic && turns > 1 ? EXIT_OK : EXIT_STOPPED;
	code = finish(&j, code);
	if (code == EXIT_STOPPED)
		complain(code, "stopped");
	stop_target(NULL);
	audio_out_close(j.outs.file);
	audio_out_close(j.outs.card);
	for (k = 0; k < j.n_traces; k++)
		trace_free(j.traces[k]);
	free(j.traces);
	json_decref(j.turns);
	voice_close(j.voice);
	return code;
}
