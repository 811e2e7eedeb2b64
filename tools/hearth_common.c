// SPDX-License-Identifier: MIT
#include "hearth.h"

#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/utf8.h"

int complain(int code, const char *fmt, ...)
{
	va_list ap;

	fflush(stdout);
	fputs("hearth: ", stderr);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	return code;
}

static void progress(void *arg, uint64_t done, uint64_t total)
{
	int percent = total ? (int)(done * 100 / total) : 100, i;
	int *last = arg;

	if (percent == *last)
		return;
	*last = percent;
	fputs("\rmodel [", stderr);
	for (i = 0; i < 40; i++)
		fputc(i * 100 < percent * 40 ? '#' : ' ', stderr);
	fprintf(stderr, "] %3d %%", percent);
	if (done == total)
		fputs("\r\033[K", stderr);
}

void common_defaults(struct common *c)
{
	static int last = -1;

	memset(c, 0, sizeof(*c));
	voice_defaults(&c->voice);
	data_path("models/home-q8_0.gguf", c->model, sizeof(c->model));
	data_path("docs/examples/home.yaml", c->home, sizeof(c->home));
	cache_path("silero-16k-1.weights", c->weights, sizeof(c->weights));
	cache_path("stt", c->stt_dir, sizeof(c->stt_dir));
	c->voice.model = c->model;
	c->voice.home = c->home;
	c->voice.vad_weights = c->weights;
	c->voice.stt_dir = c->stt_dir;
	if (isatty(STDERR_FILENO)) {
		c->voice.progress = progress;
		c->voice.progress_arg = &last;
	}
}

int common_number(const char *what, const char *s, long min, long max, long *ret)
{
	char *end;
	long v;

	errno = 0;
	v = strtol(s, &end, 10);
	if (errno || end == s || *end || v < min || v > max)
		return complain(EXIT_USAGE, "%s must be a number from %ld to %ld, not \"%s\"", what, min, max, s);
	*ret = v;
	return 0;
}

/* "llm.kv=64M" */
static int budget(struct common *c, const char *s)
{
	const char *dot = strchr(s, '.'), *eq = strchr(s, '=');
	enum hearth_kind kind;
	char name[32], *end;
	double v;
	int t;

	if (dot && eq && dot < eq && (size_t)(eq - dot - 1) < sizeof(name)) {
		memcpy(name, dot + 1, (size_t)(eq - dot - 1));
		name[eq - dot - 1] = 0;
		for (t = 0; t < VOICE_TENANTS; t++) {
			const char *tenant = voice_tenant_name((enum voice_tenant)t);

			if (strlen(tenant) != (size_t)(dot - s) || strncmp(tenant, s, (size_t)(dot - s)) || hearth_kind_parse(name, &kind))
				continue;
			v = strtod(eq + 1, &end);
			v *= *end == 'K' || *end == 'k' ? 1024.0 : *end == 'M' ? 1048576.0 : *end == 'G' ? 1073741824.0 : 1.0;
			if (end == eq + 1 || (*end && end[1]) || (*end && !strchr("KkMG", *end)) || !(v >= 1 && v < 1e15))
				break;
			c->voice.max[t][kind] = (uint64_t)v;
			return 0;
		}
	}
	return complain(EXIT_USAGE, "--budget wants TENANT.POOL=SIZE, like llm.kv=64M, not \"%s\"; tenants llm, stt, tts, vad, audio; pools weights, kv, scratch, account", s);
}

int common_option(struct common *c, int opt, const char *arg)
{
	static const char *const backends[] = { "auto", "cpu", "cuda", "ref", "plain", "avx2", "avx512", "neon" };
	long v = 0;
	int ret;

	switch (opt) {
	case 'm': c->voice.model = arg; return 0;
	case 'H': c->voice.home = arg; return 0;
	case 1000: c->voice.here = arg; return 0;
	case 1001: c->voice.voice = arg; return 0;
	case 'c':
		ret = common_number("--ctx", arg, 1, 1 << 20, &v);
		c->voice.ctx = (uint32_t)v;
		return ret;
	case 't':
		ret = common_number("--threads", arg, 1, 64, &v);
		c->voice.threads = (uint32_t)v;
		return ret;
	case 1002:
		if (strcmp(arg, "int8") && strcmp(arg, "f16"))
			return complain(EXIT_USAGE, "--kv must be int8 or f16, not \"%s\"", arg);
		c->voice.kv = strcmp(arg, "f16") ? KV_I8 : KV_F16;
		return 0;
	case 1003: return budget(c, arg);
	case 1004:
	case 1005:
		if (c->voice.backend != HEARTH_BACKEND_AUTO && c->voice.backend != (opt == 1004 ? HEARTH_BACKEND_DEVICE : HEARTH_BACKEND_EMBEDDED))
			return complain(EXIT_USAGE, "--device or --embedded, not both");
		c->voice.backend = opt == 1004 ? HEARTH_BACKEND_DEVICE : HEARTH_BACKEND_EMBEDDED;
		return 0;
	case 1006:
		ret = common_number("--end-wait", arg, 32, 5000, &v);
		c->voice.end_wait_ms = (int)v;
		c->voice.sched.adapt = false;
		return ret;
	case 1007: c->voice.sched.paced = false; return 0;
	case 1008: c->voice.sched.early = false; return 0;
	case 1009:
		if (!strcmp(arg, "energy"))
			c->voice.vad_weights = NULL;
		else if (strcmp(arg, "silero"))
			return complain(EXIT_USAGE, "--vad must be silero or energy, not \"%s\"", arg);
		return 0;
	case 1010:
		for (size_t i = 0; strcmp(backends[i], arg); i++)
			if (i + 1 == sizeof(backends) / sizeof(backends[0]))
				return complain(EXIT_USAGE, "--backend must be cpu, cuda or ref (auto, plain, avx2, avx512, neon are there to compare), not \"%s\"", arg);
		c->voice.compute = arg;
		return 0;
	case 'j': c->json = true; return 0;
	case 'q': c->quiet = true; return 0;
	}
	return 1;
}

int common_open(struct common *c, struct voice **ret_voice)
{
	static const int codes[] = {
		[VOICE_PART_NONE] = EXIT_OTHER, [VOICE_PART_HERE] = EXIT_USAGE, [VOICE_PART_HOME] = EXIT_HOME, [VOICE_PART_MODEL] = EXIT_MODEL,
		[VOICE_PART_FIT] = EXIT_FIT, [VOICE_PART_DEVICE] = EXIT_DEVICE, [VOICE_PART_SPEECH] = EXIT_SPEECH,
	};
	enum voice_part part = VOICE_PART_NONE;
	struct hearth_err err = { 0 };
	char path[4096];

	/* Sentences that this home's people also say; only where they were made. */
	data_path("models/home-sentences.txt", path, sizeof(path));
	if (voice_open(&c->voice, ret_voice, &part, &err))
		return complain(codes[part], "%s", err.text);
	return 0;
}

int exit_of(const struct turn_result *r)
{
	switch (r->end) {
	case TURN_ANSWERED: return EXIT_OK;
	case TURN_NOTHING: return EXIT_HEARD_NOTHING;
	case TURN_REJECTED: return EXIT_NO_COMMAND;
	case TURN_CANCELLED: return EXIT_STOPPED;
	case TURN_FAILED: break;
	}
	switch (r->err.code) {
	case -ENOSPC: case -EDQUOT: case -EFBIG: case -EPIPE: case -EROFS: case -EACCES: return EXIT_OUTPUT;
	case -EBADMSG: case -ENODATA: return EXIT_AUDIO;
	case -E2BIG: case -ENOMEM: return EXIT_FIT;
	case -ENODEV: return EXIT_DEVICE;
	}
	return EXIT_OTHER;
}

const char *mib(uint64_t bytes, char buf[32])
{
	if (bytes > INT64_MAX)
		snprintf(buf, 32, "none");
	else
		snprintf(buf, 32, "%.2f", (double)bytes / 1048576.0);
	return buf;
}

/* -- the plan and the tenants, for people and machines -- */

void print_plan(FILE *out, const struct voice_plan *p)
{
	char a[32], b[32];
	int t, k;

	fprintf(out, "model    %s (%s), %.1f M weights\n", p->engine.model, p->engine.arch, (double)p->engine.params / 1e6);
	fprintf(out, "compute  %s, %u threads: %s\n", p->engine.backend, p->engine.threads, p->engine.why);
	fprintf(out, "context  %u tokens, %s KV, %llu bytes a token\n", p->engine.ctx, p->engine.kv == KV_I8 ? "int8" : "f16",
		(unsigned long long)p->engine.kv_bytes_per_token);
	if (p->home_tokens)
		fprintf(out, "home     %u of %u tokens\n", p->home_tokens, p->engine.ctx);
	fprintf(out, "\n  %-8s %-8s %12s %12s   MiB\n", "tenant", "pool", "needs", "max");
	for (t = 0; t < VOICE_TENANTS; t++)
		for (k = 0; k < HEARTH_KIND_COUNT; k++)
			if (p->bytes[t][k] || p->budget[t][k].max)
				fprintf(out, "  %-8s %-8s %12s %12s%s\n", voice_tenant_name((enum voice_tenant)t), hearth_kind_name((enum hearth_kind)k),
					mib(p->bytes[t][k], a), mib(p->budget[t][k].max, b), p->bytes[t][k] > p->budget[t][k].max ? "   does not fit" : "");
	fprintf(out, "  %-8s %-8s %12s\n", "all", "", mib(p->total, a));
	if (p->fits)
		fprintf(out, "\nThe plan fits.\n");
}

json_t *plan_json(const struct voice_plan *p)
{
	json_t *rows = json_array();
	int t, k;

	for (t = 0; t < VOICE_TENANTS; t++)
		for (k = 0; k < HEARTH_KIND_COUNT; k++)
			if (p->bytes[t][k] || p->budget[t][k].max)
				json_array_append_new(rows, json_pack("{s:s, s:s, s:I, s:I, s:I}", "tenant", voice_tenant_name((enum voice_tenant)t), "pool",
					hearth_kind_name((enum hearth_kind)k), "needs", (json_int_t)p->bytes[t][k], "min", (json_int_t)p->budget[t][k].min,
					"max", (json_int_t)p->budget[t][k].max));
	return json_pack("{s:o, s:s, s:s, s:o, s:I, s:i, s:i, s:s, s:I, s:I, s:o, s:b, s:s?, s:i, s:i}", "model", text_json(p->engine.model), "arch", p->engine.arch,
			 "backend", p->engine.backend, "why_backend", text_json(p->engine.why), "params", (json_int_t)p->engine.params, "threads", (int)p->engine.threads, "ctx", (int)p->engine.ctx,
			 "kv", p->engine.kv == KV_I8 ? "int8" : "f16", "kv_bytes_per_token", (json_int_t)p->engine.kv_bytes_per_token,
			 "total", (json_int_t)p->total, "rows", rows, "fits", p->fits, "why_not", p->fits ? NULL : p->why_not,
			 "ctx_fit", (int)(p->fits ? p->engine.ctx : p->engine.ctx_fit), "home_tokens", (int)p->home_tokens);
}

void print_tenants(FILE *out, json_t *rows)
{
	char buf[6][32];
	json_t *r;
	size_t i;
	int k;

	fprintf(out, "  %-8s %-8s %9s %9s %9s %9s %9s   MiB\n", "tenant", "pool", "min", "high", "max", "current", "peak");
	json_array_foreach(rows, i, r) {
		static const char *const keys[] = { "min", "high", "max", "current", "peak" };

		for (k = 0; k < 5; k++)
			mib((uint64_t)json_integer_value(json_object_get(r, keys[k])), buf[k]);
		fprintf(out, "  %-8s %-8s %9s %9s %9s %9s %9s\n", json_string_value(json_object_get(r, "tenant")),
			json_string_value(json_object_get(r, "pool")), buf[0], buf[1], buf[2], buf[3], buf[4]);
	}
}

json_t *text_json(const char *text)
{
	size_t n = strlen(text), used = 0, i = 0;
	char *copy;
	json_t *j;

	if (utf8_valid(text, n) == n)
		return json_string(text);
	copy = malloc(3 * n + 1); /* U+FFFD has three bytes */
	if (!copy)
		return NULL;
	while (i < n) {
		size_t good = utf8_valid(text + i, n - i);

		memcpy(copy + used, text + i, good);
		used += good;
		i += good;
		if (i < n) {
			memcpy(copy + used, "\xef\xbf\xbd", 3);
			used += 3;
			i++;
		}
	}
	j = json_stringn(copy, used);
	free(copy);
	return j;
}

int check_output(const char *path)
{
	char tmp[PATH_MAX];
	struct stat st;
	int fd, bad = 0;

	if (!stat(path, &st) && S_ISDIR(st.st_mode)) {
		bad = EISDIR;
	} else if (!stat(path, &st) && !S_ISREG(st.st_mode)) {
		bad = access(path, W_OK) ? errno : 0;   /* not opened: who reads a pipe would see its end */
	} else if ((size_t)snprintf(tmp, sizeof(tmp), "%s.XXXXXX", path) >= sizeof(tmp)) {
		bad = ENAMETOOLONG;
	} else {
		/* What is written later begins as a new file in this folder. */
		fd = mkstemp(tmp);
		bad = fd < 0 ? errno : 0;
		if (fd >= 0) {
			close(fd);
			unlink(tmp);
		}
	}
	return bad ? complain(EXIT_OUTPUT, "%s cannot be written: %s", path, strerror(bad)) : 0;
}

int put_json(json_t *doc, const char *path)
{
	char tmp[PATH_MAX];
	FILE *f = stdout;
	struct stat st;
	bool whole = false;
	int bad, saved;

	if (!doc)
		return complain(EXIT_OTHER, "no memory for the JSON document");
	if (path && (stat(path, &st) || S_ISREG(st.st_mode))) {
		/* A new file in the same folder, put in place when it is whole. */
		int fd;

		whole = true;
		snprintf(tmp, sizeof(tmp), "%s.XXXXXX", path);
		fd = mkstemp(tmp);
		if (fd >= 0)
			fchmod(fd, 0644);
		f = fd >= 0 ? fdopen(fd, "w") : NULL;
	} else if (path) {
		f = fopen(path, "we");
	}
	if (!f)
		return complain(EXIT_OUTPUT, "%s cannot be written: %s", path, strerror(errno));
	bad = json_dumpf(doc, f, JSON_INDENT(1)) || fputc('\n', f) == EOF || fflush(f) || ferror(f);
	saved = errno;
	if (path) {
		if (!bad && whole && fsync(fileno(f)))
			bad = 1, saved = errno;
		if (fclose(f) && !bad)
			bad = 1, saved = errno;
		if (!bad && whole && rename(tmp, path))
			bad = 1, saved = errno;
		if (bad && whole)
			unlink(tmp);
	}
	if (bad)
		return complain(EXIT_OUTPUT, "%s cannot be written: %s", path ? path : "standard output", strerror(saved));
	return 0;
}

/* -- signals: one thread takes them, so that stopping may do what it needs -- */

static pthread_mutex_t target_lock = PTHREAD_MUTEX_INITIALIZER;
static struct sched *target;      /* protected by target_lock */
static atomic_bool stopped;

static void *wait_for_signals(void *arg)
{
	sigset_t *set = arg;
	int sig;

	for (;;) {
		if (sigwait(set, &sig))
			continue;
		/* The second time, or with nothing to stop gently: nothing is half-written at any moment, so just end. */
		if (atomic_exchange(&stopped, true))
			_exit(EXIT_STOPPED);
		pthread_mutex_lock(&target_lock);
		if (!target)
			_exit(EXIT_STOPPED);
		sched_stop(target);
		pthread_mutex_unlock(&target_lock);
	}
	return NULL;
}

void stop_on_signals(void)
{
	static sigset_t set;
	pthread_t thread;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);
	if (!pthread_create(&thread, NULL, wait_for_signals, &set))
		pthread_detach(thread);
}

void stop_target(struct sched *sched)
{
	pthread_mutex_lock(&target_lock);
	target = sched;
	if (sched && atomic_load(&stopped))
		sched_stop(sched);
	pthread_mutex_unlock(&target_lock);
}

bool was_stopped(void)
{
	return atomic_load(&stopped);
}
