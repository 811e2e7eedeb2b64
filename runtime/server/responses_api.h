/* SPDX-License-Identifier: MIT */
#ifndef HEARTH_SERVER_RESPONSES_API_H
#define HEARTH_SERVER_RESPONSES_API_H

#include "server/http.h"

void api_responses(struct http_req *r, void *service);    /* POST /v1/responses */

#endif
