// SPDX-License-Identifier: MIT
#include "server/wyoming_frame.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct queued {
	struct wyoming_event e;
	struct queued *next;
};

struct wyoming_reader {
	char *buf;
	size_t n, cap;
	json_t *header;            /* read, its data and payload not yet complete */
	size_t n_data, n_payload;
	bool broken;
	struct queued *head, **tail;
};

int wyoming_reader_new(struct wyoming_reader **ret)
{
	struct wyoming_reader *r = calloc(1, sizeof(*r));

	if (!r)
		return -ENOMEM;
	r->tail = &r->head;
	*ret = r;
	return 0;
}

void wyoming_event_done(struct wyoming_event *e)
{
	json_decref(e->data);
	free(e->payload);
	memset(e, 0, sizeof(*e));
}

void wyoming_reader_free(struct wyoming_reader *r)
{
	struct queued *q;

	if (!r)
		return;
	while ((q = r->head)) {
		r->head = q->next;
		wyoming_event_done(&q->e);
		free(q);
	}
	json_decref(r->header);
	free(r->buf);
	free(r);
}

static int broken(struct wyoming_reader *r, const char **why, const char *text)
{
	r->broken = true;
	*why = text;
	return -EBADMSG;
}

/* A length of the header: absent or null is 0. */
static bool length(const json_t *h, const char *key, size_t max, size_t *ret)
{
	const json_t *j = json_object_get(h, key);

	*ret = 0;
	if (!j || json_is_null(j))
		return true;
	if (!json_is_integer(j) || json_integer_value(j) < 0 || (size_t)json_integer_value(j) > max)
		return false;
	*ret = (size_t)json_integer_value(j);
	return true;
}

static int read_header(struct wyoming_reader *r, size_t line, const char **why)
{
	json_error_t je;
	const char *type;

	r->header = json_loadb(r->buf, line, 0, &je);
	if (!json_is_object(r->header))
		return broken(r, why, "the header line is not a JSON object");
	type = json_string_value(json_object_get(r->header, "type"));
	if (!type || !*type || strlen(type) >= sizeof(((struct wyoming_event *)0)->type))
		return broken(r, why, "the header has no type, or one over 63 bytes");
	if (!length(r->header, "data_length", WYOMING_MAX_DATA, &r->n_data))
		return broken(r, why, "data_length is not a number up to 1 MiB");
	if (!length(r->header, "payload_length", WYOMING_MAX_PAYLOAD, &r->n_payload))
		return broken(r, why, "payload_length is not a number up to 4 MiB");
	memmove(r->buf, r->buf + line + 1, r->n - line - 1);
	r->n -= line + 1;
	return 0;
}

static int read_body(struct wyoming_reader *r, const char **why)
{
	struct queued *q = calloc(1, sizeof(*q));
	json_t *d = json_object_get(r->header, "data"), *block = NULL;
	json_error_t je;

	if (!q)
		return -ENOMEM;
	snprintf(q->e.type, sizeof(q->e.type), "%s", json_string_value(json_object_get(r->header, "type")));
	q->e.data = json_is_object(d) ? json_deep_copy(d) : json_object();
	if (r->n_data) {
		block = json_loadb(r->buf, r->n_data, JSON_DECODE_ANY, &je);
		if (block && json_is_null(block)) {
			json_decref(block);
			block = json_object();
		}
	}
	if (r->n_payload)
		q->e.payload = malloc(r->n_payload);
	if (!q->e.data || (r->n_payload && !q->e.payload)) {
		wyoming_event_done(&q->e);
		json_decref(block);
		free(q);
		return -ENOMEM;
	}
	if (r->n_data && !json_is_object(block)) {
		wyoming_event_done(&q->e);
		json_decref(block);
		free(q);
		return broken(r, why, "the data block is not a JSON object");
	}
	json_object_update(q->e.data, block);
	json_decref(block);
	if (r->n_payload)
		memcpy(q->e.payload, r->buf + r->n_data, r->n_payload);
	q->e.n_payload = r->n_payload;
	memmove(r->buf, r->buf + r->n_data + r->n_payload, r->n - r->n_data - r->n_payload);
	r->n -= r->n_data + r->n_payload;
	json_decref(r->header);
	r->header = NULL;
	*r->tail = q;
	r->tail = &q->next;
	return 0;
}

int wyoming_feed(struct wyoming_reader *r, const void *bytes, size_t n, const char **ret_why)
{
	static const char *nowhere;
	int rc = 0;

	if (!ret_why)
		ret_why = &nowhere;
	if (r->broken)
		return broken(r, ret_why, "an earlier event was broken");
	if (r->n + n > r->cap) {
		size_t cap = (r->n + n) * 2 + 4096;
		char *p = realloc(r->buf, cap);

		if (!p)
			return -ENOMEM;
		r->buf = p;
		r->cap = cap;
	}
	if (n)
		memcpy(r->buf + r->n, bytes, n);
	r->n += n;
	while (!rc) {
		if (!r->header) {
			char *end = r->n ? memchr(r->buf, '\n', r->n) : NULL;

			if (!end) {
				if (r->n > WYOMING_MAX_HEADER)
					return broken(r, ret_why, "the header line is over 64 KiB");
				break;
			}
			if ((size_t)(end - r->buf) > WYOMING_MAX_HEADER)
				return broken(r, ret_why, "the header line is over 64 KiB");
			rc = read_header(r, (size_t)(end - r->buf), ret_why);
		} else if (r->n >= r->n_data + r->n_payload) {
			rc = read_body(r, ret_why);
		} else {
			break;
		}
	}
	return rc;
}

bool wyoming_half(const struct wyoming_reader *r)
{
	return r->header || r->n;
}

int wyoming_next(struct wyoming_reader *r, struct wyoming_event *ret_e)
{
	struct queued *q = r->head;

	if (!q)
		return 0;
	r->head = q->next;
	if (!r->head)
		r->tail = &r->head;
	*ret_e = q->e;
	free(q);
	return 1;
}

int wyoming_encode(const char *type, const json_t *data, const void *payload, size_t n_payload, char **ret, size_t *ret_n)
{
	char *block = data && json_object_size(data) ? json_dumps(data, JSON_COMPACT) : NULL, *out;
	size_t n_data = block ? strlen(block) : 0, n;
	json_t *h;
	char *line;

	if (data && json_object_size(data) && !block)
		return -ENOMEM;
	h = json_pack("{s:s,s:s}", "type", type, "version", "1.9.0");
	if (n_data)
		json_object_set_new(h, "data_length", json_integer((json_int_t)n_data));
	if (n_payload)
		json_object_set_new(h, "payload_length", json_integer((json_int_t)n_payload));
	line = h ? json_dumps(h, JSON_COMPACT) : NULL;
	json_decref(h);
	out = line ? malloc(strlen(line) + 1 + n_data + n_payload) : NULL;
	if (!out) {
		free(line);
		free(block);
		return -ENOMEM;
	}
	n = strlen(line);
	memcpy(out, line, n);
	out[n++] = '\n';
	if (n_data)
		memcpy(out + n, block, n_data);
	n += n_data;
	if (n_payload)
		memcpy(out + n, payload, n_payload);
	n += n_payload;
	free(line);
	free(block);
	*ret = out;
	*ret_n = n;
	return 0;
}
