/* SPDX-License-Identifier: MIT */
#ifndef HEARTH_SERVER_TLS_H
#define HEARTH_SERVER_TLS_H

#include "base/err.h"

/*
 * Reads the files of a certificate and its key, and whether they are usable
 * and belong together: with them an HTTPS server can begin. The texts are the
 * caller's to free(). -errno or -EINVAL, with the file in the sentence.
 */
int tls_read(const char *cert_path, const char *key_path, char **ret_cert, char **ret_key, struct hearth_err *err);

#endif
