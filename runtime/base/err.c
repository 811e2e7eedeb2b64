// SPDX-License-Identifier: MIT
#include "base/err.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Ends an overlong text in "..." without cutting a UTF-8 character. */
static void end_in_dots(char *text)
{
	size_t n = HEARTH_ERR_TEXT - 4;

	while (n > 0 && ((unsigned char)text[n] & 0xc0) == 0x80)
		n--;
	memcpy(text + n, "...", 4);
}

int err_set(struct hearth_err *err, int code, const char *fmt, ...)
{
	va_list ap;
	int n;

	if (!err)
		return code;
	err->code = code;
	va_start(ap, fmt);
	n = vsnprintf(err->text, sizeof(err->text), fmt, ap);
	va_end(ap);
	if (n >= HEARTH_ERR_TEXT)
		end_in_dots(err->text);
	return code;
}

int err_prefix(struct hearth_err *err, int code, const char *fmt, ...)
{
	char old[HEARTH_ERR_TEXT];
	va_list ap;
	int n;

	if (!err)
		return code;
	memcpy(old, err->text, sizeof(old));
	va_start(ap, fmt);
	n = vsnprintf(err->text, sizeof(err->text), fmt, ap);
	va_end(ap);
	if (n >= 0 && n < HEARTH_ERR_TEXT)
		n += snprintf(err->text + n, sizeof(err->text) - (size_t)n, ": %s", old);
	if (n >= HEARTH_ERR_TEXT)
		end_in_dots(err->text);
	return err->code;
}
