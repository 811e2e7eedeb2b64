// SPDX-License-Identifier: MIT
/*
 * An ONNX file is a protobuf message: fields of (number << 3 | wire type),
 * where type 0 is a varint, 1 and 5 are 8 and 4 bytes, and 2 is a length and
 * that many bytes. All that is wanted of it lies at ModelProto.graph (7)
 * -> GraphProto.initializer (5) -> TensorProto {dims 1, data_type 2,
 * float_data 4, name 8, raw_data 9}.
 */
#include "voice/silero_file.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "voice/silero.h"

#define MAGIC "hearth-silero-1\n"
#define MAGIC_LEN 16

const struct silero_tensor silero_tensors[SILERO_TENSORS] = {
	[SILERO_STFT]    = { "model.stft.forward_basis_buffer", { 258, 1, 256 }, 258 * 256 },
	[SILERO_CONV0_W] = { "model.encoder.0.reparam_conv.weight", { 128, 129, 3 }, 128 * 129 * 3 },
	[SILERO_CONV0_B] = { "model.encoder.0.reparam_conv.bias", { 128 }, 128 },
	[SILERO_CONV1_W] = { "model.encoder.1.reparam_conv.weight", { 64, 128, 3 }, 64 * 128 * 3 },
	[SILERO_CONV1_B] = { "model.encoder.1.reparam_conv.bias", { 64 }, 64 },
	[SILERO_CONV2_W] = { "model.encoder.2.reparam_conv.weight", { 64, 64, 3 }, 64 * 64 * 3 },
	[SILERO_CONV2_B] = { "model.encoder.2.reparam_conv.bias", { 64 }, 64 },
	[SILERO_CONV3_W] = { "model.encoder.3.reparam_conv.weight", { 128, 64, 3 }, 128 * 64 * 3 },
	[SILERO_CONV3_B] = { "model.encoder.3.reparam_conv.bias", { 128 }, 128 },
	[SILERO_RNN_WI]  = { "model.decoder.rnn.weight_ih", { 512, 128 }, 512 * 128 },
	[SILERO_RNN_WH]  = { "model.decoder.rnn.weight_hh", { 512, 128 }, 512 * 128 },
	[SILERO_RNN_BI]  = { "model.decoder.rnn.bias_ih", { 512 }, 512 },
	[SILERO_RNN_BH]  = { "model.decoder.rnn.bias_hh", { 512 }, 512 },
	[SILERO_OUT_W]   = { "model.decoder.decoder.2.weight", { 1, 128, 1 }, 128 },
	[SILERO_OUT_B]   = { "model.decoder.decoder.2.bias", { 1 }, 1 },
};

struct span {
	const uint8_t *p;
	size_t n;
};

struct field {
	unsigned number;
	unsigned type;
	uint64_t value;     /* of types 0, 1, 5 */
	struct span bytes;  /* of type 2 */
};

static bool get_varint(struct span *s, uint64_t *ret)
{
	uint64_t v = 0;

	for (int shift = 0; shift < 64 && s->n > 0; shift += 7) {
		uint8_t b = *s->p++;

		s->n--;
		v |= (uint64_t)(b & 0x7f) << shift;
		if (!(b & 0x80)) {
			*ret = v;
			return true;
		}
	}
	return false;
}

/* False at the end and at what is no protobuf; *ret_bad tells which. */
static bool next_field(struct span *s, struct field *f, bool *ret_bad)
{
	uint64_t key, n = 0;

	if (s->n == 0)
		return false;
	*ret_bad = true;
	if (!get_varint(s, &key) || key >> 3 > 1u << 28)
		return false;
	f->number = (unsigned)(key >> 3);
	f->type = key & 7;
	if (f->type == 0) {
		if (!get_varint(s, &f->value))
			return false;
	} else if (f->type == 1 || f->type == 5) {
		n = f->type == 1 ? 8 : 4;
		if (n > s->n)
			return false;
		f->value = 0;
	} else if (f->type == 2) {
		if (!get_varint(s, &n) || n > s->n)
			return false;
		f->bytes = (struct span){ s->p, (size_t)n };
	} else {
		return false;
	}
	s->p += n;
	s->n -= (size_t)n;
	*ret_bad = false;
	return true;
}

struct tensor {
	struct span name, data;
	int dims[4];
	int n_dims;
	uint64_t type;
};

static bool add_dim(struct tensor *t, uint64_t d)
{
	if (t->n_dims == 4 || d > 1u << 24)
		return false;
	t->dims[t->n_dims++] = (int)d;
	return true;
}

static bool read_tensor(struct span s, struct tensor *t)
{
	struct field f;
	bool bad = false;

	*t = (struct tensor){ 0 };
	while (next_field(&s, &f, &bad)) {
		uint64_t d;

		if (f.number == 1 && f.type == 0) {
			if (!add_dim(t, f.value))
				return false;
		} else if (f.number == 1 && f.type == 2) {
			while (f.bytes.n > 0)
				if (!get_varint(&f.bytes, &d) || !add_dim(t, d))
					return false;
		} else if (f.number == 2 && f.type == 0) {
			t->type = f.value;
		} else if (f.number == 8 && f.type == 2) {
			t->name = f.bytes;
		} else if ((f.number == 9 || f.number == 4) && f.type == 2) {
			t->data = f.bytes;
		}
	}
	return !bad;
}

static bool fits(const struct tensor *t, const struct silero_tensor *want)
{
	for (int i = 0; i < 3; i++)
		if ((i < t->n_dims ? t->dims[i] : 0) != want->dims[i])
			return false;
	return t->n_dims <= 3 && t->type == 1 && t->data.n == want->n * sizeof(float);
}

static int collect(struct span graph, struct span found[SILERO_TENSORS], struct hearth_err *err)
{
	struct field f;
	bool bad = false;

	while (next_field(&graph, &f, &bad)) {
		struct tensor t;

		if (f.number != 5 || f.type != 2)
			continue;
		if (!read_tensor(f.bytes, &t))
			return err_set(err, -EBADMSG, "the voice detector's ONNX file has a tensor that cannot be read");
		for (int i = 0; i < SILERO_TENSORS; i++) {
			const struct silero_tensor *want = &silero_tensors[i];

			if (t.name.n != strlen(want->name) || memcmp(t.name.p, want->name, t.name.n))
				continue;
			if (!fits(&t, want))
				return err_set(err, -EBADMSG, "the voice detector's ONNX file has %s in another shape", want->name);
			found[i] = t.data;
		}
	}
	if (bad)
		return err_set(err, -EBADMSG, "the voice detector's ONNX file is damaged");
	return 0;
}

static uint64_t checksum(const void *data, size_t n)
{
	const uint8_t *p = data;
	uint64_t h = 0xcbf29ce484222325u;

	for (size_t i = 0; i < n; i++)
		h = (h ^ p[i]) * 0x100000001b3u;
	return h;
}

static size_t total_bytes(void)
{
	size_t n = 0;

	for (int i = 0; i < SILERO_TENSORS; i++)
		n += silero_tensors[i].n * sizeof(float);
	return n;
}

static int write_file(const char *path, const uint8_t *data, size_t n, struct hearth_err *err)
{
	uint64_t sum = checksum(data, n);
	char *temp;
	FILE *f;
	int fd, rc = 0;

	if (asprintf(&temp, "%s.XXXXXX", path) < 0)
		return err_set(err, -ENOMEM, "no memory to write %s", path);
	fd = mkstemp(temp);
	if (fd >= 0 && fchmod(fd, 0644))
		errno = 0; /* then only this user can read it */
	f = fd < 0 ? NULL : fdopen(fd, "wb");
	if (!f) {
		rc = err_set(err, -errno, "%s: cannot be written: %s", path, strerror(errno));
		if (fd >= 0) {
			close(fd);
			unlink(temp);
		}
		free(temp);
		return rc;
	}
	if (fwrite(MAGIC, 1, MAGIC_LEN, f) != MAGIC_LEN || fwrite(&sum, sizeof(sum), 1, f) != 1 ||
	    fwrite(data, 1, n, f) != n || fflush(f))
		rc = -errno;
	if (fclose(f) && !rc)
		rc = -errno;
	if (!rc && rename(temp, path))
		rc = -errno;
	if (rc) {
		unlink(temp);
		err_set(err, rc, "%s: cannot be written: %s", path, strerror(-rc));
	}
	free(temp);
	return rc;
}

int silero_convert(const void *onnx, size_t size, const char *path, struct hearth_err *err)
{
	struct span model = { onnx, size }, found[SILERO_TENSORS] = { { 0 } };
	struct field f;
	uint8_t *data, *p;
	bool bad = false;
	int rc = 0;

	while (!rc && next_field(&model, &f, &bad))
		if (f.number == 7 && f.type == 2)
			rc = collect(f.bytes, found, err);
	if (rc)
		return rc;
	if (bad)
		return err_set(err, -EBADMSG, "not an ONNX file");
	for (int i = 0; i < SILERO_TENSORS; i++)
		if (!found[i].p)
			return err_set(err, -EBADMSG, "not the voice detector's ONNX file: it has no %s",
				       silero_tensors[i].name);
	data = p = malloc(total_bytes());
	if (!data)
		return err_set(err, -ENOMEM, "no memory to convert the voice detector");
	for (int i = 0; i < SILERO_TENSORS; i++) {
		memcpy(p, found[i].p, found[i].n);
		p += found[i].n;
	}
	rc = write_file(path, data, total_bytes(), err);
	free(data);
	return rc;
}

int silero_file_read(const char *path, float **ret, struct hearth_err *err)
{
	FILE *f = fopen(path, "rbe");
	size_t n = total_bytes();
	char magic[MAGIC_LEN];
	uint64_t sum;
	float *data;
	int rc = 0;

	if (!f)
		return err_set(err, -errno, "%s: %s", path, strerror(errno));
	data = malloc(n);
	if (!data)
		rc = err_set(err, -ENOMEM, "no memory for the voice detector");
	else if (fread(magic, 1, MAGIC_LEN, f) != MAGIC_LEN || memcmp(magic, MAGIC, MAGIC_LEN))
		rc = err_set(err, -EBADMSG, "%s: not a file of the voice detector's weights", path);
	else if (fread(&sum, sizeof(sum), 1, f) != 1 || fread(data, 1, n, f) != n || fgetc(f) != EOF ||
		 checksum(data, n) != sum)
		rc = err_set(err, -EBADMSG, "%s: damaged; run the set-up again", path);
	fclose(f);
	if (rc)
		free(data);
	else
		*ret = data;
	return rc;
}
