// SPDX-License-Identifier: MIT
#include "server/home_api.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "home/home.h"
#include "home/prompt.h"
#include "server/service.h"

static bool has_home(struct service *s, struct http_req *r)
{
	if (s->home)
		return true;
	http_error(r, 404, "no_home", NULL, "no home is configured: speech: {home: FILE}");
	return false;
}

/* Lock held. The tools in the realtime API's flat form. */
static json_t *flat_tools(const struct home *h)
{
	char *text = NULL;
	json_t *list, *out = json_array(), *t;
	size_t i;

	if (home_prompt_tools(h, HOME_TOOLS_COMPACT, &text)) {
		json_decref(out);
		return NULL;
	}
	list = json_loads(text, 0, NULL);
	free(text);
	json_array_foreach(list, i, t) {
		json_t *f = json_object_get(t, "function");

		json_object_set_new(f, "type", json_string("function"));
		json_array_append(out, f);
	}
	json_decref(list);
	return out;
}

void api_home(struct http_req *r, void *service)
{
	struct service *s = service;
	char *system = NULL, *now = NULL;
	struct home_told *told = NULL;
	json_t *tools, *state, *says = NULL;
	struct tm tm;
	bool failed;

	if (!has_home(s, r))
		return;
	pthread_mutex_lock(&s->home_lock);
	home_now(s->home, &tm);
	tools = flat_tools(s->home);
	state = home_state(s->home);
	failed = home_prompt_system(s->home, &system) || home_told_new(&told) || home_prompt_now(told, s->home, &tm, NULL, &now) ||
	    home_prompt_states(s->home, &says);
	pthread_mutex_unlock(&s->home_lock);
	home_told_free(told);
	if (failed || !tools || !state) {
		json_decref(tools);
		json_decref(state);
		json_decref(says);
		http_error(r, 500, NULL, NULL, "out of memory");
	} else {
		http_reply_json(r, 200, json_pack("{s:s,s:s?,s:o,s:o,s:o,s:s}", "instructions", system, "now", now, "says", says, "tools", tools, "state", state,
						  "examples", "A simulated home answers: try its lights, its locks, its thermostat."));
	}
	free(system);
	free(now);
}

void api_home_call(struct http_req *r, void *service)
{
	struct service *s = service;
	json_t *b, *args, *result = NULL, *changes = NULL, *state = NULL;
	struct hearth_err err = { 0 };
	const char *name;
	int rc;

	if (!has_home(s, r))
		return;
	b = http_json(r);
	if (!b)
		return;
	name = json_string_value(json_object_get(b, "name"));
	args = json_object_get(b, "arguments");
	if (!name || !json_is_object(args)) {
		http_error(r, 400, "invalid_value", name ? "arguments" : "name", "\"name\" must be a text and \"arguments\" an object");
		json_decref(b);
		return;
	}
	pthread_mutex_lock(&s->home_lock);
	rc = home_call(s->home, name, args, &result, &changes, &err);
	if (!rc)
		state = home_state(s->home);
	pthread_mutex_unlock(&s->home_lock);
	json_decref(b);
	if (rc)
		http_error(r, rc == -EINVAL ? 400 : 500, NULL, NULL, "%s", err.text);
	else
		http_reply_json(r, 200, json_pack("{s:o,s:o,s:o}", "result", result, "changes", changes, "state", state));
}
