// SPDX-License-Identifier: MIT
/* Timers of the home. With a fixed clock they stand still, so that answers are the same each time. */
#include "home/priv.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mono.h"

#define SECOND INT64_C(1000000000)
#define LONGEST (7 * 24 * 3600.0)

static int64_t now_ns(const struct home *h)
{
	return h->has_clock ? 0 : mono_ns();
}

static int64_t left_ns(const struct home *h, const struct home_timer *t)
{
	int64_t left = t->paused ? t->left_ns : t->end_ns - now_ns(h);

	return left > 0 ? left : 0;
}

/* {@prefix}hours, minutes, seconds of @args: 1 and the sum, 0 when none is there, -1 and a sentence. */
static int duration(const json_t *args, const char *prefix, int64_t *ret, char *why, size_t n_why)
{
	static const struct { const char *key; double unit; } parts[] = { { "hours", 3600 }, { "minutes", 60 }, { "seconds", 1 } };
	double sum = 0;
	int i, any = 0;

	for (i = 0; i < 3; i++) {
		char key[32];
		double v;
		int r;

		snprintf(key, sizeof(key), "%s%s", prefix, parts[i].key);
		r = home_number(args, key, 0, LONGEST / parts[i].unit, &v, why, n_why);
		if (r < 0)
			return -1;
		if (r)
			any = 1, sum += v * parts[i].unit;
	}
	if (any && (sum < 1 || sum > LONGEST)) {
		snprintf(why, n_why, "a timer runs from one second to seven days");
		return -1;
	}
	*ret = (int64_t)(sum + 0.5);
	return any;
}

/* Those that have ended are gone. */
static void expire(struct home *h)
{
	size_t i, n = 0;

	for (i = 0; i < h->n_timers; i++) {
		if (!h->timers[i].paused && left_ns(h, &h->timers[i]) == 0) {
			free(h->timers[i].name);
			free(h->timers[i].command);
			continue;
		}
		h->timers[n++] = h->timers[i];
	}
	h->n_timers = n;
}

static json_t *timer_json(const struct home *h, const struct home_timer *t)
{
	json_t *o = json_object();

	json_object_set_new(o, "name", json_string(t->name ? t->name : ""));
	json_object_set_new(o, "seconds", json_integer(t->seconds));
	json_object_set_new(o, "left", json_integer((left_ns(h, t) + SECOND - 1) / SECOND));
	json_object_set_new(o, "state", json_string(t->paused ? "paused" : "running"));
	return o;
}

static void note(json_t *changes, const struct home_timer *t, json_t *from, json_t *to)
{
	char label[80];

	snprintf(label, sizeof(label), "%.60s timer", t->name ? t->name : "unnamed");
	json_array_append_new(changes, json_pack("{s:s, s:o, s:o}", "name", label, "from", from ? from : json_object(), "to", to ? to : json_object()));
}

/* The timer that the slots mean; NULL and a sentence when none fits. */
static struct home_timer *find(struct home *h, const json_t *args, char *why, size_t n_why)
{
	const char *name = home_slot(args, "name");
	struct home_timer *t = NULL;
	int64_t start = 0;
	int by_start = duration(args, "start_", &start, why, n_why);
	size_t i, n = 0;

	if (by_start < 0)
		return NULL;
	for (i = 0; i < h->n_timers; i++) {
		if (name && !(h->timers[i].name && home_same_name(h->timers[i].name, name)))
			continue;
		if (by_start && h->timers[i].start_seconds != start)
			continue;
		t = &h->timers[i];
		n++;
	}
	/* Of several the one that was started last is meant. */
	if (n)
		return t;
	snprintf(why, n_why, h->n_timers ? "no such timer" : "no timer is running");
	return NULL;
}

static void drop(struct home *h, struct home_timer *t)
{
	size_t i = (size_t)(t - h->timers);

	free(t->name);
	free(t->command);
	memmove(h->timers + i, h->timers + i + 1, (h->n_timers - i - 1) * sizeof(*t));
	h->n_timers--;
}

static json_t *one(const struct home *h, const struct home_timer *t)
{
	return json_pack("{s:b, s:[o]}", "success", 1, "timers", timer_json(h, t));
}

static json_t *start(struct home *h, const json_t *args, json_t *changes)
{
	const char *name = home_slot(args, "name"), *command = home_slot(args, "conversation_command");
	struct home_timer *t;
	int64_t seconds = 0;
	char why[200];
	int r = duration(args, "", &seconds, why, sizeof(why));

	if (r < 0)
		return home_fail("%s", why);
	if (!r)
		return home_fail("hours, minutes or seconds are missing");
	if (h->n_timers == HOME_TIMERS)
		return home_fail("%d timers are running already", HOME_TIMERS);
	t = &h->timers[h->n_timers];
	memset(t, 0, sizeof(*t));
	t->name = name ? strdup(name) : NULL;
	t->command = command ? strdup(command) : NULL;
	t->seconds = t->start_seconds = seconds;
	t->end_ns = now_ns(h) + seconds * SECOND;
	h->n_timers++;
	note(changes, t, NULL, timer_json(h, t));
	return one(h, t);
}

static json_t *change(struct home *h, struct home_timer *t, const json_t *args, int sign, json_t *changes)
{
	json_t *from = timer_json(h, t);
	int64_t by = 0, left = left_ns(h, t);
	char why[200];
	int r = duration(args, "", &by, why, sizeof(why));

	if (r <= 0 || left + sign * by * SECOND <= 0 || t->seconds + sign * by > LONGEST) {
		json_decref(from);
		return r < 0 ? home_fail("%s", why) : !r ? home_fail("hours, minutes or seconds are missing")
		     : sign < 0 ? home_fail("less than that is left") : home_fail("a timer runs from one second to seven days");
	}
	t->seconds += sign * by;
	if (t->paused)
		t->left_ns += sign * by * SECOND;
	else
		t->end_ns += sign * by * SECOND;
	note(changes, t, from, timer_json(h, t));
	return one(h, t);
}

static const char *const which[] = { "name", "area", "start_hours", "start_minutes", "start_seconds", NULL };
static const char *const which_and_by[] = { "name", "area", "start_hours", "start_minutes", "start_seconds", "hours", "minutes", "seconds", NULL };
static const char *const to_start[] = { "hours", "minutes", "seconds", "name", "conversation_command", NULL };
static const char *const nothing[] = { "area", NULL };

static const struct {
	const char *tool;
	const char *const *slots;
} timer_tools[] = {
	{ "HassStartTimer", to_start },
	{ "HassCancelTimer", which },
	{ "HassCancelAllTimers", nothing },
	{ "HassIncreaseTimer", which_and_by },
	{ "HassDecreaseTimer", which_and_by },
	{ "HassPauseTimer", which },
	{ "HassUnpauseTimer", which },
	{ "HassTimerStatus", which },
};

json_t *home_timer_call(struct home *h, const char *tool, const json_t *args, json_t *changes)
{
	struct home_timer *t;
	json_t *out, *v;
	const char *key;
	char why[200];
	size_t k, i;

	for (k = 0; k < 8 && strcmp(timer_tools[k].tool, tool); k++)
		;
	if (k == 8)
		return NULL;
	json_object_foreach((json_t *)args, key, v) {
		for (i = 0; timer_tools[k].slots[i] && strcmp(timer_tools[k].slots[i], key); i++)
			;
		if (!timer_tools[k].slots[i])
			return home_fail("%s has no argument \"%.60s\"", tool, key);
	}
	expire(h);
	if (k == 0)
		return start(h, args, changes);
	if (k == 2) {
		size_t n = h->n_timers;

		while (h->n_timers) {
			note(changes, &h->timers[0], timer_json(h, &h->timers[0]), NULL);
			drop(h, &h->timers[0]);
		}
		return json_pack("{s:b, s:i}", "success", 1, "cancelled", (int)n);
	}
	/* Asked for none in particular, the status tells all. */
	if (k == 7 && !json_object_size(args)) {
		out = json_array();
		for (i = 0; i < h->n_timers; i++)
			json_array_append_new(out, timer_json(h, &h->timers[i]));
		return json_pack("{s:b, s:o}", "success", 1, "timers", out);
	}
	t = find(h, args, why, sizeof(why));
	if (!t)
		return home_fail("%s", why);
	switch (k) {
	case 1:
		note(changes, t, timer_json(h, t), NULL);
		out = timer_json(h, t);
		json_object_set_new(out, "state", json_string("cancelled"));
		drop(h, t);
		return json_pack("{s:b, s:[o]}", "success", 1, "timers", out);
	case 3: return change(h, t, args, 1, changes);
	case 4: return change(h, t, args, -1, changes);
	case 5: case 6:
		v = timer_json(h, t);
		if (k == 5 && !t->paused)
			t->left_ns = left_ns(h, t), t->paused = 1;
		else if (k == 6 && t->paused)
			t->end_ns = now_ns(h) + t->left_ns, t->paused = 0;
		else {
			json_decref(v);
			return one(h, t);
		}
		note(changes, t, v, timer_json(h, t));
		return one(h, t);
	}
	return one(h, t);
}
