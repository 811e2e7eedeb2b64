/* SPDX-License-Identifier: MIT */
/*
 * Inside of chat_api.h: one request under way. chat_api.c (the request, whole
 * answers), chat_stream.c (streamed ones), chat_logprob.c (log-probabilities
 * of either).
 */
#ifndef HEARTH_SERVER_CHAT_JOB_H
#define HEARTH_SERVER_CHAT_JOB_H

#include <time.h>

#include "server/chat_request.h"
#include "server/flow.h"

/* One request under way; lives until the last byte of its answer is taken. */
struct chat_job {
	struct flow flow;          /* first: a stream's argument is both; .run is the choice's that runs */
	struct service *s;
	struct http_req *r;
	struct chat_request q;
	uint32_t choice;           /* which of n */
	char id[64];
	time_t created;
	/* the answer of one choice, when it is not streamed */
	char *content, *reasoning;
	size_t n_content, n_reasoning;
	json_t *calls, *logprobs, *choices;
	uint64_t n_prompt, n_cached, n_out;
	struct gen_result last;
	bool role_sent;            /* stream */
	char *head;                /* of each chunk of this choice, up to what differs */
};

/* chat_api.c */
/* Starts the choice whose turn it is. */
int chat_job_start(struct chat_job *j, struct hearth_err *err);
void chat_job_free(void *job);
/* After the choice's end. */
const char *chat_finish_name(const struct chat_job *j);
json_t *chat_usage(const struct chat_job *j);
json_t *chat_call_json(const struct chat_job *j, const struct run_event *e, uint32_t index, bool stream);

/* chat_stream.c: takes the job over. */
void chat_stream(struct chat_job *j);

/* chat_logprob.c */
json_t *chat_logprob(const struct chat_job *j, const struct run_event *e);   /* of one token */
/* What an answer holds of those that were collected; the first steals them. */
json_t *chat_logprobs_chat(json_t *entries);
json_t *chat_logprobs_plain(const json_t *entries);

#endif
