// SPDX-License-Identifier: MIT
/*
 * The CPU engine beside llama.cpp, in one run, on one file:
 *
 *   bench_engine MODEL.gguf [--llama-bench PATH] [--threads N] [--rounds N]
 *                [--gen N] [--prompt N,N,...] [--kv i8|f16] [--depth N] [--json]
 *                [--no-end]
 *
 * Rounds of the two alternate, so that what else the machine does meets both;
 * the median round of each counts. Decode includes sampling (greedy) and the
 * way through the engine's thread; llama-bench's figure has neither. --no-end:
 * tokens that end an answer are made impossible, as a client of the server would
 * do it, which is one more look through the logits.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <jansson.h>

#include "base/thread.h"
#include "engine/engine.h"
#include "gguf/gguf.h"
#include "token/tokenizer.h"

#define PROMPTS_MAX 8
#define ROUNDS_MAX  31

struct figure {
	char name[24];
	double ours[ROUNDS_MAX], theirs[ROUNDS_MAX];
	int n_ours, n_theirs;
};

static struct figure fig[PROMPTS_MAX + 1];
static uint32_t prompt[PROMPTS_MAX] = { 33, 128 }, n_prompt = 2;
static struct sampler_bias no_end[SAMPLER_MAX_BIAS];
static uint32_t n_no_end;
static uint32_t gen = 64, rounds = 5, threads, depth;

static int up(const void *a, const void *b)
{
	const double d = *(const double *)a - *(const double *)b;

	return d < 0 ? -1 : d > 0;
}

static double median(double *v, int n)
{
	if (!n)
		return 0;
	qsort(v, (size_t)n, sizeof(*v), up);
	return v[n / 2];
}

static void die(const char *what)
{
	fprintf(stderr, "bench_engine: %s\n", what);
	exit(1);
}

static void random_tokens(int32_t *t, uint32_t n, uint32_t vocab, uint64_t seed)
{
	uint64_t r = seed * 0x9e3779b97f4a7c15ull + 88172645463325252ull;
	uint32_t i;

	for (i = 0; i < n; i++) {
		r ^= r << 13;
		r ^= r >> 7;
		r ^= r << 17;
		t[i] = (int32_t)(r % vocab);
	}
}

static struct gen_result one(struct session *s, const int32_t *tok, uint32_t n, uint32_t max)
{
	struct gen_request r;
	struct gen_result res;
	struct hearth_err err = { 0 };
	struct gen *g;

	gen_defaults(&r);
	r.tokens = tok;
	r.n_tokens = n;
	r.max_tokens = max;
	r.ignore_eos = true;
	r.sample.bias = no_end;
	r.sample.n_bias = n_no_end;
	if (gen_start(s, &r, &g, &err))
		die(err.text);
	gen_wait(g, -1, &res);
	gen_free(g);
	if (res.finish != GEN_LENGTH)
		die(res.err.text[0] ? res.err.text : "a generation ended early");
	return res;
}

static void our_round(struct engine *e, uint64_t seed)
{
	const uint32_t vocab = engine_the_plan(e)->shape.vocab;
	int32_t *tok = malloc(engine_the_plan(e)->ctx * sizeof(*tok));
	struct hearth_err err = { 0 };
	struct gen_result r;
	struct session *s;
	uint32_t i;

	if (!tok || session_open(e, &s, &err))
		die("no session");
	for (i = 0; i < n_prompt; i++) {
		random_tokens(tok, prompt[i], vocab, seed * 16 + i);
		r = one(s, tok, prompt[i], 1);
		fig[i].ours[fig[i].n_ours++] = prompt[i] / ((double)(r.t_prefilled - r.t_prefill) / 1e9);
	}
	random_tokens(tok, depth + 1, vocab, seed * 16 + 15);
	if (depth)
		one(s, tok, depth, 0);
	r = one(s, tok, depth + 1, gen);
	fig[n_prompt].ours[fig[n_prompt].n_ours++] = (gen - 1) / ((double)(r.t_last - r.t_first) / 1e9);
	session_close(s);
	free(tok);
}

static void their_round(const char *path, const char *model, bool i8, char *ret_version, size_t cap)
{
	char cmd[2048], list[128] = "";
	json_error_t jerr;
	json_t *all, *one_;
	size_t k;
	uint32_t i;
	FILE *f;

	for (i = 0; i < n_prompt; i++)
		snprintf(list + strlen(list), sizeof(list) - strlen(list), "%s%u", i ? "," : "", prompt[i]);
	snprintf(cmd, sizeof(cmd), "'%s' -m '%s' -t %u -p %s -n %u -d %u -r 1 -ngl 0 %s -o json 2>/dev/null",
		 path, model, threads, list, gen, depth, i8 ? "-ctk q8_0 -ctv q8_0 -fa 1" : "");
	f = popen(cmd, "r");
	all = f ? json_loadf(f, 0, &jerr) : NULL;
	if (f)
		pclose(f);
	if (!json_is_array(all)) {
		fprintf(stderr, "bench_engine: %s\n", cmd);
		die("that gave no JSON: is it llama.cpp's llama-bench?");
	}
	json_array_foreach(all, k, one_) {
		const int np = (int)json_integer_value(json_object_get(one_, "n_prompt"));
		const int ng = (int)json_integer_value(json_object_get(one_, "n_gen"));
		const double ts = json_number_value(json_object_get(one_, "avg_ts"));

		snprintf(ret_version, cap, "%s", json_string_value(json_object_get(one_, "build_commit")));
		if (ng == (int)gen && !np)
			fig[n_prompt].theirs[fig[n_prompt].n_theirs++] = ts;
		for (i = 0; i < n_prompt; i++)
			if (!ng && np == (int)prompt[i])
				fig[i].theirs[fig[i].n_theirs++] = ts;
	}
	json_decref(all);
}

static void cpu_name(char *buf, size_t cap)
{
	char line[256];
	FILE *f = fopen("/proc/cpuinfo", "r");

	snprintf(buf, cap, "unknown CPU");
	while (f && fgets(line, sizeof(line), f))
		if (!strncmp(line, "model name", 10) && strchr(line, ':')) {
			snprintf(buf, cap, "%s", strchr(line, ':') + 2);
			buf[strcspn(buf, "\n")] = 0;
			break;
		}
	if (f)
		fclose(f);
}

int main(int argc, char **argv)
{
	const char *model = NULL, *llama = NULL;
	char version[64] = "", cpu[128];
	struct hearth_err err = { 0 };
	struct engine_opts o;
	struct engine *e;
	struct rusage ru;
	struct utsname un;
	bool json = false, ends = false;
	uint32_t i, most = 0;
	int a;

	engine_defaults(&o);
	threads = thread_cores();
	for (a = 1; a < argc; a++) {
		const char *v = a + 1 < argc ? argv[a + 1] : "";

		if (!strcmp(argv[a], "--llama-bench"))
			llama = argv[++a];
		else if (!strcmp(argv[a], "--threads"))
			threads = (uint32_t)atoi(v), a++;
		else if (!strcmp(argv[a], "--rounds"))
			rounds = (uint32_t)atoi(v), a++;
		else if (!strcmp(argv[a], "--gen"))
			gen = (uint32_t)atoi(v), a++;
		else if (!strcmp(argv[a], "--depth"))
			depth = (uint32_t)atoi(v), a++;
		else if (!strcmp(argv[a], "--backend"))
			o.backend = argv[++a];
		else if (!strcmp(argv[a], "--kv"))
			o.kv = strcmp(argv[++a], "f16") ? KV_I8 : KV_F16;
		else if (!strcmp(argv[a], "--json"))
			json = true;
		else if (!strcmp(argv[a], "--no-end"))
			ends = true;
		else if (!strcmp(argv[a], "--prompt")) {
			for (n_prompt = 0; n_prompt < PROMPTS_MAX && *v; n_prompt++) {
				prompt[n_prompt] = (uint32_t)strtoul(v, (char **)&v, 10);
				v += *v == ',';
			}
			a++;
		} else if (argv[a][0] != '-')
			model = argv[a];
		else
			die("unknown option");
	}
	if (llama && access(llama, X_OK)) {
		fprintf(stderr, "bench_engine: %s: %s\n", llama, strerror(errno));
		return 1;
	}
	if (!model || rounds < 1 || rounds > ROUNDS_MAX || gen < 2)
		die("usage: bench_engine MODEL.gguf [--llama-bench PATH] [--threads N] [--rounds N] [--gen N] "
		    "[--prompt N,N] [--kv i8|f16] [--depth N] [--backend NAME] [--no-end] [--json]");
	for (i = 0; i < n_prompt; i++) {
		snprintf(fig[i].name, sizeof(fig[i].name), "prefill %u", prompt[i]);
		most = prompt[i] > most ? prompt[i] : most;
	}
	snprintf(fig[n_prompt].name, sizeof(fig[0].name), depth ? "decode @%u" : "decode", depth);
	most = depth + gen > most ? depth + gen : most;
	o.model = model;
	o.threads = threads;
	o.ctx = most + 64;
	o.chunk = 512;
	o.prefix_cache = false;
	if (engine_open(&o, &e, &err))
		die(err.text);
	for (i = 0; ends && i < tok_count(engine_tokenizer(e)) && n_no_end < SAMPLER_MAX_BIAS; i++)
		if (tok_is_eog(engine_tokenizer(e), (int32_t)i))
			no_end[n_no_end++] = (struct sampler_bias){ (int32_t)i, -INFINITY };
	our_round(e, 99);   /* pages in, threads up */
	for (i = 0; i <= n_prompt; i++)
		fig[i].n_ours = 0;
	for (i = 0; i < rounds; i++) {
		our_round(e, i);
		if (llama)
			their_round(llama, model, o.kv == KV_I8, version, sizeof(version));
	}
	uname(&un);
	cpu_name(cpu, sizeof(cpu));
	getrusage(RUSAGE_SELF, &ru);
	if (!json) {
		printf("%s, %u threads, Linux %s; %s, %s, KV %s; %u rounds%s%s\n", cpu, threads, un.release,
		       engine_the_plan(e)->model, engine_the_plan(e)->backend, o.kv == KV_I8 ? "int8" : "f16",
		       rounds, llama ? "; llama.cpp " : "", version);
		printf("computing on %s: %s\n", engine_the_plan(e)->backend, engine_the_plan(e)->why);
		printf("%-14s %12s %12s %8s\n", "tokens/s", "hearth", "llama.cpp", "ratio");
	} else {
		printf("{\"cpu\": \"%s\", \"threads\": %u, \"model\": \"%s\", \"backend\": \"%s\", \"llama_cpp\": \"%s\", \"figures\": [",
		       cpu, threads, engine_the_plan(e)->model, engine_the_plan(e)->backend, version);
	}
	for (i = 0; i <= n_prompt; i++) {
		const double x = median(fig[i].ours, fig[i].n_ours), y = median(fig[i].theirs, fig[i].n_theirs);

		if (json)
			printf("%s{\"name\": \"%s\", \"hearth\": %.2f, \"llama_cpp\": %.2f}", i ? ", " : "", fig[i].name, x, y);
		else if (y > 0)
			printf("%-14s %12.1f %12.1f %8.2f\n", fig[i].name, x, y, x / y);
		else
			printf("%-14s %12.1f %12s %8s\n", fig[i].name, x, "-", "-");
	}
	if (json)
		printf("]}\n");
	else
		printf("peak resident %.0f MB, planned %.0f MB\n", (double)ru.ru_maxrss / 1e3,
		       (double)engine_the_plan(e)->total / 1e6);
	engine_close(e);
	return 0;
}
