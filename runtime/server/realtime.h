/* SPDX-License-Identifier: MIT */
/* OpenAI's Realtime API over WebSocket: the voice turn for web and mobile clients. */
#ifndef HEARTH_SERVER_REALTIME_H
#define HEARTH_SERVER_REALTIME_H

#include "server/http.h"

void api_realtime(struct http_req *r, void *service);     /* GET /v1/realtime, upgraded */
/* Ends the sessions that run, when the server stops. */
void realtime_stop(void);

#endif
