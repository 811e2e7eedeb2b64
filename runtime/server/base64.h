/* SPDX-License-Identifier: MIT */
#ifndef HEARTH_SERVER_BASE64_H
#define HEARTH_SERVER_BASE64_H

#include <stddef.h>
#include <stdint.h>

/* Malloced text of RFC 4648 base64 with padding, or NULL without memory. */
char *base64_encode(const void *data, size_t n);
/* Malloced bytes, or NULL: -EINVAL (not base64) or -ENOMEM in *ret_rc. */
uint8_t *base64_decode(const char *text, size_t n, size_t *ret_n, int *ret_rc);

#endif
