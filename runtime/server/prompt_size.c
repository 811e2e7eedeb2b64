// SPDX-License-Identifier: MIT
#include "server/prompt_size.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/engine.h"
#include "gguf/gguf.h"
#include "home/prompt.h"
#include "voice/home_size.h"

/* Adds to the list that @note is. */
static void add(char *note, size_t n_note, uint32_t tokens, uint32_t ctx, const char *where)
{
	const size_t n = strlen(note);

	if (!n)
		snprintf(note, n_note, "%u of %u tokens %s", tokens, ctx, where);
	else
		snprintf(note + n, n_note - n, ", %u %s", tokens, where);
}

/* As wyoming_handle.c begins: without what is true now, which Home Assistant is asked for. */
static int wyoming_tokens(const struct config *cfg, const struct chat *chat, const struct tok *tok, const struct home *home, uint32_t *ret,
			  struct hearth_err *err)
{
	char *system = NULL, *tools = NULL;
	int rc = 0;

	if (home && (home_prompt_system(home, &system) || home_prompt_tools(home, cfg->wy_full_tools ? HOME_TOOLS_FULL : HOME_TOOLS_COMPACT, &tools)))
		rc = err_set(err, -ENOMEM, "out of memory");
	if (!rc)
		rc = home_size_texts(chat, tok, cfg->wy_prompt ? cfg->wy_prompt : system ? system : PROMPT_PLAIN, tools, NULL, ret, err);
	free(system);
	free(tools);
	return rc;
}

int prompt_size_check(const struct config *cfg, const struct engine_plan *plan, const struct chat *chat, const struct tok *tok, const struct home *home,
		      char *note, size_t n_note, struct hearth_err *err)
{
	const char *option = "model: {context: N}";
	unsigned int services = 0;
	char list[256] = "", what[256], page[128] = "";
	uint32_t n = 0;
	int rc = 0;

	*note = 0;
	if (!chat)
		return 0;
	for (uint32_t i = 0; cfg->wyoming.on && i < cfg->n_wy; i++)
		services |= cfg->wy[i].services;
	snprintf(what, sizeof(what), "the description of the home %.180s", cfg->home ? cfg->home : "");
	if (services & (WYOMING_HANDLE | WYOMING_INTENT)) {
		rc = wyoming_tokens(cfg, chat, tok, home, &n, err);
		if (!rc && (home || cfg->wy_prompt))
			rc = home_size_check(n, plan->ctx, plan->shape.ctx_train, !cfg->wy_prompt ? what : home ? "wyoming.prompt with the home's tools" : "wyoming.prompt",
					     cfg->wy_prompt ? "a shorter text" : "fewer devices", option, err);
		if (home || cfg->wy_prompt)
			add(list, sizeof(list), n, plan->ctx, "over Wyoming");
	}
	if (!rc && cfg->http.on && (cfg->chat_system || (cfg->chat_home && home))) {
		if (cfg->chat_system)
			rc = home_size_texts(chat, tok, cfg->chat_system, NULL, NULL, &n, err);
		else /* with the home's tools, as a client that brings none has them */
			rc = home_size(chat, tok, home, true, &n, err);
		if (!rc)
			rc = home_size_check(n, plan->ctx, plan->shape.ctx_train, cfg->chat_system ? "chat.system" : what,
					     cfg->chat_system ? "a shorter text" : "fewer devices", option, err);
		add(list, sizeof(list), n, plan->ctx, "in a chat");
	}
	if (!rc && cfg->http.on && home) {
		rc = home_size(chat, tok, home, true, &n, err);
		add(list, sizeof(list), n, plan->ctx, "on the page");
		if (!rc && home_size_check(n, plan->ctx, plan->shape.ctx_train, what, "", option, NULL))
			snprintf(page, sizeof(page), "; the page needs a context of at least %u tokens (%s)", n + HOME_SIZE_TURN, option);
	}
	if (!rc && *list)
		snprintf(note, n_note, "%s: %s%s", home ? "home" : "prompt", list, page);
	return rc;
}

int prompt_size_of_model(const struct config *cfg, const struct engine_plan *plan, const struct home *home, char *note, size_t n_note,
			 struct hearth_err *err)
{
	struct gguf *g = NULL;
	struct chat *chat = NULL;
	struct tok *tok = NULL;
	int rc = gguf_open(cfg->model, &g, err);

	*note = 0;
	if (!rc && !chat_open(g, &chat, NULL)) {
		rc = tok_open(g, &tok, err);
		if (!rc)
			rc = prompt_size_check(cfg, plan, chat, tok, home, note, n_note, err);
	}
	tok_free(tok);
	chat_free(chat);
	gguf_close(g);
	return rc;
}
