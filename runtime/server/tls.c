// SPDX-License-Identifier: MIT
#include "server/tls.h"

#include <errno.h>
#include <gnutls/gnutls.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PEM_MAX (1 << 16)

static int read_pem(const char *path, char **ret, struct hearth_err *err)
{
	char *text = calloc(1, PEM_MAX);
	FILE *f = text ? fopen(path, "re") : NULL;
	int rc = 0;

	if (!text)
		rc = err_set(err, -ENOMEM, "out of memory");
	else if (!f || (!fread(text, 1, PEM_MAX - 1, f) && ferror(f)))
		rc = err_set(err, -errno, "%s: cannot be read: %s", path, strerror(errno));
	else if (!*text)
		rc = err_set(err, -EINVAL, "%s: is empty", path);
	else if (getc(f) != EOF)
		rc = err_set(err, -EINVAL, "%s: is longer than %d bytes", path, PEM_MAX - 1);
	if (f)
		fclose(f);
	if (rc) {
		free(text);
		return rc;
	}
	*ret = text;
	return 0;
}

int tls_read(const char *cert_path, const char *key_path, char **ret_cert, char **ret_key, struct hearth_err *err)
{
	gnutls_certificate_credentials_t cred = NULL;
	char *cert = NULL, *key = NULL;
	gnutls_datum_t c, k;
	int rc = read_pem(cert_path, &cert, err), bad;

	if (!rc)
		rc = read_pem(key_path, &key, err);
	if (!rc && gnutls_certificate_allocate_credentials(&cred))
		rc = err_set(err, -ENOMEM, "out of memory");
	if (!rc) {
		c = (gnutls_datum_t){ (unsigned char *)cert, (unsigned int)strlen(cert) };
		k = (gnutls_datum_t){ (unsigned char *)key, (unsigned int)strlen(key) };
		bad = gnutls_certificate_set_x509_key_mem(cred, &c, &k, GNUTLS_X509_FMT_PEM);
		if (bad < 0)
			rc = err_set(err, -EINVAL, "%s and %s are no certificate with its key: %s", cert_path, key_path, gnutls_strerror(bad));
	}
	if (cred)
		gnutls_certificate_free_credentials(cred);
	if (rc) {
		free(cert);
		free(key);
		return rc;
	}
	*ret_cert = cert;
	*ret_key = key;
	return 0;
}
