/* SPDX-License-Identifier: MIT */
/* /v1/embeddings, for a model that was made for it (or where the configuration says how). */
#ifndef HEARTH_SERVER_EMBED_API_H
#define HEARTH_SERVER_EMBED_API_H

#include "server/http.h"

void api_embeddings(struct http_req *r, void *service);

#endif
