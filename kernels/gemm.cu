/* SPDX-License-Identifier: MIT */
/*
 * Prefill and batches: y[n, rows] = W[rows, cols] x[n, cols] for 5 to thousands
 * of tokens, on half tensor cores (mma.m16n8k16, float sums).
 *
 * Bytes moved: W once per block column of NB tokens; activations once per 128
 * rows, mostly from L2. A warp owns two tiles of 16 rows (for SwiGLU: a gate
 * tile and the up tile of the same rows) and NT groups of 8 tokens. Weights go
 * from memory to registers one unit ahead and become halves there; activations
 * come in fragment order (act_pos) through cp.async stages, so every B operand
 * is a 16-byte shared load without bank conflicts.
 *
 * Up to 64 tokens have kernels of their own (gemm_few.cuh, gemm_free.cuh), and so have Q4_K and
 * Q6_K from 17 tokens on (gemm_wide.cuh).
 *
 * Where the grid would not fill the machine, k is cut into parts; the block
 * that comes last to a tile adds the parts in order, so sums do not depend on
 * timing.
 */
#include "kernels/gemm.cuh"

static u32 pick_nt(u32 n)
{
	/* NT; 82: 8, two warps wide */
	return n <= 8 ? 1 : n <= 16 ? 2 : n <= 24 ? 3 : n <= 40 ? 5 : n <= 64 ? 8 : 82;
}

extern "C" uint32_t hk_gemm_nb(uint32_t n)
{
	u32 p = pick_nt(n);

	return p == 82 ? 128 : p * 8;
}

/* gemm_free.cuh and gemm_wide.cuh: parts that stay apart, or all of k (they add no parts
 * up, and only the latter has y += ), four floats stored at a time. */
static bool loose(const struct hk_gemm *a, int type, u32 shape)
{
	if (!a->free || (type != T_Q4_K && type != T_Q6_K))
		return false;
	if (a->mode == HK_SWIGLU)
		return !((uintptr_t)a->act_out % 8);
	if (!a->apart ? shape != 82 : a->apart % 4)
		return false;
	for (u32 i = 0; i < a->nseg; i++)
		if ((uintptr_t)a->seg[i].y % 16 || a->seg[i].ldy % 4)
			return false;
	return true;
}

/*
 * Pairs of tiles in a block of gemm_free.cuh, as measured on an H200 (docs/speed.md);
 * 0: gemm_few.cuh is as fast, or must do it.
 */
static u32 free_pairs(const struct hk_gemm *a, int type, bool mixed, u32 shape, u32 sms)
{
	const bool narrow = a->nseg == 1 && a->cols <= 20 * TILE_K;

	if (shape > 2 || !loose(a, type, shape))
		return 0;
	/* where all of k in a block leaves too many SMs idle, parts are added up */
	if (a->mode == HK_SWIGLU)
		return type != T_Q6_K && hk_gemm_fills(sms, a->seg[0].w.rows) ? 1 : 0;
	if (type == T_Q6_K)
		return 4;
	if (shape == 1)
		return mixed || a->nseg > 1 || narrow ? 1 : 0;
	return mixed || narrow ? 1 : 4;
}

uint32_t hk_wide_tiles, hk_wide_splits;

/*
 * Tiles of a warp of gemm_wide.cuh and parts of k, or 0: the fewest microseconds by what
 * an H200 took for a block's start and end, for each turn of its eight warps (two units)
 * and for a part that the next kernel has to add (docs/speed.md).
 */
static u32 wide_tiles(const struct hk_gemm *a, int type, bool mixed, u32 shape, u32 sms, u32 *ret_splits)
{
	const u32 units = a->cols / TILE_K, cols_n = shape == 82 ? (a->n + 63) / 64 : 1, nt = shape == 82 ? 8 : shape;
	float best = 1e30f;
	u32 ret = 0;

	if (!loose(a, type, shape) || shape < 3 || (hk_wide_tiles == 1 && shape != 82))
		return 0;
	for (u32 tm = 2; tm <= 5; tm++) {
		const bool is = nt == 8 ? tm == (mixed || type == T_Q6_K ? 2 : 3) : tm == 3 || (!mixed && tm == (type == T_Q6_K ? 4 : 5));
		u32 blocks = 0;

		if (!is || (hk_wide_tiles && nt != 8 && !mixed && tm != hk_wide_tiles))
			continue;
		for (u32 i = 0; i < (a->mode == HK_SWIGLU ? 1 : a->nseg); i++) {
			const u32 per = a->mode == HK_SWIGLU ? tm : 2 * tm;

			blocks += (a->seg[i].w.rows / TILE_ROWS + per - 1) / per;
		}
		for (u32 s = 1; s <= 16 && s <= units && (s == 1 || (a->apart && s * a->apart <= a->partial_floats)); s++) {
			/* in a turn of one unit half of the warps have nothing to do */
			const u32 most = (units + s - 1) / s;
			const float turns = (float)(most / 2) + 0.7f * (float)(most % 2), waves = (float)((blocks * cols_n * s + sms - 1) / sms);
			const float turn = type == T_Q6_K ? 0.86f + 0.07f * (float)(tm * nt) : 0.45f + 0.06f * (float)(tm * nt);
			const float cost = waves * (1.9f + 0.3f * (float)tm + turns * turn) + 0.06f * (float)s;

			if (hk_wide_splits && a->apart ? s == hk_wide_splits : cost < best) {
				best = cost;
				ret = tm;
				*ret_splits = s;
			}
		}
	}
	return ret;
}

static bool gm_type(int t)
{
	return t == T_F16 || t == T_Q4_0 || t == T_Q4_1 || t == T_Q5_0 || t == T_Q5_1 || t == T_Q8_0 ||
	       t == T_Q4_K || t == T_Q5_K || t == T_Q6_K;
}

static int gm_go(void *st, int type, u32 shape, dim3 grid, const gm_args &k)
{
	switch (type) {
	case T_F16: return gm_f16(st, shape, grid, hk_pdl, k);
	case T_Q4_0: return gm_q4_0(st, shape, grid, hk_pdl, k);
	case T_Q4_1: return gm_q4_1(st, shape, grid, hk_pdl, k);
	case T_Q5_0: return gm_q5_0(st, shape, grid, hk_pdl, k);
	case T_Q5_1: return gm_q5_1(st, shape, grid, hk_pdl, k);
	case T_Q8_0: return gm_q8_0(st, shape, grid, hk_pdl, k);
	case T_Q4_K: return gm_q4_k(st, shape, grid, hk_pdl, k);
	case T_Q5_K: return gm_q5_k(st, shape, grid, hk_pdl, k);
	case T_Q6_K: return gm_q6_k(st, shape, grid, hk_pdl, k);
	default: return -EINVAL;
	}
}

extern "C" int hk_gemm(void *st, const struct hk_dev_info *d, const struct hk_gemm *a)
{
	struct gm_args k = {};
	u32 shape = pick_nt(a->n), nb = hk_gemm_nb(a->n), nt = shape, units = tile_units(a->cols);
	u32 blocks = 0, cols_n, splits, wm;
	int type;

	if (!a->n)
		return 0;
	if (!a->nseg || a->nseg > 3 || a->n > a->groups * 8 || (a->groups * 8) % nb ||
	    (uintptr_t)a->act % 16 || (uintptr_t)a->partial % 16 || a->cols % 64 ||
	    (a->apart && (!a->ret_parts || a->mode == HK_SWIGLU || a->apart > a->partial_floats)) ||
	    (a->mode == HK_SWIGLU && (a->nseg != 2 || !a->act_out ||
				      a->seg[0].w.rows != a->seg[1].w.rows)))
		return -EINVAL;
	type = a->seg[0].w.type;
	for (u32 i = 1; i < a->nseg; i++)
		k.mixed |= a->seg[i].w.type != type;
	if (k.mixed) {
		if (a->mode == HK_SWIGLU)
			return -EINVAL;
		for (u32 i = 0; i < a->nseg; i++)
			if (a->seg[i].w.type != T_Q4_K && a->seg[i].w.type != T_Q6_K)
				return -EINVAL;
		type = T_Q4_K;
	}
	wm = 4;
	if (shape == 8 && type != T_F16 && type != T_Q6_K && type != T_Q8_0 && type != T_Q5_0 && !k.mixed)
		wm = 5;
	if (shape == 5 && (type == T_Q6_K || type == T_Q8_0 || k.mixed))   /* two blocks would spill */
		wm = 5;
	if (shape == 5 && a->mode == HK_SWIGLU && type != T_F16) {   /* see gs_blocks() */
		const u32 pairs = a->seg[0].w.rows / TILE_ROWS;

		if ((pairs + 3) / 4 > (u32)d->sms && (pairs + 4) / 5 <= (u32)d->sms)
			wm = 5;
	}
	u32 wide_splits = 1;
	const u32 wide_tm = wide_tiles(a, type, k.mixed, shape, (u32)d->sms, &wide_splits);
	const u32 free = wide_tm ? 0 : free_pairs(a, type, k.mixed, shape, (u32)d->sms);

	if (k.mixed && shape == 82 && !wide_tm)   /* gemm.cuh has one type a launch */
		return -EINVAL;
	if (wide_tm && shape == 82) {
		nt = 8;
		nb = 64;
	}
	if (free)
		wm = free;
	const u32 per = wide_tm ? wide_tm : wm;   /* half of a block's tiles */

	k.wm = wm;
	for (u32 i = 0; i < a->nseg; i++) {
		const struct hk_mat *w = &a->seg[i].w;

		if (!w->packed || !gm_type(w->type) || (w->type != type && !k.mixed) || w->cols != a->cols || (uintptr_t)w->w % 16)
			return -EINVAL;
		k.seg[i].w = (const u8 *)w->w;
		k.seg[i].bias = a->seg[i].bias;
		k.seg[i].y = a->seg[i].y;
		k.seg[i].ldy = a->seg[i].ldy;
		k.seg[i].type = w->type;
		k.seg[i].tiles = w->rows / TILE_ROWS;
		k.seg[i].block0 = blocks;
		if (a->mode != HK_SWIGLU)
			blocks += (k.seg[i].tiles + 2 * per - 1) / (2 * per);
	}
	if (a->mode == HK_SWIGLU)
		blocks = (k.seg[0].tiles + per - 1) / per;
	if (!blocks)
		return 0;
	k.nseg = a->mode == HK_SWIGLU ? 1 : a->nseg;
	k.w2 = k.seg[1].w;
	k.n = a->n;
	k.cols = a->cols;
	k.groups = a->groups;
	k.act = (const u8 *)a->act;
	k.act_scale = a->act_scale;
	k.scale = a->scale;
	k.mode = a->mode;
	k.act_out = (unsigned short *)a->act_out;
	k.groups_out = a->groups_out;
	k.act_out_scale = a->act_out_scale;
	k.partial = a->partial;
	k.count = a->count;
	cols_n = (a->n + nb - 1) / nb;
	/*
	 * Parts of k: the time is the waves of blocks that it takes, each as long
	 * as its start and its units, and what adding the parts up costs. All in
	 * microseconds of one H200 for up to 64 tokens, else in units' time.
	 */
	splits = wide_splits;
	if (!wide_tm && (a->apart || (!free && a->partial && a->count && blocks * cols_n <= HK_GEMM_COUNTS))) {
		const bool wide = shape == 82;
		const u32 slots = (u32)d->sms * (free ? gf_blocks(wm) : wide || type == T_F16 ? 1 : gs_blocks(shape, wm));
		/* a unit's time with two blocks an SM, or with one */
		const float unit = wide ? 1 : slots > (u32)d->sms ? 0.7f + 0.1f * (float)shape : 0.3f * (float)shape;
		const float start = wide ? 0 : 1.5f, merge = wide ? 1 : a->apart ? 0.5f : 2.5f;
		const float part = wide ? 0.5f : 0.15f;
		float best = 1e30f;

		for (u32 s = 1; s <= 16 && s <= (wide ? (units + 1) / 2 : units); s++) {
			float waves = (float)((blocks * cols_n * s + slots - 1) / slots);
			float cost = waves * (start + unit * (float)((units + s - 1) / s)) +
				     (s > 1 ? merge + part * (float)s : 0);

			if (free)
				cost = waves * (2 + (1.2f + 0.5f * (float)shape) / (float)gf_slices(wm) *
						(float)((units + s - 1) / s)) + 0.15f * (float)s;
			if (cost < best) {
				best = cost;
				splits = s;
			}
		}
	}
	if (a->apart) {
		while (splits > 1 && (size_t)splits * a->apart > a->partial_floats)
			splits--;
		*a->ret_parts = splits;
		k.apart = a->apart;
		k.mode = HK_STORE;
	}
	while (!a->apart && splits > 1 && (size_t)splits * blocks * cols_n * 32 * wm * nb > a->partial_floats)
		splits--;
	k.splits = splits;
	if (wide_tm)
		return (k.mixed ? gw_mixed : type == T_Q4_K ? gw_q4_k : gw_q6_k)(st, nt, wide_tm, dim3(cols_n, blocks, splits), hk_pdl, k);
	if (free)
		return (k.mixed ? gf_mixed : type == T_Q4_K ? gf_q4_k : gf_q6_k)(st, shape, dim3(blocks, cols_n, splits), hk_pdl, k);
	return gm_go(st, type, shape, dim3(blocks, cols_n, splits), k);
}
