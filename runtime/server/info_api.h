/* SPDX-License-Identifier: MIT */
/* What the server says of itself and of its model. */
#ifndef HEARTH_SERVER_INFO_API_H
#define HEARTH_SERVER_INFO_API_H

#include "server/http.h"

void api_models(struct http_req *r, void *service);        /* GET /v1/models */
void api_model(struct http_req *r, void *service);         /* GET /v1/models/ID */
void api_health(struct http_req *r, void *service);        /* GET /health */
void api_metrics(struct http_req *r, void *service);       /* GET /metrics */
void api_tokenize(struct http_req *r, void *service);      /* POST /tokenize */
void api_detokenize(struct http_req *r, void *service);    /* POST /detokenize */
void api_apply_template(struct http_req *r, void *service);/* POST /apply-template */
void api_count_tokens(struct http_req *r, void *service);  /* POST /v1/chat/completions/input_tokens */
void api_count_response(struct http_req *r, void *service);/* POST /v1/responses/input_tokens */
void api_memory(struct http_req *r, void *service);        /* GET /v1/memory: tenants and pools */

#endif
