// SPDX-License-Identifier: MIT
/*
 * A client that leaves is noticed whatever becomes of the time of day: here it
 * is an hour behind, as after a clock was set back, and everything but the
 * waiting itself is a stand-in. Who looks at that clock would wait for the hour.
 */
#include "unit.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <time.h>

#include "server/audio_api.h"
#include "server/chat_api.h"
#include "server/service.h"
#include "server/speech.h"
#include "server/transcribe.h"
#include "voice/chunker.h"

/* What is read before the clock is set back lies an hour ahead of what the kernel waits by. */
int clock_gettime(clockid_t id, struct timespec *ts)
{
	int rc = (int)syscall(SYS_clock_gettime, id, ts);

	if (!rc && id == CLOCK_REALTIME)
		ts->tv_sec += 3600;
	return rc;
}

static atomic_bool left;           /* the client */
static atomic_bool over;           /* the voice need not be silent any more */
static int status;                 /* of the answer; 0: none yet */
static long (*next)(void *, char *, size_t);
static void (*end)(void *);
static void *stream;

bool http_gone(struct http_req *r) { return left; }
int http_who(const struct http_req *r) { return -1; }
const char *http_body(const struct http_req *r, size_t *ret_len) { *ret_len = 2; return "hi"; }
json_t *http_json(struct http_req *r) { return json_pack("{s:s,s:s}", "input", "hi", "response_format", "pcm"); }
void http_answer_header(struct http_req *r, const char *name, const char *value) { }
void http_reply(struct http_req *r, int code, const char *type, const void *body, size_t len) { status = code; }
void http_error(struct http_req *r, int code, const char *word, const char *param, const char *fmt, ...) { status = code; }

void http_reply_json(struct http_req *r, int code, json_t *j)
{
	status = code;
	json_decref(j);
}

const char *http_part(const struct http_req *r, const char *name, size_t *ret_len)
{
	if (ret_len)
		*ret_len = 4;
	return !strcmp(name, "file") ? "RIFF" : !strcmp(name, "stream") ? "true" : NULL;
}

void http_stream(struct http_req *r, int code, const char *type, long (*n)(void *, char *, size_t), void (*e)(void *), void *arg)
{
	status = code;
	next = n;
	end = e;
	stream = arg;
}

void api_start_failed(struct service *s, struct http_req *r, int rc, const struct hearth_err *err) { status = 500; }
int keyring_enter(struct keyring *k, int who, uint64_t kv, struct hearth_err *err) { return 0; }
void keyring_leave(struct keyring *k, int who, uint64_t kv, uint64_t in, uint64_t out) { }
const char *http_part_file(const struct http_req *r, const char *name) { return "a.wav"; }
bool speech_hears(const struct speech *s) { return true; }
bool speech_speaks(const struct speech *s) { return true; }
int speech_rate(const struct speech *s) { return 24000; }

/* Engines with nothing to say, or nothing more, until they are stopped. */
static void moment(void)
{
	syscall(SYS_nanosleep, &(struct timespec){ .tv_nsec = 1000000 }, NULL);
}

int transcribe(struct speech *sp, const char *name, const void *data, size_t size, int wait_ms,
	       void (*on_segment)(void *, const struct transcript_segment *), bool (*gone)(void *), void *arg,
	       struct transcript *ret, struct hearth_err *err)
{
	left = true;
	while (!gone(arg))
		moment();
	return err_set(err, -ECANCELED, "stopped");
}

void transcript_done(struct transcript *t) { }

int speech_voice(struct speech *s, const char *name, const char **ret, struct hearth_err *err)
{
	*ret = "slt";
	return 0;
}

int speech_say(struct speech *s, const char *voice, const char *text, double speed, int wait_ms,
	       int (*pcm)(void *, const int16_t *, size_t), void *arg, struct hearth_err *err)
{
	const int16_t sample = 1;

	pcm(arg, &sample, 1);
	while (!over)
		moment();
	return err_set(err, -ECANCELED, "stopped");
}

static int again(void **state)
{
	left = over = false;
	status = 0;
	next = NULL;
	return 0;
}

static void leaving_is_noticed_while_nothing_is_heard(void **state)
{
	struct service s = { 0 };

	alarm(60);                 /* before the hour is over */
	api_transcriptions(NULL, &s);
	assert_int_equal(status, 499);
	assert_null(next);
}

static void leaving_is_noticed_while_nothing_is_said(void **state)
{
	struct config cfg = { 0 };
	struct service s = { .cfg = &cfg };
	char buf[64];

	alarm(60);
	api_speech(NULL, &s);
	assert_int_equal(status, 200);
	assert_non_null(next);
	assert_int_equal(next(stream, buf, sizeof(buf)), 2);
	left = true;
	assert_true(next(stream, buf, sizeof(buf)) < 0);
	over = true;
	end(stream);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(leaving_is_noticed_while_nothing_is_heard, again),
		cmocka_unit_test_setup(leaving_is_noticed_while_nothing_is_said, again),
	};

	return UNIT_RUN(tests);
}
