/* SPDX-License-Identifier: MIT */
/*
 * What hearthd's own prompts take of the context, for --check and the start: a
 * server is not ready that could answer nobody.
 */
#ifndef HEARTH_SERVER_PROMPT_SIZE_H
#define HEARTH_SERVER_PROMPT_SIZE_H

#include "server/config.h"
#include "token/chat.h"

struct engine_plan;
struct home;

/*
 * Of what @cfg has a conversation begin with: Wyoming's text, a chat without a
 * system message, the page. -E2BIG where one of the first two leaves no room
 * for a question; the page is one client of many and is told in @note, as all
 * the numbers are ("": there is nothing to say). @home is @cfg's, NULL: none;
 * @chat NULL: the template is not known, and there are no conversations.
 */
int prompt_size_check(const struct config *cfg, const struct engine_plan *plan, const struct chat *chat, const struct tok *tok, const struct home *home,
		      char *note, size_t n_note, struct hearth_err *err);
/* The same where nothing is open: from the head of @cfg's model. */
int prompt_size_of_model(const struct config *cfg, const struct engine_plan *plan, const struct home *home, char *note, size_t n_note,
			 struct hearth_err *err);
/* What Wyoming's text begins with beside the home's tools. */
#define PROMPT_PLAIN "You are a voice assistant. Answer in one short sentence of plain text."

#endif
