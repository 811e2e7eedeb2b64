// SPDX-License-Identifier: MIT
/* silero-convert ONNX OUT: the voice detector's weights into hearth's format, once, at set-up. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "voice/silero.h"

#define MAX_FILE (16u << 20)

int main(int argc, char **argv)
{
	struct hearth_err err = { 0 };
	unsigned char *data;
	size_t n;
	FILE *f;

	if (argc != 3) {
		fprintf(stderr, "usage: silero-convert silero_vad_16k_op15.onnx OUT\n");
		return 2;
	}
	f = fopen(argv[1], "rb");
	data = malloc(MAX_FILE);
	if (!f || !data) {
		fprintf(stderr, "silero-convert: %s: %s\n", argv[1], strerror(errno));
		return 1;
	}
	n = fread(data, 1, MAX_FILE, f);
	if (ferror(f) || n == MAX_FILE) {
		fprintf(stderr, "silero-convert: %s: %s\n", argv[1], n == MAX_FILE ? "too large" : strerror(errno));
		return 1;
	}
	fclose(f);
	if (silero_convert(data, n, argv[2], &err)) {
		fprintf(stderr, "silero-convert: %s: %s\n", argv[1], err.text);
		return 1;
	}
	free(data);
	return 0;
}
