// SPDX-License-Identifier: MIT
#include "voice/home_size.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "gguf/gguf.h"
#include "home/home.h"
#include "home/prompt.h"

int home_size_texts(const struct chat *chat, const struct tok *tok, const char *system, const char *tools, const char *now, uint32_t *ret,
		    struct hearth_err *err)
{
	struct chat_opts o = { .tools = tools };
	struct tok_ids ids = { 0 };
	struct chat_msg m[3];
	size_t n = 0;
	int rc;

	if (system)
		m[n++] = (struct chat_msg){ .role = CHAT_SYSTEM, .content = system };
	if (now)
		m[n++] = (struct chat_msg){ .role = CHAT_SYSTEM, .content = now };
	m[n++] = (struct chat_msg){ .role = CHAT_USER, .content = "" };
	rc = chat_encode(chat, tok, m, n, &o, &ids, err);
	if (!rc)
		*ret = (uint32_t)ids.n;
	tok_ids_free(&ids);
	return rc;
}

int home_size(const struct chat *chat, const struct tok *tok, const struct home *home, bool with_tools, uint32_t *ret, struct hearth_err *err)
{
	char *system = NULL, *tools = NULL, *now = NULL;
	struct home_told *told = NULL;
	struct tm tm;
	int rc;

	home_now(home, &tm);
	if (home_prompt_system(home, &system) || (with_tools && home_prompt_tools(home, HOME_TOOLS_COMPACT, &tools)) ||
	    home_told_new(&told) || home_prompt_now(told, home, &tm, NULL, &now))
		rc = err_set(err, -ENOMEM, "out of memory");
	else
		rc = home_size_texts(chat, tok, system, tools, now, ret, err);
	home_told_free(told);
	free(system);
	free(tools);
	free(now);
	return rc;
}

int home_size_of_model(const char *model, const struct home *home, uint32_t *ret, struct hearth_err *err)
{
	struct gguf *g = NULL;
	struct chat *chat = NULL;
	struct tok *tok = NULL;
	uint32_t n = 0;
	int rc = gguf_open(model, &g, err);

	if (!rc && !chat_open(g, &chat, NULL)) {
		rc = tok_open(g, &tok, err);
		if (!rc)
			rc = home_size(chat, tok, home, true, &n, err);
	}
	tok_free(tok);
	chat_free(chat);
	gguf_close(g);
	if (!rc)
		*ret = n;
	return rc;
}

int home_size_check(uint32_t tokens, uint32_t ctx, uint32_t ctx_most, const char *what, const char *less, const char *option, struct hearth_err *err)
{
	const uint32_t most = ctx > HOME_SIZE_TURN ? ctx - HOME_SIZE_TURN : 0;

	if (tokens <= most)
		return 0;
	if (tokens > ctx_most || ctx_most - tokens < HOME_SIZE_TURN)
		return err_set(err, -E2BIG, "%s takes %u tokens; the context is %u, and the model's longest is %u: with %u for a question and its answer "
			       "it may take %u at most, so give %s", what, tokens, ctx, ctx_most, HOME_SIZE_TURN,
			       ctx_most > HOME_SIZE_TURN ? ctx_most - HOME_SIZE_TURN : 0, less);
	return err_set(err, -E2BIG, "%s takes %u tokens; the context is %u, and with %u for a question and its answer it may take %u: "
		       "give a context of at least %u (%s), or %s", what, tokens, ctx, HOME_SIZE_TURN, most, tokens + HOME_SIZE_TURN, option, less);
}
