// SPDX-License-Identifier: MIT
/* Page pool, timelines and shared prefixes, against a slow obvious model. */
#include "unit.h"
#include "synth.h"
#include "cache/kv.h"
#include "cache/prefix.h"

static const struct kv_cfg cfg = { KV_I8, 2, 2, 64 };

static struct kv *pool(uint32_t pages)
{
	struct hearth_err err = { 0 };
	struct kv *kv;

	if (kv_open(&cfg, pages, &kv, &err))
		fail_msg("%s", err.text);
	return kv;
}

static void sizes(void **state)
{
	const struct kv_cfg f16 = { KV_F16, 28, 8, 128 }, i8 = { KV_I8, 36, 8, 128 };

	/* Qwen3-4B: 73,728 bytes a token in int8, and 1/16 of that for scales. */
	assert_int_equal(kv_page_bytes(&i8), 32ul * (73728 + 73728 / 16));
	assert_int_equal(kv_page_bytes(&f16), 32ul * 28 * 2 * 8 * 128 * 2);
	assert_int_equal(kv_head_off(&i8, 1, 1, 2), ((1 * 2 + 1) * 8 + 2) * kv_head_bytes(&i8));
	assert_int_equal(kv_scale_off(&i8), 32 * 128);
	assert_int_equal(kv_pages_for(0), 0);
	assert_int_equal(kv_pages_for(1), 1);
	assert_int_equal(kv_pages_for(32), 1);
	assert_int_equal(kv_pages_for(33), 2);
	assert_int_equal(kv_pages_for(UINT32_MAX), 1u << 27);
}

static void refusals(void **state)
{
	const struct kv_cfg odd = { KV_I8, 2, 2, 33 }, none = { KV_I8, 0, 2, 64 };
	struct hearth_err err = { 0 };
	struct kv *kv;

	assert_int_equal(kv_open(&odd, 4, &kv, &err), -EINVAL);
	assert_int_equal(kv_open(&none, 4, &kv, &err), -EINVAL);
	assert_int_equal(kv_open(&cfg, 0, &kv, &err), -EINVAL);
	assert_int_equal(kv_open(&cfg, KV_NONE, &kv, &err), -EINVAL);
	kv_close(NULL);
	prefix_close(NULL);
}

static void extend_and_rewind(void **state)
{
	struct kv *kv = pool(4);
	struct hearth_err err = { 0 };
	struct kv_seq a, b;
	uint32_t dst = 7, src = 7, page;

	assert_int_equal(kv_seq_open(100, &a, &err), 0);
	assert_int_equal(kv_seq_open(100, &b, &err), 0);
	assert_int_equal(kv_seq_extend(kv, &a, 101, &dst, &src), -E2BIG);
	assert_int_equal(kv_seq_extend(kv, &a, 33, &dst, &src), 0);
	assert_int_equal(dst, KV_NONE);
	assert_int_equal(a.n_page, 2);
	a.len = 33;
	/* What does not fit changes nothing. */
	dst = 7;
	assert_int_equal(kv_seq_extend(kv, &b, 65, &dst, &src), -ENOMEM);
	assert_int_equal(dst, 7);
	assert_int_equal(b.n_page, 0);
	assert_int_equal(kv_free(kv), 2);
	/* b shares a's pages; whoever writes first takes a copy. */
	for (uint32_t i = 0; i < 2; i++) {
		b.page[i] = a.page[i];
		kv_page_ref(kv, a.page[i]);
	}
	b.n_page = 2;
	b.len = 33;
	page = a.page[1];
	assert_int_equal(kv_seq_extend(kv, &b, 1, &dst, &src), 0);
	assert_int_equal(src, page);
	assert_int_equal(dst, b.page[1]);
	assert_int_not_equal(b.page[1], a.page[1]);
	assert_int_equal(b.page[0], a.page[0]);
	b.len = 34;
	assert_int_equal(kv_seq_extend(kv, &a, 1, &dst, &src), 0);
	assert_int_equal(dst, KV_NONE);
	/* A step that did not happen gives its pages back. */
	assert_int_equal(kv_seq_extend(kv, &a, 60, &dst, &src), 0);
	assert_int_equal(a.n_page, 3);
	assert_int_equal(kv_seq_extend(kv, &a, 1, &dst, &src), 0);
	assert_int_equal(a.n_page, 3);
	kv_seq_rewind(kv, &a, a.len);
	assert_int_equal(a.n_page, 2);
	kv_seq_rewind(kv, &a, 500);
	assert_int_equal(a.len, 33);
	kv_seq_rewind(kv, &a, 32);
	assert_int_equal(a.n_page, 1);
	kv_seq_close(kv, &a);
	kv_seq_close(kv, &a);
	kv_seq_close(kv, &b);
	assert_int_equal(kv_free(kv), 4);
	kv_close(kv);
}

/*
 * The obvious model: what each page holds, token by token. A session's page
 * must always hold the session's tokens, whatever others did.
 */
#define PAGES 24u
#define SESS  5u
#define CAP   160u

static int32_t content[PAGES][KV_PAGE];

static void check_all(struct kv *kv, struct kv_seq *s)
{
	uint32_t held[PAGES] = { 0 }, n = 0;

	for (uint32_t i = 0; i < SESS; i++) {
		assert_int_equal(s[i].n_page, kv_pages_for(s[i].len));
		for (uint32_t p = 0; p < s[i].n_page; p++)
			held[s[i].page[p]]++;
		for (uint32_t t = 0; t < s[i].len; t++)
			assert_int_equal(content[s[i].page[t / KV_PAGE]][t % KV_PAGE], s[i].token[t]);
	}
	for (uint32_t p = 0; p < PAGES; p++) {
		assert_true(kv_page_refs(kv, p) >= held[p] && kv_page_refs(kv, p) <= held[p] + 1);
		n += kv_page_refs(kv, p) > 0;
	}
	assert_int_equal(kv_free(kv), PAGES - n);
}

static void random_sessions(void **state)
{
	struct kv *kv = pool(PAGES);
	struct hearth_err err = { 0 };
	struct kv_seq s[SESS];
	struct prefix *px;
	uint64_t seed = 99;
	uint32_t hits = 0, copies = 0, sheds = 0;

	assert_int_equal(prefix_open(kv, &px, &err), 0);
	for (uint32_t i = 0; i < SESS; i++)
		assert_int_equal(kv_seq_open(CAP, &s[i], &err), 0);
	for (int round = 0; round < 20000; round++) {
		struct kv_seq *q = &s[synth_rand(&seed) % SESS];
		uint32_t dst, src, n, got;

		switch (synth_rand(&seed) % 5) {
		case 0:
			kv_seq_rewind(kv, q, (uint32_t)(synth_rand(&seed) % (q->len + 1)));
			break;
		case 1: {
			/* A new prompt of two letters: prefixes meet often, and part often. */
			int32_t want[CAP];

			n = 1 + (uint32_t)(synth_rand(&seed) % (CAP - 1));
			for (uint32_t i = 0; i < n; i++)
				want[i] = synth_rand(&seed) % 20 ? (int32_t)(i / 40) : 1;
			kv_seq_rewind(kv, q, 0);
			got = prefix_peek(px, want, n);
			q->len = prefix_find(px, want, n, q->page);
			assert_int_equal(got, q->len);
			assert_true(q->len <= n);
			q->n_page = kv_pages_for(q->len);
			memcpy(q->token, want, q->len * sizeof(*want));
			hits += q->len > 0;
			break;
		}
		case 2:
			prefix_keep(px, q);
			break;
		case 3:
			sheds += prefix_shed(px, (uint32_t)(synth_rand(&seed) % 3), true, 0);
			break;
		default:
			n = (uint32_t)(synth_rand(&seed) % 50);
			if (n > CAP - q->len)
				n = CAP - q->len;
			if (kv_seq_extend(kv, q, n, &dst, &src)) {
				prefix_shed(px, 4, true, 0);
				break;
			}
			if (dst != KV_NONE) {
				assert_true(kv_page_refs(kv, src) >= 1);
				memcpy(content[dst], content[src], sizeof(content[dst]));
				copies++;
			}
			for (uint32_t i = 0; i < n; i++) {
				const uint32_t at = q->len + i;

				assert_int_equal(kv_page_refs(kv, q->page[at / KV_PAGE]), 1);
				q->token[at] = synth_rand(&seed) % 20 ? (int32_t)(at / 40) : 1;
				content[q->page[at / KV_PAGE]][at % KV_PAGE] = q->token[at];
			}
			q->len += n;
		}
		check_all(kv, s);
	}
	assert_true(hits > 1000 && copies > 100 && sheds > 100);
	for (uint32_t i = 0; i < SESS; i++)
		kv_seq_close(kv, &s[i]);
	assert_int_equal(prefix_idle(px), PAGES - kv_free(kv));
	prefix_shed(px, PAGES, true, 0);
	assert_int_equal(kv_free(kv), PAGES);
	prefix_close(px);
	kv_close(kv);
}

static void oldest_goes_first(void **state)
{
	struct kv *kv = pool(8);
	struct hearth_err err = { 0 };
	struct prefix *px;
	struct kv_seq q;
	uint32_t dst, src, page[8];
	int32_t a[64], b[64];

	assert_int_equal(prefix_open(kv, &px, &err), 0);
	assert_int_equal(kv_seq_open(64, &q, &err), 0);
	for (int k = 0; k < 2; k++) {
		int32_t *t = k ? b : a;

		for (int i = 0; i < 64; i++)
			t[i] = 100 * k + i;
		kv_seq_rewind(kv, &q, 0);
		assert_int_equal(kv_seq_extend(kv, &q, 64, &dst, &src), 0);
		memcpy(q.token, t, sizeof(a));
		q.len = 64;
		prefix_keep(px, &q);
	}
	kv_seq_rewind(kv, &q, 0);
	assert_int_equal(prefix_idle(px), 4);
	/* a is used again, so b goes, and its end before its beginning. */
	assert_int_equal(prefix_find(px, a, 40, page), 40);
	kv_page_put(kv, page[0]);
	kv_page_put(kv, page[1]);
	assert_int_equal(prefix_shed(px, 1, true, 0), 1);
	assert_int_equal(prefix_peek(px, b, 64), 32);
	assert_int_equal(prefix_peek(px, a, 64), 64);
	assert_int_equal(prefix_shed(px, 1, true, 0), 1);
	assert_int_equal(prefix_peek(px, b, 64), 0);
	/* A page somebody uses is not given back. */
	assert_int_equal(prefix_find(px, a, 64, page), 64);
	assert_int_equal(prefix_shed(px, 8, true, 0), 0);
	kv_page_put(kv, page[0]);
	kv_page_put(kv, page[1]);
	kv_seq_close(kv, &q);
	prefix_close(px);
	assert_int_equal(kv_free(kv), 8);
	kv_close(kv);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sizes),
		cmocka_unit_test(refusals),
		cmocka_unit_test(extend_and_rewind),
		cmocka_unit_test(random_sessions),
		cmocka_unit_test(oldest_goes_first),
	};

	return UNIT_RUN(tests);
}
