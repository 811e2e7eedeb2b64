// SPDX-License-Identifier: MIT
#include "voice/talk.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "home/prompt.h"

struct talk {
	const struct home *home;
	char *here;
	char *tools;
	struct home_told *told;
	struct chat_msg *msgs;
	size_t n, room;
	int turns;             /* user messages */
};

static void free_msg(struct chat_msg *m)
{
	size_t i;

	free((char *)m->content);
	free((char *)m->reasoning);
	for (i = 0; i < m->n_calls; i++) {
		free((char *)m->calls[i].name);
		free((char *)m->calls[i].arguments);
	}
	free((void *)m->calls);
}

void talk_free(struct talk *t)
{
	if (!t)
		return;
	while (t->n)
		free_msg(&t->msgs[--t->n]);
	free(t->msgs);
	free(t->here);
	free(t->tools);
	home_told_free(t->told);
	free(t);
}

/* Takes @content over. */
static int add(struct talk *t, enum chat_role role, char *content)
{
	if (!content)
		return -ENOMEM;
	if (t->n == t->room) {
		size_t room = t->room ? t->room * 2 : 16;
		struct chat_msg *msgs = realloc(t->msgs, room * sizeof(*msgs));

		if (!msgs) {
			free(content);
			return -ENOMEM;
		}
		t->msgs = msgs;
		t->room = room;
	}
	t->msgs[t->n++] = (struct chat_msg){ .role = role, .content = content };
	if (role == CHAT_USER)
		t->turns++;
	return 0;
}

static int no_area(const struct home *home, const char *here, struct hearth_err *err)
{
	char list[300] = "";
	size_t i, n = 0;

	for (i = 0; i < home_n_areas(home); i++) {
		const char *name = home_area(home, i)->name;

		if (n + strlen(name) + 8 > sizeof(list)) {
			strcpy(list + n, ", ...");
			break;
		}
		n += (size_t)sprintf(list + n, "%s%s", i ? ", " : "", name);
	}
	return err_set(err, -ENOENT, "the home has no area \"%.80s\"; it has %s", here, *list ? list : "none");
}

int talk_new(const struct home *home, const char *here, struct talk **ret_talk, struct hearth_err *err)
{
	struct talk *t = calloc(1, sizeof(*t));
	char *system = NULL;
	int ret = -ENOMEM;
	const struct home_area *area;

	if (!t)
		return err_set(err, -ENOMEM, "out of memory");
	t->home = home;
	if (here) {
		area = home_area_called(home, here);
		if (!area) {
			talk_free(t);
			return no_area(home, here, err);
		}
		t->here = strdup(area->name);
		if (!t->here)
			goto fail;
	}
	if (home_prompt_system(home, &system) || add(t, CHAT_SYSTEM, system) ||
	    home_prompt_tools(home, HOME_TOOLS_COMPACT, &t->tools) || home_told_new(&t->told))
		goto fail;
	*ret_talk = t;
	return 0;
fail:
	talk_free(t);
	return err_set(err, ret, "out of memory");
}

int talk_now(struct talk *t, struct hearth_err *err)
{
	char *text = NULL;
	struct tm now;
	int ret;

	home_now(t->home, &now);
	ret = home_prompt_now(t->told, t->home, &now, t->here, &text);
	if (ret)
		return err_set(err, ret, "what is true in the home cannot be told: %s", strerror(-ret));
	if (text && (ret = add(t, CHAT_SYSTEM, text)))
		return err_set(err, ret, "out of memory");
	return 0;
}

int talk_user(struct talk *t, const char *text)
{
	char *told;

	return home_said(t->home, text, &told) ? -ENOMEM : add(t, CHAT_USER, told);
}

int talk_tool(struct talk *t, const char *result)
{
	return add(t, CHAT_TOOL, strdup(result));
}

int talk_assistant(struct talk *t, const char *content, const struct chat_call *calls, size_t n_calls)
{
	struct chat_call *copy = n_calls ? calloc(n_calls, sizeof(*copy)) : NULL;
	struct chat_msg bad = { .calls = copy, .n_calls = n_calls };
	size_t i;

	if (n_calls && !copy)
		return -ENOMEM;
	for (i = 0; i < n_calls; i++) {
		copy[i].name = strdup(calls[i].name);
		copy[i].arguments = strdup(calls[i].arguments);
		if (!copy[i].name || !copy[i].arguments) {
			free_msg(&bad);
			return -ENOMEM;
		}
	}
	if (add(t, CHAT_ASSISTANT, strdup(content ? content : ""))) {
		free_msg(&bad);
		return -ENOMEM;
	}
	t->msgs[t->n - 1].calls = copy;
	t->msgs[t->n - 1].n_calls = n_calls;
	return 0;
}

int talk_turns(const struct talk *t)
{
	return t->turns;
}

size_t talk_len(const struct talk *t)
{
	return t->n;
}

int talk_cut(struct talk *t, size_t len)
{
	int told = 0;

	while (t->n > len) {
		struct chat_msg *m = &t->msgs[--t->n];

		told |= m->role == CHAT_SYSTEM;
		t->turns -= m->role == CHAT_USER;
		free_msg(m);
	}
	if (told) {
		struct home_told *anew;

		if (home_told_new(&anew))
			return -ENOMEM;
		home_told_free(t->told);
		t->told = anew;
	}
	return 0;
}

int talk_forget(struct talk *t, struct hearth_err *err)
{
	int turns = t->turns;

	if (talk_cut(t, 1))
		return err_set(err, -ENOMEM, "out of memory");
	return turns;
}

const struct chat_msg *talk_msgs(const struct talk *t, size_t *ret_n)
{
	*ret_n = t->n;
	return t->msgs;
}

const char *talk_tools(const struct talk *t)
{
	return t->tools;
}
