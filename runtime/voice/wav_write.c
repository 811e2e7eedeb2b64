// SPDX-License-Identifier: MIT
/*
 * The samples go into a file without a name (O_TMPFILE) in the folder of the
 * result, so that a crash, a kill or a full disk leaves nothing behind; commit
 * gives it its name. A result that is a pipe or a device has no name to give:
 * its samples wait in a memfd and are written at commit.
 */
#include "voice/wav.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <sndfile.h>

/* What a plain WAV can say about itself, less its header. */
#define MAX_SAMPLES ((UINT32_MAX - 4096) / 2)

struct wav_writer {
	char *name;        /* for sentences */
	char *path;        /* the final place; NULL: a stream */
	char *temp;        /* a named temporary, where O_TMPFILE cannot be had */
	int fd;            /* the samples */
	int stream_fd;     /* where a stream goes, -1 */
	bool own_stream;
	int io_errno;
	uint64_t samples;
	SNDFILE *snd;
};

static sf_count_t vio_length(void *user)
{
	struct wav_writer *w = user;
	struct stat st;

	return fstat(w->fd, &st) ? 0 : st.st_size;
}

static sf_count_t vio_seek(sf_count_t offset, int whence, void *user)
{
	struct wav_writer *w = user;

	return lseek(w->fd, offset, whence);
}

static sf_count_t vio_read(void *buf, sf_count_t n, void *user)
{
	struct wav_writer *w = user;

	return read(w->fd, buf, (size_t)n);
}

/* All of it, or the errno of why not. */
static int write_full(int fd, const char *p, size_t n)
{
	while (n > 0) {
		ssize_t put = write(fd, p, n);

		if (put < 0 && errno == EINTR)
			continue;
		if (put < 0)
			return errno;
		p += put;
		n -= (size_t)put;
	}
	return 0;
}

static sf_count_t vio_write(const void *buf, sf_count_t n, void *user)
{
	struct wav_writer *w = user;
	int e = write_full(w->fd, buf, (size_t)n);

	if (e) {
		w->io_errno = e;
		return 0;
	}
	return n;
}

static sf_count_t vio_tell(void *user)
{
	struct wav_writer *w = user;

	return lseek(w->fd, 0, SEEK_CUR);
}

static int fail(struct wav_writer *w, struct hearth_err *err, int e, const char *what)
{
	return err_set(err, -e, "%s: %s: %s", w->name, what, strerror(e));
}

static mode_t new_file_mode(void)
{
	mode_t m = umask(077);

	umask(m);
	return 0666 & ~m;
}

/* A file in @dir that has no name, or, where the file system cannot, a hidden one. */
static int open_unnamed(struct wav_writer *w, const char *dir)
{
	int fd = open(dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0666);

	if (fd >= 0 || (errno != EOPNOTSUPP && errno != EISDIR && errno != ENOENT && errno != EINVAL))
		return fd < 0 ? -errno : fd;
	if (asprintf(&w->temp, "%s/.hearth-wav-XXXXXX", dir) < 0) {
		w->temp = NULL;
		return -ENOMEM;
	}
	fd = mkostemp(w->temp, O_CLOEXEC);
	if (fd < 0) {
		fd = -errno;
		free(w->temp);
		w->temp = NULL;
		return fd;
	}
	/* A failure leaves the file readable by its owner only: harmless. */
	if (fchmod(fd, new_file_mode()))
		errno = 0;
	return fd;
}

static int open_target(struct wav_writer *w, const char *path, struct hearth_err *err)
{
	struct stat st;
	bool there = !stat(path, &st);
	char *slash, *dir;

	if (!strcmp(path, "-") || (there && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode))) {
		if (strcmp(path, "-")) {
			w->stream_fd = open(path, O_WRONLY | O_CLOEXEC);
			w->own_stream = true;
		} else {
			w->stream_fd = STDOUT_FILENO;
		}
		if (w->stream_fd < 0)
			return fail(w, err, errno, "cannot be written");
		w->fd = memfd_create("hearth-wav", MFD_CLOEXEC);
		return w->fd < 0 ? fail(w, err, errno, "no memory for its samples") : 0;
	}
	if (there && S_ISDIR(st.st_mode))
		return fail(w, err, EISDIR, "cannot be written");
	/* A name that leads elsewhere is followed, as writing in place would. */
	w->path = there ? realpath(path, NULL) : strdup(path);
	if (!w->path)
		return fail(w, err, errno, "cannot be written");
	if (there && access(w->path, W_OK))
		return fail(w, err, errno, "cannot be written");
	slash = strrchr(w->path, '/');
	dir = slash ? strndup(w->path, slash == w->path ? 1 : (size_t)(slash - w->path)) : strdup(".");
	if (!dir)
		return fail(w, err, ENOMEM, "cannot be written");
	w->fd = open_unnamed(w, dir);
	free(dir);
	if (w->fd < 0) {
		int e = -w->fd;

		w->fd = -1;
		return fail(w, err, e, "cannot be written");
	}
	return 0;
}

int wav_create(const char *path, int rate, struct wav_writer **ret, struct hearth_err *err)
{
	static SF_VIRTUAL_IO vio = { vio_length, vio_seek, vio_read, vio_write, vio_tell };
	struct wav_writer *w = calloc(1, sizeof(*w));
	SF_INFO si = { .samplerate = rate, .channels = 1, .format = SF_FORMAT_WAV | SF_FORMAT_PCM_16 };
	int rc;

	if (!w)
		return err_set(err, -ENOMEM, "no memory to write %s", path);
	w->fd = w->stream_fd = -1;
	w->name = strdup(strcmp(path, "-") ? path : "standard output");
	if (!w->name) {
		rc = err_set(err, -ENOMEM, "no memory to write %s", path);
		goto fail;
	}
	rc = open_target(w, path, err);
	if (rc)
		goto fail;
	w->snd = sf_open_virtual(&vio, SFM_WRITE, &si, w);
	if (!w->snd) {
		if (w->io_errno)
			rc = fail(w, err, w->io_errno, "cannot be written");
		else
			rc = err_set(err, -EINVAL, "%s: libsndfile will not write it: %s", w->name,
				     sf_strerror(NULL));
		goto fail;
	}
	*ret = w;
	return 0;
fail:
	wav_discard(w);
	return rc;
}

int wav_write(struct wav_writer *w, const int16_t *pcm, size_t n, struct hearth_err *err)
{
	if (n > MAX_SAMPLES - w->samples)
		return err_set(err, -EFBIG, "%s: a WAV file holds no more than 4 GiB", w->name);
	if (sf_write_short(w->snd, pcm, (sf_count_t)n) != (sf_count_t)n || w->io_errno)
		return fail(w, err, w->io_errno ? w->io_errno : EIO, "cannot be written");
	w->samples += n;
	return 0;
}

static int copy_to_stream(struct wav_writer *w)
{
	char buf[65536];
	ssize_t got;

	if (lseek(w->fd, 0, SEEK_SET) < 0)
		return errno;
	while ((got = read(w->fd, buf, sizeof(buf))) > 0) {
		int e = write_full(w->stream_fd, buf, (size_t)got);

		if (e)
			return e;
	}
	return got < 0 ? errno : 0;
}

/* Gives the nameless file the name w->temp, beside the result. */
static int name_beside(struct wav_writer *w, const char *proc)
{
	for (int i = 0; i < 100; i++) {
		if (asprintf(&w->temp, "%s.%ld-%d.tmp", w->path, (long)getpid(), i) < 0) {
			w->temp = NULL;
			return ENOMEM;
		}
		if (!linkat(AT_FDCWD, proc, AT_FDCWD, w->temp, AT_SYMLINK_FOLLOW))
			return 0;
		free(w->temp);
		w->temp = NULL;
		if (errno != EEXIST)
			return errno;
	}
	return EEXIST;
}

static int put_in_place(struct wav_writer *w)
{
	char proc[64];
	int e;

	if (fsync(w->fd))
		return errno;
	snprintf(proc, sizeof(proc), "/proc/self/fd/%d", w->fd);
	if (!w->temp) {
		if (!linkat(AT_FDCWD, proc, AT_FDCWD, w->path, AT_SYMLINK_FOLLOW))
			return 0;
		if (errno != EEXIST)
			return errno;
		e = name_beside(w, proc);
		if (e)
			return e;
	}
	if (rename(w->temp, w->path))
		return errno;
	free(w->temp);
	w->temp = NULL;
	return 0;
}

int wav_commit(struct wav_writer *w, struct hearth_err *err)
{
	int e;

	/* Closing writes the sizes into the header. */
	if (sf_close(w->snd))
		w->io_errno = w->io_errno ? w->io_errno : EIO;
	w->snd = NULL;
	if (w->io_errno)
		return fail(w, err, w->io_errno, "cannot be written");
	e = w->stream_fd >= 0 ? copy_to_stream(w) : put_in_place(w);
	return e ? fail(w, err, e, "cannot be written") : 0;
}

void wav_discard(struct wav_writer *w)
{
	if (!w)
		return;
	if (w->snd)
		sf_close(w->snd);
	if (w->temp)
		unlink(w->temp);
	if (w->fd >= 0)
		close(w->fd);
	if (w->own_stream && w->stream_fd >= 0)
		close(w->stream_fd);
	free(w->temp);
	free(w->path);
	free(w->name);
	free(w);
}
