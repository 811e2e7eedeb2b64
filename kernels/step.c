/* SPDX-License-Identifier: MIT */
#include "kernels/step.h"

#include <string.h>

uint32_t step_part = 128;

_Static_assert(sizeof(struct hk_tile) == 32, "attention reads a tile as two vectors");

uint32_t step_tiles(uint32_t rows, uint32_t seqs, uint32_t group)
{
	return (rows * group + 15) / 16 + seqs - (seqs > 0);
}

static size_t up64(size_t v)
{
	return (v + 63) / 64 * 64;
}

/* Offsets of the parts, in the order in which they are copied. */
struct lay {
	size_t token, row_seq, row_pos, out, seq, tile, page, end;
};

static struct lay lay(const struct step_cap *c)
{
	struct lay l;

	l.token = 0;
	l.row_seq = l.token + up64(c->rows * 4u);
	l.row_pos = l.row_seq + up64(c->rows * 4u);
	l.out = l.row_pos + up64(c->rows * 4u);
	l.seq = l.out + up64(c->out * 4u);
	l.tile = l.seq + up64(c->seqs * sizeof(struct hk_seq));
	l.page = l.tile + up64(step_tiles(c->rows, c->seqs, c->group) * sizeof(struct hk_tile));
	l.end = l.page + up64((size_t)c->seqs * c->pages * 4u);
	return l;
}

size_t step_bytes(const struct step_cap *c)
{
	return lay(c).end;
}

void step_bind(const struct step_cap *c, void *base, struct hk_step *ret)
{
	struct lay l = lay(c);
	char *p = base;

	memset(ret, 0, sizeof(*ret));
	ret->token = (const int32_t *)(p + l.token);
	ret->row_seq = (const uint32_t *)(p + l.row_seq);
	ret->row_pos = (const uint32_t *)(p + l.row_pos);
	ret->out = (const uint32_t *)(p + l.out);
	ret->seq = (const struct hk_seq *)(p + l.seq);
	ret->tile = (const struct hk_tile *)(p + l.tile);
	ret->page = (const uint32_t *)(p + l.page);
}

size_t step_fill(const struct step_cap *c, void *base, uint32_t n, uint32_t n_pad,
		 const int32_t *token, uint32_t n_seq, const struct step_seq *seq,
		 uint32_t n_out, const uint32_t *out, uint32_t tiles_max, uint32_t splits_max,
		 uint32_t fill)
{
	struct lay l = lay(c);
	char *p = base;
	uint32_t *row_seq = (uint32_t *)(p + l.row_seq), *row_pos = (uint32_t *)(p + l.row_pos);
	struct hk_seq *hs = (struct hk_seq *)(p + l.seq);
	struct hk_tile *tile = (struct hk_tile *)(p + l.tile);
	uint32_t *page = (uint32_t *)(p + l.page);
	uint32_t tiles = 0, pages = 0, want;

	if (n)
		memcpy(p + l.token, token, n * 4u);
	memset(p + l.token + n * 4u, 0, (n_pad - n) * 4u);
	memset(row_seq, 0xff, n_pad * 4u);
	memset(row_pos, 0, n_pad * 4u);
	if (n_out)
		memcpy(p + l.out, out, n_out * 4u);
	for (uint32_t i = 0; i < n_seq; i++)
		tiles += (seq[i].n * c->group + 15) / 16;
	want = tiles ? fill / (tiles * c->kv_heads) : 0;
	tiles = 0;
	for (uint32_t i = 0; i < n_seq; i++) {
		const struct step_seq *s = &seq[i];
		uint32_t np = (s->pos0 + s->n + 31) / 32;

		hs[i] = (struct hk_seq){ s->first, s->n, s->pos0, pages };
		for (uint32_t r = 0; r < s->n; r++) {
			row_seq[s->first + r] = i;
			row_pos[s->first + r] = s->pos0 + r;
		}
		memcpy(page + pages, s->page, np * 4u);
		pages += np;
		for (uint32_t m = 0; m < s->n * c->group; m += 16) {
			uint32_t rows = s->n * c->group - m < 16 ? s->n * c->group - m : 16;
			/* a part has some two chunks of 16 for each of its four warps: less
			 * costs more in merging than it saves */
			uint32_t most = (s->pos0 + (m + rows - 1) / c->group + step_part) / step_part;
			uint32_t z = want < most ? want : most;

			z = z < splits_max ? z : splits_max;
			tile[tiles++] = (struct hk_tile){ i, m, rows, z ? z : 1, hs[i] };
		}
	}
	for (uint32_t i = tiles; i < tiles_max; i++)
		tile[i] = (struct hk_tile){ .seq = UINT32_MAX };
	return l.page + pages * 4u;
}
