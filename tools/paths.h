/* SPDX-License-Identifier: MIT */
/* Where the programs find what was installed with them, and keep what is made once. */
#ifndef HEARTH_PATHS_H
#define HEARTH_PATHS_H

#include <stddef.h>

/* A path beside the program: ../share/hearth/@name, the source tree's @name, /usr/share/hearth/@name. */
void data_path(const char *name, char *buf, size_t size);
/* A file of the cache: HEARTH_CACHE, the unit's CACHE_DIRECTORY, or the user's. */
void cache_path(const char *name, char *buf, size_t size);

#endif
