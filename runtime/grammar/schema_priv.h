/* SPDX-License-Identifier: MIT */
/*
 * Inside of a schema's translation. Each file makes one kind of value; a
 * function returns the node that it made, or, when it refused, one that matches
 * nothing: the first refusal stays in .rc and is what the caller is told.
 */
#ifndef HEARTH_GRAMMAR_SCHEMA_PRIV_H
#define HEARTH_GRAMMAR_SCHEMA_PRIV_H

#include <string.h>

#include "grammar/schema.h"

#define SCHEMA_MAX_PATH 384

struct schema_ref {
	const json_t *target;
	uint32_t rule;
};

struct schema_builder {
	struct gast g;
	const json_t *doc;           /* where "#/..." points into */
	struct schema_ref *refs;
	size_t n_refs;
	uint32_t value_rule;         /* any JSON value; 0 until first needed */
	uint32_t object_rule;
	uint32_t string_rule;
	char path[SCHEMA_MAX_PATH];  /* JSON pointer of the place under work */
	int depth;
	struct hearth_err *err;
	int rc;
};

static inline gnode lit(struct schema_builder *b, const char *s)
{
	return gast_lit(&b->g, s, strlen(s));
}

static inline gnode seq(struct schema_builder *b, gnode x, gnode y)
{
	return gast_seq(&b->g, x, y);
}

static inline gnode alt(struct schema_builder *b, gnode x, gnode y)
{
	return gast_alt(&b->g, x, y);
}

static inline gnode opt(struct schema_builder *b, gnode x)
{
	return gast_repeat(&b->g, x, 0, 1);
}

/* schema_build.c */
gnode schema_refuse(struct schema_builder *b, int code, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* One step down, or two, as a JSON pointer in messages; returns what to give to schema_leave(). */
size_t schema_enter(struct schema_builder *b, const char *key);
size_t schema_enter_item(struct schema_builder *b, const char *key, size_t i);
void schema_leave(struct schema_builder *b, size_t n);
gnode schema_spaced(struct schema_builder *b, const char *s);
int schema_only_known(struct schema_builder *b, const json_t *s, const char *const *known);
int schema_count(struct schema_builder *b, const json_t *s, const char *key, uint32_t *v);
gnode schema_any_value(struct schema_builder *b);
gnode schema_any_object(struct schema_builder *b);

/* What a keyword makes. */
gnode schema_array(struct schema_builder *b, const json_t *s);
gnode schema_choice(struct schema_builder *b, const json_t *s, const char *key);
gnode schema_enumeration(struct schema_builder *b, const json_t *s);
gnode schema_object(struct schema_builder *b, const json_t *s);
gnode schema_reference(struct schema_builder *b, const json_t *s);
gnode schema_string(struct schema_builder *b, const json_t *s);
gnode schema_value(struct schema_builder *b, const json_t *s);

/* schema_branch.c: one of anyOf or oneOf. */
struct schema_branch {
	const json_t *s;             /* behind its $ref */
	int admits;                  /* types of which some value validates, a bit each */
	int makes;                   /* types that its grammar may write */
	bool listed;                 /* by enum or const: all of its values are known */
	json_t *constants;           /* properties that have one value only */
};
/* The types that "type" of @s names, as the bits above; all where it does not say. */
int schema_type_bits(const json_t *s);
/* 0 or -ENOMEM; to be closed in either case. */
int schema_branch_open(struct schema_builder *b, const json_t *s, struct schema_branch *x);
void schema_branch_close(struct schema_branch *x);
/* Refuses @n branches of which two may match the same value. */
int schema_exclusive(struct schema_builder *b, const struct schema_branch *x, size_t n);

/* schema_choice.c: the place in the schema that @ref names, or NULL. */
const json_t *schema_resolve(struct schema_builder *b, const char *ref);

/* schema_const.c */
gnode schema_constant(struct schema_builder *b, const json_t *v);
bool schema_type_matches(const char *type, const json_t *v);

/* schema_string.c */
gnode schema_any_string(struct schema_builder *b);
gnode schema_quoted(struct schema_builder *b, gnode inside);

/* schema.c */
/* What type the keywords speak of, where "type" is not given; or NULL. */
const char *schema_implied_type(const json_t *s);
void schema_builder_init(struct schema_builder *b, struct hearth_err *err);
int schema_builder_finish(struct schema_builder *b, gnode root, struct grammar **ret, struct hearth_err *err);

#endif
