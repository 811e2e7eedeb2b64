// SPDX-License-Identifier: MIT
/* The values of a model's metadata, checked against what the caller expects. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "gguf/gguf.h"
#include "gguf/head.h"

const char *gguf_value_type_name(uint32_t type)
{
	static const char *const name[GGUF_VALUE_TYPES] = {
		"u8",   "i8",     "u16",   "i16", "u32", "i32", "f32",
		"bool", "string", "array", "u64", "i64", "f64",
	};

	return type < GGUF_VALUE_TYPES ? name[type] : "?";
}

int head_uint(const struct head_kv *kv, uint64_t *ret)
{
	int64_t i = 0;

	switch (kv->type) {
	case GGUF_U8: *ret = kv->val[0]; return 0;
	case GGUF_U16: { uint16_t v; memcpy(&v, kv->val, 2); *ret = v; return 0; }
	case GGUF_U32: { uint32_t v; memcpy(&v, kv->val, 4); *ret = v; return 0; }
	case GGUF_U64: memcpy(ret, kv->val, 8); return 0;
	case GGUF_I8: i = (int8_t)kv->val[0]; break;
	case GGUF_I16: { int16_t v; memcpy(&v, kv->val, 2); i = v; break; }
	case GGUF_I32: { int32_t v; memcpy(&v, kv->val, 4); i = v; break; }
	case GGUF_I64: memcpy(&i, kv->val, 8); break;
	default: return -EINVAL;
	}
	if (i < 0)
		return -ERANGE;
	*ret = (uint64_t)i;
	return 0;
}

uint64_t gguf_n_keys(const struct gguf *g)
{
	return gguf_head(g)->n_kv;
}

bool gguf_key_at(const struct gguf *g, uint64_t i, struct gguf_str *ret_key,
		 enum gguf_value_type *ret_type)
{
	if (i >= gguf_head(g)->n_kv)
		return false;
	*ret_key = gguf_head(g)->kv[i].key;
	*ret_type = (enum gguf_value_type)gguf_head(g)->kv[i].type;
	return true;
}

static int find(const struct gguf *g, const char *key, const struct head_kv **ret,
		struct hearth_err *err)
{
	char full[256];
	const struct head_kv *kv;

	if (key[0] == '.') {
		if ((size_t)snprintf(full, sizeof(full), "%s%s", gguf_arch(g), key) >= sizeof(full))
			return err_set(err, -EINVAL, "the key \"%s\" is too long", key);
		key = full;
	}
	kv = head_find(gguf_head(g), key);
	if (!kv)
		return err_set(err, -ENOENT, "the key \"%s\" is missing", key);
	*ret = kv;
	return 0;
}

static int wrong_type(const struct head_kv *kv, const char *want, struct hearth_err *err)
{
	return err_set(err, -EINVAL, "key \"%s\" (offset %" PRIu64 ") is of type %s, not %s",
		       quote(kv->key.s, kv->key.n).s, kv->at, gguf_value_type_name(kv->type), want);
}

static int out_of_range(const struct head_kv *kv, const char *want, struct hearth_err *err)
{
	return err_set(err, -ERANGE, "key \"%s\" (offset %" PRIu64 ") does not fit %s",
		       quote(kv->key.s, kv->key.n).s, kv->at, want);
}

bool gguf_has(const struct gguf *g, const char *key)
{
	const struct head_kv *kv;

	return find(g, key, &kv, NULL) == 0;
}

int gguf_u64(const struct gguf *g, const char *key, uint64_t *ret, struct hearth_err *err)
{
	const struct head_kv *kv;
	int r = find(g, key, &kv, err);

	if (r < 0)
		return r;
	r = head_uint(kv, ret);
	if (r == -EINVAL)
		return wrong_type(kv, "an integer", err);
	return r < 0 ? out_of_range(kv, "an unsigned number", err) : 0;
}

int gguf_u32(const struct gguf *g, const char *key, uint32_t *ret, struct hearth_err *err)
{
	const struct head_kv *kv;
	uint64_t v;
	int r = gguf_u64(g, key, &v, err);

	if (r < 0)
		return r;
	if (v > UINT32_MAX) {
		r = find(g, key, &kv, err);
		return r < 0 ? r : out_of_range(kv, "32 bits", err);
	}
	*ret = (uint32_t)v;
	return 0;
}

int gguf_i64(const struct gguf *g, const char *key, int64_t *ret, struct hearth_err *err)
{
	const struct head_kv *kv;
	struct gguf_array a;
	int r = find(g, key, &kv, err);

	if (r < 0)
		return r;
	a = (struct gguf_array){ .type = (enum gguf_value_type)kv->type, .n = 1, .data = kv->val };
	if (kv->type == GGUF_STR || kv->type == GGUF_ARR)
		return wrong_type(kv, "an integer", err);
	if (gguf_arr_i64(&a, 0, ret))
		return 0;
	if (kv->type == GGUF_U64)
		return out_of_range(kv, "a signed number", err);
	return wrong_type(kv, "an integer", err);
}

int gguf_f64(const struct gguf *g, const char *key, double *ret, struct hearth_err *err)
{
	const struct head_kv *kv;
	struct gguf_array a;
	double v;
	int r = find(g, key, &kv, err);

	if (r < 0)
		return r;
	a = (struct gguf_array){ .type = (enum gguf_value_type)kv->type, .n = 1, .data = kv->val };
	if (kv->type == GGUF_STR || kv->type == GGUF_ARR || !gguf_arr_f64(&a, 0, &v))
		return wrong_type(kv, "a number", err);
	if (!isfinite(v))
		return out_of_range(kv, "a finite number", err);
	*ret = v;
	return 0;
}

int gguf_f32(const struct gguf *g, const char *key, float *ret, struct hearth_err *err)
{
	const struct head_kv *kv;
	double v;
	int r = gguf_f64(g, key, &v, err);

	if (r < 0)
		return r;
	if (fabs(v) > (double)3.4028234e38f) {
		r = find(g, key, &kv, err);
		return r < 0 ? r : out_of_range(kv, "a 32-bit float", err);
	}
	*ret = (float)v;
	return 0;
}

int gguf_bool(const struct gguf *g, const char *key, bool *ret, struct hearth_err *err)
{
	const struct head_kv *kv;
	int r = find(g, key, &kv, err);

	if (r < 0)
		return r;
	if (kv->type != GGUF_BOOL)
		return wrong_type(kv, "true or false", err);
	*ret = kv->val[0] != 0;
	return 0;
}

int gguf_str(const struct gguf *g, const char *key, struct gguf_str *ret, struct hearth_err *err)
{
	const struct head_kv *kv;
	int r = find(g, key, &kv, err);

	if (r < 0)
		return r;
	if (kv->type != GGUF_STR)
		return wrong_type(kv, "a string", err);
	ret->s = (const char *)kv->val;
	ret->n = (size_t)kv->n;
	return 0;
}

int gguf_arr(const struct gguf *g, const char *key, struct gguf_array *ret, struct hearth_err *err)
{
	const struct head_kv *kv;
	int r = find(g, key, &kv, err);

	if (r < 0)
		return r;
	if (kv->type != GGUF_ARR)
		return wrong_type(kv, "an array", err);
	if (kv->el_type == GGUF_ARR)
		return err_set(err, -EINVAL,
			       "key \"%s\" (offset %" PRIu64 ") is an array of arrays",
			       quote(kv->key.s, kv->key.n).s, kv->at);
	*ret = (struct gguf_array){
		.type = (enum gguf_value_type)kv->el_type, .n = kv->n,
		.data = kv->el_type == GGUF_STR ? NULL : kv->val, .str = kv->str,
	};
	return 0;
}

int gguf_u32_each(const struct gguf *g, const char *key, uint32_t n, uint32_t *ret,
		  struct hearth_err *err)
{
	const struct head_kv *kv;
	struct gguf_array a;
	uint32_t one;
	int64_t v;
	int r = find(g, key, &kv, err);

	if (r < 0)
		return r;
	if (kv->type != GGUF_ARR) {
		r = gguf_u32(g, key, &one, err);
		for (uint32_t i = 0; r == 0 && i < n; i++)
			ret[i] = one;
		return r;
	}
	r = gguf_arr(g, key, &a, err);
	if (r < 0)
		return r;
	if (a.n != n)
		return err_set(err, -EINVAL,
			       "key \"%s\" (offset %" PRIu64 ") has %" PRIu64 " values for %" PRIu32
			       " layers",
			       quote(kv->key.s, kv->key.n).s, kv->at, a.n, n);
	/* Twice, so that a bad element leaves the output alone. */
	for (uint32_t i = 0; i < n; i++)
		if (!gguf_arr_i64(&a, i, &v) || v < 0 || v > UINT32_MAX)
			return err_set(err, -ERANGE,
				       "key \"%s\" (offset %" PRIu64 "): value %" PRIu32
				       " is no count",
				       quote(kv->key.s, kv->key.n).s, kv->at, i);
	for (uint32_t i = 0; i < n; i++) {
		gguf_arr_i64(&a, i, &v);
		ret[i] = (uint32_t)v;
	}
	return 0;
}

#define LOAD(ctype)                                                                                \
	({                                                                                         \
		ctype v_;                                                                          \
		memcpy(&v_, (const char *)a->data + i * sizeof(v_), sizeof(v_));                   \
		v_;                                                                                \
	})

bool gguf_arr_i64(const struct gguf_array *a, uint64_t i, int64_t *ret)
{
	uint64_t u;

	if (i >= a->n)
		return false;
	switch (a->type) {
	case GGUF_U8: *ret = LOAD(uint8_t); return true;
	case GGUF_I8: *ret = LOAD(int8_t); return true;
	case GGUF_U16: *ret = LOAD(uint16_t); return true;
	case GGUF_I16: *ret = LOAD(int16_t); return true;
	case GGUF_U32: *ret = LOAD(uint32_t); return true;
	case GGUF_I32: *ret = LOAD(int32_t); return true;
	case GGUF_I64: *ret = LOAD(int64_t); return true;
	case GGUF_U64:
		u = LOAD(uint64_t);
		if (u > INT64_MAX)
			return false;
		*ret = (int64_t)u;
		return true;
	default:
		return false;
	}
}

bool gguf_arr_f64(const struct gguf_array *a, uint64_t i, double *ret)
{
	int64_t v;

	if (i >= a->n)
		return false;
	switch (a->type) {
	case GGUF_F32: *ret = (double)LOAD(float); return true;
	case GGUF_F64: *ret = LOAD(double); return true;
	case GGUF_U64: *ret = (double)LOAD(uint64_t); return true;
	default:
		if (!gguf_arr_i64(a, i, &v))
			return false;
		*ret = (double)v;
		return true;
	}
}
