/* SPDX-License-Identifier: MIT */
/*
 * Inside of chat_request.h: chat_request.c (a whole request), chat_fields.c,
 * chat_messages.c, chat_grammar.c. What returns bool has sent the refusal when
 * it is false.
 */
#ifndef HEARTH_SERVER_CHAT_PRIV_H
#define HEARTH_SERVER_CHAT_PRIV_H

#include "server/chat_request.h"

/* Keeps @text (malloced) until the request is done; NULL in, NULL out. */
char *chat_own(struct chat_request *q, char *text);

/* What the client calls the field that chat completions call @field. */
const char *chat_name(const struct chat_request *q, const char *field);

/* b[key], where it is there and not null, into *v. */
bool chat_number(struct http_req *r, const json_t *b, const char *key, double min, double max, double *v);
bool chat_integer(struct http_req *r, const json_t *b, const char *key, json_int_t min, json_int_t max, json_int_t *v);
bool chat_boolean(struct http_req *r, const json_t *b, const char *key, bool *v);
/* Fields of the standard that say one thing only here. */
bool chat_only_text(struct http_req *r, const json_t *b);
bool chat_sampling(struct service *s, struct http_req *r, struct chat_request *q);

/* Also as text, if *ret_prompt is wanted. */
bool chat_encode_messages(struct service *s, struct http_req *r, struct chat_request *q, char **ret_prompt);

bool chat_format(struct service *s, struct http_req *r, struct chat_request *q);
bool chat_choice(struct service *s, struct http_req *r, struct chat_request *q);

#endif
