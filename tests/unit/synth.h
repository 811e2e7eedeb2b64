/* SPDX-License-Identifier: MIT */
/*
 * GGUF files made by the tests themselves: a writer for any file, right or
 * wrong, and tiny models of real architectures with seeded random weights and
 * a small vocabulary of their own.
 */
#ifndef HEARTH_TESTS_SYNTH_H
#define HEARTH_TESTS_SYNTH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* -- bytes ------------------------------------------------------------------ */

struct synth_buf {               /* start with { 0 }, free(b.p) */
	uint8_t *p;
	size_t n, cap;
};

void synth_put(struct synth_buf *b, const void *p, size_t n); /* aborts without memory */
void synth_u32(struct synth_buf *b, uint32_t v);
void synth_u64(struct synth_buf *b, uint64_t v);
void synth_str(struct synth_buf *b, const char *s);           /* u64 length, bytes */
void synth_head(struct synth_buf *b, uint32_t version, uint64_t n_tensors, uint64_t n_kv);
void synth_kv_u32(struct synth_buf *b, const char *key, uint32_t v);
void synth_kv_f32(struct synth_buf *b, const char *key, float v);
void synth_kv_bool(struct synth_buf *b, const char *key, bool v);
void synth_kv_str(struct synth_buf *b, const char *key, const char *v);
void synth_tensor(struct synth_buf *b, const char *name, uint32_t n_dims, const uint64_t *ne,
		  uint32_t type, uint64_t offset);
void synth_align(struct synth_buf *b, size_t align);
int synth_save(const char *path, const struct synth_buf *b);  /* 0 or -errno */

/* -- models ----------------------------------------------------------------- */

struct synth_opts {
	const char *arch;        /* "qwen3" or "qwen2" */
	uint32_t layers, d_model, d_ff, heads, kv_heads, head_dim, ctx;
	uint32_t type;           /* enum quant_id of the matrices */
	uint32_t embd_type;      /* of token_embd and output */
	uint32_t up_type;        /* of ffn_up; 0: .type */
	bool tied;               /* no output.weight */
	uint64_t seed;
	uint32_t parts;          /* 1, or a split model: PATH must end in ".gguf" */
	const char *chat_template; /* NULL: none */
};

/* qwen3, 2 layers, 128 wide, 4 heads (2 KV) of 32, Q8_0, tied, one file. */
void synth_defaults(struct synth_opts *ret);

/*
 * Writes the model. With parts > 1 the files are PATH less ".gguf" and
 * "-00001-of-0000N.gguf", and so on. 0 or -errno.
 */
int synth_model(const char *path, const struct synth_opts *o);

/*
 * The vocabulary alone, as keys: 256 bytes, merges learned from a text in
 * here, and the control tokens of the Qwen family. Returns the number of keys.
 */
uint64_t synth_vocab(struct synth_buf *b);
uint32_t synth_vocab_size(void);

/*
 * About @n bytes of text as people type it and as they do not: words, numbers,
 * contractions, runs of blanks and signs, and letters, marks and emoji of many
 * scripts (of blocks whose code points have not changed for long). UTF-8.
 */
void synth_text(struct synth_buf *b, uint64_t seed, size_t n);

/* A seeded generator, the same on every machine. */
uint64_t synth_rand(uint64_t *state);
float synth_normal(uint64_t *state);

#endif
