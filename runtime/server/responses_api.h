/* SPDX-License-Identifier: MIT */
#ifndef HEARTH_SERVER_RESPONSES_API_H
#define HEARTH_SERVER_RESPONSES_API_H

#include "server/http.h"

void api_responses(struct http_req *r, void *service);    /* POST /v1/responses */
/* The body of one as that of a chat completion. NULL: refused, and the refusal was sent. */
json_t *responses_as_chat(struct http_req *r, const json_t *b);

#endif
