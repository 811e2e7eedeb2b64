// SPDX-License-Identifier: MIT
/*
 * Everything once before the first request: CUDA loads a kernel when it is first
 * launched, and puts a graph on the device when that is, which takes time and
 * memory of the device. Both belong to open, where they are counted.
 */
#ifdef HEARTH_CUDA
#include "model/ops_cuda_priv.h"

/* A step of @n rows of which none is live: no page is written. */
static int run_step(struct cuda_ctx *c, uint32_t n)
{
	size_t bytes = step_fill(&c->cap, c->staging, 0, n, NULL, 0, NULL, 0, NULL, cuda_attn_tiles(&c->cap, n), 1, 1);
	int rc;

	if ((rc = hk_copy_in(c->stream, c->b.step, c->staging, bytes)) || (rc = cuda_run_layers(c, n, false)))
		return rc;
	return hk_stream_sync(c->stream);
}

/* The step of @n rows as a graph. 1: this device has none, and launches each step anew. */
static int capture(struct cuda_ctx *c, uint32_t n, void **ret)
{
	void *g = NULL;
	int rc = hk_capture_begin(c->stream), end;

	if (rc)
		return rc == -ENOTSUP ? 1 : rc;
	rc = cuda_run_layers(c, n, false);
	end = hk_capture_end(c->stream, &g);
	if (!rc && !end)
		rc = hk_graph_upload(c->stream, g);
	if (!rc && !end) {
		*ret = g;
		return 0;
	}
	if (!end)
		hk_graph_free(g);
	return rc ? rc : end;
}

/* The kernels after the layers. */
static int run_rest(struct cuda_ctx *c)
{
	const uint32_t out = max_u(c->o.max_out, 1), vocab = c->base.model->shape.vocab;
	struct hk_kv kv = c->kv;
	int rc;

	/* Each number of rows that has a kernel of its own, and the most that there can be. */
	for (int i = 0; i <= CUDA_BUCKETS; i++) {
		const uint32_t n = i < CUDA_BUCKETS ? cuda_bucket[i] : out;

		if (n <= out && (rc = cuda_run_head(c, n)))
			return rc;
	}
	c->picks[0] = (struct hk_pick){ .top_p = 1, .rep_pen = 1 };
	if ((rc = hk_copy_in(c->stream, c->b.pick, c->picks, sizeof(*c->picks))) ||
	    (rc = hk_pick(c->stream, 1, vocab, c->b.logits, c->b.pick, c->b.pick_recent, c->b.pick_mask,
			  c->b.work, c->b.pick_ret)))
		return rc;
	/* Not a page, which may hold what an earlier process left: two heads of two in the buffer for parts. */
	kv.base = c->b.gpart;
	kv.kv_heads = 1;
	kv.page_bytes = 2 * kv.head_bytes;
	if (2 * kv.page_bytes <= c->b.gpart_n * sizeof(*c->b.gpart) &&
	    (rc = hk_kv_copy(c->stream, &kv, 1, 1, 0, 1)))
		return rc;
	return hk_stream_sync(c->stream);
}

int cuda_warm(struct cuda_ctx *c)
{
	const bool plain = !c->few && !c->many;   /* the same kernels from four rows on, and slow */
	bool graphs = !plain;
	int rc;

	for (int i = 0; i < CUDA_BUCKETS; i++) {
		const uint32_t n = cuda_bucket[i];

		if (n > c->cap.rows || (plain && n > HK_GEMV_MAX))
			continue;
		if ((rc = run_step(c, n)))
			return rc;
		if (graphs && (rc = capture(c, n, &c->graph[i])) < 0)
			return rc;
		graphs = graphs && !rc;
	}
	/* Longer ones: those whose parts may stay apart, and all others. */
	if (!plain && c->cap.rows > APART_K46 && (rc = run_step(c, APART_K46)))
		return rc;
	if (!plain && c->cap.rows > cuda_bucket[CUDA_BUCKETS - 1] && (rc = run_step(c, c->cap.rows)))
		return rc;
	return run_rest(c);
}

#endif /* HEARTH_CUDA */
