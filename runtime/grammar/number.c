// SPDX-License-Identifier: MIT
#include "grammar/number.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_LISTED 2000          /* values written out one by one */
#define LISTED     (MAX_LISTED + 8)  /* with those at the borders */
#define LIMIT      999999999999999LL  /* 15 digits: exact in a double */

static gnode digit(struct gast *g, int lo, int hi)
{
	return gast_bytes(g, (uint8_t)('0' + lo), (uint8_t)('0' + hi));
}

static gnode digits(struct gast *g, uint32_t min, uint32_t max)
{
	return gast_repeat(g, digit(g, 0, 9), min, max);
}

gnode number_any(struct gast *g)
{
	gnode whole = gast_alt(g, gast_lit(g, "0", 1), gast_seq(g, digit(g, 1, 9), digits(g, 0, 14)));
	gnode frac = gast_seq(g, gast_lit(g, ".", 1), digits(g, 1, 15));
	gnode sign = gast_alt(g, gast_lit(g, "+", 1), gast_lit(g, "-", 1));
	gnode exp = gast_seq(g, gast_alt(g, gast_lit(g, "e", 1), gast_lit(g, "E", 1)),
			     gast_seq(g, gast_repeat(g, sign, 0, 1), digits(g, 1, 2)));

	return gast_seq(g, gast_repeat(g, gast_lit(g, "-", 1), 0, 1),
			gast_seq(g, whole, gast_seq(g, gast_repeat(g, frac, 0, 1), gast_repeat(g, exp, 0, 1))));
}

/* Numbers lo..hi of exactly @len digits, lo and hi given with leading zeros. */
static gnode same_length(struct gast *g, const char *lo, const char *hi, int len)
{
	gnode n;

	if (len == 0)
		return gast_empty(g);
	if (lo[0] == hi[0])
		return gast_seq(g, gast_lit(g, lo, 1), same_length(g, lo + 1, hi + 1, len - 1));
	{
		char zeros[20], nines[20];
		int first = lo[0] - '0', last = hi[0] - '0';

		memset(zeros, '0', sizeof(zeros));
		memset(nines, '9', sizeof(nines));
		n = gast_never(g);
		if (memcmp(lo + 1, zeros, (size_t)len - 1)) {
			n = gast_seq(g, gast_lit(g, lo, 1), same_length(g, lo + 1, nines, len - 1));
			first++;
		}
		if (memcmp(hi + 1, nines, (size_t)len - 1)) {
			n = gast_alt(g, n, gast_seq(g, gast_lit(g, hi, 1), same_length(g, zeros, hi + 1, len - 1)));
			last--;
		}
		if (first <= last)
			n = gast_alt(g, n, gast_seq(g, digit(g, first, last), digits(g, (uint32_t)len - 1, (uint32_t)len - 1)));
	}
	return n;
}

/* Whole numbers lo..hi, both >= 0. */
static gnode naturals(struct gast *g, long long lo, long long hi)
{
	gnode n = gast_never(g);
	char a[24], b[24];

	for (int len = 1; len <= 15 && lo <= hi; len++) {
		long long top = 1, end;

		for (int i = 0; i < len; i++)
			top *= 10;
		if (lo >= top)
			continue;
		end = hi < top ? hi : top - 1;
		snprintf(a, sizeof(a), "%lld", lo);
		snprintf(b, sizeof(b), "%lld", end);
		n = gast_alt(g, n, same_length(g, a, b, len));
		lo = top;
	}
	return n;
}

static gnode integers(struct gast *g, long long lo, long long hi)
{
	gnode n = gast_never(g);

	if (hi >= 0)
		n = naturals(g, lo > 0 ? lo : 0, hi);
	if (lo < 0)
		n = gast_alt(g, n, gast_seq(g, gast_lit(g, "-", 1), naturals(g, hi < 0 ? -hi : 1, -lo)));
	return n;
}

/*
 * Decimals of one sign whose magnitude lies in [lo, hi] (open ends as told):
 * k.ffffff where both k and k + 1 are inside, and the bare k at the top. Where
 * the range holds no such k, its hundredths are listed.
 */
static gnode magnitudes(struct gast *g, double lo, double hi, bool lo_open, bool hi_open)
{
	gnode n = gast_never(g), frac = gast_seq(g, gast_lit(g, ".", 1), digits(g, 1, 6));
	long long first = (long long)ceil(lo), last = (long long)floor(hi);
	char text[64];

	if (lo_open && (double)first == lo) {
		/* lo itself is out, but lo.5 is in: not worth a rule; start one higher and list below. */
		first++;
	}
	if (hi_open && (double)last == hi)
		last--;
	if (last >= first) {
		long long whole = hi_open || (double)(last + 1) > hi ? last - 1 : last;

		n = integers(g, first, last);
		if (!hi_open && (double)last == hi)
			whole = last - 1;
		else if ((double)(last + 1) <= hi)
			whole = last;
		if (whole >= first)
			n = gast_alt(g, n, gast_seq(g, integers(g, first, whole), frac));
	}
	/* What lies between the bounds and the whole numbers inside them, to a hundredth. */
	for (long long h = (long long)ceil(lo * 100 - 1e-9), listed = 0; listed < 220; h++, listed++) {
		double v = (double)h / 100;

		if (v > hi || (hi_open && v >= hi))
			break;
		if (v < lo || (lo_open && v <= lo) || (last >= first && v >= (double)first))
			continue;
		snprintf(text, sizeof(text), "%lld.%02lld", h / 100, h % 100);
		n = gast_alt(g, n, gast_lit(g, text, strlen(text)));
	}
	for (long long h = last >= first ? last * 100 : 0; last >= first && h <= (long long)(hi * 100 + 1e-9); h++) {
		double v = (double)h / 100;

		if (v > hi || (hi_open && v >= hi) || v < (double)last)
			continue;
		snprintf(text, sizeof(text), "%lld.%02lld", h / 100, h % 100);
		n = gast_alt(g, n, gast_lit(g, text, strlen(text)));
	}
	return n;
}

/*
 * Multiples between bounds, one by one, counted in units of the last decimal:
 * whole numbers, so that each is written exactly and the next is always larger.
 */
static int multiples(struct gast *g, const struct number_bounds *nb, gnode *ret, char *why, size_t len)
{
	const double m = nb->multiple;
	struct { char text[LISTED][32]; const char *word[LISTED]; } *list;
	double unit = 1, v;
	char one[64];
	size_t n = 0;
	int decimals = 0;
	long long step;

	if (!(m > 0)) {
		snprintf(why, len, "\"multipleOf\" must be over 0");
		return -EINVAL;
	}
	if (nb->integer && m == 1) {
		struct number_bounds plain = *nb;

		plain.multiple = 0;
		return number_node(g, &plain, ret, why, len);
	}
	if (!nb->has_min || !nb->has_max || !((nb->max - nb->min) / m <= MAX_LISTED)) {
		snprintf(why, len, "\"multipleOf\" is enforced only with \"minimum\" and \"maximum\" and at most %d values between", MAX_LISTED);
		return -EOPNOTSUPP;
	}
	for (; decimals < 6; decimals++, unit *= 10) {
		snprintf(one, sizeof(one), "%.*f", decimals, m);
		if (strtod(one, NULL) == m)
			break;
	}
	if (decimals == 6 || (nb->integer && decimals)) {
		snprintf(why, len, "\"multipleOf\": %g cannot be enforced", m);
		return -EOPNOTSUPP;
	}
	if (fmax(m, fmax(fabs(nb->min), fabs(nb->max))) * unit > (double)LIMIT) {
		snprintf(why, len, "\"multipleOf\" with more than 15 digits cannot be enforced");
		return -EOPNOTSUPP;
	}
	list = malloc(sizeof(*list));
	if (!list) {
		snprintf(why, len, "out of memory");
		return -ENOMEM;
	}
	step = llround(m * unit);
	for (long long k = (long long)floor(nb->min * unit / (double)step); k <= (long long)ceil(nb->max * unit / (double)step) && n < LISTED; k++) {
		snprintf(list->text[n], sizeof(list->text[n]), "%.*f", decimals, (double)(k * step) / unit);
		/* What is compared is what a reader of the text will have. */
		v = strtod(list->text[n], NULL);
		if (v < nb->min || v > nb->max || (nb->min_open && v <= nb->min) || (nb->max_open && v >= nb->max))
			continue;
		list->word[n] = list->text[n];
		n++;
	}
	if (n)
		*ret = gast_words(g, list->word, n);
	else
		snprintf(why, len, "no multiple of %g lies between the bounds", m);
	free(list);
	return n ? 0 : -EINVAL;
}

int number_node(struct gast *g, const struct number_bounds *nb, gnode *ret, char *why, size_t len)
{
	double lo = nb->has_min ? nb->min : -(double)LIMIT, hi = nb->has_max ? nb->max : (double)LIMIT;
	long long a, b;
	gnode n;

	if (nb->multiple != 0)
		return multiples(g, nb, ret, why, len);
	if (!isfinite(lo) || !isfinite(hi) || lo > hi || (lo == hi && (nb->min_open || nb->max_open))) {
		snprintf(why, len, "no number lies between the bounds");
		return -EINVAL;
	}
	if ((nb->has_min && lo > (double)LIMIT) || (nb->has_max && hi < -(double)LIMIT)) {
		snprintf(why, len, "bounds past 15 digits cannot be enforced");
		return -EOPNOTSUPP;
	}
	if (lo < -(double)LIMIT)
		lo = -(double)LIMIT;
	if (hi > (double)LIMIT)
		hi = (double)LIMIT;
	if (nb->integer) {
		a = (long long)ceil(lo);
		b = (long long)floor(hi);
		a += nb->min_open && (double)a == lo;
		b -= nb->max_open && (double)b == hi;
		if (a > b) {
			snprintf(why, len, "no integer lies between the bounds");
			return -EINVAL;
		}
		*ret = integers(g, a, b);
		return 0;
	}
	if (!nb->has_min && !nb->has_max) {
		*ret = number_any(g);
		return 0;
	}
	n = gast_never(g);
	if (hi >= 0 && !(hi == 0 && nb->max_open))
		n = magnitudes(g, lo > 0 ? lo : 0, hi, lo >= 0 && nb->min_open, nb->max_open);
	if (lo < 0)
		n = gast_alt(g, n, gast_seq(g, gast_lit(g, "-", 1),
					    magnitudes(g, hi < 0 ? -hi : 0, -lo, hi <= 0 && nb->max_open, nb->min_open)));
	if (g->nodes[n].kind == GAST_NEVER) {
		snprintf(why, len, "bounds closer than a hundredth cannot be enforced");
		return -EOPNOTSUPP;
	}
	*ret = n;
	return 0;
}
