// SPDX-License-Identifier: MIT
#include "base/yaml.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <yaml.h>

struct yaml {
	yaml_document_t doc;
	char *name;
	bool has_doc;
};

void yaml_close(struct yaml *y)
{
	if (!y)
		return;
	if (y->has_doc)
		yaml_document_delete(&y->doc);
	free(y->name);
	free(y);
}

static yaml_node_t *node(const struct yaml *y, yaml_node n)
{
	return n ? yaml_document_get_node((yaml_document_t *)&y->doc, n) : NULL;
}

int yaml_refuse(const struct yaml *y, yaml_node n, int code, struct hearth_err *err, const char *fmt, ...)
{
	const yaml_node_t *p = node(y, n);
	char text[400];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (!p)
		return err_set(err, code, "%s: %s", y->name, text);
	return err_set(err, code, "%s line %zu, column %zu: %s", y->name, p->start_mark.line + 1,
		       p->start_mark.column + 1, text);
}

/* What YAML allows and a file of ours must not hold. */
static int check_nodes(struct yaml *y, struct hearth_err *err)
{
	size_t count = (size_t)(y->doc.nodes.top - y->doc.nodes.start);
	uint8_t *parents = calloc(count + 1, 1);
	int rc = 0;

	if (!parents)
		return err_set(err, -ENOMEM, "%s: out of memory", y->name);
	for (size_t i = 1; i <= count && !rc; i++) {
		yaml_node_t *p = node(y, (yaml_node)i);
		yaml_node kids[2];

		if (p->type == YAML_SCALAR_NODE && strlen((char *)p->data.scalar.value) != p->data.scalar.length)
			rc = yaml_refuse(y, (yaml_node)i, -EINVAL, err, "the text holds a NUL character");
		if (p->type == YAML_SEQUENCE_NODE) {
			for (yaml_node_item_t *k = p->data.sequence.items.start; k < p->data.sequence.items.top && !rc; k++)
				if (node(y, *k)->type != YAML_SCALAR_NODE && parents[*k]++)
					rc = yaml_refuse(y, (yaml_node)i, -EINVAL, err, "an alias to a list or mapping is not taken; write it out");
		}
		if (p->type != YAML_MAPPING_NODE)
			continue;
		for (yaml_node_pair_t *a = p->data.mapping.pairs.start; a < p->data.mapping.pairs.top && !rc; a++) {
			yaml_node_t *key = node(y, a->key);

			kids[0] = a->key;
			kids[1] = a->value;
			for (int k = 0; k < 2; k++)
				if (node(y, kids[k])->type != YAML_SCALAR_NODE && parents[kids[k]]++)
					rc = yaml_refuse(y, kids[k], -EINVAL, err, "an alias to a list or mapping is not taken; write it out");
			if (!rc && key->type != YAML_SCALAR_NODE)
				rc = yaml_refuse(y, a->key, -EINVAL, err, "a key must be plain text");
			for (yaml_node_pair_t *b = p->data.mapping.pairs.start; b < a && !rc; b++)
				if (!strcmp((char *)node(y, b->key)->data.scalar.value, (char *)key->data.scalar.value))
					rc = yaml_refuse(y, a->key, -EINVAL, err, "the key \"%s\" is given twice", (char *)key->data.scalar.value);
		}
	}
	free(parents);
	return rc;
}

static int parse_failed(const struct yaml *y, const yaml_parser_t *p, struct hearth_err *err)
{
	if (p->error == YAML_MEMORY_ERROR)
		return err_set(err, -ENOMEM, "%s: out of memory", y->name);
	return err_set(err, -EINVAL, "%s line %zu, column %zu: %s", y->name, p->problem_mark.line + 1,
		       p->problem_mark.column + 1, p->problem ? p->problem : "this is not YAML");
}

int yaml_load_text(const char *name, const char *text, size_t len, struct yaml **ret, struct hearth_err *err)
{
	struct yaml *y = calloc(1, sizeof(*y));
	yaml_document_t second;
	yaml_parser_t p;
	int rc = 0;

	if (y)
		y->name = strdup(name);
	if (!y || !y->name || !yaml_parser_initialize(&p)) {
		yaml_close(y);
		return err_set(err, -ENOMEM, "%s: out of memory", name);
	}
	if (len > YAML_MAX_BYTES) {
		rc = err_set(err, -EFBIG, "%s: %zu bytes; at most %u are read", name, len, YAML_MAX_BYTES);
		goto out;
	}
	yaml_parser_set_input_string(&p, (const unsigned char *)text, len);
	if (!yaml_parser_load(&p, &y->doc)) {
		rc = parse_failed(y, &p, err);
		goto out;
	}
	y->has_doc = true;
	rc = check_nodes(y, err);
	if (rc)
		goto out;
	if (!yaml_document_get_root_node(&y->doc))
		goto out;
	if (!yaml_parser_load(&p, &second)) {
		rc = parse_failed(y, &p, err);
		goto out;
	}
	if (yaml_document_get_root_node(&second))
		rc = err_set(err, -EINVAL, "%s: holds more than one YAML document", name);
	yaml_document_delete(&second);
out:
	yaml_parser_delete(&p);
	if (rc) {
		yaml_close(y);
		return rc;
	}
	*ret = y;
	return 0;
}

int yaml_load_file(const char *path, struct yaml **ret, struct hearth_err *err)
{
	char *text = malloc(YAML_MAX_BYTES + 1);
	size_t len = 0;
	ssize_t n = 0;
	int fd, rc;

	if (!text)
		return err_set(err, -ENOMEM, "%s: out of memory", path);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0) {
		rc = err_set(err, -errno, "%s: cannot be opened: %s", path, strerror(errno));
		free(text);
		return rc;
	}
	while (len <= YAML_MAX_BYTES && (n = read(fd, text + len, YAML_MAX_BYTES + 1 - len)) > 0)
		len += (size_t)n;
	if (n < 0)
		rc = err_set(err, -errno, "%s: cannot be read: %s", path, strerror(errno));
	else
		rc = yaml_load_text(path, text, len, ret, err);
	close(fd);
	free(text);
	return rc;
}

yaml_node yaml_root(const struct yaml *y)
{
	return yaml_document_get_root_node((yaml_document_t *)&y->doc) ? 1 : 0;
}

static bool is_type(const struct yaml *y, yaml_node n, yaml_node_type_t t)
{
	const yaml_node_t *p = node(y, n);

	return p && p->type == t;
}

bool yaml_is_map(const struct yaml *y, yaml_node n)
{
	return is_type(y, n, YAML_MAPPING_NODE);
}

bool yaml_is_seq(const struct yaml *y, yaml_node n)
{
	return is_type(y, n, YAML_SEQUENCE_NODE);
}

bool yaml_is_scalar(const struct yaml *y, yaml_node n)
{
	return is_type(y, n, YAML_SCALAR_NODE);
}

bool yaml_is_quoted(const struct yaml *y, yaml_node n)
{
	return yaml_is_scalar(y, n) && node(y, n)->data.scalar.style != YAML_PLAIN_SCALAR_STYLE;
}

bool yaml_is_null(const struct yaml *y, yaml_node n)
{
	const char *s = yaml_text(y, n);

	return s && !yaml_is_quoted(y, n) && (!*s || !strcmp(s, "~") || !strcmp(s, "null"));
}

const char *yaml_text(const struct yaml *y, yaml_node n)
{
	return yaml_is_scalar(y, n) ? (const char *)node(y, n)->data.scalar.value : NULL;
}

size_t yaml_len(const struct yaml *y, yaml_node n)
{
	const yaml_node_t *p = node(y, n);

	if (p && p->type == YAML_SEQUENCE_NODE)
		return (size_t)(p->data.sequence.items.top - p->data.sequence.items.start);
	if (p && p->type == YAML_MAPPING_NODE)
		return (size_t)(p->data.mapping.pairs.top - p->data.mapping.pairs.start);
	return 0;
}

yaml_node yaml_item(const struct yaml *y, yaml_node seq, size_t i)
{
	return yaml_is_seq(y, seq) && i < yaml_len(y, seq) ? node(y, seq)->data.sequence.items.start[i] : 0;
}

yaml_node yaml_key(const struct yaml *y, yaml_node map, size_t i)
{
	return yaml_is_map(y, map) && i < yaml_len(y, map) ? node(y, map)->data.mapping.pairs.start[i].key : 0;
}

yaml_node yaml_value(const struct yaml *y, yaml_node map, size_t i)
{
	return yaml_is_map(y, map) && i < yaml_len(y, map) ? node(y, map)->data.mapping.pairs.start[i].value : 0;
}

yaml_node yaml_get(const struct yaml *y, yaml_node map, const char *key)
{
	for (size_t i = 0; i < yaml_len(y, map); i++)
		if (yaml_is_map(y, map) && !strcmp(yaml_text(y, yaml_key(y, map, i)), key))
			return yaml_value(y, map, i);
	return 0;
}

int yaml_no_other_keys(const struct yaml *y, yaml_node map, const char *const *known, struct hearth_err *err)
{
	for (size_t i = 0; i < yaml_len(y, map); i++) {
		yaml_node k = yaml_key(y, map, i);
		const char *const *p = known;
		char list[256] = "";

		while (*p && strcmp(*p, yaml_text(y, k)))
			p++;
		if (*p)
			continue;
		for (p = known; *p; p++)
			snprintf(list + strlen(list), sizeof(list) - strlen(list), "%s%s", p == known ? "" : ", ", *p);
		return yaml_refuse(y, k, -EINVAL, err, "the key \"%s\" is not known here (known: %s)", yaml_text(y, k), list);
	}
	return 0;
}

static yaml_node given(const struct yaml *y, yaml_node map, const char *key)
{
	yaml_node n = yaml_get(y, map, key);

	return yaml_is_null(y, n) ? 0 : n;
}

int yaml_get_str(const struct yaml *y, yaml_node map, const char *key, const char **ret, struct hearth_err *err)
{
	yaml_node n = given(y, map, key);

	if (!n)
		return 0;
	if (!yaml_is_scalar(y, n))
		return yaml_refuse(y, n, -EINVAL, err, "\"%s\" must be text", key);
	*ret = yaml_text(y, n);
	return 0;
}

int yaml_get_int(const struct yaml *y, yaml_node map, const char *key, int64_t min, int64_t max, int64_t *ret,
		 struct hearth_err *err)
{
	yaml_node n = given(y, map, key);
	const char *s = yaml_text(y, n);
	long long v;
	char *end;

	if (!n)
		return 0;
	errno = 0;
	v = s ? strtoll(s, &end, 10) : 0;
	if (!s || end == s || *end || errno || v < min || v > max)
		return yaml_refuse(y, n, -EINVAL, err, "\"%s\" must be a whole number from %lld to %lld", key,
				   (long long)min, (long long)max);
	*ret = v;
	return 0;
}

int yaml_get_num(const struct yaml *y, yaml_node map, const char *key, double min, double max, double *ret,
		 struct hearth_err *err)
{
	yaml_node n = given(y, map, key);
	const char *s = yaml_text(y, n);
	double v;
	char *end;

	if (!n)
		return 0;
	v = s ? strtod(s, &end) : 0;
	if (!s || end == s || *end || !isfinite(v) || v < min || v > max)
		return yaml_refuse(y, n, -EINVAL, err, "\"%s\" must be a number from %g to %g", key, min, max);
	*ret = v;
	return 0;
}

int yaml_get_bool(const struct yaml *y, yaml_node map, const char *key, bool *ret, struct hearth_err *err)
{
	yaml_node n = given(y, map, key);
	const char *s = yaml_text(y, n);

	if (!n)
		return 0;
	if (s && (!strcmp(s, "true") || !strcmp(s, "yes") || !strcmp(s, "on")))
		*ret = true;
	else if (s && (!strcmp(s, "false") || !strcmp(s, "no") || !strcmp(s, "off")))
		*ret = false;
	else
		return yaml_refuse(y, n, -EINVAL, err, "\"%s\" must be true or false", key);
	return 0;
}

int yaml_get_bytes(const struct yaml *y, yaml_node map, const char *key, uint64_t *ret, struct hearth_err *err)
{
	static const char units[] = "BKMGT";
	yaml_node n = given(y, map, key);
	const char *s = yaml_text(y, n), *u;
	unsigned long long v;
	int shift = 0;
	char *end;

	if (!n)
		return 0;
	if (!s || *s < '0' || *s > '9')
		goto bad;
	errno = 0;
	v = strtoull(s, &end, 10);
	if (errno)
		goto bad;
	while (*end == ' ')
		end++;
	if (*end) {
		u = strchr(units, *end);
		if (!u)
			goto bad;
		shift = (int)(u - units) * 10;
		end++;
		if (shift && !strcmp(end, "iB"))
			end += 2;
		if (*end)
			goto bad;
	}
	if (shift && v >> (64 - shift))
		goto bad;
	*ret = v << shift;
	return 0;
bad:
	return yaml_refuse(y, n, -EINVAL, err, "\"%s\" must be a size in bytes, such as 300M or 2GiB", key);
}
