/* SPDX-License-Identifier: MIT */
/*
 * A home in the words that the home model was trained on: the system message
 * that lists what there is, the tools, and the message that says what is true
 * now. docs/home-prompt.md is the contract; tools/home/prompt.py writes the
 * same bytes for training.
 *
 * The first message and the tools depend on the home's file alone, so that
 * their cache serves every conversation; time, room and states go into a
 * second system message, and later only what changed.
 */
#ifndef HEARTH_HOME_PROMPT_H
#define HEARTH_HOME_PROMPT_H

#include <time.h>

#include "home/home.h"

/* Message 1. The text is the caller's to free(). -ENOMEM is the only failure. */
int home_prompt_system(const struct home *home, char **ret_text);

enum home_tools_form {
	HOME_TOOLS_COMPACT, /* what the home model was trained on */
	HOME_TOOLS_FULL,    /* with descriptions and types, for a general model */
};

/* The tools that this home can use, a JSON array of OpenAI function tools. */
int home_prompt_tools(const struct home *home, enum home_tools_form form, char **ret_json);

/*
 * What the model has been told of the states so far. One for a conversation;
 * a conversation that is cut back needs a new one.
 */
struct home_told;

int home_told_new(struct home_told **ret);
void home_told_free(struct home_told *told);

/*
 * Message 2, and its later forms: everything the first time, then only what
 * changed. @now is broken-down local time; @here is the area of the
 * microphone, NULL when not known. *ret_text is NULL (and 0 returned) when
 * nothing changed since the last time, the minute included. -EINVAL when
 * @here is no area of the home.
 */
int home_prompt_now(struct home_told *told, const struct home *home, const struct tm *now,
		    const char *here, char **ret_text);

/*
 * What message 2 says of each entity, for who counts elsewhere what was told:
 * [{"area": "Kitchen", "text": "Kitchen Light = off"}, ...] in its order. Of
 * those that changed, the texts of one area stand in one line behind the area
 * and a colon, with "; " between. -ENOMEM.
 */
int home_prompt_states(const struct home *home, json_t **ret);

#endif
