// SPDX-License-Identifier: MIT
#include "paths.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void data_path(const char *name, char *buf, size_t size)
{
	char exe[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", exe, sizeof(exe) - 1);
	static const char *const beside[] = { "/../share/hearth/", "/../../" };
	char *slash;
	int i;

	if (n > 0) {
		exe[n] = 0;
		slash = strrchr(exe, '/');
		if (slash)
			*slash = 0;
		for (i = 0; i < 2; i++) {
			snprintf(buf, size, "%s%s%s", exe, beside[i], name);
			if (!access(buf, F_OK))
				return;
		}
	}
	snprintf(buf, size, "/usr/share/hearth/%s", name);
}

void cache_path(const char *name, char *buf, size_t size)
{
	const char *dir = getenv("HEARTH_CACHE"), *unit = getenv("CACHE_DIRECTORY"), *xdg = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");

	if (dir && *dir)
		snprintf(buf, size, "%s/%s", dir, name);
	else if (unit && *unit) /* a systemd unit's own */
		snprintf(buf, size, "%.*s/%s", (int)strcspn(unit, ":"), unit, name);
	else if (xdg && *xdg)
		snprintf(buf, size, "%s/hearth/%s", xdg, name);
	else
		snprintf(buf, size, "%s/.cache/hearth/%s", home && *home ? home : "/tmp", name);
}
