/* SPDX-License-Identifier: MIT */
/* The web page: its files are in the program, and it asks nothing of any other server. */
#ifndef HEARTH_SERVER_PAGE_H
#define HEARTH_SERVER_PAGE_H

#include "server/http.h"

void api_page(struct http_req *r, void *service);        /* GET / */
void api_page_file(struct http_req *r, void *service);   /* GET /web/NAME */

#endif
