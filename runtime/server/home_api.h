/* SPDX-License-Identifier: MIT */
/* The simulated home of the configuration, for the web page: what it is, and calls that act in it. */
#ifndef HEARTH_SERVER_HOME_API_H
#define HEARTH_SERVER_HOME_API_H

#include "server/http.h"

void api_home(struct http_req *r, void *service);        /* GET /v1/home */
void api_home_call(struct http_req *r, void *service);   /* POST /v1/home/call */

#endif
