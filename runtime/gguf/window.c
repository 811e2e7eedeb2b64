// SPDX-License-Identifier: MIT
#include "gguf/head.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/*
 * The header is read with O_DIRECT like the tensors: a vocabulary alone is
 * megabytes, which would otherwise stay behind in the page cache.
 */
#define STEP 4096ull         /* alignment of O_DIRECT on every file system met */
#define AHEAD (256ull << 10) /* read at least this much at a time */

void window_memory(struct window *w, const void *head, uint64_t n, uint64_t file_size)
{
	*w = (struct window){ .base = head, .have = n, .file_size = file_size, .fd = -1 };
}

int window_open(struct window *w, const char *path, struct hearth_err *err)
{
	struct window n = { .fd = -1 };
	int e;

	n.fd = open(path, O_RDONLY | O_CLOEXEC | O_DIRECT | O_NONBLOCK);
	n.direct = n.fd >= 0;
	if (n.fd < 0 && errno == EINVAL)
		n.fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (n.fd < 0)
		return err_set(err, -errno, "%s cannot be opened: %s", path, strerror(errno));
	if (fstat(n.fd, &n.st) < 0) {
		e = errno;
		close(n.fd);
		return err_set(err, -e, "%s cannot be looked at: %s", path, strerror(e));
	}
	if (!S_ISREG(n.st.st_mode)) {
		close(n.fd);
		return err_set(err, -EINVAL, "%s is not a file%s", path,
			       S_ISDIR(n.st.st_mode) ? " but a folder" : "");
	}
	n.file_size = (uint64_t)n.st.st_size;
	n.map_bytes = n.file_size < GGUF_MAX_HEAD ? n.file_size : GGUF_MAX_HEAD;
	n.map_bytes = (n.map_bytes + AHEAD + STEP) & ~(STEP - 1);
	/* Address space only: a page costs memory when a byte is read into it. */
	n.map = mmap(NULL, n.map_bytes, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (n.map == MAP_FAILED) {
		e = errno;
		close(n.fd);
		return err_set(err, -e, "%s: no address space for its header: %s", path,
			       strerror(e));
	}
	n.base = n.map;
	*w = n;
	return 0;
}

static ssize_t read_some(struct window *w, uint64_t n)
{
	ssize_t got;

	for (;;) {
		got = pread(w->fd, w->map + w->have, n, (off_t)w->have);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0 && errno == EINVAL && w->direct) {
			/* O_DIRECT may be allowed at open and refused at read. */
			int fl = fcntl(w->fd, F_GETFL);

			w->direct = false;
			if (fl >= 0 && fcntl(w->fd, F_SETFL, fl & ~O_DIRECT) == 0)
				continue;
			errno = EINVAL;
		}
		return got;
	}
}

int window_need(struct window *w, uint64_t end, struct hearth_err *err)
{
	uint64_t want;
	ssize_t got;

	if (end <= w->have)
		return 0;
	if (w->fd < 0)
		return err_set(err, -ENODATA,
			       "the header goes on at offset %llu, but only %llu bytes of it are "
			       "here",
			       (unsigned long long)w->have, (unsigned long long)w->have);
	while (w->have < end) {
		/* Only ever entered at a multiple of STEP: see the cut below. */
		want = (end - w->have + AHEAD) & ~(STEP - 1);
		if (want > w->map_bytes - w->have)
			want = w->map_bytes - w->have;
		got = read_some(w, want);
		if (got < 0)
			return err_set(err, -errno, "reading at offset %llu failed: %s",
				       (unsigned long long)w->have, strerror(errno));
		if (got == 0)
			return err_set(err, -ENODATA,
				       "the file ended at offset %llu while it was read",
				       (unsigned long long)w->have);
		if (w->have + (uint64_t)got >= w->file_size) {
			w->have = w->file_size;
			if (w->have < end)
				return err_set(err, -ENODATA, "the file ends at offset %llu",
					       (unsigned long long)w->have);
			break;
		}
		/* A short read inside the file: keep whole steps, read the rest again. */
		got &= ~(ssize_t)(STEP - 1);
		if (got == 0)
			return err_set(err, -EIO, "reading at offset %llu gave less than a block",
				       (unsigned long long)w->have);
		w->have += (uint64_t)got;
	}
	if (!w->direct)
		posix_fadvise(w->fd, 0, (off_t)w->have, POSIX_FADV_DONTNEED);
	return 0;
}

void window_close(struct window *w)
{
	if (w->fd >= 0)
		close(w->fd);
	if (w->map)
		munmap(w->map, w->map_bytes);
	*w = (struct window){ .fd = -1 };
}
