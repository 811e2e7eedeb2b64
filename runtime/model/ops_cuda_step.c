// SPDX-License-Identifier: MIT
/*
 * A step of the CUDA table: which kernels, in which order. Three routes, chosen per
 * model and step:
 *   few    1 or 2 rows, all matrices in dp4a types: five kernels a layer, the norm
 *          folded into the product that follows
 *   many   any number of rows: halves on tensor cores, seven kernels a layer up to
 *          FOLD_ROWS rows, eight beyond, where rotation is a kernel of its own
 *   plain  models with matrices that tiles do not fit: right, and slow
 */
#ifdef HEARTH_CUDA
#include "model/ops_cuda_priv.h"

bool ops_cuda_together;

int cuda_fail(struct hearth_err *err, int rc)
{
	return rc == -EINVAL ? err_set(err, rc, "a CUDA kernel refused its shape: use the CPU backend, and report this model")
			     : err_set(err, rc, "%s", hk_dev_error());
}

bool cuda_is_gemv(const struct hk_mat *w)
{
	return w->packed && w->type != QUANT_F16 && w->rows % TILE_ROWS == 0;
}

/* norm (may be NULL) and up to three products of any shape into floats. */
static int plain_mats(struct cuda_ctx *c, uint32_t n, const float *x, uint32_t ldx,
		      const float *norm, uint32_t nseg, const struct hk_seg *seg, enum hk_mode mode)
{
	int rc;

	for (uint32_t i = 0; i < nseg; i++) {
		const struct hk_mat *w = &seg[i].w;
		uint32_t row0 = 0;

		if (w->packed && w->type != QUANT_F16) {
			row0 = w->rows / TILE_ROWS * TILE_ROWS;
			for (uint32_t r = 0; r < n; r += HK_GEMV_MAX) {
				struct hk_gemv a = {
					.n = min_u(n - r, HK_GEMV_MAX), .cols = w->cols,
					.x = x + (size_t)r * ldx, .ldx = ldx, .norm = norm,
					.eps = c->base.model->shape.eps, .mode = mode, .nseg = 1,
				};

				a.seg[0] = seg[i];
				a.seg[0].y += (size_t)r * seg[i].ldy;
				if ((rc = hk_gemv(c->stream, &c->dev, &a)))
					return rc;
			}
		} else if (w->packed) {
			/* halves: through the GEMM, a block of rows at a time */
			uint32_t step = 4;

			row0 = w->rows / TILE_ROWS * TILE_ROWS;
			for (uint32_t r = 0; r < n; r += step) {
				struct hk_gemm a = {
					.n = min_u(n - r, step), .cols = w->cols, .act = c->b.act_h,
					.groups = cuda_groups_of(step), .act_scale = c->b.act_scale,
					.scale = 1, .mode = mode, .nseg = 1,
				};

				a.seg[0] = seg[i];
				a.seg[0].y += (size_t)r * seg[i].ldy;
				if ((rc = hk_norm(c->stream, a.n, w->cols, (float *)x + (size_t)r * ldx, NULL, norm,
						  c->base.model->shape.eps, c->b.act_h, a.groups,
						  c->b.act_scale, NULL)) ||
				    (rc = hk_gemm(c->stream, &c->dev, &a)))
					return rc;
			}
		}
		struct hk_raw raw = {
			.n = n, .x = x, .ldx = ldx, .norm = norm, .eps = c->base.model->shape.eps,
			.mode = mode, .seg = seg[i], .row0 = row0,
		};

		if ((rc = hk_raw(c->stream, &raw)))
			return rc;
	}
	return 0;
}

/* The two types of a Q4_K_M file, which a short product can mix, and a free one (hk_gemm). */
bool cuda_is_k46(const struct hk_mat *w)
{
	return w->packed && (w->type == QUANT_Q4_K || w->type == QUANT_Q6_K);
}

/* Products of one input in as many launches as there are types in a row, or fewer; where
 * parts stay apart, how many of each segment. */
static int gemm_run(struct cuda_ctx *c, struct hk_gemm *a, uint32_t nseg, const struct hk_seg *seg,
		    uint32_t *ret_parts)
{
	for (uint32_t i = 0; i < nseg;) {
		uint32_t parts = 1;
		int rc;

		a->nseg = 0;
		do
			a->seg[a->nseg++] = seg[i++];
		while (i < nseg && (seg[i].w.type == a->seg[0].w.type ||
				    ((a->n <= APART_ROWS || a->free) && cuda_is_k46(&seg[i].w) && cuda_is_k46(&a->seg[0].w))));
		a->ret_parts = &parts;
		if ((rc = hk_gemm(c->stream, &c->dev, a)))
			return rc;
		for (uint32_t j = 0; j < a->nseg; j++)
			ret_parts[i - a->nseg + j] = parts;
	}
	return 0;
}

static int run_layer(struct cuda_ctx *c, uint32_t i, uint32_t n, uint32_t tiles, uint32_t splits)
{
	const struct model_shape *s = &c->base.model->shape;
	const struct clayer *l = &c->layer[i];
	const struct bufs *b = &c->b;
	const uint32_t wide = s->heads * s->head_dim, kvw = s->kv_heads * s->head_dim;
	const uint32_t ldq = wide + 2 * kvw;
	const bool few = c->few && n <= c->few_rows, many = !few && c->many;
	/* Short steps leave parts of a sum to the kernel that reads it next: that is
	 * one wait less than adding them up at once. */
	const bool apart = many && n <= (c->free && c->k46 ? APART_K46 : APART_ROWS) && !ops_cuda_together;
	float *const to = apart ? b->gpart : b->qkv;
	const struct hk_seg qkv[3] = {
		{ l->q, l->q_bias, to, ldq },
		{ l->k, l->k_bias, to + wide, ldq },
		{ l->v, l->v_bias, to + wide + kvw, ldq },
	};
	const struct hk_seg glu[2] = {
		{ l->gate, NULL, b->h, s->ff }, { l->up, NULL, b->h, s->ff },
	};
	struct hk_seg o = { l->o, NULL, b->x, s->d }, down = { l->down, NULL, b->x, s->d };
	struct hk_parts *add = &c->add;      /* what x still lacks */
	struct hk_rope rope = {
		.n = n, .heads = s->heads, .layer = i, .qkv = to, .q_norm = l->q_norm,
		.k_norm = l->k_norm, .eps = s->eps, .cs = b->cs, .q = b->q, .kv = c->kv,
	};
	struct hk_attn at = {
		.n = n, .heads = s->heads, .layer = i, .tiles = tiles, .splits = splits, .q = b->q,
		.kv = c->kv, .out = b->a, .partial = b->apart, .count = b->acount,
	};
	struct hk_gemv v = {
		.n = n, .cols = s->d, .x = b->x, .ldx = s->d, .norm = l->attn_norm, .eps = s->eps,
		.mode = HK_STORE, .nseg = 3, .seg = { qkv[0], qkv[1], qkv[2] },
	};
	struct hk_gemm m = {
		.n = n, .cols = s->d, .act = b->act_x, .groups = cuda_groups_of(n),
		.act_scale = b->act_scale, .scale = 1, .mode = HK_STORE, .free = c->free,
		.partial = b->gpart, .partial_floats = b->gpart_n, .count = b->gcount,
	};
	uint32_t parts[3] = { 1, 1, 1 };
	int rc;

	if (!i)
		add->parts = 0;
	/* q, k, v */
	if (few)
		rc = hk_gemv(c->stream, &c->dev, &v);
	else if (many) {
		rc = hk_norm(c->stream, n, s->d, b->x, NULL, l->attn_norm, s->eps, b->act_x, m.groups,
			     b->act_scale, add);
		m.apart = apart ? (size_t)n * ldq : 0;
		if (!rc)
			rc = gemm_run(c, &m, 3, qkv, parts);
		memcpy(rope.parts, parts, sizeof(parts));
		rope.stride = m.apart;
	} else
		rc = plain_mats(c, n, b->x, s->d, l->attn_norm, 3, qkv, HK_STORE);
	if (rc)
		return rc;

	/* attention */
	if (few) {
		at.out = NULL;
		at.q8 = b->q8_a;
	} else if (many) {
		at.out = NULL;
		at.act = b->act_a;
		at.groups = m.groups;
	}
	/* Up to here a launch less is worth that tiles of a sequence turn its keys again. */
	if (n <= FOLD_ROWS && (few || many))
		at.rope = &rope;
	if ((!at.rope && (rc = hk_rope(c->stream, &c->step, &rope))) ||
	    (rc = hk_attn(c->stream, &c->dev, &c->step, &at)))
		return rc;

	/* back into the stream */
	v.norm = NULL;
	v.mode = m.mode = HK_ADD;
	v.nseg = 1;
	if (few) {
		v.cols = wide;
		v.x = NULL;
		v.q8 = b->q8_a;
		v.seg[0] = o;
		rc = hk_gemv(c->stream, &c->dev, &v);
	} else if (many) {
		m.cols = wide;
		m.act = b->act_a;
		m.act_scale = NULL;
		m.apart = apart ? (size_t)n * s->d : 0;
		if (apart)
			o.y = b->gpart;
		rc = gemm_run(c, &m, 1, &o, parts);
		*add = (struct hk_parts){ b->gpart, apart ? parts[0] : 0, m.apart };
	} else {
		rc = plain_mats(c, n, b->a, wide, NULL, 1, &o, HK_ADD);
	}
	if (rc)
		return rc;

	/* MLP */
	if (few) {
		v.cols = v.ldx = s->d;
		v.x = b->x;
		v.norm = l->ffn_norm;
		v.q8 = NULL;
		v.q8_out = b->q8_h;
		v.mode = HK_SWIGLU;
		v.nseg = 2;
		v.seg[0] = glu[0];
		v.seg[1] = glu[1];
		if ((rc = hk_gemv(c->stream, &c->dev, &v)))
			return rc;
		v.cols = s->ff;
		v.x = NULL;
		v.q8 = b->q8_h;
		v.q8_out = NULL;
		v.norm = NULL;
		v.mode = HK_ADD;
		v.nseg = 1;
		v.seg[0] = down;
		return hk_gemv(c->stream, &c->dev, &v);
	}
	if (many) {
		if ((rc = hk_norm(c->stream, n, s->d, b->x, NULL, l->ffn_norm, s->eps, b->act_x, m.groups,
				  b->act_scale, add)))
			return rc;
		add->parts = 0;
		m.apart = 0;
		m.cols = s->d;
		m.act = b->act_x;
		m.act_scale = b->act_scale;
		m.mode = HK_SWIGLU;
		m.nseg = 2;
		m.seg[0] = glu[0];
		m.seg[1] = glu[1];
		m.act_out = b->act_h;
		m.groups_out = m.groups;
		m.act_out_scale = 0.0625f;   /* room for 1e6 before F16 ends */
		if ((rc = hk_gemm(c->stream, &c->dev, &m)))
			return rc;
		m.cols = s->ff;
		m.act = b->act_h;
		m.act_scale = NULL;
		m.scale = 16;
		m.mode = HK_ADD;
		if (apart && i + 1 < s->layers) {   /* nobody adds them up after the last layer */
			m.apart = (size_t)n * s->d;
			down.y = b->gpart;
		}
		if ((rc = gemm_run(c, &m, 1, &down, parts)))
			return rc;
		*add = (struct hk_parts){ b->gpart, m.apart ? parts[0] : 0, m.apart };
		return 0;
	}
	for (uint32_t r = 0; r < n; r += 4) {
		const uint32_t k = min_u(n - r, 4);
		struct hk_seg g[2] = { { l->gate, NULL, b->g, s->ff }, { l->up, NULL, b->u, s->ff } };
		struct hk_seg d = down;

		d.y += (size_t)r * s->d;
		if ((rc = plain_mats(c, k, b->x + (size_t)r * s->d, s->d, l->ffn_norm, 2, g, HK_STORE)) ||
		    (rc = hk_swiglu(c->stream, k, s->ff, b->g, b->u, b->h)) ||
		    (rc = plain_mats(c, k, b->h, s->ff, NULL, 1, &d, HK_ADD)))
			return rc;
	}
	return 0;
}

static int run_embed(struct cuda_ctx *c, uint32_t n)
{
	const struct model_shape *s = &c->base.model->shape;

	return hk_embed(c->stream, n, &c->step, &c->embd, c->b.inv_freq, s->head_dim, c->b.x, c->b.cs);
}

int cuda_run_layers(struct cuda_ctx *c, uint32_t n, bool look)
{
	const uint32_t tiles = cuda_attn_tiles(&c->cap, n), splits = cuda_attn_splits(&c->dev, &c->cap, n);
	int rc = run_embed(c, n);

	for (uint32_t i = 0; !rc && i < c->base.model->shape.layers; i++) {
		rc = run_layer(c, i, n, tiles, splits);
		if (look && !rc && i % LAYERS_BETWEEN_LOOKS == LAYERS_BETWEEN_LOOKS - 1) {
			rc = hk_stream_sync(c->stream);
			if (!rc && atomic_exchange(&c->interrupt, false))
				return -ECANCELED;
		}
	}
	return rc;
}

int cuda_run_head(struct cuda_ctx *c, uint32_t n)
{
	const struct model_shape *s = &c->base.model->shape;
	const struct hk_seg seg = { c->head, NULL, c->b.logits, s->vocab };
	const uint32_t whole = c->head.packed ? s->vocab / TILE_ROWS * TILE_ROWS : 0;
	const bool f16 = c->head.type == QUANT_F16;
	struct hk_raw raw = {
		.n = n, .x = c->b.x, .ldx = s->d, .row = c->step.out, .norm = c->out_norm,
		.eps = s->eps, .mode = HK_STORE, .seg = seg, .row0 = whole,
	};
	int rc = 0;

	if (whole && n <= HK_GEMV_MAX && !f16) {
		struct hk_gemv v = {
			.n = n, .cols = s->d, .x = c->b.x, .ldx = s->d, .row = c->step.out,
			.norm = c->out_norm, .eps = s->eps, .mode = HK_STORE, .nseg = 1, .seg = { seg },
		};

		rc = hk_gemv(c->stream, &c->dev, &v);
	} else if (whole) {
		struct hk_gemm m = {
			.n = n, .cols = s->d, .act = c->b.act_x, .groups = cuda_groups_of(n),
			.act_scale = c->b.act_scale, .scale = 1, .mode = HK_STORE, .nseg = 1,
			.seg = { seg }, .partial = c->b.gpart, .partial_floats = c->b.gpart_n,
			.count = c->b.gcount,
		};

		rc = hk_norm(c->stream, n, s->d, c->b.x, c->step.out, c->out_norm, s->eps, c->b.act_x,
			     m.groups, c->b.act_scale, NULL);
		if (!rc)
			rc = hk_gemm(c->stream, &c->dev, &m);
	}
	return rc ? rc : hk_raw(c->stream, &raw);
}

int cuda_forward(struct ops_ctx *base, const struct batch *b, struct hearth_err *err)
{
	struct cuda_ctx *c = cuda_ctx(base);
	struct step_seq seq[OPS_MAX_SEQS];
	int bucket, rc;
	uint32_t n = cuda_padded(b->n, &bucket);
	size_t bytes;

	if (b->n > c->o.max_batch || b->n_seq > c->o.max_seqs || b->n_seq > OPS_MAX_SEQS || b->n_out > c->o.max_out)
		return err_set(err, -EINVAL, "a step of %u rows, %u sessions, %u outputs is larger than was planned (%u, %u, %u)",
			       b->n, b->n_seq, b->n_out, c->o.max_batch, c->o.max_seqs, c->o.max_out);
	if (atomic_exchange(&c->interrupt, false))
		return err_set(err, -ECANCELED, "the step was cancelled before it began");
	/* The staging block is read by the copy of the step before. */
	if ((rc = hk_stream_sync(c->stream)))
		return cuda_fail(err, rc);
	for (uint32_t i = 0; i < b->n_seq; i++)
		seq[i] = (struct step_seq){ b->seq[i].first, b->seq[i].n, b->seq[i].pos0, b->seq[i].page };
	bytes = step_fill(&c->cap, c->staging, b->n, n, b->token, b->n_seq, seq, b->n_out, b->out,
			  cuda_attn_tiles(&c->cap, n), cuda_attn_splits(&c->dev, &c->cap, n), cuda_attn_fill(&c->dev));
	if ((rc = hk_copy_in(c->stream, c->b.step, c->staging, bytes)))
		return cuda_fail(err, rc);
	if (bucket >= 0 && c->graph[bucket])
		rc = hk_graph_launch(c->stream, c->graph[bucket]);
	else
		rc = cuda_run_layers(c, n, bucket < 0);
	if (rc == -ECANCELED)
		return err_set(err, rc, "the step was cancelled");
	if (rc)
		return cuda_fail(err, rc);
	c->n_out = b->n_out;
	if (b->n_out) {
		memset(c->have, 0, b->n_out);
		rc = cuda_run_head(c, b->n_out);
	} else {
		rc = hk_stream_sync(c->stream);
	}
	return rc ? cuda_fail(err, rc) : 0;
}

int cuda_logits(struct ops_ctx *base, uint32_t i, float **ret, struct hearth_err *err)
{
	struct cuda_ctx *c = cuda_ctx(base);
	const size_t vocab = base->model->shape.vocab;
	int rc;

	if (i >= c->n_out)
		return err_set(err, -EINVAL, "row %u of logits was asked for and the step had %u", i, c->n_out);
	if (!c->have[i]) {
		if ((rc = hk_copy_out(c->stream, c->logits + i * vocab, c->b.logits + i * vocab, vocab * 4)) ||
		    (rc = hk_stream_sync(c->stream)))
			return cuda_fail(err, rc);
		c->have[i] = 1;
	}
	*ret = c->logits + i * vocab;
	return 0;
}

int cuda_pick(struct ops_ctx *base, const struct ops_pick *p, uint32_t n, int32_t *ret_token,
		     struct hearth_err *err)
{
	struct cuda_ctx *c = cuda_ctx(base);
	const uint32_t vocab = base->model->shape.vocab, words = (vocab + 31) / 32;
	const uint32_t kept0 = max_u(c->o.max_out, 1) * words;
	const uint32_t *keep = NULL;
	uint32_t n_recent = 0, n_mask = 0;
	int rc;

	if (n > max_u(c->o.max_out, 1))
		return err_set(err, -EINVAL, "%u tokens to pick of %u rows at most", n, c->o.max_out);
	for (uint32_t i = 0; i < n; i++) {
		struct hk_pick *k = &c->picks[i];

		if (p[i].row >= c->n_out || p[i].n_recent > PICK_RECENT)
			return err_set(err, -EINVAL, "a token of row %u of %u, with %u recent tokens, cannot be picked",
				       p[i].row, c->n_out, p[i].n_recent);
		*k = (struct hk_pick){
			.row = p[i].row, .top_k = p[i].top_k, .n_recent = p[i].n_recent, .recent0 = n_recent,
			.mask0 = n_mask, .has_mask = p[i].mask != NULL, .temp = p[i].temp, .top_p = p[i].top_p,
			.min_p = p[i].min_p, .u = p[i].u, .rep_pen = p[i].rep_pen, .freq_pen = p[i].freq_pen,
			.pres_pen = p[i].pres_pen,
		};
		if (p[i].n_recent)
			memcpy(c->recent + n_recent, p[i].recent, p[i].n_recent * sizeof(*c->recent));
		n_recent += p[i].n_recent;
		if (p[i].mask && p[i].mask_stays && (!keep || keep == p[i].mask)) {
			keep = p[i].mask;
			k->mask0 = kept0;
		} else if (p[i].mask) {
			memcpy(c->mask + n_mask, p[i].mask, words * sizeof(*c->mask));
			n_mask += words;
		}
	}
	if (keep && keep != c->mask_kept) {
		memcpy(c->mask + kept0, keep, words * sizeof(*c->mask));
		c->mask_kept = NULL;
		if ((rc = hk_copy_in(c->stream, c->b.pick_mask + kept0, c->mask + kept0, words * 4u)))
			return cuda_fail(err, rc);
		c->mask_kept = keep;
	}
	if ((rc = hk_copy_in(c->stream, c->b.pick, c->picks, n * sizeof(*c->picks))) ||
	    (n_recent && (rc = hk_copy_in(c->stream, c->b.pick_recent, c->recent, n_recent * 4u))) ||
	    (n_mask && (rc = hk_copy_in(c->stream, c->b.pick_mask, c->mask, n_mask * 4u))) ||
	    (rc = hk_pick(c->stream, n, vocab, c->b.logits, c->b.pick, c->b.pick_recent, c->b.pick_mask,
			  c->b.work, c->b.pick_ret)) ||
	    (rc = hk_copy_out(c->stream, c->ret, c->b.pick_ret, n * 4u)) ||
	    (rc = hk_stream_sync(c->stream)))
		return cuda_fail(err, rc);
	memcpy(ret_token, c->ret, n * sizeof(*ret_token));
	return 0;
}

#endif /* HEARTH_CUDA */
