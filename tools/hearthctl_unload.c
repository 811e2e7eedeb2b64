// SPDX-License-Identifier: MIT
/*
 * hearthctl unload: takes the module out, or says who keeps it in. The kernel
 * itself only counts its users; who they are is in /proc, in the table of
 * regions, and in the pools.
 */
#include "hearthctl.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

/* What a region's file is called in /proc. */
#define REGION_FILE "/hearth (deleted)"

static bool line_in(const char *path, const char *what, bool at_end)
{
	char line[1024];
	FILE *f = fopen(path, "re");
	bool there = false;

	while (f && !there && fgets(line, sizeof(line), f)) {
		size_t n = strcspn(line, "\n"), w = strlen(what);

		line[n] = '\0';
		there = at_end ? n >= w && !strcmp(line + n - w, what) : !strncmp(line, what, w);
	}
	if (f)
		fclose(f);
	return there;
}

struct uses {
	unsigned connections, regions, buffers, maps;
};

/* One descriptor of a process: the device, a region, or a dma-buf of one. */
static void look_at_fd(const char *pid, const char *fd, dev_t device, struct uses *u)
{
	char path[80], target[64];
	struct stat st;
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%.16s/fd/%.16s", pid, fd);
	n = readlink(path, target, sizeof(target) - 1);
	if (n < 0)
		return;
	target[n] = '\0';
	if (!strcmp(target, REGION_FILE)) {
		u->regions++;
	} else if (!strncmp(target, "/dmabuf:", 8)) {
		snprintf(path, sizeof(path), "/proc/%.16s/fdinfo/%.16s", pid, fd);
		u->buffers += line_in(path, "exp_name:\thearth", true);
	} else if (device && !stat(path, &st) && S_ISCHR(st.st_mode) && st.st_rdev == device) {
		u->connections++;
	}
}

static void look_at_process(const char *pid, dev_t device, FILE *out)
{
	char path[64], name[32] = "?";
	struct uses u = { 0 };
	struct dirent *d;
	FILE *f;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%.16s/fd", pid);
	dir = opendir(path);
	if (!dir)
		return;
	while ((d = readdir(dir))) {
		if (isdigit((unsigned char)d->d_name[0]))
			look_at_fd(pid, d->d_name, device, &u);
	}
	closedir(dir);
	snprintf(path, sizeof(path), "/proc/%.16s/maps", pid);
	u.maps = line_in(path, REGION_FILE, true);
	if (!(u.connections + u.regions + u.buffers + u.maps))
		return;
	snprintf(path, sizeof(path), "/proc/%.16s/comm", pid);
	f = fopen(path, "re");
	if (f && fgets(name, sizeof(name), f))
		name[strcspn(name, "\n")] = '\0';
	if (f)
		fclose(f);
	fprintf(out, "; process %s (%s) has", pid, name);
	if (u.connections)
		fprintf(out, " it open");
	if (u.regions)
		fprintf(out, "%s %u region%s", u.connections ? "," : "", u.regions, u.regions > 1 ? "s" : "");
	if (u.buffers)
		fprintf(out, "%s %u dma-buf%s", u.connections + u.regions ? "," : "", u.buffers,
			u.buffers > 1 ? "s" : "");
	if (u.maps)
		fprintf(out, "%s memory of it mapped", u.connections + u.regions + u.buffers ? "," : "");
}

static void look_at_processes(const char *device, FILE *out)
{
	struct stat st;
	struct dirent *d;
	DIR *dir = opendir("/proc");
	dev_t dev = !stat(device, &st) && S_ISCHR(st.st_mode) ? st.st_rdev : 0;

	while (dir && (d = readdir(dir))) {
		if (isdigit((unsigned char)d->d_name[0]) && atol(d->d_name) != (long)getpid())
			look_at_process(d->d_name, dev, out);
	}
	if (dir)
		closedir(dir);
}

/* Kept regions and quarantine need no process. */
static int look_at_memory(struct ctl *c, FILE *out)
{
	struct hearth_region_row *rows = NULL;
	struct hearth_pool_info p;
	char a[24];
	size_t n;
	int ret;

	ret = hearth_regions(c->h, &rows, &n);
	if (ret)
		return ret;
	for (size_t i = 0; i < n; i++) {
		const struct hearth_region_row *r = &rows[i];

		if (r->name[0])
			fprintf(out, "; region %s of tenant %s is kept in pool %s, %s (hearthctl drop %s %s)",
				r->name, r->tenant, r->pool, ctl_bytes(r->size, a), r->pool, r->name);
		else if (!r->handles)
			fprintf(out, "; a region of tenant %s in pool %s, %s, is mapped or exported",
				r->tenant, r->pool, ctl_bytes(r->size, a));
	}
	free(rows);
	for (size_t i = 0; i < hearth_pool_count(c->h); i++) {
		if (!hearth_pool_info(hearth_pool_at(c->h, i), &p) && p.quarantined)
			fprintf(out, "; %s of pool %s are quarantined, a driver or I/O still holds them",
				ctl_bytes(p.quarantined, a), p.name);
	}
	return 0;
}

static int say_who(struct ctl *c)
{
	char *text = NULL;
	size_t len;
	int code;
	FILE *out = open_memstream(&text, &len);

	if (!out)
		return ctl_error(EX_FAILED, "no memory");
	look_at_processes(c->device ? c->device : "/dev/hearth", out);
	if (!ctl_open_quietly(c))
		look_at_memory(c, out);
	if (fclose(out) || !text)
		return ctl_error(EX_FAILED, "no memory");
	code = ctl_error(EX_IN_USE, "the module is in use%s",
			 *text ? text : "; by whom cannot be seen from here (as root, outside of a container, it can)");
	free(text);
	return code;
}

int cmd_unload(struct ctl *c, int argc, char **argv)
{
	if (argc != 1)
		return ctl_usage("unload takes no arguments");
	if (!syscall(SYS_delete_module, "hearth", O_NONBLOCK))
		return ctl_done(c);
	switch (errno) {
	case ENOENT:
		return ctl_error(EX_NO_DEVICE, "the module is not loaded");
	case ENOSYS:
		return ctl_error(EX_NO_DEVICE, "this kernel has no modules, so hearth is not loaded");
	case EPERM:
		return ctl_error(EX_NOT_PERMITTED, "only the administrator may unload the module (as root, or with sudo)");
	case EAGAIN:
	case EBUSY:
		return say_who(c);
	default:
		return ctl_error(EX_FAILED, "the module cannot be unloaded: %s", strerror(errno));
	}
}
