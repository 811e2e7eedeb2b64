// SPDX-License-Identifier: MIT
#include "server/base64.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

char *base64_encode(const void *data, size_t n)
{
	const uint8_t *p = data;
	char *out = malloc((n + 2) / 3 * 4 + 1), *q = out;

	if (!out)
		return NULL;
	for (size_t i = 0; i < n; i += 3) {
		uint32_t v = (uint32_t)p[i] << 16 | (i + 1 < n ? (uint32_t)p[i + 1] << 8 : 0) | (i + 2 < n ? p[i + 2] : 0);

		*q++ = digits[v >> 18];
		*q++ = digits[v >> 12 & 63];
		*q++ = i + 1 < n ? digits[v >> 6 & 63] : '=';
		*q++ = i + 2 < n ? digits[v & 63] : '=';
	}
	*q = 0;
	return out;
}

uint8_t *base64_decode(const char *text, size_t n, size_t *ret_n, int *ret_rc)
{
	uint8_t *out;
	size_t m = 0, pad = 0;

	*ret_rc = -EINVAL;
	if (n % 4)
		return NULL;
	while (pad < 2 && n - pad > 0 && text[n - pad - 1] == '=')
		pad++;
	out = malloc(n / 4 * 3 + 1);
	if (!out) {
		*ret_rc = -ENOMEM;
		return NULL;
	}
	for (size_t i = 0; i < n; i += 4) {
		uint32_t v = 0;
		size_t last = i + 4 == n ? pad : 0;

		for (size_t k = 0; k < 4; k++) {
			const char *d = k < 4 - last && text[i + k] ? memchr(digits, text[i + k], 64) : NULL;

			if (k < 4 - last && !d) {
				free(out);
				return NULL;
			}
			v = v << 6 | (d ? (uint32_t)(d - digits) : 0);
		}
		out[m++] = (uint8_t)(v >> 16);
		if (last < 2)
			out[m++] = (uint8_t)(v >> 8);
		if (last < 1)
			out[m++] = (uint8_t)v;
	}
	*ret_rc = 0;
	*ret_n = m;
	return out;
}
