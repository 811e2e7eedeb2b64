/* SPDX-License-Identifier: MIT */
/*
 * What a conversation begins with, in tokens: a home whose description fills
 * the context could never be asked anything, which is known before the first
 * question.
 */
#ifndef HEARTH_VOICE_HOME_SIZE_H
#define HEARTH_VOICE_HOME_SIZE_H

#include <stdint.h>

#include "token/chat.h"

struct home;

/* Tokens beside it for a question, a call with its result and an answer. */
#define HOME_SIZE_TURN 128

/* Of @system, @tools and @now (each may be NULL) before the first word of a question, by the model's own template. */
int home_size_texts(const struct chat *chat, const struct tok *tok, const char *system, const char *tools, const char *now, uint32_t *ret,
		    struct hearth_err *err);
/* Of @home with its states as they are, and with the compact tools where @with_tools says so. */
int home_size(const struct chat *chat, const struct tok *tok, const struct home *home, bool with_tools, uint32_t *ret, struct hearth_err *err);
/* Opens what is needed of @model's head. *ret 0: it has no template that is known, and so no such conversations. */
int home_size_of_model(const char *model, const struct home *home, uint32_t *ret, struct hearth_err *err);
/*
 * -E2BIG with the numbers and what to do when @tokens leave no room in @ctx.
 * @what they are of; @less what would take fewer; @option the way to say how long the context is to be;
 * @ctx_most the model's own limit.
 */
int home_size_check(uint32_t tokens, uint32_t ctx, uint32_t ctx_most, const char *what, const char *less, const char *option, struct hearth_err *err);

#endif
