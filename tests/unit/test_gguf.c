// SPDX-License-Identifier: MIT
#include "unit.h"
#include "synth.h"
#include "gguf/gguf.h"
#include "gguf/quant.h"

#include <fcntl.h>
#include <sys/stat.h>

static char dir[] = "/tmp/hearth-gguf-XXXXXX";

#define in_dir(name) path_in(dir, name)

/* Parses @b as a whole file and wants a refusal whose sentence has @words in it. */
static void refuse(const struct synth_buf *b, const char *words)
{
	struct hearth_err err = { 0 };
	struct gguf *g = NULL;
	int r = gguf_parse(b->p, b->n, b->n, &g, &err);

	if (r >= 0)
		fail_msg("accepted; expected \"%s\"", words);
	assert_null(g);
	if (!strstr(err.text, words))
		fail_msg("said \"%s\", expected \"%s\"", err.text, words);
	assert_int_equal(err.code, r);
}

/* A right file with two keys and two tensors. */
static struct synth_buf good(uint32_t version)
{
	struct synth_buf b = { 0 };

	synth_head(&b, version, 2, 2);
	synth_kv_str(&b, "general.architecture", "qwen3");
	synth_kv_u32(&b, "qwen3.block_count", 7);
	synth_tensor(&b, "a", 2, (uint64_t[]){ 32, 3 }, QUANT_Q8_0, 0);  /* 102 bytes */
	synth_tensor(&b, "b", 1, (uint64_t[]){ 5 }, QUANT_F32, 128);     /* 20 bytes */
	synth_align(&b, 32);
	synth_put(&b, NULL, 128 + 20);
	return b;
}

static void a_right_file_opens(void **state)
{
	for (uint32_t version = 2; version <= 3; version++) {
		struct synth_buf b = good(version);
		struct gguf_tensor *t;
		struct gguf *g = NULL;
		uint32_t v = 0;

		assert_int_equal(gguf_parse(b.p, b.n, b.n, &g, NULL), 0);
		assert_int_equal(gguf_version(g), version);
		assert_int_equal(gguf_n_tensors(g), 2);
		assert_string_equal(gguf_arch(g), "qwen3");
		assert_int_equal(gguf_u32(g, ".block_count", &v, NULL), 0);
		assert_int_equal(v, 7);
		t = gguf_tensor(g, "a");
		assert_non_null(t);
		assert_int_equal(t->nbytes, 102);
		assert_int_equal(t->n_elems, 96);
		assert_int_equal(t->offset, gguf_part_data(g, 0));
		assert_null(gguf_tensor(g, "c"));
		assert_int_equal(gguf_data_bytes(g), 122);
		gguf_close(g);
		free(b.p);
	}
}

/* Every prefix of a right file is refused, and none reads past its end (run under ASan). */
static void every_truncation_is_refused(void **state)
{
	struct synth_buf b = good(3);

	for (size_t n = 0; n < b.n; n++) {
		struct hearth_err err = { 0 };
		struct gguf *g = NULL;
		uint8_t *cut = malloc(n ? n : 1);

		memcpy(cut, b.p, n);
		assert_true(gguf_parse(cut, n, n, &g, &err) < 0);
		assert_true(strlen(err.text) > 10);
		free(cut);
	}
	b.n -= 1;
	refuse(&b, "tensor \"b\" is at offset");
	refuse(&b, "1 bytes are missing");
	free(b.p);
}

static void joined_files_are_refused(void **state)
{
	struct synth_buf b = good(3), c = good(3);

	synth_align(&b, 32);
	synth_put(&b, c.p, c.n);
	refuse(&b, "the file goes on for");
	refuse(&b, "joined with cat");
	free(b.p);
	free(c.p);
}

static void other_files_are_told_apart(void **state)
{
	struct synth_buf b = { 0 };

	refuse(&b, "empty");
	synth_put(&b, "GG", 2);
	refuse(&b, "only 2 bytes");
	b.n = 0;
	synth_put(&b, "RIFF....WAVE", 12);
	refuse(&b, "begins with 52 49 46 46");
	b.n = 0;
	synth_put(&b, "tjgg\1\0\0\0", 8);
	refuse(&b, "from before GGUF");
	b.n = 0;
	synth_head(&b, 1, 0, 0);
	refuse(&b, "version 1");
	b.n = 0;
	synth_head(&b, 4, 0, 0);
	refuse(&b, "version 4 is newer");
	b.n = 0;
	synth_head(&b, 0x03000000, 0, 0);
	refuse(&b, "big-endian");
	free(b.p);
}

static void absurd_counts_are_refused(void **state)
{
	static const uint64_t many[] = { 1000, 1ull << 32, 1ull << 63, UINT64_MAX,
					 UINT64_MAX / 24 + 2 };
	struct synth_buf b = { 0 };

	for (size_t i = 0; i < sizeof(many) / sizeof(many[0]); i++) {
		b.n = 0;
		synth_head(&b, 3, many[i], 0);
		refuse(&b, "tensors, more than");
		b.n = 0;
		synth_head(&b, 3, 0, many[i]);
		refuse(&b, "metadata keys, more than");
		/* The length of a key, of a string, of an array, of strings in an array. */
		b.n = 0;
		synth_head(&b, 3, 0, 1);
		synth_u64(&b, many[i]);
		synth_put(&b, NULL, 40);
		refuse(&b, "the key at offset");
		b.n = 0;
		synth_head(&b, 3, 0, 1);
		synth_str(&b, "k");
		synth_u32(&b, GGUF_STR);
		synth_u64(&b, many[i]);
		refuse(&b, "key \"k\": the string at offset");
		for (uint32_t el = 0; el < GGUF_VALUE_TYPES; el++) {
			b.n = 0;
			synth_head(&b, 3, 0, 1);
			synth_str(&b, "k");
			synth_u32(&b, GGUF_ARR);
			synth_u32(&b, el);
			synth_u64(&b, many[i]);
			refuse(&b, "key \"k\": the array");
		}
	}
	free(b.p);
}

static void bad_values_are_refused(void **state)
{
	struct synth_buf b = { 0 };

	synth_head(&b, 3, 0, 1);
	synth_str(&b, "k");
	synth_u32(&b, 13);
	synth_u64(&b, 0);
	refuse(&b, "value type 13");

	b.n = 0;
	synth_head(&b, 3, 0, 1);
	synth_str(&b, "k");
	synth_u32(&b, GGUF_BOOL);
	synth_put(&b, "\2", 1);
	refuse(&b, "truth value is 2");

	b.n = 0;
	synth_head(&b, 3, 0, 2);
	synth_kv_u32(&b, "k", 1);
	synth_kv_str(&b, "k", "x");
	refuse(&b, "key \"k\" is there twice");

	b.n = 0;
	synth_head(&b, 3, 0, 1);
	synth_str(&b, "");
	synth_put(&b, NULL, 20);
	refuse(&b, "key of 0 bytes");

	b.n = 0;
	synth_head(&b, 3, 0, 1);
	synth_u64(&b, 3);
	synth_put(&b, "a\0b", 3);
	synth_put(&b, NULL, 20);
	refuse(&b, "NUL byte");

	/* Arrays in arrays in arrays ... */
	b.n = 0;
	synth_head(&b, 3, 0, 1);
	synth_str(&b, "k");
	synth_u32(&b, GGUF_ARR);
	for (int i = 0; i < 50; i++) {
		synth_u32(&b, GGUF_ARR);
		synth_u64(&b, 1);
	}
	synth_put(&b, NULL, 64);
	refuse(&b, "nested deeper");

	for (uint32_t a = 0; a < 5; a++) {
		static const uint32_t bad[] = { 0, 4, 24, 33, 1u << 31 };

		b.n = 0;
		synth_head(&b, 3, 0, 1);
		synth_kv_u32(&b, "general.alignment", bad[a]);
		refuse(&b, "general.alignment is");
	}
	b.n = 0;
	synth_head(&b, 3, 0, 1);
	synth_kv_str(&b, "general.alignment", "32");
	refuse(&b, "general.alignment is a string");
	free(b.p);
}

/* One tensor and 64 bytes of data. */
static void refuse_tensor(const char *name, uint32_t n_dims, const uint64_t *ne, uint32_t type,
			  uint64_t offset, const char *words)
{
	struct synth_buf b = { 0 };

	synth_head(&b, 3, 1, 0);
	synth_tensor(&b, name, n_dims, ne, type, offset);
	synth_align(&b, 32);
	synth_put(&b, NULL, 64);
	refuse(&b, words);
	free(b.p);
}

static void bad_tensors_are_refused(void **state)
{
	uint64_t one[5] = { 16, 1, 1, 1, 1 };
	char longname[80];

	refuse_tensor("t", 0, one, QUANT_F32, 0, "tensor \"t\" (entry at offset 24): 0 dimensions");
	refuse_tensor("t", 5, one, QUANT_F32, 0, "5 dimensions");
	refuse_tensor("t", 1, (uint64_t[]){ 0 }, QUANT_F32, 0, "dimension 0 is 0");
	refuse_tensor("t", 1, (uint64_t[]){ UINT64_MAX }, QUANT_F32, 0,
		      "dimension 0 is 18446744073709551615");
	refuse_tensor("t", 4, (uint64_t[]){ 1u << 31, 1u << 31, 1u << 31, 2 }, QUANT_F32, 0,
		      "dimension 2");
	refuse_tensor("t", 2, (uint64_t[]){ 1ull << 62, 1 }, QUANT_F32, 0, "overflows");
	refuse_tensor("t", 1, (uint64_t[]){ 33 }, QUANT_Q8_0, 0,
		      "rows of 33 are not a multiple of Q8_0's block of 32");
	refuse_tensor("t", 1, one, 4, 0, "type 4 is not known");
	refuse_tensor("t", 1, one, 99, 0, "type 99 is not known");
	refuse_tensor("t", 1, one, QUANT_F32, 8, "data offset 8 is not a multiple of 32");
	refuse_tensor("t", 1, one, QUANT_F32, 32, "tensor \"t\" is at offset");
	refuse_tensor("t", 1, one, QUANT_F32, UINT64_MAX - 31, "beyond any file");
	refuse_tensor("t", 1, (uint64_t[]){ 1ull << 50 }, QUANT_F32, 0, "bytes are missing");
	refuse_tensor("", 1, one, QUANT_F32, 0, "has 0 bytes");
	memset(longname, 'x', 64);
	longname[64] = 0;
	refuse_tensor(longname, 1, one, QUANT_F32, 0, "has 64 bytes");
	/* A name that would write to a terminal. */
	refuse_tensor("\x1b[2J\"", 1, one, 99, 0, "tensor \"?[2J?\"");
}

static void tensors_that_meet_are_refused(void **state)
{
	uint64_t ne[1] = { 16 };
	struct synth_buf b = { 0 };

	synth_head(&b, 3, 2, 0);
	synth_tensor(&b, "x", 1, ne, QUANT_F32, 0);
	synth_tensor(&b, "y", 1, ne, QUANT_F32, 32);
	synth_align(&b, 32);
	synth_put(&b, NULL, 96);
	refuse(&b, "tensors \"x\" and \"y\" overlap");

	b.n = 0;
	synth_head(&b, 3, 2, 0);
	synth_tensor(&b, "x", 1, ne, QUANT_F32, 0);
	synth_tensor(&b, "x", 1, ne, QUANT_F32, 64);
	synth_align(&b, 32);
	synth_put(&b, NULL, 128);
	refuse(&b, "tensor \"x\" is there twice");
	free(b.p);
}

static void getters_say_what_is_wrong(void **state)
{
	struct hearth_err err = { 0 };
	struct synth_buf b = { 0 };
	struct gguf *g = NULL;
	struct gguf_array a;
	struct gguf_str s;
	uint32_t u = 42, each[3] = { 9, 9, 9 };
	uint64_t u64 = 0;
	int64_t i64 = 0;
	double f = 0;
	float f32 = 0;
	bool flag;

	synth_head(&b, 3, 0, 7);
	synth_kv_str(&b, "general.architecture", "arch");
	synth_kv_f32(&b, "f", 0.5f);
	synth_kv_u32(&b, "arch.u", 4000000000u);
	synth_str(&b, "neg");
	synth_u32(&b, GGUF_I64);
	synth_u64(&b, (uint64_t)-5);
	synth_str(&b, "ints");
	synth_u32(&b, GGUF_ARR);
	synth_u32(&b, GGUF_U32);
	synth_u64(&b, 3);
	synth_u32(&b, 1);
	synth_u32(&b, 2);
	synth_u32(&b, 3);
	synth_kv_bool(&b, "flag", true);
	synth_str(&b, "nan");
	synth_u32(&b, GGUF_F64);
	synth_u64(&b, 0x7ff8000000000000ull);
	synth_align(&b, 32);
	assert_int_equal(gguf_parse(b.p, b.n, b.n, &g, &err), 0);

	assert_int_equal(gguf_u32(g, "no", &u, &err), -ENOENT);
	assert_string_equal(err.text, "the key \"no\" is missing");
	assert_int_equal(gguf_u32(g, "f", &u, &err), -EINVAL);
	assert_non_null(strstr(err.text, "key \"f\" (offset"));
	assert_non_null(strstr(err.text, "is of type f32, not an integer"));
	assert_int_equal(gguf_u32(g, "neg", &u, &err), -ERANGE);
	assert_int_equal(u, 42);
	assert_int_equal(gguf_i64(g, "neg", &i64, &err), 0);
	assert_int_equal(i64, -5);
	assert_int_equal(gguf_u64(g, ".u", &u64, &err), 0);
	assert_int_equal(u64, 4000000000u);
	assert_int_equal(gguf_str(g, "f", &s, &err), -EINVAL);
	assert_int_equal(gguf_arr(g, "f", &a, &err), -EINVAL);
	assert_int_equal(gguf_bool(g, "f", &flag, &err), -EINVAL);
	assert_int_equal(gguf_bool(g, "flag", &flag, &err), 0);
	assert_int_equal(gguf_f64(g, "f", &f, &err), 0);
	assert_true(f == 0.5);
	assert_int_equal(gguf_f32(g, "nan", &f32, &err), -ERANGE);
	assert_int_equal(gguf_f32(g, "flag", &f32, &err), -EINVAL);
	assert_int_equal(gguf_u32_each(g, "ints", 2, each, &err), -EINVAL);
	assert_non_null(strstr(err.text, "has 3 values for 2 layers"));
	assert_int_equal(each[0], 9);
	assert_int_equal(gguf_u32_each(g, "ints", 3, each, &err), 0);
	assert_int_equal(each[2], 3);
	assert_int_equal(gguf_u32_each(g, ".u", 3, each, &err), 0);
	assert_int_equal(each[1], 4000000000u);
	gguf_close(g);
	free(b.p);
}

static void a_needed_tensor_has_its_shape(void **state)
{
	struct synth_buf b = good(3);
	struct hearth_err err = { 0 };
	struct gguf_tensor *t = NULL;
	struct gguf *g = NULL;

	assert_int_equal(gguf_parse(b.p, b.n, b.n, &g, NULL), 0);
	assert_int_equal(gguf_need(g, "a", 2, (uint64_t[]){ 32, 3 }, &t, &err), 0);
	assert_string_equal(t->name, "a");
	assert_int_equal(gguf_need(g, "a", 2, (uint64_t[]){ 32, 4 }, &t, &err), -EINVAL);
	assert_non_null(strstr(err.text, "is [32 x 3]; the model's metadata asks for [32 x 4]"));
	assert_int_equal(gguf_need(g, "q", 1, (uint64_t[]){ 8 }, &t, &err), -ENOENT);
	assert_string_equal(err.text, "tensor \"q\" [8] is missing");
	gguf_close(g);
	free(b.p);
}

static void synthetic_models_open(void **state)
{
	struct hearth_err err = { 0 };
	struct synth_opts o;
	struct gguf *g = NULL;

	synth_defaults(&o);
	assert_int_equal(synth_model(in_dir("m.gguf"), &o), 0);
	if (gguf_open(in_dir("m.gguf"), &g, &err) < 0)
		fail_msg("%s", err.text);
	assert_int_equal(gguf_n_tensors(g), 2 + 2 * 11);
	gguf_close(g);
	g = NULL;
	o.arch = "qwen2";
	o.tied = false;
	o.d_model = 256;
	o.head_dim = 64;
	o.type = QUANT_Q4_K;
	o.embd_type = QUANT_Q6_K;
	assert_int_equal(synth_model(in_dir("k.gguf"), &o), 0);
	if (gguf_open(in_dir("k.gguf"), &g, &err) < 0)
		fail_msg("%s", err.text);
	assert_int_equal(gguf_n_tensors(g), 3 + 2 * 12);
	gguf_close(g);
}

/* By each part's name the same model, whatever is done to the others is said. */
static void split_models_are_joined(void **state)
{
	struct hearth_err err = { 0 };
	struct synth_opts o;
	struct gguf *g = NULL;
	char name[64];

	synth_defaults(&o);
	o.parts = 3;
	assert_int_equal(synth_model(in_dir("s.gguf"), &o), 0);
	for (int p = 1; p <= 3; p++) {
		snprintf(name, sizeof(name), "s-%05d-of-00003.gguf", p);
		if (gguf_open(in_dir(name), &g, &err) < 0)
			fail_msg("%s", err.text);
		assert_int_equal(gguf_n_parts(g), 3);
		assert_int_equal(gguf_n_tensors(g), 24);
		assert_string_equal(gguf_arch(g), "qwen3");
		assert_int_equal(gguf_tensor(g, "token_embd.weight")->part, 0);
		assert_int_equal(gguf_tensor(g, "blk.1.ffn_down.weight")->part, 2);
		gguf_close(g);
	}
	assert_int_equal(rename(in_dir("s-00003-of-00003.gguf"), in_dir("x.gguf")), 0);
	assert_int_equal(gguf_open(in_dir("x.gguf"), &g, &err), -EINVAL);
	assert_non_null(strstr(err.text, "does not end in -00003-of-00003.gguf"));
	assert_int_equal(gguf_open(in_dir("s-00001-of-00003.gguf"), &g, &err), -ENOENT);
	assert_non_null(strstr(err.text, "is missing: part 3 of a model in 3 files"));
	assert_int_equal(link(in_dir("s-00002-of-00003.gguf"), in_dir("s-00003-of-00003.gguf")), 0);
	assert_int_equal(gguf_open(in_dir("s-00001-of-00003.gguf"), &g, &err), -EINVAL);
	assert_non_null(strstr(err.text, "says that it is part 2 of 3"));
}

static void what_is_no_file_is_said(void **state)
{
	struct hearth_err err = { 0 };
	struct gguf *g = NULL;

	assert_int_equal(gguf_open(in_dir("none.gguf"), &g, &err), -ENOENT);
	assert_non_null(strstr(err.text, "none.gguf cannot be opened: No such file"));
	assert_int_equal(gguf_open(dir, &g, &err), -EINVAL);
	assert_non_null(strstr(err.text, "not a file but a folder"));
	assert_int_equal(mkfifo(in_dir("pipe"), 0600), 0);
	assert_int_equal(gguf_open(in_dir("pipe"), &g, &err), -EINVAL);
	assert_int_equal(gguf_open("/dev/null", &g, &err), -EINVAL);
	assert_null(g);
}

/* A sparse terabyte with a header that claims everything must end soon and take no memory. */
static void a_huge_sparse_file_is_refused(void **state)
{
	struct hearth_err err = { 0 };
	struct synth_buf b = { 0 };
	struct gguf *g = NULL;
	int fd;

	synth_head(&b, 3, 0, 1);
	synth_str(&b, "k");
	synth_u32(&b, GGUF_ARR);
	synth_u32(&b, GGUF_U8);
	synth_u64(&b, 1ull << 39);
	assert_int_equal(synth_save(in_dir("sparse.gguf"), &b), 0);
	fd = open(in_dir("sparse.gguf"), O_WRONLY);
	if (ftruncate(fd, 1ll << 40) < 0) {
		close(fd);
		SKIP("this file system holds no sparse terabyte");
	}
	close(fd);
	assert_int_equal(gguf_open(in_dir("sparse.gguf"), &g, &err), -EFBIG);
	assert_non_null(strstr(err.text, "longer than 256 MiB"));
	free(b.p);
}

static int make_dir(void **state)
{
	return mkdtemp(dir) ? 0 : -1;
}

static int drop_dir(void **state)
{
	char cmd[64];

	snprintf(cmd, sizeof(cmd), "rm -rf %s", dir);
	return system(cmd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_right_file_opens),
		cmocka_unit_test(every_truncation_is_refused),
		cmocka_unit_test(joined_files_are_refused),
		cmocka_unit_test(other_files_are_told_apart),
		cmocka_unit_test(absurd_counts_are_refused),
		cmocka_unit_test(bad_values_are_refused),
		cmocka_unit_test(bad_tensors_are_refused),
		cmocka_unit_test(tensors_that_meet_are_refused),
		cmocka_unit_test(getters_say_what_is_wrong),
		cmocka_unit_test(a_needed_tensor_has_its_shape),
		cmocka_unit_test(synthetic_models_open),
		cmocka_unit_test(split_models_are_joined),
		cmocka_unit_test(what_is_no_file_is_said),
		cmocka_unit_test(a_huge_sparse_file_is_refused),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("gguf", tests, make_dir, drop_dir);
}
