// SPDX-License-Identifier: MIT
/*
 * Names as the model is told them: each in characters that it can copy, one that
 * nothing else in the home has, and what it calls by that name is found again.
 */
#include "home/priv.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"

static bool is_taught(const char *name)
{
	bool lost;
	char *as = home_taught_form(name, &lost);
	const bool same = as && !strcmp(as, name);

	free(as);
	return same;
}

/* The names of an entity, an area or a floor, which all have them alike. */
struct named {
	const char *name;
	char *const *aliases;
	size_t n_aliases;
	struct home_told_names *told;
};

static struct named named_of(struct home *h, int kind, size_t i)
{
	struct home_entity *e = &h->entities[i];
	struct home_area *a = &h->areas[i];
	struct home_floor *f = &h->floors[i];

	if (kind == 0)
		return (struct named){ e->name, e->aliases, e->n_aliases, &e->told };
	if (kind == 1)
		return (struct named){ a->name, a->aliases, a->n_aliases, &a->told };
	return (struct named){ f->name, f->aliases, f->n_aliases, &f->told };
}

static size_t n_of(const struct home *h, int kind)
{
	return kind == 0 ? h->n_entities : kind == 1 ? h->n_areas : h->n_floors;
}

/* Does anything else of its kind answer to @told? Things of one name in several rooms do so anyway. */
static bool taken(struct home *h, int kind, const char *name, const char *told)
{
	for (size_t i = 0; i < n_of(h, kind); i++) {
		struct named o = named_of(h, kind, i);

		if (!home_same_name(o.name, name) && (home_called(o.name, o.aliases, o.n_aliases, told) ||
						      (o.told->name && home_called(o.told->name, o.told->aliases, o.told->n_aliases, told))))
			return true;
	}
	return false;
}

static const char *kind_word(const struct home *h, int kind, size_t i)
{
	static const char *const words[HOME_DOMAINS] = {
		[HOME_LIGHT] = "Light", [HOME_SWITCH] = "Switch", [HOME_FAN] = "Fan", [HOME_COVER] = "Cover", [HOME_CLIMATE] = "Thermostat",
		[HOME_LOCK] = "Lock", [HOME_MEDIA_PLAYER] = "Player", [HOME_VACUUM] = "Vacuum", [HOME_SCENE] = "Scene", [HOME_SCRIPT] = "Script",
		[HOME_TODO] = "List", [HOME_SENSOR] = "Sensor", [HOME_BINARY_SENSOR] = "Sensor", [HOME_LAWN_MOWER] = "Mower",
	};

	return kind == 0 ? words[h->entities[i].domain] : kind == 1 ? "Room" : "Floor";
}

/* The name of one thing as it is told: its own, else an alias that needs no change, else what its kind is called. */
static int tell(struct home *h, int kind, size_t i)
{
	struct named x = named_of(h, kind, i);
	bool lost, alias_lost;
	char *told = home_taught_form(x.name, &lost), *alias, *numbered;
	int n = 1;
	size_t k;

	if (!told)
		return -ENOMEM;
	/* Things of one name are told by one name. */
	for (k = 0; k < i; k++)
		if (home_same_name(named_of(h, kind, k).name, x.name)) {
			free(told);
			told = strdup(named_of(h, kind, k).told->name);
			x.told->name = told;
			return told ? 0 : -ENOMEM;
		}
	for (k = 0; (lost || !*told) && k < x.n_aliases; k++) {
		alias = home_taught_form(x.aliases[k], &alias_lost);
		if (!alias) {
			free(told);
			return -ENOMEM;
		}
		if (!alias_lost && *alias && !taken(h, kind, x.name, alias)) {
			free(told);
			told = alias;
			lost = false;
			break;
		}
		free(alias);
	}
	if (!*told) {
		free(told);
		if (asprintf(&told, "%s 1", kind_word(h, kind, i)) < 0)
			return -ENOMEM;
		for (n = 2; taken(h, kind, x.name, told); n++) {
			free(told);
			if (asprintf(&told, "%s %d", kind_word(h, kind, i), n) < 0)
				return -ENOMEM;
		}
	} else if (strcmp(told, x.name) && taken(h, kind, x.name, told)) {
		for (n = 2;; n++) {
			if (asprintf(&numbered, "%s %d", told, n) < 0) {
				free(told);
				return -ENOMEM;
			}
			if (!taken(h, kind, x.name, numbered))
				break;
			free(numbered);
		}
		free(told);
		told = numbered;
	}
	x.told->name = told;
	return 0;
}

static int tell_aliases(struct named *x)
{
	size_t i;

	x->told->aliases = calloc(x->n_aliases + 1, sizeof(*x->told->aliases));
	if (!x->told->aliases)
		return -ENOMEM;
	for (i = 0; i < x->n_aliases; i++) {
		bool lost;
		char *a = home_taught_form(x->aliases[i], &lost);

		if (!a)
			return -ENOMEM;
		/* As written, it is told as before. One that says nothing new is none. */
		if (strcmp(a, x->aliases[i]) && (lost || !*a || home_called(x->told->name, x->told->aliases, x->told->n_aliases, a)))
			free(a);
		else if (strcmp(x->told->name, x->name) && home_same_name(a, x->told->name))
			free(a); /* it is the name now */
		else
			x->told->aliases[x->told->n_aliases++] = a;
	}
	return 0;
}

int home_tell_names(struct home *h)
{
	int kind, rc = 0;
	size_t i;

	for (kind = 0; kind < 3; kind++) {
		for (i = 0; !rc && i < n_of(h, kind); i++)
			rc = tell(h, kind, i);
		for (i = 0; !rc && i < n_of(h, kind); i++) {
			struct named x = named_of(h, kind, i);

			rc = tell_aliases(&x);
		}
	}
	return rc;
}

void home_told_names_free(struct home_told_names *t)
{
	while (t->n_aliases)
		free(t->aliases[--t->n_aliases]);
	free(t->aliases);
	free(t->name);
}

/* -- in what people say ------------------------------------------------------------ */

static uint32_t lower(uint32_t cp)
{
	if (cp < 0x80)
		return (uint32_t)tolower((int)cp);
	if ((cp >= 0xc0 && cp < 0xdf && cp != 0xd7) || (cp >= 0x391 && cp < 0x3aa) || (cp >= 0x410 && cp < 0x430))
		return cp + 0x20;
	if (cp >= 0x400 && cp < 0x410)
		return cp + 0x50;
	/* Of pairs the capital comes first; from U+0139 to 0148 and from 0179 on it is the odd one. */
	if (cp >= 0x100 && cp < 0x178)
		return (cp >= 0x139 && cp < 0x149) ? cp + (cp & 1) : cp | 1;
	if (cp >= 0x179 && cp < 0x17f)
		return cp + (cp & 1);
	return cp;
}

/* Bytes of @text that are @name, whatever the case; 0: it does not begin with it. */
static size_t begins(const char *text, const char *name)
{
	size_t m = strlen(name), at = 0, i = 0;

	while (i < m) {
		uint32_t a = 0, b = 0;
		size_t left = strnlen(text + at, 4); /* a text may be long */
		int k = left ? utf8_get(text + at, left, &a) : 0, l = utf8_get(name + i, m - i, &b);

		if (k <= 0 || l <= 0 || lower(a) != lower(b))
			return 0;
		at += (size_t)k;
		i += (size_t)l;
	}
	return at;
}

/* The longest of the home's names that @text begins with and that is told otherwise; *ret_as how. @back: the other way round. */
static size_t longest(const struct home *h, const char *text, bool back, const char **ret_as)
{
	size_t best = 0, i, k, n;

	for (int kind = 0; kind < 3; kind++)
		for (i = 0; i < n_of(h, kind); i++) {
			struct named x = named_of((struct home *)h, kind, i);
			const bool same = !strcmp(x.name, x.told->name);

			for (k = 0; k <= (back ? 0 : x.n_aliases); k++) {
				const char *name = k ? x.aliases[k - 1] : back ? x.told->name : x.name;

				if (!k && same)
					continue;
				n = begins(text, name);
				if (n <= best || (home_in_word(text[n]) && home_in_word(name[strlen(name) - 1])) || (k && is_taught(name)))
					continue;
				best = n;
				*ret_as = back ? x.name : x.told->name;
			}
		}
	return best;
}

static int replaced(const struct home *h, const char *text, bool back, char **ret)
{
	char *out = NULL;
	size_t len = 0, n, at;
	FILE *f = open_memstream(&out, &len);
	const char *as = NULL;
	int bad;

	if (!f)
		return -ENOMEM;
	for (at = 0; text[at]; at += n) {
		n = at && home_in_word(text[at - 1]) && home_in_word(text[at]) ? 0 : longest(h, text + at, back, &as);
		if (n)
			fputs(as, f);
		else
			fputc(text[at], f), n = 1;
	}
	bad = ferror(f);
	if (fclose(f) || bad) {
		free(out);
		return -ENOMEM;
	}
	*ret = out;
	return 0;
}

int home_said(const struct home *h, const char *text, char **ret)
{
	return replaced(h, text, false, ret);
}

/* -- in what the model calls --------------------------------------------------------- */

/* @said, which is told, as the home has it; @said itself where it is a name there; NULL: it is none. */
static const char *own_name(const struct home *h, int kind, const char *said)
{
	const char *own = NULL;

	for (size_t i = 0; i < n_of(h, kind); i++) {
		struct named x = named_of((struct home *)h, kind, i);

		/* That may be an alias of it; its name is known in more places. */
		if (strcmp(x.name, x.told->name) && home_same_name(x.told->name, said))
			return x.name;
		if (home_called(x.name, x.aliases, x.n_aliases, said))
			return said;
		if (home_called(x.told->name, x.told->aliases, x.told->n_aliases, said) && !own)
			own = x.name;
	}
	return own;
}

int home_own_args(const struct home *h, const char *tool, const json_t *args, json_t **ret, char *why, size_t n_why)
{
	static const char *const slots[] = { "name", "area", "floor" }, *const nouns[] = { "device", "room", "floor" };
	const char *s = json_string_value(json_object_get(args, "conversation_command"));
	json_t *out = json_deep_copy(args);
	char *text = NULL;
	int rc = out ? 0 : -ENOMEM;

	for (int kind = 0; !rc && kind < 3; kind++) {
		const char *said = home_slot(args, slots[kind]), *own;

		/* A timer's name is anybody's. */
		if (!said || (!kind && strstr(tool, "Timer")))
			continue;
		own = own_name(h, kind, said);
		if (!own) {
			snprintf(why, n_why, "Sorry, there is no such %s here.", nouns[kind]);
			rc = -ENOENT;
		} else if (json_object_set_new(out, slots[kind], json_string(own))) {
			rc = -ENOMEM;
		}
	}
	if (!rc && s) {
		rc = replaced(h, s, true, &text);
		if (!rc && json_object_set_new(out, "conversation_command", json_string(text)))
			rc = -ENOMEM;
		free(text);
	}
	if (rc) {
		json_decref(out);
		return rc;
	}
	*ret = out;
	return 0;
}

/* -- when a call fails ----------------------------------------------------------------- */

void home_sorry(const json_t *result, char *text, size_t n)
{
	static const struct { const char *part, *say; } fixed[] = {
		{ "no device called ", "there is no such device here" }, { "no area called ", "there is no such room here" },
		{ "no floor called ", "there is no such floor here" }, { "no list called ", "there is no such list here" },
		{ " devices are called ", "more than one device has that name" }, { " cannot do that, or is not there", "that device cannot do that" },
		{ "no device there can do that", "no device there can do that" }, { "it was not said which", "it was not said which one" },
		{ "no device was named", "it was not said which one" },
	};
	const char *error = json_string_value(json_object_get(result, "error"));
	size_t i;

	for (i = 0; error && i < sizeof(fixed) / sizeof(fixed[0]); i++)
		if (strstr(error, fixed[i].part)) {
			snprintf(text, n, "Sorry, %s.", fixed[i].say);
			return;
		}
	snprintf(text, n, "Sorry, that did not work.");
}
