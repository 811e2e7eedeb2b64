// SPDX-License-Identifier: MIT
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "token/tokenizer.h"
#include "base/utf8.h"

#define REPLACEMENT "\xef\xbf\xbd" /* U+FFFD */

struct tok_stream {
	const struct tok *t;
	bool show_control;
	char held[4];            /* the beginning of a character */
	size_t n_held;
	size_t n_out;
	char out[];              /* room for the longest token, every byte of it replaced */
};

int tok_stream_open(const struct tok *t, bool show_control, struct tok_stream **ret)
{
	size_t longest = 0, n;
	struct tok_stream *s;

	for (size_t i = 0; i < tok_count(t); i++) {
		tok_bytes(t, (int32_t)i, &n);
		longest = n > longest ? n : longest;
	}
	s = malloc(sizeof(*s) + 3 * (longest + sizeof(s->held)) + 1);
	if (!s)
		return -ENOMEM;
	s->t = t;
	s->show_control = show_control;
	s->n_held = s->n_out = 0;
	*ret = s;
	return 0;
}

void tok_stream_free(struct tok_stream *s)
{
	free(s);
}

void tok_stream_reset(struct tok_stream *s)
{
	s->n_held = 0;
}

static void emit(struct tok_stream *s, const char *p, size_t n)
{
	memcpy(s->out + s->n_out, p, n);
	s->n_out += n;
}

/*
 * What can never become a character is replaced as the Unicode standard
 * recommends: one U+FFFD for each longest part that was right so far.
 */
static void take_byte(struct tok_stream *s, char c)
{
	int k;

	s->held[s->n_held++] = c;
	k = utf8_char(s->held, s->n_held);
	if (k > 0) {
		emit(s, s->held, s->n_held);
		s->n_held = 0;
	} else if (k < 0) {
		bool alone = s->n_held == 1;

		emit(s, REPLACEMENT, 3);
		s->n_held = 0;
		if (!alone)
			take_byte(s, c); /* once: it is alone now */
	}
}

static const char *give(struct tok_stream *s, size_t *ret_n)
{
	s->out[s->n_out] = 0;
	*ret_n = s->n_out;
	return s->out;
}

static void let_go(struct tok_stream *s)
{
	if (s->n_held)
		emit(s, REPLACEMENT, 3);
	s->n_held = 0;
}

const char *tok_stream_push(struct tok_stream *s, int32_t id, size_t *ret_n)
{
	const char *p;
	size_t n = 0;

	s->n_out = 0;
	p = tok_bytes(s->t, id, &n);
	if (!p || tok_is_control(s->t, id) || tok_is_unused(s->t, id)) {
		/* The text around it is cut here: nothing can complete what is held. */
		let_go(s);
		if (!p || !s->show_control)
			n = 0;
	}
	for (size_t i = 0; i < n; i++)
		take_byte(s, p[i]);
	return give(s, ret_n);
}

const char *tok_stream_end(struct tok_stream *s, size_t *ret_n)
{
	s->n_out = 0;
	let_go(s);
	return give(s, ret_n);
}
