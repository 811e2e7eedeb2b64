// SPDX-License-Identifier: MIT
/* The home file: YAML read by libyaml, every mistake told with its line and column. */
#include "home/priv.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <yaml.h>

#define FILE_MAX (4u << 20)

struct reader {
	const char *file;
	yaml_document_t doc;
	struct hearth_err *err;
	int code;              /* the first mistake */
};

static int __attribute__((format(printf, 3, 4))) wrong(struct reader *r, const yaml_node_t *at, const char *fmt, ...)
{
	char text[360];
	va_list ap;

	if (r->code)
		return r->code;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	r->code = -EINVAL;
	return err_set(r->err, -EINVAL, "%s:%zu:%zu: %s", r->file, at->start_mark.line + 1, at->start_mark.column + 1, text);
}

static int no_memory(struct reader *r)
{
	if (!r->code)
		r->code = err_set(r->err, -ENOMEM, "%s: out of memory", r->file);
	return r->code;
}

static const yaml_node_t *node(struct reader *r, int id) { return yaml_document_get_node(&r->doc, id); }

static const char *text_of(const yaml_node_t *n) { return (const char *)n->data.scalar.value; }

/* A scalar without NUL bytes, not empty; NULL and the mistake told otherwise. */
static const char *need_text(struct reader *r, const yaml_node_t *n, const char *what)
{
	if (n->type != YAML_SCALAR_NODE) {
		wrong(r, n, "%s must be a text", what);
		return NULL;
	}
	if (!n->data.scalar.length || strlen(text_of(n)) != n->data.scalar.length) {
		wrong(r, n, "%s is empty", what);
		return NULL;
	}
	if (n->data.scalar.length > 200 || strchr(text_of(n), '\n')) {
		wrong(r, n, "%s must be one line of at most 200 bytes", what);
		return NULL;
	}
	return text_of(n);
}

static char *copy(struct reader *r, const char *s)
{
	char *c = s ? strdup(s) : NULL;

	if (s && !c)
		no_memory(r);
	return c;
}

static void read_names(struct reader *r, const yaml_node_t *n, const char *what, char ***ret, size_t *ret_n)
{
	const yaml_node_item_t *it;

	if (n->type != YAML_SEQUENCE_NODE) {
		wrong(r, n, "%s must be a list, like [one, two]", what);
		return;
	}
	*ret = calloc((size_t)(n->data.sequence.items.top - n->data.sequence.items.start) + 1, sizeof(**ret));
	if (!*ret) {
		no_memory(r);
		return;
	}
	for (it = n->data.sequence.items.start; it < n->data.sequence.items.top && !r->code; it++) {
		char *c = copy(r, need_text(r, node(r, *it), what));

		if (c)
			(*ret)[(*ret_n)++] = c;
	}
}

/* The same key twice in one mapping is a mistake; YAML leaves that to us. */
static int check_map(struct reader *r, const yaml_node_t *n, const char *what)
{
	const yaml_node_pair_t *p, *q;

	if (n->type != YAML_MAPPING_NODE)
		return wrong(r, n, "%s must be written as \"key: value\" lines", what);
	for (p = n->data.mapping.pairs.start; p < n->data.mapping.pairs.top; p++) {
		if (!need_text(r, node(r, p->key), "a key"))
			return r->code;
		for (q = n->data.mapping.pairs.start; q < p; q++)
			if (!strcmp(text_of(node(r, q->key)), text_of(node(r, p->key))))
				return wrong(r, node(r, p->key), "the key \"%s\" comes twice", text_of(node(r, p->key)));
	}
	return 0;
}

static const yaml_node_t *get(struct reader *r, const yaml_node_t *map, const char *key)
{
	const yaml_node_pair_t *p;

	for (p = map->data.mapping.pairs.start; p < map->data.mapping.pairs.top; p++)
		if (!strcmp(text_of(node(r, p->key)), key))
			return node(r, p->value);
	return NULL;
}

static void only_keys(struct reader *r, const yaml_node_t *map, const char *what, const char *const *keys, const char *const *more)
{
	const yaml_node_pair_t *p;
	const char *const *k;
	char known[256] = "";

	for (p = map->data.mapping.pairs.start; p < map->data.mapping.pairs.top && !r->code; p++) {
		const char *key = text_of(node(r, p->key));
		int found = 0;

		for (k = keys; *k; k++)
			found |= !strcmp(*k, key);
		for (k = more; k && *k; k++)
			found |= !strcmp(*k, key);
		if (found)
			continue;
		for (k = keys; *k; k++)
			snprintf(known + strlen(known), sizeof(known) - strlen(known), "%s%s", *known ? ", " : "", *k);
		for (k = more; k && *k; k++)
			snprintf(known + strlen(known), sizeof(known) - strlen(known), ", %s", *k);
		wrong(r, node(r, p->key), "%s has no key \"%s\"; it may have: %s", what, key, known);
	}
}

static const struct home_floor *find_floor(const struct home *h, const char *name)
{
	size_t i;

	for (i = 0; i < h->n_floors; i++)
		if (home_called(h->floors[i].name, h->floors[i].aliases, h->floors[i].n_aliases, name))
			return &h->floors[i];
	return NULL;
}

static size_t items_of(const yaml_node_t *n)
{
	return (size_t)(n->data.sequence.items.top - n->data.sequence.items.start);
}

static void read_floors(struct reader *r, struct home *h, const yaml_node_t *n)
{
	static const char *const keys[] = { "name", "aliases", NULL };
	const yaml_node_item_t *it;

	if (n->type != YAML_SEQUENCE_NODE) {
		wrong(r, n, "floors must be a list");
		return;
	}
	for (it = n->data.sequence.items.start; it < n->data.sequence.items.top && !r->code; it++) {
		const yaml_node_t *f = node(r, *it), *v;
		const char *name;

		if (check_map(r, f, "a floor"))
			return;
		only_keys(r, f, "a floor", keys, NULL);
		v = get(r, f, "name");
		if (!v) {
			wrong(r, f, "this floor has no name");
			return;
		}
		name = need_text(r, v, "a floor's name");
		if (!name)
			return;
		if (find_floor(h, name)) {
			wrong(r, v, "there is a floor \"%s\" already", name);
			return;
		}
		h->floors[h->n_floors++].name = copy(r, name);
		v = get(r, f, "aliases");
		if (v && !r->code)
			read_names(r, v, "aliases", &h->floors[h->n_floors - 1].aliases, &h->floors[h->n_floors - 1].n_aliases);
	}
}

static struct home_area *find_area(const struct home *h, const char *name)
{
	size_t i;

	for (i = 0; i < h->n_areas; i++)
		if (home_called(h->areas[i].name, h->areas[i].aliases, h->areas[i].n_aliases, name))
			return &h->areas[i];
	return NULL;
}

static void read_areas(struct reader *r, struct home *h, const yaml_node_t *n)
{
	static const char *const keys[] = { "name", "floor", "aliases", NULL };
	const yaml_node_item_t *it;

	for (it = n->data.sequence.items.start; it < n->data.sequence.items.top && !r->code; it++) {
		const yaml_node_t *a = node(r, *it), *v;
		struct home_area *area;
		const char *name;

		if (check_map(r, a, "an area"))
			return;
		only_keys(r, a, "an area", keys, NULL);
		v = get(r, a, "name");
		if (!v) {
			wrong(r, a, "this area has no name");
			return;
		}
		name = need_text(r, v, "an area's name");
		if (!name)
			return;
		if (find_area(h, name)) {
			wrong(r, v, "there is an area \"%s\" already", name);
			return;
		}
		area = &h->areas[h->n_areas++];
		area->name = copy(r, name);
		v = get(r, a, "floor");
		if (v && !r->code) {
			const char *floor = need_text(r, v, "a floor");

			if (floor && !find_floor(h, floor))
				h->floors[h->n_floors++].name = copy(r, floor);
			if (floor)
				area->floor = copy(r, find_floor(h, floor) ? find_floor(h, floor)->name : floor);
		}
		v = get(r, a, "aliases");
		if (v && !r->code)
			read_names(r, v, "aliases", &area->aliases, &area->n_aliases);
	}
}

/* The states that each domain may be in; NULL: any text. The first is the one when none is given. */
static const char *const *states_of(enum home_domain d)
{
	static const char *const on_off[] = { "off", "on", NULL };
	static const char *const cover[] = { "closed", "open", "opening", "closing", NULL };
	static const char *const climate[] = { "off", "heat", "cool", "auto", "heat_cool", "dry", "fan_only", NULL };
	static const char *const lock[] = { "locked", "unlocked", NULL };
	static const char *const media[] = { "off", "on", "idle", "playing", "paused", "standby", NULL };
	static const char *const vacuum[] = { "docked", "cleaning", "returning", "idle", "paused", NULL };
	static const char *const mower[] = { "docked", "mowing", "returning", "paused", NULL };

	switch (d) {
	case HOME_LIGHT: case HOME_SWITCH: case HOME_FAN: return on_off;
	case HOME_COVER: return cover;
	case HOME_CLIMATE: return climate;
	case HOME_LOCK: return lock;
	case HOME_MEDIA_PLAYER: return media;
	case HOME_VACUUM: return vacuum;
	case HOME_LAWN_MOWER: return mower;
	default: return NULL;
	}
}

static json_t *read_attribute(struct reader *r, const char *key, const yaml_node_t *v)
{
	static const struct { const char *key; double min, max; } numbers[] = {
		{ "brightness", 0, 100 }, { "percentage", 0, 100 }, { "position", 0, 100 }, { "volume", 0, 100 },
		{ "humidity", 0, 100 }, { "battery", 0, 100 }, { "temperature", -60, 200 },
		{ "current_temperature", -60, 200 }, { "color_temp", 1000, 10000 },
	};
	const char *s;
	size_t i;

	if (!strcmp(key, "items")) {
		json_t *list = json_array();
		char **names = NULL;
		size_t n = 0;

		read_names(r, v, "items", &names, &n);
		for (i = 0; i < n; i++) {
			json_array_append_new(list, json_string(names[i]));
			free(names[i]);
		}
		free(names);
		return list;
	}
	s = need_text(r, v, key);
	if (!s)
		return NULL;
	for (i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		char *end;
		double d;

		if (strcmp(numbers[i].key, key))
			continue;
		d = strtod(s, &end);
		if (end == s || *end || !(d >= numbers[i].min && d <= numbers[i].max)) {
			wrong(r, v, "%s must be a number from %g to %g, not \"%.60s\"", key, numbers[i].min, numbers[i].max, s);
			return NULL;
		}
		return home_json_number(d);
	}
	if (!strcmp(key, "muted")) {
		if (strcmp(s, "true") && strcmp(s, "false")) {
			wrong(r, v, "muted must be true or false");
			return NULL;
		}
		return json_boolean(!strcmp(s, "true"));
	}
	return json_string(s);
}

static void read_state(struct reader *r, const struct home *h, const yaml_node_t *n, struct home_entity *e)
{
	const char *const *states = states_of(e->domain), *const *k;
	const yaml_node_t *v = get(r, n, "state");

	e->state = json_object();
	if (!e->state) {
		no_memory(r);
		return;
	}
	if (e->domain == HOME_SCENE || e->domain == HOME_SCRIPT || e->domain == HOME_TODO) {
		if (v) {
			wrong(r, v, "a %s has no state of its own", home_domain_name(e->domain));
			return;
		}
		if (e->domain == HOME_TODO)
			json_object_set_new(e->state, "state", json_null());
	} else if (v) {
		const char *s = need_text(r, v, "state");
		char known[120] = "";

		if (!s)
			return;
		for (k = states; k && *k && strcmp(*k, s); k++)
			snprintf(known + strlen(known), sizeof(known) - strlen(known), "%s%s", *known ? ", " : "", *k);
		/* Home Assistant says so of what it cannot reach. */
		if (k && !*k && strcmp(s, "unavailable")) {
			wrong(r, v, "a %s cannot be \"%s\"; it can be: %s", home_domain_name(e->domain), s, known);
			return;
		}
		json_object_set_new(e->state, "state", json_string(s));
	} else if (states) {
		json_object_set_new(e->state, "state", json_string(states[0]));
	} else {
		wrong(r, n, "this %s has no state", home_domain_name(e->domain));
		return;
	}
	for (k = home_attributes(e->domain); *k && !r->code; k++) {
		json_t *value = NULL;

		v = get(r, n, *k);
		if (v)
			value = read_attribute(r, *k, v);
		if (r->code) {
			json_decref(value);
			return;
		}
		if (!value && !strcmp(*k, "items"))
			value = json_array();
		json_object_set_new(e->state, *k, value ? value : json_null());
	}
	if (e->domain == HOME_TODO)
		json_object_set_new(e->state, "state", json_sprintf("%zu", json_array_size(json_object_get(e->state, "items"))));
}

static void read_entities(struct reader *r, struct home *h, const yaml_node_t *n)
{
	static const char *const keys[] = { "name", "aliases", "domain", "device_class", "area", "state", NULL };
	const yaml_node_item_t *it;
	size_t i;

	for (it = n->data.sequence.items.start; it < n->data.sequence.items.top && !r->code; it++) {
		const yaml_node_t *m = node(r, *it), *v, *name_node;
		struct home_entity *e = &h->entities[h->n_entities];
		const char *name, *s;
		int d;

		if (check_map(r, m, "an entity"))
			return;
		name_node = get(r, m, "name");
		if (!name_node) {
			wrong(r, m, "this entity has no name");
			return;
		}
		name = need_text(r, name_node, "an entity's name");
		v = name ? get(r, m, "domain") : NULL;
		if (name && !v)
			wrong(r, m, "\"%s\" has no domain", name);
		s = v ? need_text(r, v, "a domain") : NULL;
		if (!s)
			return;
		for (d = 0; d < HOME_DOMAINS && strcmp(home_domain_name((enum home_domain)d), s); d++)
			;
		if (d == HOME_DOMAINS) {
			wrong(r, v, "there is no domain \"%s\"", s);
			return;
		}
		e->domain = (enum home_domain)d;
		h->n_entities++;
		e->name = copy(r, name);
		only_keys(r, m, home_domain_name(e->domain), keys, home_attributes(e->domain));
		v = get(r, m, "aliases");
		if (v && !r->code)
			read_names(r, v, "aliases", &e->aliases, &e->n_aliases);
		v = get(r, m, "device_class");
		s = v && !r->code ? need_text(r, v, "device_class") : "";
		e->device_class = copy(r, s ? s : "");
		v = get(r, m, "area");
		s = v && !r->code ? need_text(r, v, "an area") : NULL;
		if (s) {
			e->area = find_area(h, s);
			if (!e->area)
				wrong(r, v, "there is no area \"%s\" under areas", s);
		}
		if (r->code)
			return;
		for (i = 0; i + 1 < h->n_entities; i++)
			if (h->entities[i].area == e->area && home_same_name(h->entities[i].name, name)) {
				wrong(r, name_node, "there is an entity \"%s\" %s already", name, e->area ? "in that area" : "without an area");
				return;
			}
		read_state(r, h, m, e);
	}
}

static void read_clock(struct reader *r, struct home *h, const yaml_node_t *n)
{
	const char *s = need_text(r, n, "clock");
	static const int days[] = { 31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };
	int used = 0;

	if (!s)
		return;
	if (sscanf(s, "%4d-%2d-%2d%*1[T ]%2d:%2d%n", &h->year, &h->month, &h->day, &h->hour, &h->minute, &used) != 5 ||
	    s[used] || h->year < 1970 || h->month < 1 || h->month > 12 || h->day < 1 || h->day > days[h->month - 1] ||
	    (h->month == 2 && h->day == 29 && (h->year % 4 || (h->year % 100 == 0 && h->year % 400))) ||
	    h->hour < 0 || h->hour > 23 || h->minute < 0 || h->minute > 59) {
		wrong(r, n, "clock must be a moment like 2026-11-29T18:30");
		return;
	}
	h->has_clock = 1;
}

static int read_home(struct reader *r, struct home *h, const yaml_node_t *root)
{
	static const char *const keys[] = { "floors", "temperature_unit", "areas", "entities", "clock", NULL };
	const yaml_node_t *floors, *areas, *entities, *v;

	if (check_map(r, root, "the home"))
		return r->code;
	only_keys(r, root, "the home", keys, NULL);
	floors = get(r, root, "floors");
	areas = get(r, root, "areas");
	entities = get(r, root, "entities");
	if (areas && areas->type != YAML_SEQUENCE_NODE)
		wrong(r, areas, "areas must be a list");
	if (!entities)
		wrong(r, root, "there is no list of entities");
	else if (entities->type != YAML_SEQUENCE_NODE || !items_of(entities))
		wrong(r, entities, "entities must be a list with at least one entity");
	if (r->code)
		return r->code;
	/* Every area may add a floor of its own. */
	h->floors = calloc((floors && floors->type == YAML_SEQUENCE_NODE ? items_of(floors) : 0) + (areas ? items_of(areas) : 0) + 1, sizeof(*h->floors));
	h->areas = calloc((areas ? items_of(areas) : 0) + 1, sizeof(*h->areas));
	h->entities = calloc(items_of(entities), sizeof(*h->entities));
	if (!h->floors || !h->areas || !h->entities)
		return no_memory(r);
	v = get(r, root, "temperature_unit");
	if (v) {
		const char *s = need_text(r, v, "temperature_unit");

		if (s && strcmp(s, "celsius") && strcmp(s, "fahrenheit"))
			wrong(r, v, "temperature_unit must be celsius or fahrenheit");
		h->fahrenheit = s && !strcmp(s, "fahrenheit");
	}
	v = get(r, root, "clock");
	if (v && !r->code)
		read_clock(r, h, v);
	if (floors && !r->code)
		read_floors(r, h, floors);
	if (areas && !r->code)
		read_areas(r, h, areas);
	if (!r->code)
		read_entities(r, h, entities);
	if (!r->code && home_tell_names(h))
		no_memory(r);
	return r->code;
}

int home_parse(const char *name, const char *yaml, size_t len, struct home **ret_home, struct hearth_err *err)
{
	struct reader r = { .file = name, .err = err };
	yaml_parser_t parser;
	yaml_document_t second;
	const yaml_node_t *root;
	struct home *h;
	int ret;

	if (!yaml_parser_initialize(&parser))
		return err_set(err, -ENOMEM, "%s: out of memory", name);
	yaml_parser_set_input_string(&parser, (const unsigned char *)yaml, len);
	if (!yaml_parser_load(&parser, &r.doc)) {
		/* Reader errors (bad UTF-8) have an offset only. */
		if (parser.error == YAML_READER_ERROR)
			ret = err_set(err, -EINVAL, "%s: byte %zu: %s", name, parser.problem_offset, parser.problem ? parser.problem : "not YAML");
		else
			ret = err_set(err, parser.error == YAML_MEMORY_ERROR ? -ENOMEM : -EINVAL, "%s:%zu:%zu: %s%s%s", name,
				      parser.problem_mark.line + 1, parser.problem_mark.column + 1,
				      parser.problem ? parser.problem : "not YAML", parser.context ? ", " : "",
				      parser.context ? parser.context : "");
		yaml_parser_delete(&parser);
		return ret;
	}
	root = yaml_document_get_root_node(&r.doc);
	h = calloc(1, sizeof(*h));
	if (!h)
		ret = no_memory(&r);
	else if (!root)
		ret = err_set(err, -EINVAL, "%s: the file is empty", name);
	else
		ret = read_home(&r, h, root);
	yaml_document_delete(&r.doc);
	if (!ret && yaml_parser_load(&parser, &second)) {
		root = yaml_document_get_root_node(&second);
		if (root)
			ret = err_set(err, -EINVAL, "%s:%zu:%zu: a second document begins here; a home is one", name, root->start_mark.line + 1,
				      root->start_mark.column + 1);
		yaml_document_delete(&second);
	} else if (!ret) {
		ret = err_set(err, parser.error == YAML_MEMORY_ERROR ? -ENOMEM : -EINVAL, "%s:%zu:%zu: %s, after the home's document", name,
			      parser.problem_mark.line + 1, parser.problem_mark.column + 1, parser.problem ? parser.problem : "not YAML");
	}
	yaml_parser_delete(&parser);
	if (ret) {
		home_free(h);
		return ret;
	}
	*ret_home = h;
	return 0;
}

int home_load(const char *path, struct home **ret_home, struct hearth_err *err)
{
	FILE *f = fopen(path, "re");
	char *text = NULL;
	size_t n = 0;
	int ret;

	if (!f)
		return err_set(err, -errno, "%s: %s", path, strerror(errno));
	text = malloc(FILE_MAX + 1);
	if (text)
		n = fread(text, 1, FILE_MAX + 1, f);
	if (!text)
		ret = err_set(err, -ENOMEM, "%s: out of memory", path);
	else if (ferror(f))
		ret = err_set(err, -errno, "%s: %s", path, strerror(errno));
	else if (n > FILE_MAX)
		ret = err_set(err, -EFBIG, "%s: a home file over 4 MiB is not read", path);
	else
		ret = home_parse(path, text, n, ret_home, err);
	fclose(f);
	free(text);
	return ret;
}
