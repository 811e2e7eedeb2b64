// SPDX-License-Identifier: MIT
#include "sample/sampler.h"

#include <errno.h>
#include <string.h>

int stop_init(struct stop_match *m, const char *const *str, uint32_t n, struct hearth_err *err)
{
	uint32_t i;

	if (n > STOP_MAX)
		return err_set(err, -EINVAL, "%u stop strings; at most %u are possible", n, STOP_MAX);
	*m = (struct stop_match){ .n = n };
	for (i = 0; i < n; i++) {
		m->str[i] = str[i];
		m->len[i] = strlen(str[i]);
		if (!m->len[i] || m->len[i] > STOP_MAX_BYTES)
			return err_set(err, -EINVAL, "stop string %u has %zu bytes; 1 to %u are possible",
				       i + 1, m->len[i], STOP_MAX_BYTES);
	}
	return 0;
}

/*
 * A stop string counts at the byte that completes it, as if bytes came one by
 * one; of two that end at the same byte the longer one counts. So the result
 * does not depend on how the text was cut.
 */
bool stop_push(struct stop_match *m, const char *text, size_t len, char *out, size_t *ret_len,
	       uint32_t *ret_which)
{
	const size_t n = m->n_held + len;
	size_t end, keep, k;
	uint32_t i, best;

	memcpy(out, m->held, m->n_held);
	memcpy(out + m->n_held, text, len);
	for (end = m->n_held + 1; end <= n; end++) {
		best = m->n;
		for (i = 0; i < m->n; i++)
			if (m->len[i] <= end && !memcmp(out + end - m->len[i], m->str[i], m->len[i]) &&
			    (best == m->n || m->len[i] > m->len[best]))
				best = i;
		if (best < m->n) {
			m->n_held = 0;
			*ret_len = end - m->len[best];
			*ret_which = best;
			return true;
		}
	}
	/* The longest end of the text that begins a stop string waits. */
	keep = 0;
	for (i = 0; i < m->n; i++)
		for (k = m->len[i] - 1 < n ? m->len[i] - 1 : n; k > keep; k--)
			if (!memcmp(out + n - k, m->str[i], k))
				keep = k;
	memcpy(m->held, out + n - keep, keep);
	m->n_held = keep;
	*ret_len = n - keep;
	return false;
}

size_t stop_flush(struct stop_match *m, char *out)
{
	const size_t n = m->n_held;

	memcpy(out, m->held, n);
	m->n_held = 0;
	return n;
}
