// SPDX-License-Identifier: MIT
/*
 * Boundaries. plain.c hands over one character at a time; after each, the
 * buffer is looked at from the first undecided mark on. What is decided never
 * depends on anything but the characters so far, which is what makes the
 * phrases independent of the cuts in the pushed text.
 */
#include "voice/chunker.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/utf8.h"
#include "voice/plain.h"
#include "voice/speak.h"

#define BUF_MAX 2048     /* bytes of one phrase, whatever it is */
#define SOFT_MAX 600     /* bytes after which any space is good enough */
#define LIST_WORDS 3     /* words behind a comma that tell a list from a clause */

struct chunker {
	struct chunker_opts opts;
	chunk_fn fn;
	void *arg;
	struct plain plain;
	int stop;                 /* what fn returned, when not 0 */

	/* UTF-8 decoder */
	uint32_t cp;
	unsigned int need;
	uint32_t cp_min;
	size_t pushed;

	char buf[BUF_MAX + 8];    /* the phrase so far, UTF-8, no leading space */
	size_t src[BUF_MAX + 8];  /* source offset after the character of each byte */
	size_t n;
	size_t scan;              /* first byte not yet decided */
	int waiting;              /* the mark at scan needs more text */
	int list;                 /* a comma of this phrase joined a list */
	unsigned int words;       /* words begun in buf */
	unsigned int index;
	int line_head;            /* buf starts where a line or a sentence starts */
	int64_t now, since;       /* time of this push; of the first character in buf */
	int64_t rearm;            /* a tick that found no cut waits anew from here */
};

enum verdict { NONE, LATER, SENTENCE, CLAUSE };

void chunker_defaults(struct chunker_opts *opts)
{
	*opts = (struct chunker_opts){
		.first_words = 3, .clause_words = 8,
		.first_cap_words = 12, .cap_words = 30,
		.first_wait_ms = 350, .wait_ms = 700,
	};
}

/* -- characters -- */

static int is_word_byte(char c) { return isalnum((unsigned char)c) || (unsigned char)c >= 0x80; }

static int is_closer(const char *s, size_t left, size_t *ret_len)
{
	if (left && (*s == '"' || *s == '\'' || *s == ')')) {
		*ret_len = 1;
		return 1;
	}
	if (left >= 2 && !memcmp(s, "\xc2\xbb", 2)) { /* » */
		*ret_len = 2;
		return 1;
	}
	if (left >= 3 && (!memcmp(s, "\xe3\x80\x8d", 3) || !memcmp(s, "\xef\xbc\x89", 3))) { /* 」 ） */
		*ret_len = 3;
		return 1;
	}
	return 0;
}

/* Marks that end a sentence with no space behind them: 。！？ ।  ۔ ؟ */
static size_t full_stop(const char *s, size_t left)
{
	static const char *const marks[] = {
		"\xe3\x80\x82", "\xef\xbc\x81", "\xef\xbc\x9f", "\xe0\xa5\xa4", "\xdb\x94", "\xd8\x9f",
	};
	unsigned int i;

	for (i = 0; i < sizeof(marks) / sizeof(marks[0]); i++)
		if (left >= strlen(marks[i]) && !memcmp(s, marks[i], strlen(marks[i])))
			return strlen(marks[i]);
	return 0;
}

/* 、 ， ； ： ، ؛ : clause marks of the same scripts. */
static size_t full_comma(const char *s, size_t left)
{
	static const char *const marks[] = {
		"\xe3\x80\x81", "\xef\xbc\x8c", "\xef\xbc\x9b", "\xef\xbc\x9a", "\xd8\x8c", "\xd8\x9b",
	};
	unsigned int i;

	for (i = 0; i < sizeof(marks) / sizeof(marks[0]); i++)
		if (left >= strlen(marks[i]) && !memcmp(s, marks[i], strlen(marks[i])))
			return strlen(marks[i]);
	return 0;
}

static size_t dash_len(const char *s, size_t left)
{
	return left >= 3 && !memcmp(s, "\xe2\x80", 2) && (s[2] == '\x93' || s[2] == '\x94') ? 3 : 0;
}

static size_t ellipsis_len(const char *s, size_t left)
{
	return left >= 3 && !memcmp(s, "\xe2\x80\xa6", 3) ? 3 : 0;
}

/* -- words around a mark -- */

/* The start of the word that ends before byte @i: letters, digits, inner dots. */
static size_t word_before(const struct chunker *c, size_t i)
{
	while (i > 0 && (is_word_byte(c->buf[i - 1]) || c->buf[i - 1] == '.'))
		i--;
	return i;
}

static int word_in(const char *w, size_t len, const char *const *list)
{
	for (; *list; list++)
		if (strlen(*list) == len && !strncasecmp(*list, w, len))
			return 1;
	return 0;
}

/* Always followed by what they belong to. */
static const char *const titles[] = {
	"dr", "mr", "mrs", "ms", "prof", "rev", "gen", "sen", "rep", "gov", "capt", "lt", "sgt",
	"col", "st", "mt", "hon", "pres", "vs", "fig", "approx", "ca", "cf", "e.g", "i.e", "viz",
	"nr", "mme", "mlle", "hr", "fr", "dipl", "ing", "mag", NULL
};

/* May close a sentence: they do when a capital follows. */
static const char *const shorts[] = {
	"a.m", "p.m", "am", "pm", "etc", "inc", "ltd", "co", "corp", "jr", "sr", "ave", "rd", "blvd",
	"min", "max", "sec", "hrs", "ft", "lb", "lbs", "oz", "tsp", "tbsp", "dept", "est", "ext",
	"temp", "tel", "ph.d", "m.d", "b.c", "a.d", "jan", "feb", "apr", "aug", "sept", "oct",
	"nov", "dec", "tue", "tues", "thu", "thur", "thurs", NULL
};

static const char *const days_and_months[] = {
	"monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday", "january",
	"february", "march", "april", "may", "june", "july", "august", "september", "october",
	"november", "december", NULL
};

/* A letter behind one of these is a name, not an initial. */
static const char *const letter_nouns[] = {
	"plan", "vitamin", "option", "room", "bus", "line", "gate", "section", "class", "point",
	"grade", "type", "letter", "platform", "building", "group", "part", "zone", NULL
};

static const char *const joiners[] = { "and", "or", "but", "nor", NULL };

static int is_dotted(const char *w, size_t len)
{
	size_t i;

	if (len < 3 || len % 2 == 0)
		return 0;
	for (i = 0; i < len; i++)
		if (i % 2 ? w[i] != '.' : !isalpha((unsigned char)w[i]))
			return 0;
	return 1;
}

/* Words that end at or before byte @i of the phrase. */
static unsigned int words_before(const struct chunker *c, size_t i)
{
	unsigned int n = 0;
	size_t k;

	for (k = 0; k < i; k++)
		if (is_word_byte(c->buf[k]) && (k == 0 || c->buf[k - 1] == ' '))
			n++;
		else if (is_word_byte(c->buf[k]) && k > 0 && !is_word_byte(c->buf[k - 1]) &&
			 (k == 1 || c->buf[k - 2] == ' ') && !isdigit((unsigned char)c->buf[k - 1]))
			n++; /* behind an opening quote, bracket or currency sign */
	return n;
}

/* The full stop at @i ends the word from @w on. What is it? @end: first byte behind the marks, a space. */
static enum verdict dot(const struct chunker *c, size_t w, size_t i, size_t end, int final)
{
	const char *word = c->buf + w;
	size_t len = i - w, next = end + 1, k;
	int digits = len > 0;

	for (k = 0; k < len; k++)
		digits &= isdigit((unsigned char)word[k]) != 0;
	/* "1. Milk": the number of a list item. */
	if (digits && len <= 3 && w == 0 && c->line_head)
		return NONE;
	if (word_in(word, len, titles))
		return NONE;
	/* The first letter of what follows decides the rest. */
	if (len == 2 && !strncasecmp(word, "no", 2)) {
		if (next >= c->n)
			return final ? SENTENCE : LATER;
		return isdigit((unsigned char)c->buf[next]) ? NONE : SENTENCE;
	}
	if (len == 1 && isupper((unsigned char)*word) && *word != 'I') {
		size_t p = w > 0 ? word_before(c, w - 1) : 0;

		if (w > 1 && word_in(c->buf + p, w - 1 - p, letter_nouns))
			return SENTENCE;
		return NONE;
	}
	if (word_in(word, len, shorts) || is_dotted(word, len)) {
		size_t e;

		if (next >= c->n)
			return final ? SENTENCE : LATER;
		if (!isupper((unsigned char)c->buf[next]))
			return NONE;
		/* "8 a.m. Monday" goes on; that takes the whole next word to know. */
		for (e = next; e < c->n && isalpha((unsigned char)c->buf[e]); e++)
			;
		if (e == c->n && !final && e - next < 10)
			return LATER;
		return word_in(c->buf + next, e - next, days_and_months) ? NONE : SENTENCE;
	}
	return SENTENCE;
}

/*
 * A comma, semicolon, colon or dash ends at byte @end. A clause boundary if the
 * phrase is long enough, what follows is no list, and the sentence does not end
 * within a word or two.
 */
static enum verdict clause(struct chunker *c, size_t i, size_t end, int final)
{
	unsigned int min = c->index ? c->opts.clause_words : c->opts.first_words, seen = 0;
	size_t k = end, w;

	if (words_before(c, i) < min)
		return NONE;
	if (c->buf[i] != ',')
		return CLAUSE;
	/* "May 3, 2026", "Sunday, November 29". */
	w = word_before(c, i);
	if (word_in(c->buf + w, i - w, days_and_months))
		return NONE;
	while (seen < LIST_WORDS) {
		size_t b, e;

		for (b = k; b < c->n && c->buf[b] == ' '; b++)
			;
		for (e = b; e < c->n && c->buf[e] != ' '; e++)
			;
		if (e == c->n && !final)
			return LATER;
		if (b == c->n)
			return NONE; /* the text ends: too short to stand alone */
		seen++;
		if (seen == 1 && isdigit((unsigned char)c->buf[w]) && e - b >= 4 && isdigit((unsigned char)c->buf[b]))
			return NONE;
		if (word_in(c->buf + b, e - b, joiners)) {
			if (seen == 1 && !c->list)
				return CLAUSE;
			c->list = 1;
			return NONE;
		}
		if (c->buf[e - 1] == ',') {
			c->list = 1;
			return NONE;
		}
		if (strchr(".!?;:", c->buf[e - 1]) && seen < LIST_WORDS)
			return NONE;
		k = e;
	}
	return CLAUSE;
}

/*
 * Looks at the mark at byte @i. @final: nothing more will come, or nothing has
 * for too long. *ret_end is where the phrase would end, *ret_next where to go
 * on looking when it does not.
 */
static enum verdict look(struct chunker *c, size_t i, int final, size_t *ret_end, size_t *ret_next)
{
	const char *s = c->buf + i;
	size_t left = c->n - i, len, end, w;
	enum verdict v;
	int dots;

	*ret_next = i + 1;
	if ((len = full_stop(s, left))) {
		*ret_end = i + len;
		return SENTENCE;
	}
	if ((len = full_comma(s, left))) {
		*ret_end = i + len;
		*ret_next = i + len;
		/* These scripts have no spaces to count words by. */
		return i >= (c->index ? 45u : 18u) ? CLAUSE : NONE;
	}
	len = ellipsis_len(s, left);
	if (*s == '.' || *s == '!' || *s == '?' || len) {
		for (end = i, dots = 0; end < c->n;) {
			size_t el = ellipsis_len(c->buf + end, c->n - end);

			if (!el && c->buf[end] != '.' && c->buf[end] != '!' && c->buf[end] != '?')
				break;
			dots += el ? 3 : c->buf[end] == '.' ? 1 : 10;
			end += el ? el : 1;
		}
		w = word_before(c, i);
		while (is_closer(c->buf + end, c->n - end, &len))
			end += len;
		*ret_end = end;
		*ret_next = end;
		if (end == c->n) {
			if (!final)
				return LATER;
			/* A stalled "3." may become "3.5", a stalled "Dr." goes on. */
		} else if (c->buf[end] != ' ') {
			return NONE;
		}
		if (dots >= 2 && dots < 10) { /* an ellipsis goes on, unless a capital follows */
			if (end + 1 >= c->n)
				return final ? SENTENCE : LATER;
			return isupper((unsigned char)c->buf[end + 1]) ? SENTENCE : NONE;
		}
		if (dots >= 10)
			return SENTENCE;
		return dot(c, w, i, end, final);
	}
	len = dash_len(s, left);
	if (*s == ',' || *s == ';' || *s == ':' || len) {
		int dash = len > 0;

		end = i + (len ? len : 1);
		while (!dash && is_closer(c->buf + end, c->n - end, &len))
			end += len;
		*ret_end = end;
		*ret_next = end;
		if (end >= c->n)
			return final ? NONE : LATER;
		if (c->buf[end] != ' ' && !(dash && i > 0 && !isdigit((unsigned char)c->buf[i - 1])))
			return NONE;
		if (dash && i > 1 && isdigit((unsigned char)c->buf[i - 2])) /* "5 – 10" */
			return NONE;
		v = clause(c, i, end, final);
		return v;
	}
	if (*s == '-' && i > 0 && s[-1] == ' ') {
		if (i + 1 >= c->n)
			return final ? NONE : LATER;
		if (s[1] != ' ' || (i > 1 && isdigit((unsigned char)s[-2])))
			return NONE;
		*ret_end = i - 1;
		return clause(c, i, i + 1, final) == CLAUSE ? CLAUSE : NONE;
	}
	return NONE;
}

/* -- giving out -- */

static int has_word(const char *s, size_t n)
{
	while (n--)
		if (is_word_byte(*s++))
			return 1;
	return 0;
}

static unsigned int count_begun(const struct chunker *c)
{
	unsigned int n = 0;
	size_t k;

	for (k = 0; k < c->n; k++)
		n += c->buf[k] != ' ' && (k == 0 || c->buf[k - 1] == ' ');
	return n;
}

/* Gives out the first @end bytes as a phrase and keeps the rest. */
static int cut(struct chunker *c, size_t end, enum chunk_why why)
{
	char text[BUF_MAX + 8];
	size_t n = end, rest = end;
	char *spoken = NULL;
	struct chunk chunk = { .index = c->index, .why = why };
	int ret = 0;

	while (n > 0 && c->buf[n - 1] == ' ')
		n--;
	if (n > 0 && has_word(c->buf, n)) {
		memcpy(text, c->buf, n);
		text[n] = 0;
		ret = speak_text(text, n, &spoken);
		if (ret)
			return c->stop = ret;
		chunk.text = text;
		chunk.spoken = spoken;
		chunk.src_end = c->src[n - 1];
		/* Something like "—" has no sound; it is no phrase. */
		if (has_word(spoken, strlen(spoken))) {
			c->index++;
			ret = c->fn(c->arg, &chunk);
		}
		free(spoken);
	}
	while (rest < c->n && c->buf[rest] == ' ')
		rest++;
	memmove(c->buf, c->buf + rest, c->n - rest);
	memmove(c->src, c->src + rest, (c->n - rest) * sizeof(c->src[0]));
	c->n -= rest;
	c->scan = 0;
	c->waiting = 0;
	c->list = 0;
	c->words = count_begun(c);
	c->line_head = why == CHUNK_SENTENCE;
	c->since = c->now;
	c->rearm = 0;
	return c->stop = ret;
}

static const char *const soft_heads[] = {
	"and", "or", "but", "because", "so", "then", "which", "who", "while", "when", "if",
	"until", "with", "from", "for", "to", "into", "at", "that", NULL
};

/* No cut at the space at @i: a number and its unit, a title and its name, a currency sign. */
static int binds(const struct chunker *c, size_t i)
{
	size_t w = i, len, e;

	while (w > 0 && c->buf[w - 1] != ' ')
		w--;
	len = i - w;
	if (len == 0)
		return 1;
	if (isdigit((unsigned char)c->buf[i - 1]) || c->buf[i - 1] == '$')
		return 1;
	if (c->buf[i - 1] == '.' && (word_in(c->buf + w, len - 1, titles) || len == 2))
		return 1;
	/* "twenty | °C", "8:30 | a.m." have a digit before; "%"-like signs stand behind. */
	for (e = i + 1; e < c->n && c->buf[e] != ' '; e++)
		;
	return e > i + 1 && !is_word_byte(c->buf[i + 1]) && c->buf[i + 1] != '"' && c->buf[i + 1] != '(' && c->buf[i + 1] != '\'';
}

/*
 * The best space to cut at when no mark came: before a joining word in the
 * later half, else the last that binds nothing. 0: none.
 */
static size_t soft_cut(const struct chunker *c, size_t limit)
{
	size_t i, best = 0, last = 0;
	unsigned int words = 0;

	for (i = 1; i < limit; i++) {
		size_t e;

		if (c->buf[i] != ' ')
			continue;
		words++;
		if (binds(c, i))
			continue;
		last = i;
		for (e = i + 1; e < c->n && c->buf[e] != ' '; e++)
			;
		if (words >= 3 && i * 2 >= limit && word_in(c->buf + i + 1, e - i - 1, soft_heads))
			best = i;
	}
	return best ? best : last;
}

/* Decides every mark that can be decided. */
static int settle(struct chunker *c, int final)
{
	while (c->scan < c->n && !c->stop) {
		size_t end = 0, next = 0;
		enum verdict v = look(c, c->scan, final, &end, &next);

		c->waiting = v == LATER;
		if (v == LATER)
			return 0;
		if (v == NONE)
			c->scan = next;
		else if (cut(c, end, v == SENTENCE ? CHUNK_SENTENCE : CHUNK_CLAUSE))
			return c->stop;
	}
	return c->stop;
}

/* The caps, after a character was added. */
static int limits(struct chunker *c)
{
	unsigned int cap = c->index ? c->opts.cap_words : c->opts.first_cap_words;
	size_t at;

	if (c->n >= BUF_MAX) {
		/* A single unbroken thing, or thousands of numbers: at a character, somewhere. */
		at = soft_cut(c, c->n);
		if (!at)
			for (at = BUF_MAX - 4; at > 1 && ((unsigned char)c->buf[at] & 0xc0) == 0x80; at--)
				;
		return cut(c, at, CHUNK_CAP);
	}
	if (c->buf[c->n - 1] == ' ' && c->n > 1 && c->words > cap + (c->waiting ? LIST_WORDS + 1 : 0)) {
		at = soft_cut(c, c->n - 1);
		if (at)
			return cut(c, at, CHUNK_CAP);
	}
	/* Text without spaces: cut behind the character that made it long. */
	if (c->n >= SOFT_MAX && c->words <= 2 && (unsigned char)c->buf[c->n - 1] >= 0x80)
		return cut(c, c->n, CHUNK_CAP);
	return 0;
}

/* One character of plain text. */
static int add(void *arg, uint32_t cp, size_t src_end)
{
	struct chunker *c = arg;
	uint8_t utf8[4];
	int len, k;

	if (cp == '\n') {
		/* The line is whole: what waits for more has it now. */
		if (settle(c, 1))
			return c->stop;
		if (c->n && cut(c, c->n, CHUNK_SENTENCE))
			return c->stop;
		c->line_head = 1;
		return 0;
	}
	if (cp == ' ' && (c->n == 0 || c->buf[c->n - 1] == ' '))
		return 0;
	len = utf8_put(cp, utf8);
	if (c->n == 0)
		c->since = c->now, c->rearm = 0;
	if (cp != ' ' && (c->n == 0 || c->buf[c->n - 1] == ' '))
		c->words++;
	for (k = 0; k < len; k++) {
		c->buf[c->n] = (char)utf8[k];
		c->src[c->n++] = src_end;
	}
	if (settle(c, 0))
		return c->stop;
	return c->n ? limits(c) : 0;
}

/* -- the face -- */

static void start(struct chunker *c)
{
	plain_init(&c->plain, c->opts.in_think, add, c);
	c->n = c->scan = 0;
	c->need = 0;
	c->pushed = 0;
	c->waiting = c->list = c->stop = 0;
	c->words = 0;
	c->index = 0;
	c->line_head = 1;
	c->rearm = 0;
}

int chunker_new(const struct chunker_opts *opts, chunk_fn fn, void *arg, struct chunker **ret_chunker)
{
	struct chunker_opts def;
	struct chunker *c;

	if (!opts) {
		chunker_defaults(&def);
		opts = &def;
	}
	if (!opts->first_words || !opts->clause_words || !opts->first_cap_words || !opts->cap_words || !fn)
		return -EINVAL;
	c = calloc(1, sizeof(*c));
	if (!c)
		return -ENOMEM;
	c->opts = *opts;
	c->fn = fn;
	c->arg = arg;
	start(c);
	*ret_chunker = c;
	return 0;
}

void chunker_free(struct chunker *c)
{
	free(c);
}

void chunker_reset(struct chunker *c)
{
	start(c);
}

int chunker_push(struct chunker *c, const char *text, size_t len, int64_t now_ns)
{
	size_t i;

	c->now = now_ns;
	c->stop = 0;
	for (i = 0; i < len; i++) {
		unsigned char b = (unsigned char)text[i];

		c->pushed++;
		if (c->need && (b & 0xc0) == 0x80) {
			c->cp = c->cp << 6 | (b & 0x3f);
			if (--c->need)
				continue;
			/* Overlong forms, surrogates and what is beyond Unicode are dropped. */
			if (c->cp < c->cp_min || c->cp > 0x10ffff || (c->cp >= 0xd800 && c->cp < 0xe000))
				continue;
		} else {
			c->need = 0;
			if (b < 0x80) {
				c->cp = b;
			} else if (b >= 0xc2 && b < 0xe0) {
				c->cp = b & 0x1f, c->need = 1, c->cp_min = 0x80;
				continue;
			} else if (b >= 0xe0 && b < 0xf0) {
				c->cp = b & 0x0f, c->need = 2, c->cp_min = 0x800;
				continue;
			} else if (b >= 0xf0 && b < 0xf5) {
				c->cp = b & 0x07, c->need = 3, c->cp_min = 0x10000;
				continue;
			} else {
				continue;
			}
		}
		if (plain_push(&c->plain, c->cp, c->pushed))
			return c->stop;
	}
	return 0;
}

int chunker_finish(struct chunker *c)
{
	int ret;

	c->stop = 0;
	plain_finish(&c->plain);
	if (!c->stop)
		settle(c, 1);
	if (!c->stop && c->n)
		cut(c, c->n, CHUNK_END);
	ret = c->stop;
	start(c);
	return ret;
}

int64_t chunker_deadline(const struct chunker *c)
{
	unsigned int ms = c->index ? c->opts.wait_ms : c->opts.first_wait_ms;

	if (!c->n || !ms)
		return INT64_MAX;
	return (c->rearm ? c->rearm : c->since) + (int64_t)ms * 1000000;
}

int chunker_tick(struct chunker *c, int64_t now_ns)
{
	size_t at, end = 0, next = 0;

	c->stop = 0;
	if (now_ns < chunker_deadline(c))
		return 0;
	c->now = now_ns;
	/* A mark that only waited to see what follows has waited long enough, unless it may be inside a number. */
	if (c->waiting && c->scan > 0 && !isdigit((unsigned char)c->buf[c->scan - 1]) &&
	    look(c, c->scan, 1, &end, &next) == SENTENCE)
		return cut(c, end, CHUNK_TIME);
	at = soft_cut(c, c->n > 1 && c->buf[c->n - 1] == ' ' ? c->n : c->n);
	if (at && words_before(c, at) >= 2)
		return cut(c, at, CHUNK_TIME);
	c->rearm = now_ns;
	return 0;
}
