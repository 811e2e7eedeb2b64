/* SPDX-License-Identifier: MIT */
/* /v1/chat/completions and /v1/completions: OpenAI's shapes, whole and streamed. */
#ifndef HEARTH_SERVER_CHAT_API_H
#define HEARTH_SERVER_CHAT_API_H

#include "server/http.h"
#include "server/service.h"

void api_chat(struct http_req *r, void *service);
void api_completions(struct http_req *r, void *service);

/* {"cache_n":..,"prompt_n":..,"prompt_ms":..,...}: llama-server's names. */
json_t *api_timings(const struct gen_result *g);
/* Sends the status that belongs to a failed run_start(), or to a run that was cancelled. */
void api_run_failed(struct http_req *r, int rc, const struct hearth_err *err);
/* The same of run_start(), and counts it as refused. */
void api_start_failed(struct service *s, struct http_req *r, int rc, const struct hearth_err *err);

#endif
