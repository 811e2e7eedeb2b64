// SPDX-License-Identifier: MIT
#include "token/json_text.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void text_put(struct text *t, const char *s, size_t n)
{
	if (t->err)
		return;
	if (t->cap - t->n <= n) {
		size_t cap = (t->n + n + 64) * 2;
		char *p = realloc(t->p, cap);

		if (!p) {
			t->err = -ENOMEM;
			return;
		}
		t->p = p;
		t->cap = cap;
	}
	memcpy(t->p + t->n, s, n);
	t->n += n;
	t->p[t->n] = 0;
}

void text_puts(struct text *t, const char *s)
{
	text_put(t, s, strlen(s));
}

void text_string(struct text *t, const char *s, size_t n)
{
	size_t from = 0;
	char u[8];

	text_put(t, "\"", 1);
	for (size_t i = 0; i < n; i++) {
		const char *e;

		if ((unsigned char)s[i] >= 0x20 && s[i] != '"' && s[i] != '\\')
			continue;
		switch (s[i]) {
		case '"': e = "\\\""; break;
		case '\\': e = "\\\\"; break;
		case '\n': e = "\\n"; break;
		case '\r': e = "\\r"; break;
		case '\t': e = "\\t"; break;
		case '\b': e = "\\b"; break;
		case '\f': e = "\\f"; break;
		default:
			snprintf(u, sizeof(u), "\\u%04x", s[i]);
			e = u;
		}
		text_put(t, s + from, i - from);
		text_puts(t, e);
		from = i + 1;
	}
	text_put(t, s + from, n - from);
	text_put(t, "\"", 1);
}

/*
 * Python's repr(): the fewest digits that read back the same; with an exponent
 * below 1e-4 and from 1e16 on.
 */
static void put_real(struct text *t, double v)
{
	char s[40], digits[24], *e;
	int n, exp, prec = 1;

	do
		snprintf(s, sizeof(s), "%.*e", prec - 1, v);
	while (strtod(s, NULL) != v && ++prec <= 17);
	e = strchr(s, 'e');
	exp = atoi(e + 1);
	n = 0;
	for (const char *p = s; p < e; p++)
		if (*p >= '0' && *p <= '9')
			digits[n++] = *p;
	digits[n] = 0;
	if (signbit(v))
		text_put(t, "-", 1);
	if (exp < -4 || exp >= 16) {
		text_put(t, digits, 1);
		if (n > 1) {
			text_put(t, ".", 1);
			text_put(t, digits + 1, (size_t)n - 1);
		}
		snprintf(s, sizeof(s), "e%c%02d", exp < 0 ? '-' : '+', abs(exp));
		text_puts(t, s);
	} else if (exp < 0) {
		text_puts(t, "0.");
		for (int i = -1; i > exp; i--)
			text_put(t, "0", 1);
		text_puts(t, digits);
	} else {
		for (int i = 0; i <= exp; i++)
			text_put(t, i < n ? digits + i : "0", 1);
		text_put(t, ".", 1);
		text_puts(t, n > exp + 1 ? digits + exp + 1 : "0");
	}
}

void json_text(struct text *t, const json_t *v)
{
	char s[32];
	const char *key;
	json_t *item;
	size_t i;
	void *it;

	switch (json_typeof(v)) {
	case JSON_OBJECT:
		text_put(t, "{", 1);
		for (it = json_object_iter((json_t *)(uintptr_t)v), i = 0; it;
		     it = json_object_iter_next((json_t *)(uintptr_t)v, it), i++) {
			key = json_object_iter_key(it);
			if (i)
				text_put(t, ", ", 2);
			text_string(t, key, strlen(key));
			text_put(t, ": ", 2);
			json_text(t, json_object_iter_value(it));
		}
		text_put(t, "}", 1);
		break;
	case JSON_ARRAY:
		text_put(t, "[", 1);
		json_array_foreach(v, i, item) {
			if (i)
				text_put(t, ", ", 2);
			json_text(t, item);
		}
		text_put(t, "]", 1);
		break;
	case JSON_STRING:
		text_string(t, json_string_value(v), json_string_length(v));
		break;
	case JSON_INTEGER:
		snprintf(s, sizeof(s), "%" JSON_INTEGER_FORMAT, json_integer_value(v));
		text_puts(t, s);
		break;
	case JSON_REAL:
		put_real(t, json_real_value(v));
		break;
	case JSON_TRUE:
		text_puts(t, "true");
		break;
	case JSON_FALSE:
		text_puts(t, "false");
		break;
	case JSON_NULL:
		text_puts(t, "null");
		break;
	}
}
