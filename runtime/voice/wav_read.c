// SPDX-License-Identifier: MIT
/*
 * A WAV is a list of chunks: id, size, bytes, padded to even. `fmt ` says what
 * the samples are, `data` holds them; RF64 moves the sizes over 4 GiB to
 * `ds64`; RIFX is RIFF with the bytes the other way round. libsndfile never
 * sees the header: it is given the bytes of `data` as raw samples of a format
 * that was checked here.
 */
#include "voice/wav.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <sndfile.h>

#define MAX_CHANNELS 64
#define MAX_RATE     768000
#define MAX_CHUNKS   4096 /* before data; a real file has fewer than twenty */
#define BLOCK        1024 /* frames decoded at a time */

enum {
	TAG_PCM = 1,
	TAG_FLOAT = 3,
	TAG_ALAW = 6,
	TAG_ULAW = 7,
	TAG_EXTENSIBLE = 0xfffe,
};

struct wav_reader {
	char *name;
	int fd;                 /* -1: memory */
	bool own_fd;
	bool seekable;
	const uint8_t *mem;
	int64_t size;           /* of the whole file, -1: a pipe */
	int64_t pos;            /* of the next byte read */
	int64_t data_at;        /* where the samples begin */
	int64_t data_size;      /* bytes of samples, -1: until the file ends */
	int frame_bytes;
	bool big_endian;
	bool io_failed;         /* a read() failed: errno in io_errno */
	int io_errno;
	struct audio_info info;
	int64_t frames_read;
	SNDFILE *snd;
	float *block;           /* BLOCK * channels */
};

static ssize_t read_some(struct wav_reader *r, void *buf, size_t n)
{
	ssize_t got;

	if (r->mem) {
		int64_t left = r->size - r->pos;

		got = left <= 0 ? 0 : (ssize_t)(n < (uint64_t)left ? n : (uint64_t)left);
		if (got > 0)
			memcpy(buf, r->mem + r->pos, (size_t)got);
	} else {
		do {
			got = read(r->fd, buf, n);
		} while (got < 0 && errno == EINTR);
		if (got < 0) {
			r->io_failed = true;
			r->io_errno = errno;
			return -errno;
		}
	}
	r->pos += got;
	return got;
}

/* All @n bytes, or fewer only at the end. */
static ssize_t read_full(struct wav_reader *r, void *buf, size_t n)
{
	size_t done = 0;

	while (done < n) {
		ssize_t got = read_some(r, (char *)buf + done, n - done);

		if (got < 0)
			return got;
		if (got == 0)
			break;
		done += (size_t)got;
	}
	return (ssize_t)done;
}

static int skip_to(struct wav_reader *r, int64_t to)
{
	char bin[4096];

	if (r->mem) {
		r->pos = to < r->size ? to : r->size;
		return 0;
	}
	if (r->seekable) {
		if (lseek(r->fd, to, SEEK_SET) < 0)
			return -errno;
		r->pos = to;
		return 0;
	}
	while (r->pos < to) {
		int64_t left = to - r->pos;
		ssize_t got = read_some(r, bin, left < (int64_t)sizeof(bin) ? (size_t)left : sizeof(bin));

		if (got < 0)
			return (int)got;
		if (got == 0)
			break;
	}
	return 0;
}

static uint32_t get32(const struct wav_reader *r, const uint8_t *p)
{
	return r->big_endian ? (uint32_t)p[0] << 24 | p[1] << 16 | p[2] << 8 | p[3]
			     : (uint32_t)p[3] << 24 | p[2] << 16 | p[1] << 8 | p[0];
}

static uint16_t get16(const struct wav_reader *r, const uint8_t *p)
{
	return (uint16_t)(r->big_endian ? p[0] << 8 | p[1] : p[1] << 8 | p[0]);
}

static int broken(struct wav_reader *r, struct hearth_err *err, const char *what)
{
	if (r->io_failed)
		return err_set(err, -r->io_errno, "%s: cannot be read: %s", r->name, strerror(r->io_errno));
	return err_set(err, -EBADMSG, "%s: a broken WAV file: %s (at byte %lld)", r->name, what,
		       (long long)r->pos);
}

static int parse_fmt(struct wav_reader *r, const uint8_t *p, size_t n, int *ret_sf,
		     struct hearth_err *err)
{
	/* The last 14 bytes of every WAVE_FORMAT_EXTENSIBLE sub-format. */
	static const uint8_t guid_tail[14] = { 0, 0, 0, 0, 0x10, 0, 0x80, 0, 0, 0xaa, 0, 0x38, 0x9b, 0x71 };
	int tag = get16(r, p), channels = get16(r, p + 2);
	uint32_t rate = get32(r, p + 4);
	int align = get16(r, p + 12), bits = get16(r, p + 14);
	const char *kind = "PCM";
	int sf = 0;

	if (tag == TAG_EXTENSIBLE) {
		if (n < 40)
			return broken(r, err, "its extended format chunk is too short");
		if (memcmp(p + 26, guid_tail, sizeof(guid_tail)))
			return err_set(err, -ENOTSUP, "%s: a WAV with a sub-format that is not known", r->name);
		tag = get16(r, p + 24);
	}
	if (channels < 1 || channels > MAX_CHANNELS)
		return err_set(err, channels ? -ENOTSUP : -EBADMSG,
			       "%s: %d channels; 1 to %d can be read", r->name, channels, MAX_CHANNELS);
	if (rate < 1 || rate > MAX_RATE)
		return err_set(err, rate ? -ENOTSUP : -EBADMSG,
			       "%s: a sample rate of %u Hz; 1 to %d can be read", r->name, rate, MAX_RATE);
	if (tag == TAG_PCM)
		sf = bits == 8 ? SF_FORMAT_PCM_U8 : bits == 16 ? SF_FORMAT_PCM_16 :
		     bits == 24 ? SF_FORMAT_PCM_24 : bits == 32 ? SF_FORMAT_PCM_32 : 0;
	else if (tag == TAG_FLOAT)
		sf = bits == 32 ? SF_FORMAT_FLOAT : bits == 64 ? SF_FORMAT_DOUBLE : 0, kind = "float";
	else if (tag == TAG_ALAW)
		sf = bits == 8 ? SF_FORMAT_ALAW : 0, kind = "A-law";
	else if (tag == TAG_ULAW)
		sf = bits == 8 ? SF_FORMAT_ULAW : 0, kind = "mu-law";
	if (!sf)
		return err_set(err, -ENOTSUP, "%s: a WAV of codec 0x%04x with %d bits; PCM (8, 16, 24, 32 bits), float (32, 64), A-law and mu-law can be read",
			       r->name, tag, bits);
	if (align != channels * bits / 8)
		return broken(r, err, "its frame size does not fit its channels and bits");
	r->frame_bytes = align;
	r->info.rate = (int)rate;
	r->info.channels = channels;
	snprintf(r->info.format, sizeof(r->info.format), "%d-bit %s", bits, kind);
	*ret_sf = SF_FORMAT_RAW | sf | (r->big_endian ? SF_ENDIAN_BIG : SF_ENDIAN_LITTLE);
	return 0;
}

/* Walks the chunks up to `data` and leaves the reader at its first sample. */
static int scan(struct wav_reader *r, int *ret_sf, struct hearth_err *err)
{
	uint8_t h[12], fmt[40];
	int64_t riff_end, ds64_data = -1;
	bool have_fmt = false, rf64;
	ssize_t got;
	int rc;

	got = read_full(r, h, sizeof(h));
	if (got < 0)
		return broken(r, err, "");
	if (got == 0)
		return err_set(err, -EBADMSG, "%s: an empty file, not a WAV", r->name);
	rf64 = got >= 4 && !memcmp(h, "RF64", 4);
	r->big_endian = got >= 4 && !memcmp(h, "RIFX", 4);
	if (got < 12 || (memcmp(h, "RIFF", 4) && !rf64 && !r->big_endian) || memcmp(h + 8, "WAVE", 4))
		return err_set(err, -EBADMSG, "%s: not a WAV file", r->name);
	riff_end = 8 + (int64_t)get32(r, h + 4);

	for (int chunks = 0; ; chunks++) {
		int64_t size, next;

		got = read_full(r, h, 8);
		if (got < 8)
			return broken(r, err, have_fmt ? "it ends before its samples" : "it ends within its header");
		size = get32(r, h + 4);
		if (!memcmp(h, "data", 4))
			break;
		if (chunks == MAX_CHUNKS)
			return broken(r, err, "no samples among its first 4096 chunks");
		next = r->pos + size + (size & 1);
		if (r->size >= 0 && r->pos + size > r->size)
			return broken(r, err, "a chunk of its header is larger than the file");
		if (!memcmp(h, "fmt ", 4)) {
			size_t n = size < (int64_t)sizeof(fmt) ? (size_t)size : sizeof(fmt);

			if (have_fmt)
				return broken(r, err, "it has two format chunks");
			if (n < 16)
				return broken(r, err, "its format chunk is too short");
			if (read_full(r, fmt, n) < (ssize_t)n)
				return broken(r, err, "it ends within its header");
			rc = parse_fmt(r, fmt, n, ret_sf, err);
			if (rc)
				return rc;
			have_fmt = true;
		} else if (rf64 && !memcmp(h, "ds64", 4)) {
			uint8_t d[16];

			if (size < 24 || read_full(r, d, sizeof(d)) < (ssize_t)sizeof(d))
				return broken(r, err, "its ds64 chunk is too short");
			if (d[15] & 0x80)
				return broken(r, err, "its ds64 chunk says a size that cannot be");
			ds64_data = (int64_t)((uint64_t)get32(r, d + 12) << 32 | get32(r, d + 8));
		}
		if (skip_to(r, next) < 0)
			return broken(r, err, "");
	}
	if (!have_fmt)
		return broken(r, err, "its samples come before its format");
	r->data_at = r->pos;
	r->data_size = get32(r, h + 4);
	if (rf64 && r->data_size == UINT32_MAX && ds64_data >= 0)
		r->data_size = ds64_data;
	/*
	 * Writers that stream do not know the size: they leave all ones, or
	 * nothing, and the file goes on past what the RIFF header covers.
	 */
	if (r->data_size >= UINT32_MAX - 4096 && ds64_data < 0)
		r->data_size = -1;
	if (r->data_size == 0 && r->size != r->data_at && riff_end <= r->data_at)
		r->data_size = -1;
	return 0;
}

static int measure(struct wav_reader *r, struct hearth_err *err)
{
	double per_second = (double)r->info.rate * r->frame_bytes;

	if (r->size >= 0) {
		int64_t there = r->size - r->data_at;

		if (r->data_size < 0)
			r->data_size = there - there % r->frame_bytes; /* a stream that was stopped */
		if (r->data_size > there)
			return err_set(err, -EBADMSG, "%s: cut off: its header promises %.2f s of sound (%lld bytes), the file holds %.2f s (%lld bytes)",
				       r->name, (double)r->data_size / per_second, (long long)r->data_size, (double)there / per_second, (long long)there);
	}
	if (r->data_size >= 0 && r->data_size % r->frame_bytes)
		return broken(r, err, "its samples end within a frame");
	if (r->data_size == 0)
		return err_set(err, -ENODATA, "%s: holds no samples", r->name);
	r->info.frames = r->data_size < 0 ? -1 : r->data_size / r->frame_bytes;
	return 0;
}

/* -- what libsndfile sees: the data chunk as a file of raw samples ----------- */

static sf_count_t vio_length(void *user)
{
	struct wav_reader *r = user;

	return r->data_size >= 0 ? r->data_size : INT64_MAX / 2;
}

static sf_count_t vio_seek(sf_count_t offset, int whence, void *user)
{
	struct wav_reader *r = user;
	int64_t at = r->pos - r->data_at;

	if (whence == SEEK_SET)
		at = offset;
	else if (whence == SEEK_CUR)
		at += offset;
	else
		at = vio_length(user) + offset;
	/* On a pipe it asks only for the place where it is; anything else fails its read. */
	if (at != r->pos - r->data_at && r->seekable && skip_to(r, r->data_at + at) < 0)
		return -1;
	return r->pos - r->data_at;
}

static sf_count_t vio_read(void *buf, sf_count_t n, void *user)
{
	struct wav_reader *r = user;
	int64_t at = r->pos - r->data_at;
	ssize_t got;

	if (r->data_size >= 0 && n > r->data_size - at)
		n = r->data_size - at;
	got = n <= 0 ? 0 : read_full(r, buf, (size_t)n);
	return got < 0 ? 0 : got;
}

static sf_count_t vio_tell(void *user)
{
	struct wav_reader *r = user;

	return r->pos - r->data_at;
}

static int open_source(struct wav_reader *r, const char *path, struct hearth_err *err)
{
	struct stat st;

	if (r->mem)
		return 0;
	if (!strcmp(path, "-")) {
		r->fd = STDIN_FILENO;
	} else {
		r->fd = open(path, O_RDONLY | O_CLOEXEC);
		if (r->fd < 0)
			return err_set(err, -errno, "%s: %s", path, strerror(errno));
		r->own_fd = true;
	}
	if (fstat(r->fd, &st))
		return err_set(err, -errno, "%s: %s", path, strerror(errno));
	if (S_ISDIR(st.st_mode))
		return err_set(err, -EISDIR, "%s: is a folder, not a WAV file", path);
	/* Standard input may be a file that somebody has read a part of. */
	r->seekable = S_ISREG(st.st_mode) && lseek(r->fd, 0, SEEK_CUR) == 0;
	r->size = r->seekable ? st.st_size : -1;
	return 0;
}

int wav_open(const char *path, const void *data, size_t size, struct wav_reader **ret,
	     struct hearth_err *err)
{
	static SF_VIRTUAL_IO vio = { vio_length, vio_seek, vio_read, NULL, vio_tell };
	struct wav_reader *r = calloc(1, sizeof(*r));
	SF_INFO si = { 0 };
	int rc, format = 0;

	if (!r)
		return err_set(err, -ENOMEM, "no memory to open %s", path);
	r->fd = -1;
	r->name = strdup(strcmp(path, "-") ? path : "standard input");
	r->mem = data;
	r->size = data ? (int64_t)size : -1;
	r->seekable = data != NULL;
	if (!r->name) {
		rc = err_set(err, -ENOMEM, "no memory to open %s", path);
		goto fail;
	}
	rc = open_source(r, path, err);
	if (!rc)
		rc = scan(r, &format, err);
	if (!rc)
		rc = measure(r, err);
	if (rc)
		goto fail;
	r->block = malloc(sizeof(float) * BLOCK * (size_t)r->info.channels);
	if (!r->block) {
		rc = err_set(err, -ENOMEM, "no memory to read %s", r->name);
		goto fail;
	}
	si.format = format;
	si.channels = r->info.channels;
	si.samplerate = r->info.rate;
	r->snd = sf_open_virtual(&vio, SFM_READ, &si, r);
	if (!r->snd) {
		rc = err_set(err, -ENOTSUP, "%s: libsndfile will not read it: %s", r->name, sf_strerror(NULL));
		goto fail;
	}
	*ret = r;
	return 0;
fail:
	wav_close(r);
	return rc;
}

const struct audio_info *wav_info(const struct wav_reader *r)
{
	return &r->info;
}

ssize_t wav_read(struct wav_reader *r, float *mono, size_t n, struct hearth_err *err)
{
	int ch = r->info.channels;
	sf_count_t got;

	if (n > BLOCK)
		n = BLOCK;
	got = sf_readf_float(r->snd, r->block, (sf_count_t)n);
	if (r->io_failed)
		return err_set(err, -r->io_errno, "%s: cannot be read after %.2f s: %s", r->name,
			       (double)r->frames_read / r->info.rate, strerror(r->io_errno));
	for (sf_count_t i = 0; i < got; i++) {
		float sum = 0;

		for (int c = 0; c < ch; c++)
			sum += r->block[i * ch + c];
		mono[i] = sum / (float)ch;
	}
	r->frames_read += got;
	if (got == 0 && r->info.frames > r->frames_read)
		return err_set(err, -EBADMSG, "%s: cut off: its header promises %.2f s of sound, it ended after %.2f s",
			       r->name, (double)r->info.frames / r->info.rate,
			       (double)r->frames_read / r->info.rate);
	return (ssize_t)got;
}

void wav_close(struct wav_reader *r)
{
	if (!r)
		return;
	if (r->snd)
		sf_close(r->snd);
	if (r->own_fd)
		close(r->fd);
	free(r->block);
	free(r->name);
	free(r);
}
