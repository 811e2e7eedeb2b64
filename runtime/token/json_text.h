/* SPDX-License-Identifier: MIT */
/*
 * JSON written the way that chat templates write it, which is Python's
 * json.dumps(x, ensure_ascii=False): ", " and ": ", keys in their order, the
 * shortest digits that read back as the same number. Models were trained on
 * exactly these bytes.
 */
#ifndef HEARTH_TOKEN_JSON_TEXT_H
#define HEARTH_TOKEN_JSON_TEXT_H

#include <jansson.h>
#include <stddef.h>

struct text {               /* start with { 0 }; free(t.p) */
	char *p;
	size_t n, cap;
	int err;            /* -ENOMEM once it happened; later puts do nothing */
};

void text_put(struct text *t, const char *s, size_t n);
void text_puts(struct text *t, const char *s);
/* UTF-8 as a JSON string, quotes and all. */
void text_string(struct text *t, const char *s, size_t n);
void json_text(struct text *t, const json_t *v);

#endif
