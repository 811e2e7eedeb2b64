// SPDX-License-Identifier: MIT
#include "voice/plain.h"

#include <string.h>

#define TAG_MAX 64

/* Blocks that are never spoken, and what ends each. */
static const struct {
	const char *open;
	const char *close;
} blocks[] = {
	{ "think", "</think>" },
	{ "thinking", "</thinking>" },
	{ "thought", "</thought>" },
	{ "reasoning", "</reasoning>" },
	{ "tool_call", "</tool_call>" },
	{ "tool_calls", "</tool_calls>" },
	{ "tool_response", "</tool_response>" },
	{ "tools", "</tools>" },
	{ "function_call", "</function_call>" },
	{ "functioncall", "</functioncall>" },
	{ "function", "</function>" },
	{ "unused94", "<unused95>" },
	{ "|channel|", "final<|message|>" },
};

static int is_alpha(uint32_t c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= 0xc0 && c < 0x2000 && c != 0xd7 && c != 0xf7);
}

static int is_digit(uint32_t c) { return c >= '0' && c <= '9'; }
static int is_alnum(uint32_t c) { return is_alpha(c) || is_digit(c); }
static int is_space(uint32_t c) { return c == ' ' || c == '\n' || c == '\t'; }
static uint32_t lower(uint32_t c) { return c >= 'A' && c <= 'Z' ? c + 32 : c; }

/* Pictures, and the joiners and selectors that build them; not "°", "€", "½" or arrows in text. */
static int is_emoji(uint32_t c)
{
	return (c >= 0x1f000 && c <= 0x1faff) || (c >= 0x2600 && c <= 0x27bf) ||
	       (c >= 0x2b00 && c <= 0x2bff) || (c >= 0x231a && c <= 0x231b) ||
	       (c >= 0x23e9 && c <= 0x23fa) || (c >= 0x25a0 && c <= 0x25ff) ||
	       (c >= 0xfe00 && c <= 0xfe0f) || (c >= 0xe0000 && c <= 0xe0fff) ||
	       (c >= 0x2190 && c <= 0x21ff) || (c >= 0x2900 && c <= 0x297f) ||
	       c == 0x20e3 || c == 0x3030 || c == 0x303d || c == 0x3297 || c == 0x3299 ||
	       c == 0x2122 || c == 0x00a9 || c == 0x00ae;
}

/* Marks of direction and width that nobody hears. */
static int is_unheard(uint32_t c)
{
	return (c < 0x20 && c != '\n' && c != '\t') || (c >= 0x7f && c < 0xa0) || c == 0xad ||
	       (c >= 0x200b && c <= 0x200f) || (c >= 0x202a && c <= 0x202e) ||
	       (c >= 0x2060 && c <= 0x206f) || c == 0xfeff || c == 0xfffd ||
	       (c >= 0xe000 && c <= 0xf8ff) || c >= 0xf0000;
}

void plain_init(struct plain *p, int in_think, plain_fn fn, void *arg)
{
	memset(p, 0, sizeof(*p));
	p->fn = fn;
	p->arg = arg;
	p->prev = '\n';
	p->line_start = 1;
	if (in_think) {
		p->state = PLAIN_BLOCK;
		p->close = blocks[0].close;
	}
}

static void note_word(struct plain *p, uint32_t cp)
{
	static const char *const heads[] = { "http://", "https://", "www." };
	unsigned int i, k;

	if (is_space(cp)) {
		p->n_word = 0;
		p->url = 0;
		return;
	}
	/* An opening quote or bracket does not belong to the address. */
	if (p->n_word == 0 && !is_alnum(cp))
		return;
	if (p->url || p->n_word >= 8)
		return;
	p->word[p->n_word++] = lower(cp);
	for (i = 0; i < 3; i++) {
		size_t len = strlen(heads[i]);

		if (p->n_word != len)
			continue;
		for (k = 0; k < len && p->word[k] == (unsigned char)heads[i][k]; k++)
			;
		p->url |= k == len;
	}
}

static int give(struct plain *p, uint32_t cp, size_t end)
{
	note_word(p, cp);
	p->prev = cp;
	if (cp == '\n')
		p->line_start = 1;
	else if (cp != ' ')
		p->line_start = 0;
	return p->fn(p->arg, cp, end);
}

static void drop(struct plain *p, unsigned int n)
{
	p->n_hold -= n;
	memmove(p->hold, p->hold + n, p->n_hold * sizeof(p->hold[0]));
}

/* Drops @n held characters, enters @state, and feeds it whatever else was held. */
static int enter(struct plain *p, unsigned int n, enum plain_state state)
{
	struct plain_char rest[PLAIN_HOLD];
	unsigned int n_rest = p->n_hold - n, i;
	int ret = 0;

	memcpy(rest, p->hold + n, n_rest * sizeof(rest[0]));
	p->n_hold = 0;
	p->state = state;
	p->matched = 0;
	p->ticks = 0;
	p->in_string = p->escaped = 0;
	for (i = 0; i < n_rest && !ret; i++)
		ret = plain_push(p, rest[i].cp, rest[i].end);
	return ret;
}

enum { WAIT = 1 }; /* resolve(): more text is needed; 0: some of the hold is gone; < 0: fn stopped us */

static int stopped(int ret) { return ret ? -1 : 0; }

/* How many of @cp are at the head of the hold. */
static unsigned int run_of(const struct plain *p, uint32_t cp)
{
	unsigned int n = 0;

	while (n < p->n_hold && p->hold[n].cp == cp)
		n++;
	return n;
}

static int give_head(struct plain *p, unsigned int n)
{
	int ret = 0;

	while (n-- && !ret) {
		struct plain_char c = p->hold[0];

		drop(p, 1);
		ret = give(p, c.cp, c.end);
	}
	return ret;
}

static int give_as(struct plain *p, unsigned int n, uint32_t cp)
{
	size_t end = p->hold[n - 1].end;

	drop(p, n);
	return give(p, cp, end);
}

static int is_block(const char *name, size_t len)
{
	unsigned int i;

	for (i = 0; i < sizeof(blocks) / sizeof(blocks[0]); i++)
		if (strlen(blocks[i].open) == len && !memcmp(blocks[i].open, name, len))
			return (int)i;
	return -1;
}

/* "<": a tag, or less-than. */
static int resolve_tag(struct plain *p, int final, int *ret_stop)
{
	char name[TAG_MAX + 1];
	unsigned int i, len = 0;
	int block;

	if (p->n_hold < 2 && !final)
		return WAIT;
	if (p->n_hold >= 2 && (is_alpha(p->hold[1].cp) || p->hold[1].cp == '/' || p->hold[1].cp == '|')) {
		for (i = 1; i < p->n_hold && i <= TAG_MAX; i++) {
			uint32_t c = lower(p->hold[i].cp);

			if (c == '>' || c == ' ' || c == '\n' || c == '=' || c == '{') {
				block = is_block(name, len);
				if (block >= 0) {
					p->close = blocks[block].close;
					*ret_stop = enter(p, i + (c == '>'), PLAIN_BLOCK);
					return 0;
				}
				if (c != '>')
					break;
				if ((len == 2 || len == 3) && !memcmp(name, "br", 2))
					*ret_stop = give_as(p, i + 1, '\n');
				else
					drop(p, i + 1);
				return 0;
			}
			if (c < 0x21 || c > 0x7e || c == '<')
				break;
			name[len++] = (char)c;
		}
		/* A tag with attributes: its name is known to be none of the blocks. */
		if (i < p->n_hold && (p->hold[i].cp == ' ' || p->hold[i].cp == '=')) {
			unsigned int j;

			for (j = i; j < p->n_hold && j <= TAG_MAX && p->hold[j].cp != '>' && p->hold[j].cp != '\n' && p->hold[j].cp != '<'; j++)
				;
			if (j < p->n_hold && p->hold[j].cp == '>' && j <= TAG_MAX) {
				drop(p, j + 1);
				return 0;
			}
			if (j == p->n_hold && j <= TAG_MAX && !final)
				return WAIT;
		} else if (i == p->n_hold && i <= TAG_MAX && !final) {
			return WAIT;
		}
		/*
		 * The text ends inside the name of a block ("<thin", "<tool_ca"):
		 * nobody wants to hear that either.
		 */
		if (final && i == p->n_hold) {
			drop(p, i);
			return 0;
		}
	}
	*ret_stop = give_head(p, 1);
	return 0;
}

static int resolve_brace(struct plain *p, int final)
{
	unsigned int i;

	for (i = 1; i < p->n_hold && i < TAG_MAX && is_space(p->hold[i].cp); i++)
		;
	if (i == p->n_hold && i < TAG_MAX && !final)
		return WAIT;
	if (i < p->n_hold && (p->hold[i].cp == '"' || p->hold[i].cp == '}' || p->hold[i].cp == '{' ||
			      p->hold[i].cp == '[' || p->hold[i].cp == '\'')) {
		p->depth = 1;
		return stopped(enter(p, 1, PLAIN_JSON));
	}
	drop(p, 1);
	return 0;
}

/* "[": a link, a citation "[1]", a marker "[TOOL_CALLS]", or just a bracket. */
static int resolve_bracket(struct plain *p, int final)
{
	unsigned int i, marks = 0;

	for (i = 1; i < p->n_hold && i < 24; i++) {
		uint32_t c = p->hold[i].cp;

		if (c == ']') {
			if (i > 1 && (is_digit(p->hold[i - 1].cp) || marks)) {
				drop(p, i + 1);
				return 0;
			}
			break;
		}
		if (c == '_')
			marks++;
		else if (!(c >= 'A' && c <= 'Z') && !(is_digit(c) || (c == '^' && i == 1)))
			break;
	}
	if (i == p->n_hold && i < 24 && !final)
		return WAIT;
	drop(p, 1);
	return 0;
}

static int resolve_close_bracket(struct plain *p, int final)
{
	if (p->n_hold < 2 && !final)
		return WAIT;
	if (p->n_hold >= 2 && p->hold[1].cp == '(')
		return stopped(enter(p, 2, PLAIN_PAREN));
	drop(p, 1);
	return 0;
}

static int resolve_backtick(struct plain *p, int final)
{
	unsigned int n = run_of(p, '`');

	if (n >= 3)
		return stopped(enter(p, n, PLAIN_FENCE));
	if (n == p->n_hold && !final)
		return WAIT;
	drop(p, n);
	return 0;
}

/* "*": emphasis, a bullet, a rule, or a multiplication. */
static int resolve_star(struct plain *p, int final)
{
	unsigned int n = run_of(p, '*');
	uint32_t next;

	if (n == p->n_hold && !final && n < TAG_MAX)
		return WAIT;
	next = n < p->n_hold ? p->hold[n].cp : '\n';
	if (n == 1 && p->line_start && next == ' ') {
		drop(p, 2);
		return 0;
	}
	if (n == 1 && is_space(next) && p->prev == ' ' && !p->line_start)
		return stopped(give_head(p, 1));
	if (is_digit(p->prev) && is_digit(next) && n <= 2)
		return stopped(give_as(p, n, n == 1 ? '*' : '^'));
	drop(p, n);
	return 0;
}

static int resolve_underscore(struct plain *p, int final)
{
	unsigned int n = run_of(p, '_');

	if (n == p->n_hold && !final && n < TAG_MAX)
		return WAIT;
	if (n < p->n_hold && is_alnum(p->prev) && is_alnum(p->hold[n].cp))
		return stopped(give_as(p, n, ' '));
	drop(p, n);
	return 0;
}

/* Marks that mean something only where a line begins. */
static int resolve_line_mark(struct plain *p, int final)
{
	uint32_t c = p->hold[0].cp;
	unsigned int n = run_of(p, c);

	if (n == p->n_hold && !final && n < TAG_MAX)
		return WAIT;
	if (n >= 3 && c != '#' && c != '>') {
		drop(p, n);
		return 0;
	}
	if (n < p->n_hold && p->hold[n].cp == ' ' && (c == '#' || c == '>' || n == 1)) {
		drop(p, n + 1);
		return 0;
	}
	if (c == '>') {
		drop(p, n);
		return 0;
	}
	return stopped(give_head(p, n));
}

static int resolve_entity(struct plain *p, int final)
{
	static const struct { const char *name; uint32_t cp; } entities[] = {
		{ "&amp;", '&' }, { "&lt;", '<' }, { "&gt;", '>' }, { "&quot;", '"' },
		{ "&#39;", '\'' }, { "&apos;", '\'' }, { "&nbsp;", ' ' }, { "&deg;", 0xb0 },
	};
	unsigned int e, k, could = 0;

	for (e = 0; e < sizeof(entities) / sizeof(entities[0]); e++) {
		unsigned int len = (unsigned int)strlen(entities[e].name);

		for (k = 0; k < len && k < p->n_hold && p->hold[k].cp == (unsigned char)entities[e].name[k]; k++)
			;
		if (k == len)
			return stopped(give_as(p, len, entities[e].cp));
		could |= k == p->n_hold;
	}
	if (could && !final)
		return WAIT;
	return stopped(give_head(p, 1));
}

/* "!" before "[" is an image; "~~" is struck out; "\" quotes a mark. */
static int resolve_pair(struct plain *p, int final)
{
	uint32_t c = p->hold[0].cp, next;

	if (p->n_hold < 2 && !final)
		return WAIT;
	next = p->n_hold >= 2 ? p->hold[1].cp : 0;
	if (c == '!')
		return next == '[' ? (drop(p, 1), 0) : stopped(give_head(p, 1));
	if (c == '~')
		return next == '~' ? (drop(p, run_of(p, '~')), 0) : stopped(give_head(p, 1));
	drop(p, 1);
	/* A quoted "<" or "{" may still open what must not be heard. */
	if (next > 0x20 && next < 0x7f && !is_alnum(next) && next != '<' && next != '{')
		return stopped(give_head(p, 1));
	return 0;
}

/* Decides what the first held characters are. */
static int resolve(struct plain *p, int final)
{
	uint32_t c = p->hold[0].cp;
	int stop = 0, ret;

	if (is_unheard(c) || is_emoji(c)) {
		drop(p, 1);
		return 0;
	}
	if (p->url && !is_space(c) && c != '<' && c != '>' && c != '`' && c != '*' && c != '"' && c < 0x7f)
		return stopped(give_head(p, 1));
	switch (c) {
	case '<':
		ret = resolve_tag(p, final, &stop);
		return stop ? -1 : ret;
	case '{': return resolve_brace(p, final);
	case '}': drop(p, 1); return 0;
	case '[': return resolve_bracket(p, final);
	case ']': return resolve_close_bracket(p, final);
	case '`': return resolve_backtick(p, final);
	case '*': return resolve_star(p, final);
	case '_': return resolve_underscore(p, final);
	case '&': return resolve_entity(p, final);
	case '!': case '~': case '\\': return resolve_pair(p, final);
	case '#': case '>': case '-': case '+': case '=':
		if (p->line_start)
			return resolve_line_mark(p, final);
		break;
	case '|':
		if (p->line_start) {
			drop(p, 1);
			return 0;
		}
		return stopped(give_as(p, 1, ','));
	case 0x2022: /* bullet */
		if (p->line_start) {
			drop(p, 1);
			return 0;
		}
		break;
	case '\t': case 0xa0: case 0x202f: case 0x2009: case 0x3000:
		return stopped(give_as(p, 1, ' '));
	case 0x2018: case 0x2019:
		return stopped(give_as(p, 1, '\''));
	case 0x2212: /* minus sign */
		return stopped(give_as(p, 1, '-'));
	case 0x201c: case 0x201d: case 0x201e:
		return stopped(give_as(p, 1, '"'));
	}
	return stopped(give_head(p, 1));
}

/* One more character of the closing mark, or not. The marks have no repeated prefix but '<'. */
static int closes(struct plain *p, uint32_t cp)
{
	uint32_t c = lower(cp);

	if (c == (unsigned char)p->close[p->matched])
		p->matched++;
	else
		p->matched = c == (unsigned char)p->close[0];
	return p->close[p->matched] == 0;
}

int plain_push(struct plain *p, uint32_t cp, size_t src_end)
{
	int ret;

	switch (p->state) {
	case PLAIN_BLOCK:
		if (closes(p, cp))
			p->state = PLAIN_TEXT;
		return 0;
	case PLAIN_JSON:
		if (p->escaped)
			p->escaped = 0;
		else if (p->in_string && cp == '\\')
			p->escaped = 1;
		else if (cp == '"')
			p->in_string = !p->in_string;
		else if (!p->in_string && (cp == '{' || cp == '['))
			p->depth++;
		else if (!p->in_string && (cp == '}' || cp == ']') && --p->depth == 0)
			p->state = PLAIN_TEXT;
		return 0;
	case PLAIN_FENCE:
		p->ticks = cp == '`' ? p->ticks + 1 : 0;
		if (p->ticks == 3)
			p->state = PLAIN_TEXT;
		return 0;
	case PLAIN_PAREN:
		if (cp == ')' || cp == '\n')
			p->state = PLAIN_TEXT;
		return 0;
	case PLAIN_TEXT:
		break;
	}
	if (cp == '\r')
		return 0;
	p->hold[p->n_hold].cp = cp;
	p->hold[p->n_hold++].end = src_end;
	/* Every rule above gives up waiting before the hold is full. */
	while (p->state == PLAIN_TEXT && p->n_hold > 0) {
		ret = resolve(p, p->n_hold >= PLAIN_HOLD);
		if (ret == WAIT)
			break;
		if (ret < 0)
			return -1;
	}
	return 0;
}

int plain_finish(struct plain *p)
{
	int ret = 0;

	while (p->state == PLAIN_TEXT && p->n_hold > 0 && ret >= 0)
		ret = resolve(p, 1);
	return ret < 0 ? -1 : 0;
}
