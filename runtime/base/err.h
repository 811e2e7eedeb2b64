/* SPDX-License-Identifier: MIT */
/*
 * Errors. A function returns 0 or -errno; where a person will read the reason,
 * it also takes a `struct hearth_err *`, which may be NULL, and leaves one
 * sentence in it: what was wrong, where, and what to do. The library never
 * prints; a program prints err.text once, at its edge.
 */
#ifndef HEARTH_BASE_ERR_H
#define HEARTH_BASE_ERR_H

/* Also in dev/hearth.h, the public header, which stands alone. */
#ifndef HEARTH_ERR_TEXT
#define HEARTH_ERR_TEXT 512
struct hearth_err {
	int code;                    /* -errno of the failure, 0 when none */
	char text[HEARTH_ERR_TEXT];  /* one sentence, NUL-terminated UTF-8 */
};
#endif

/*
 * Sets @err (when not NULL) to @code and the formatted sentence, and returns
 * @code, so that a failure is one line: return err_set(err, -EINVAL, "...");
 * @code must be negative. A text over 511 bytes ends in "...", on a whole
 * character.
 */
int err_set(struct hearth_err *err, int code, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/*
 * Puts "prefix: " in front of the sentence already in @err, for a caller that
 * knows more of the place ("model.gguf", "tenant tts"). Returns err->code, or
 * @code when @err is NULL.
 */
int err_prefix(struct hearth_err *err, int code, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

#endif
