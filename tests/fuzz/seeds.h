/* SPDX-License-Identifier: MIT */
/*
 * Seeds made by code: LLVMFuzzerInitialize() writes them into the first corpus
 * folder of the command line before libFuzzer reads it.
 */
#ifndef HEARTH_FUZZ_SEEDS_H
#define HEARTH_FUZZ_SEEDS_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerInitialize(int *argc, char ***argv);

static inline void fuzz_seed(int argc, char **argv, const char *name, const void *p, size_t n)
{
	char path[600];
	struct stat st;
	FILE *f;

	for (int i = 1; i < argc; i++) {
		if (argv[i][0] == '-' || stat(argv[i], &st) < 0 || !S_ISDIR(st.st_mode))
			continue;
		snprintf(path, sizeof(path), "%s/seed-%s", argv[i], name);
		f = fopen(path, "wb");
		if (f) {
			fwrite(p, 1, n, f);
			fclose(f);
		}
		return;
	}
}

#endif
