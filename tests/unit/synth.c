// SPDX-License-Identifier: MIT
#include "synth.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gguf/quant.h"

/* -- bytes ------------------------------------------------------------------ */

void synth_put(struct synth_buf *b, const void *p, size_t n)
{
	if (b->cap - b->n < n) {
		b->cap = (b->n + n) * 2;
		b->p = realloc(b->p, b->cap);
		if (!b->p)
			abort();
	}
	if (p)
		memcpy(b->p + b->n, p, n);
	else
		memset(b->p + b->n, 0, n);
	b->n += n;
}

void synth_u32(struct synth_buf *b, uint32_t v)
{
	synth_put(b, &v, 4);
}

void synth_u64(struct synth_buf *b, uint64_t v)
{
	synth_put(b, &v, 8);
}

static void put_str(struct synth_buf *b, const char *s, size_t n)
{
	synth_u64(b, n);
	synth_put(b, s, n);
}

void synth_str(struct synth_buf *b, const char *s)
{
	put_str(b, s, strlen(s));
}

void synth_head(struct synth_buf *b, uint32_t version, uint64_t n_tensors, uint64_t n_kv)
{
	synth_put(b, "GGUF", 4);
	synth_u32(b, version);
	synth_u64(b, n_tensors);
	synth_u64(b, n_kv);
}

static void put_key(struct synth_buf *b, const char *key, uint32_t type)
{
	synth_str(b, key);
	synth_u32(b, type);
}

void synth_kv_u32(struct synth_buf *b, const char *key, uint32_t v)
{
	put_key(b, key, 4);
	synth_u32(b, v);
}

void synth_kv_f32(struct synth_buf *b, const char *key, float v)
{
	put_key(b, key, 6);
	synth_put(b, &v, 4);
}

void synth_kv_bool(struct synth_buf *b, const char *key, bool v)
{
	uint8_t x = v;

	put_key(b, key, 7);
	synth_put(b, &x, 1);
}

void synth_kv_str(struct synth_buf *b, const char *key, const char *v)
{
	put_key(b, key, 8);
	synth_str(b, v);
}

static void kv_u16(struct synth_buf *b, const char *key, uint16_t v)
{
	put_key(b, key, 2);
	synth_put(b, &v, 2);
}

void synth_tensor(struct synth_buf *b, const char *name, uint32_t n_dims, const uint64_t *ne,
		  uint32_t type, uint64_t offset)
{
	synth_str(b, name);
	synth_u32(b, n_dims);
	for (uint32_t d = 0; d < n_dims; d++)
		synth_u64(b, ne[d]);
	synth_u32(b, type);
	synth_u64(b, offset);
}

void synth_align(struct synth_buf *b, size_t align)
{
	synth_put(b, NULL, (align - b->n % align) % align);
}

int synth_save(const char *path, const struct synth_buf *b)
{
	FILE *f = fopen(path, "wb");
	int r = 0;

	if (!f)
		return -errno;
	if (b->n && fwrite(b->p, b->n, 1, f) != 1)
		r = -EIO;
	if (fclose(f) != 0 && r == 0)
		r = -errno;
	return r;
}

/* -- numbers ---------------------------------------------------------------- */

uint64_t synth_rand(uint64_t *state)
{
	uint64_t z = (*state += 0x9e3779b97f4a7c15ull); /* splitmix64 */

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ z >> 27) * 0x94d049bb133111ebull;
	return z ^ z >> 31;
}

float synth_normal(uint64_t *state)
{
	float s = 0;

	/* Sum of 12: close enough, and no libm whose last bit varies. */
	for (int i = 0; i < 12; i++)
		s += (float)(synth_rand(state) >> 40) * 0x1p-24f;
	return s - 6;
}

/* -- text ------------------------------------------------------------------- */

static void put_char(struct synth_buf *b, uint32_t c)
{
	char u[4];

	if (c < 0x80) {
		u[0] = (char)c;
		synth_put(b, u, 1);
	} else if (c < 0x800) {
		u[0] = (char)(0xc0 | c >> 6);
		u[1] = (char)(0x80 | (c & 63));
		synth_put(b, u, 2);
	} else if (c < 0x10000) {
		u[0] = (char)(0xe0 | c >> 12);
		u[1] = (char)(0x80 | (c >> 6 & 63));
		u[2] = (char)(0x80 | (c & 63));
		synth_put(b, u, 3);
	} else {
		u[0] = (char)(0xf0 | c >> 18);
		u[1] = (char)(0x80 | (c >> 12 & 63));
		u[2] = (char)(0x80 | (c >> 6 & 63));
		u[3] = (char)(0x80 | (c & 63));
		synth_put(b, u, 4);
	}
}

/* Ranges of code points that are all assigned. */
static const uint32_t script[][2] = {
	{ 'a', 'z' },       { 'a', 'z' },         { 'a', 'z' },       { 'A', 'Z' },
	{ 0xc0, 0xff },     { 0x100, 0x17f },     { 0x391, 0x3a1 },   { 0x3b1, 0x3c9 },
	{ 0x410, 0x44f },   { 0x5d0, 0x5ea },     { 0x621, 0x64a },   { 0x905, 0x939 },
	{ 0xe01, 0xe3a },   { 0x3041, 0x3096 },   { 0x30a1, 0x30fa }, { 0x4e00, 0x9fa5 },
	{ 0xac00, 0xd7a3 }, { 0x10400, 0x1044f },
};
/* Signs, marks, numbers and blanks. */
static const uint32_t sign[][2] = {
	{ 0x21, 0x2f },     { 0x3a, 0x40 },     { 0x5b, 0x60 },       { 0x7b, 0x7e },
	{ 0xa1, 0xbf },     { 0x300, 0x36f },   { 0x93e, 0x94d },     { 0x2010, 0x2027 },
	{ 0x2030, 0x205e }, { 0x20a0, 0x20b5 }, { 0x2190, 0x21ff },   { 0x2200, 0x22ff },
	{ 0x2460, 0x249b }, { 0x3001, 0x3011 }, { 0x1f600, 0x1f64f }, { 0x1f300, 0x1f320 },
	{ 0xb2, 0xb3 },     { 0x660, 0x669 },   { 0x2160, 0x2188 },
};
static const uint32_t blank[] = { ' ',  ' ',    ' ',    '\n', '\n',   '\t',  '\r',
				  0xa0, 0x2003, 0x3000, 0x85, 0x2028, 0x180e };
static const char *const snippet[] = {
	"'s",
	"'RE",
	"'ll",
	"'D",
	"'ve",
	" I'm",
	"don't",
	"\r\n",
	"\n\n\n",
	"    ",
	"3.5",
	"8:30",
	"https://a.b/c?d=e",
	"```c\nint x;\n```",
	"{\"name\": \"lamp\", \"on\": true}",
	"<|im_end|>",
	"<tool_call>",
	"</think>",
	"\xf0\x9f\x98\xb6"
	"\xe2\x80\x8d\xf0\x9f\x8c\xab\xef\xb8\x8f",
	"22,1 \xc2\xb0"
	"C",
	"$3.50",
	"a.m.",
	"",
	"......",
	"==",
	"-->",
};

#define ONE_OF(a) ((a)[synth_rand(&st) % (sizeof(a) / sizeof((a)[0]))])

static void put_run(struct synth_buf *b, const uint32_t range[2], uint64_t n, uint64_t *state)
{
	while (n--)
		put_char(b, range[0] + (uint32_t)(synth_rand(state) % (range[1] - range[0] + 1)));
}

void synth_text(struct synth_buf *b, uint64_t seed, size_t n)
{
	static const char *const word[] = {
		"the",    "light", "kitchen", "turn", "on",    "and",      "of",      "temperature",
		"Please", "what",  "is",      "room", "HELLO", "world",    "percent", "brightness",
		"to",     "set",   "bedroom", "it",   "was",   "schedule", "degrees",
	};
	size_t end = b->n + n;
	uint64_t st = seed;

	while (b->n < end) {
		uint64_t kind = synth_rand(&st) % 100;
		const char *s;

		if (kind < 55) {
			s = ONE_OF(word);
			synth_put(b, " ", synth_rand(&st) % 8 != 0);
			synth_put(b, s, strlen(s));
		} else if (kind < 70) {
			put_run(b, ONE_OF(script), 1 + synth_rand(&st) % 9, &st);
		} else if (kind < 77) {
			put_run(b, (uint32_t[]){ '0', '9' }, 1 + synth_rand(&st) % 7, &st);
		} else if (kind < 86) {
			put_run(b, ONE_OF(sign), 1 + synth_rand(&st) % 4, &st);
		} else if (kind < 93) {
			for (uint64_t k = synth_rand(&st) % 6; k; k--)
				put_char(b, ONE_OF(blank));
		} else {
			s = ONE_OF(snippet);
			synth_put(b, s, strlen(s));
		}
	}
}

/* -- vocabulary ------------------------------------------------------------- */

/* Learned from, so that words of a home come out as few tokens. */
static const char corpus[] =
	"turn on the light in the kitchen and turn off the lamp in the bedroom. "
	"set the living room lights to 30 percent. what is the temperature in the hall? "
	"turn up the heating to 21 degrees. open the blinds. close the garage door. "
	"is the front door locked? lock the front door. play some music in the kitchen. "
	"the light is on. the light is off now. I have set the temperature to 20 degrees. "
	"I turned on the lights in the living room and the kitchen. good night. "
	"{\"name\": \"HassTurnOn\", \"arguments\": {\"name\": \"lamp\", \"area\": \"kitchen\"}} "
	"{\"name\": \"HassLightSet\", \"arguments\": {\"brightness\": 30}} "
	"system user assistant tool you are a helpful assistant for a home";

#define MERGES 256

static const char *const control[] = {
	"<|endoftext|>", "<|im_start|>", "<|im_end|>", "<tool_call>",
	"</tool_call>",  "<think>",      "</think>",
};
#define CONTROLS (sizeof(control) / sizeof(control[0]))

struct vocab {
	char text[256 + MERGES][64];      /* raw bytes, no NUL inside: byte 0 is apart */
	size_t len[256 + MERGES];
	int pair[MERGES][2];
	int n_merges;
};

/* Learns merges over words "[ ]letters" or single other characters. Slow and obvious. */
static const struct vocab *vocab(void)
{
	static struct vocab v;
	static int word[sizeof(corpus)][64], len[sizeof(corpus)];
	int words = 0;

	if (v.n_merges)
		return &v;
	for (int i = 0; i < 256; i++) {
		v.text[i][0] = (char)i;
		v.len[i] = 1;
	}
	for (size_t i = 0; i < sizeof(corpus) - 1; words++) {
		int n = 0;

		word[words][n++] = (uint8_t)corpus[i++];
		if (word[words][0] == ' ' || (word[words][0] | 32) >= 'a')
			while ((corpus[i] | 32) >= 'a' && (corpus[i] | 32) <= 'z' && n < 63)
				word[words][n++] = (uint8_t)corpus[i++];
		len[words] = n;
	}
	while (v.n_merges < MERGES) {
		static int count[256 + MERGES][256 + MERGES];
		int best = 0, a = 0, b = 0, id = 256 + v.n_merges;

		memset(count, 0, sizeof(count));
		for (int w = 0; w < words; w++)
			for (int i = 0; i + 1 < len[w]; i++)
				count[word[w][i]][word[w][i + 1]]++;
		for (int x = 0; x < id; x++)
			for (int y = 0; y < id; y++)
				if (count[x][y] > best) {
					best = count[x][y];
					a = x;
					b = y;
				}
		if (best < 1)
			break;
		v.pair[v.n_merges][0] = a;
		v.pair[v.n_merges][1] = b;
		memcpy(v.text[id], v.text[a], v.len[a]);
		memcpy(v.text[id] + v.len[a], v.text[b], v.len[b]);
		v.len[id] = v.len[a] + v.len[b];
		v.n_merges++;
		for (int w = 0; w < words; w++)
			for (int i = 0; i + 1 < len[w]; i++)
				if (word[w][i] == a && word[w][i + 1] == b) {
					word[w][i] = id;
					memmove(&word[w][i + 1], &word[w][i + 2],
						(size_t)(len[w] - i - 2) * sizeof(int));
					len[w]--;
				}
	}
	return &v;
}

/* The printable stand-in of a byte in GPT-2 vocabularies, as UTF-8. */
static size_t stand_in(uint8_t c, char *out)
{
	uint32_t cp = c;

	if (!((c >= 33 && c <= 126) || (c >= 161 && c <= 172) || c >= 174)) {
		cp = 256;
		for (int i = 0; i < c; i++)
			cp += !((i >= 33 && i <= 126) || (i >= 161 && i <= 172) || i >= 174);
	}
	if (cp < 128) {
		out[0] = (char)cp;
		return 1;
	}
	out[0] = (char)(0xc0 | cp >> 6);
	out[1] = (char)(0x80 | (cp & 63));
	return 2;
}

static size_t spell(const struct vocab *v, int id, char *out)
{
	size_t o = 0;

	for (size_t i = 0; i < v->len[id]; i++)
		o += stand_in((uint8_t)v->text[id][i], out + o);
	return o;
}

uint32_t synth_vocab_size(void)
{
	return (uint32_t)(256 + vocab()->n_merges + (int)CONTROLS);
}

uint64_t synth_vocab(struct synth_buf *b)
{
	const struct vocab *v = vocab();
	uint32_t plain = (uint32_t)(256 + v->n_merges);
	char s[300];

	synth_kv_str(b, "tokenizer.ggml.model", "gpt2");
	synth_kv_str(b, "tokenizer.ggml.pre", "qwen2");
	put_key(b, "tokenizer.ggml.tokens", 9);
	synth_u32(b, 8);
	synth_u64(b, synth_vocab_size());
	for (uint32_t i = 0; i < plain; i++)
		put_str(b, s, spell(v, (int)i, s));
	for (size_t i = 0; i < CONTROLS; i++)
		synth_str(b, control[i]);
	put_key(b, "tokenizer.ggml.token_type", 9);
	synth_u32(b, 5);
	synth_u64(b, synth_vocab_size());
	for (uint32_t i = 0; i < synth_vocab_size(); i++) {
		/* Qwen's files: tool_call and think are user-defined (4), the rest control (3). */
		uint32_t t = i < plain ? 1 : i < plain + 3 ? 3 : 4;

		synth_u32(b, t);
	}
	put_key(b, "tokenizer.ggml.merges", 9);
	synth_u32(b, 8);
	synth_u64(b, (uint64_t)v->n_merges);
	for (int i = 0; i < v->n_merges; i++) {
		size_t n = spell(v, v->pair[i][0], s);

		s[n++] = ' ';
		n += spell(v, v->pair[i][1], s + n);
		put_str(b, s, n);
	}
	synth_kv_u32(b, "tokenizer.ggml.eos_token_id", plain + 2);
	synth_kv_u32(b, "tokenizer.ggml.padding_token_id", plain);
	synth_kv_bool(b, "tokenizer.ggml.add_bos_token", false);
	return 8;
}

/* -- models ----------------------------------------------------------------- */

void synth_defaults(struct synth_opts *ret)
{
	*ret = (struct synth_opts){
		.arch = "qwen3",
		.layers = 2,
		.d_model = 128,
		.d_ff = 256,
		.heads = 4,
		.kv_heads = 2,
		.head_dim = 32,
		.ctx = 512,
		.type = QUANT_Q8_0,
		.embd_type = QUANT_Q8_0,
		.tied = true,
		.seed = 1,
		.parts = 1,
	};
}

struct plan {
	char name[64];
	uint32_t n_dims;
	uint64_t ne[2];
	uint32_t type;
	uint64_t nbytes;
	float mean, sigma;
};

static void plan_add(struct plan **list, size_t *n, const char *name, uint64_t in, uint64_t out,
		     uint32_t type, float mean, float sigma)
{
	struct plan *p;
	uint64_t row = 0;

	*list = realloc(*list, (*n + 1) * sizeof(**list));
	if (!*list)
		abort();
	p = &(*list)[(*n)++];
	*p = (struct plan){ .n_dims = out ? 2 : 1, .ne = { in, out ? out : 1 }, .type = type,
			    .mean = mean, .sigma = sigma };
	snprintf(p->name, sizeof(p->name), "%s", name);
	if (quant_row_bytes(type, in, &row) == 0)
		p->nbytes = row * p->ne[1];
}

static size_t plan_model(const struct synth_opts *o, struct plan **ret)
{
	uint64_t d = o->d_model, q = (uint64_t)o->heads * o->head_dim,
		 kv = (uint64_t)o->kv_heads * o->head_dim;
	float sd = 1 / sqrtf((float)d), sf = 1 / sqrtf((float)o->d_ff), sq = 1 / sqrtf((float)q);
	bool qwen3 = strcmp(o->arch, "qwen3") == 0;
	char s[80];
	size_t n = 0;

	plan_add(ret, &n, "token_embd.weight", d, synth_vocab_size(), o->embd_type, 0, 1);
	plan_add(ret, &n, "output_norm.weight", d, 0, QUANT_F32, 1, 0.1f);
	if (!o->tied)
		plan_add(ret, &n, "output.weight", d, synth_vocab_size(), o->embd_type, 0, sd);
#define BLK(what) (snprintf(s, sizeof(s), "blk.%u." what, i), s)
	for (uint32_t i = 0; i < o->layers; i++) {
		plan_add(ret, &n, BLK("attn_norm.weight"), d, 0, QUANT_F32, 1, 0.1f);
		plan_add(ret, &n, BLK("attn_q.weight"), d, q, o->type, 0, sd);
		plan_add(ret, &n, BLK("attn_k.weight"), d, kv, o->type, 0, sd);
		plan_add(ret, &n, BLK("attn_v.weight"), d, kv, o->type, 0, sd);
		if (qwen3) {
			plan_add(ret, &n, BLK("attn_q_norm.weight"), o->head_dim, 0, QUANT_F32, 1,
				 0.1f);
			plan_add(ret, &n, BLK("attn_k_norm.weight"), o->head_dim, 0, QUANT_F32, 1,
				 0.1f);
		} else {
			plan_add(ret, &n, BLK("attn_q.bias"), q, 0, QUANT_F32, 0, 0.1f);
			plan_add(ret, &n, BLK("attn_k.bias"), kv, 0, QUANT_F32, 0, 0.1f);
			plan_add(ret, &n, BLK("attn_v.bias"), kv, 0, QUANT_F32, 0, 0.1f);
		}
		plan_add(ret, &n, BLK("attn_output.weight"), q, d, o->type, 0, sq);
		plan_add(ret, &n, BLK("ffn_norm.weight"), d, 0, QUANT_F32, 1, 0.1f);
		plan_add(ret, &n, BLK("ffn_gate.weight"), d, o->d_ff, o->type, 0, sd);
		plan_add(ret, &n, BLK("ffn_up.weight"), d, o->d_ff, o->up_type ? o->up_type : o->type, 0, sd);
		plan_add(ret, &n, BLK("ffn_down.weight"), o->d_ff, d, o->type, 0, sf);
	}
#undef BLK
	return n;
}

static uint64_t put_arch(struct synth_buf *b, const struct synth_opts *o)
{
	char s[100];

#define ARCH(what) (snprintf(s, sizeof(s), "%s." what, o->arch), s)
	synth_kv_str(b, "general.architecture", o->arch);
	synth_kv_str(b, "general.name", "synthetic");
	synth_kv_u32(b, ARCH("block_count"), o->layers);
	synth_kv_u32(b, ARCH("context_length"), o->ctx);
	synth_kv_u32(b, ARCH("embedding_length"), o->d_model);
	synth_kv_u32(b, ARCH("feed_forward_length"), o->d_ff);
	synth_kv_u32(b, ARCH("attention.head_count"), o->heads);
	synth_kv_u32(b, ARCH("attention.head_count_kv"), o->kv_heads);
	synth_kv_u32(b, ARCH("attention.key_length"), o->head_dim);
	synth_kv_u32(b, ARCH("attention.value_length"), o->head_dim);
	synth_kv_f32(b, ARCH("attention.layer_norm_rms_epsilon"), 1e-6f);
	synth_kv_f32(b, ARCH("rope.freq_base"), 1e6f);
#undef ARCH
	if (o->chat_template)
		synth_kv_str(b, "tokenizer.chat_template", o->chat_template);
	return o->chat_template ? 13 : 12;
}

static int put_data(struct synth_buf *b, const struct plan *p, uint64_t seed)
{
	uint64_t n = p->ne[0] * p->ne[1], state = seed;
	float *x = malloc(n * sizeof(*x));
	size_t at;
	int r;

	if (!x)
		return -ENOMEM;
	if (!p->nbytes) {
		free(x);
		return -EINVAL; /* rows that are no whole blocks of the type */
	}
	for (uint64_t i = 0; i < n; i++)
		x[i] = p->mean + p->sigma * synth_normal(&state);
	synth_align(b, 32);
	at = b->n;
	synth_put(b, NULL, p->nbytes);
	r = quant_from_f32(p->type, x, b->p + at, n);
	free(x);
	return r;
}

static int save_part(const char *path, const struct synth_opts *o, const struct plan *all,
		     size_t n_all, uint32_t part)
{
	size_t from = n_all * part / o->parts, to = n_all * (part + 1) / o->parts;
	struct synth_buf head = { 0 }, kv = { 0 };
	uint64_t n_kv = 0, off = 0;
	char name[512];
	int r = 0;

	if (part == 0) {
		n_kv += put_arch(&kv, o);
		n_kv += synth_vocab(&kv);
	}
	snprintf(name, sizeof(name), "%s", path);
	if (o->parts > 1) {
		kv_u16(&kv, "split.no", (uint16_t)part);
		kv_u16(&kv, "split.count", (uint16_t)o->parts);
		synth_kv_u32(&kv, "split.tensors.count", (uint32_t)n_all);
		n_kv += 3;
		snprintf(name, sizeof(name), "%.*s-%05u-of-%05u.gguf", (int)strlen(path) - 5, path,
			 part + 1, o->parts);
	}
	synth_head(&head, 3, to - from, n_kv);
	synth_put(&head, kv.p, kv.n);
	for (size_t i = from; i < to; i++) {
		synth_tensor(&head, all[i].name, all[i].n_dims, all[i].ne, all[i].type, off);
		off = (off + all[i].nbytes + 31) / 32 * 32;
	}
	synth_align(&head, 32);
	for (size_t i = from; i < to && r == 0; i++)
		r = put_data(&head, &all[i], o->seed * 1000003 + i);
	synth_align(&head, 32);
	if (r == 0)
		r = synth_save(name, &head);
	free(head.p);
	free(kv.p);
	return r;
}

int synth_model(const char *path, const struct synth_opts *o)
{
	struct plan *all = NULL;
	size_t n = plan_model(o, &all);
	int r = 0;

	for (uint32_t part = 0; part < o->parts && r == 0; part++)
		r = save_part(path, o, all, n, part);
	free(all);
	return r;
}
