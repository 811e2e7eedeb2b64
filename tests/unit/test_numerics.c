// SPDX-License-Identifier: MIT
/*
 * Log-probabilities beside llama.cpp's on the same files. The files are made
 * here (synthetic weights of a fixed seed); what llama.cpp said of them, and how
 * far it is from itself when only its own settings change, is in
 * vectors/llama_logprobs.h.
 *
 * Bounds, root mean square over 128 teacher-forced tokens: how far llama.cpp is
 * from itself, which is the larger of its CPU backend's own settings and its CPU
 * against its CUDA backend, with KV in f16 for f16, in q8_0 for int8. With f16
 * weights and f16 KV, where nothing is rounded but KV, 0.001.
 */
#include "unit.h"
#include "synth.h"
#include "engine/engine.h"
#include "gguf/quant.h"
#include "model/ops.h"

#include <math.h>

#include "../vectors/llama_logprobs.h"

#define N 129

static char path[] = "/tmp/hearth-numerics-XXXXXX";

struct got {
	float lp[N];
	uint32_t n;
};

static void on_prompt(void *arg, uint32_t i, int32_t token, float logprob)
{
	struct got *g = arg;

	g->lp[i - 1] = logprob;
	g->n++;
}

/* Log-probabilities of token 1 .. n-1 of a file on a backend. */
static void teacher_forced(const char *file, const int32_t *tok, uint32_t n, const char *backend, enum kv_type kv,
			   struct got *ret)
{
	struct hearth_err err = { 0 };
	struct engine_opts o;
	struct gen_request r;
	struct gen_result res;
	struct session *s;
	struct engine *e;
	struct gen *g;

	memset(ret, 0, sizeof(*ret));
	engine_defaults(&o);
	o.model = file;
	o.backend = backend;
	o.threads = 2;
	o.kv = kv;
	gen_defaults(&r);
	r.tokens = tok;
	r.n_tokens = n;
	r.max_tokens = 0;
	r.on_prompt = on_prompt;
	r.arg = ret;
	if (engine_open(&o, &e, &err) || session_open(e, &s, &err) || gen_start(s, &r, &g, &err))
		fail_msg("%s", err.text);
	assert_int_equal(gen_wait(g, -1, &res), 0);
	gen_free(g);
	engine_close(e);
	assert_int_equal(ret->n, n - 1);
}

static double rms(const float *a, const float *b, uint32_t n)
{
	double sum = 0;

	for (uint32_t i = 0; i < n; i++)
		sum += ((double)a[i] - b[i]) * ((double)a[i] - b[i]);
	return sqrt(sum / n);
}

static double distance(const struct llama_vector *v, const char *backend, enum kv_type kv)
{
	struct got got;
	int32_t tok[N];
	uint64_t x = 88172645463325252ull;

	for (int i = 0; i < N; i++) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		tok[i] = (int32_t)(x % synth_vocab_size());
	}
	teacher_forced(path, tok, N, backend, kv, &got);
	return rms(got.lp, v->f16, N - 1);
}

static void like_llama_cpp(void **state)
{
	static const char *const backends[] = { "ref", "plain", "avx2", "avx512", "neon" };

	for (size_t i = 0; i < sizeof(llama_vectors) / sizeof(llama_vectors[0]); i++) {
		const struct llama_vector *v = &llama_vectors[i];
		struct synth_opts o;

		synth_defaults(&o);
		o.arch = v->arch;
		o.layers = 4;
		o.d_model = 256;
		o.d_ff = 768;
		o.heads = v->heads;
		o.kv_heads = 2;
		o.head_dim = 64;
		o.type = v->type;
		o.embd_type = v->embd_type;
		o.tied = false;
		o.seed = 100 + i;
		assert_int_equal(synth_model(path, &o), 0);
		for (size_t b = 0; b < sizeof(backends) / sizeof(backends[0]); b++) {
			double f16, i8;

			if (!ops_by_name(backends[b]))
				continue;
			f16 = distance(v, backends[b], KV_F16);
			i8 = distance(v, backends[b], KV_I8);
			printf("# %s %s %s: f16 KV %.4f, int8 KV %.4f; llama.cpp from itself %.4f, CUDA %.4f %.4f\n",
			       v->arch, quant_name(v->type), backends[b], f16, i8, v->own, v->cuda_f16, v->cuda_q8);
			assert_true(f16 < (v->type == QUANT_F16 ? 0.001 : fmax(v->own, v->cuda_f16)));
			assert_true(i8 < fmax(v->own, v->cuda_q8));
		}
	}
}

static int setup(void **state)
{
	int fd = mkstemp(path);

	return fd < 0 ? -1 : close(fd);
}

static int teardown(void **state)
{
	return unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(like_llama_cpp),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name(__FILE__, tests, setup, teardown);
}
