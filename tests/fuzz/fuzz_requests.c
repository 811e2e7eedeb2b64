// SPDX-License-Identifier: MIT
/*
 * What clients of hearthd send and hearthd itself reads: bodies of chat
 * completions, completions and responses, and multipart bodies by a real
 * connection. The first byte chooses. A request is taken, and then it runs for
 * a few tokens under whatever grammar it asked for, or it is refused once, with
 * a sentence and a status that blames the client.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "json_ops.h"
#include "seeds.h"
#include "tiny_service.h"
#include "server/chat_request.h"
#include "server/http_priv.h"
#include "server/responses_api.h"
#include "server/run.h"

#define MUST(x) do { if (!(x)) __builtin_trap(); } while (0)

static const char *const right[] = {
	"{\"model\":\"tiny\",\"messages\":[{\"role\":\"system\",\"content\":\"Be brief.\"},{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"hi\"}]},"
	"{\"role\":\"assistant\",\"content\":null,\"tool_calls\":[{\"id\":\"c\",\"type\":\"function\",\"function\":{\"name\":\"f\",\"arguments\":\"{\\\"a\\\":1}\"}}]},"
	"{\"role\":\"tool\",\"tool_call_id\":\"c\",\"content\":\"ok\"}],\"tools\":[{\"type\":\"function\",\"function\":{\"name\":\"f\",\"description\":\"d\","
	"\"parameters\":{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"integer\",\"minimum\":0}},\"required\":[\"a\"]}}}],\"tool_choice\":\"required\","
	"\"parallel_tool_calls\":false,\"temperature\":2,\"seed\":3}",
	"{\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}],\"stream\":true,\"stream_options\":{\"include_usage\":true},\"stop\":[\"a\",\"bc\"],\"logit_bias\":{\"3\":-100,\"5\":1.5},"
	"\"logprobs\":true,\"top_logprobs\":3,\"max_completion_tokens\":9,\"top_p\":0.5,\"min_p\":0.1,\"top_k\":7,\"frequency_penalty\":1,\"presence_penalty\":-1,\"n\":2,"
	"\"nvext\":{\"agent_hints\":{\"priority\":3,\"session_id\":\"s\"},\"cache_control\":{\"prefix_bytes\":20,\"cache_key\":\"k\",\"ttl\":\"5m\"}},\"conversation_id\":\"c\",\"prompt_cache_key\":\"p\"}",
	"{\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}],\"response_format\":{\"type\":\"json_schema\",\"json_schema\":{\"name\":\"x\",\"schema\":{\"type\":\"object\",\"properties\":"
	"{\"a\":{\"anyOf\":[{\"type\":\"string\",\"maxLength\":3},{\"enum\":[1,null]}]},\"b\":{\"type\":\"array\",\"items\":{\"type\":\"number\"}}},\"required\":[\"a\"],\"additionalProperties\":true}}},"
	"\"chat_template_kwargs\":{\"enable_thinking\":true},\"reasoning_effort\":\"low\"}",
	"{\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}],\"grammar\":\"root ::= \\\"a\\\" [b-d]{2,4} (\\\"e\\\" | \\\"f\\\")*\"}",
	"{\"prompt\":\"hello\",\"max_tokens\":5,\"logprobs\":2,\"response_format\":{\"type\":\"json_object\"},\"temperature\":1.5}",
	"{\"prompt\":[1,2,3],\"max_tokens\":5}",
	"{\"input\":[{\"type\":\"message\",\"role\":\"user\",\"content\":[{\"type\":\"input_text\",\"text\":\"hi\"}]},{\"type\":\"function_call\",\"call_id\":\"c\",\"name\":\"f\",\"arguments\":\"{}\"},"
	"{\"type\":\"function_call_output\",\"call_id\":\"c\",\"output\":\"ok\"}],\"instructions\":\"Be brief.\",\"tools\":[{\"type\":\"function\",\"name\":\"f\",\"parameters\":{\"type\":\"object\",\"properties\":{}}}],"
	"\"tool_choice\":{\"type\":\"function\",\"name\":\"f\"},\"max_output_tokens\":9,\"reasoning\":{\"effort\":\"minimal\"},\"text\":{\"format\":{\"type\":\"text\"}}}",
	"{\"input\":\"hi\",\"text\":{\"format\":{\"type\":\"json_schema\",\"schema\":{\"type\":\"boolean\"}}},\"stream\":true}",
};
#define RIGHT (sizeof(right) / sizeof(right[0]))

static struct service *s;

static void done(struct http_req *r)
{
	for (size_t i = 0; i < r->n_extra; i++) {
		free(r->extra[i].name);
		free(r->extra[i].value);
	}
}

static void run_it(const struct chat_request *q, struct http_req *r)
{
	struct run_opts o = chat_request_run(q, s, r);
	struct hearth_err err = { 0 };
	struct run *run = NULL;
	const struct run_event *e;
	bool end = false;
	int rc;

	o.gone = NULL;
	/* One that can be completed is; of what has no end some is enough. */
	if (o.max_tokens > 40)
		o.max_tokens = 40;
	rc = run_start(&o, &run, &err);
	if (rc) {
		MUST(err.text[0] && rc < 0);
		return;
	}
	while (!end) {
		e = run_next(run, 1000);
		if (!e)
			continue;
		end = e->kind == RUN_DONE;
		if (e->kind == RUN_CALL) {
			json_t *a = json_loads(e->arguments, JSON_REJECT_DUPLICATES, NULL);

			MUST(json_is_object(a));
			json_decref(a);
		}
	}
	/* A grammar's limits may be reached; nothing else goes wrong. */
	MUST(run_result(run)->finish != GEN_ERROR || strstr(run_result(run)->err.text, "grammar") || strstr(run_result(run)->err.text, "every token"));
	run_free(run);
}

static void a_request(const char *text, size_t n, unsigned int kind)
{
	static struct http_server server = { .max_body = 1 << 20 };
	struct http_req r = { .s = &server, .who = -1, .body = (char *)(uintptr_t)text, .len = n };
	struct chat_request q = { 0 };
	bool ok;

	if (kind == 2) {
		json_t *b = http_json(&r), *c = b ? responses_as_chat(&r, b) : NULL;

		json_decref(b);
		ok = c && chat_request_from(s, &r, c, CHAT_FORM_RESPONSE, &q);
	} else {
		ok = chat_request_parse(s, &r, kind == 0, &q);
	}
	if (ok) {
		MUST(!r.answered);
		run_it(&q, &r);
	} else {
		MUST(r.answered && r.status >= 400 && r.status < 500);
	}
	chat_request_done(&q);
	done(&r);
}

/* -- multipart ------------------------------------------------------------------ */

static char path[64];

static void count_parts(struct http_req *r, void *ctx)
{
	static const char *const names[] = { "file", "model", "response_format", "temperature", "language", "stream", "prompt" };
	size_t n, all = 0;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		const char *p = http_part(r, names[i], &n);

		MUST(!p || !p[n]);
		all += p ? n : 0;
		p = http_part_file(r, names[i]);
		all += p ? strlen(p) : 0;
	}
	http_reply(r, 200, "text/plain", all ? "some" : "none", 4);
}

static void a_multipart(const uint8_t *p, size_t n)
{
	char head[256], answer[4096] = "";
	size_t got = 0;
	ssize_t k;
	int fd = tiny_connect(path), len;

	if (fd < 0 || n > 60000) {
		close(fd);
		return;
	}
	len = snprintf(head, sizeof(head), "POST /x HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: multipart/form-data; boundary=b\r\nContent-Length: %zu\r\n\r\n", n);
	if (send(fd, head, (size_t)len, MSG_NOSIGNAL) == len && (!n || send(fd, p, n, MSG_NOSIGNAL) == (ssize_t)n)) {
		while (got + 1 < sizeof(answer) && (k = recv(fd, answer + got, sizeof(answer) - 1 - got, 0)) > 0)
			got += (size_t)k;
		/* On a machine without a moment for the other thread the connection may end before its answer. */
		MUST(!got || strstr(answer, " 200 ") || strstr(answer, " 400 "));
	}
	close(fd);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	static const struct http_route route = { "POST", "/x", HTTP_OPEN | HTTP_MULTIPART, count_parts };
	static const char multipart[] = "\4--b\r\nContent-Disposition: form-data; name=\"model\"\r\n\r\nx\r\n--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.wav\"\r\n"
		"Content-Type: audio/wav\r\n\r\nRIFF\r\n--b--\r\n";
	struct http_server *h;
	struct hearth_err err = { 0 };
	struct http_opts o = { .unix_path = path, .max_body = 1 << 20, .max_connections = 1000, .idle_seconds = 3600, .routes = &route, .n_routes = 1 };
	char name[16];

	s = tiny_service();
	snprintf(path, sizeof(path), "%s/http", tiny_dir());
	MUST(http_start(&o, &h, &err) == 0);
	http_serve(h, s);
	fuzz_seed(*argc, *argv, "multipart", multipart, sizeof(multipart) - 1);
	for (size_t i = 0; i < RIGHT; i++) {
		/* as it is, and with places to change */
		char text[4096];
		const uint8_t change[] = { 3, (uint8_t)i, 2, 1, 0, 3, 0, 2, 1, 2, 9, 1, 4, 4 };

		snprintf(text, sizeof(text), "%c%s", i < 4 ? 0 : i < 6 ? 1 : 2, right[i]);
		snprintf(name, sizeof(name), "raw-%zu", i);
		fuzz_seed(*argc, *argv, name, text, strlen(right[i]) + 1);
		snprintf(name, sizeof(name), "made-%zu", i);
		fuzz_seed(*argc, *argv, name, change, sizeof(change));
	}
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct bytes b = { data + 1, size - 1 };
	unsigned int which;
	char *text;
	json_t *j;

	if (!size)
		return 0;
	switch (data[0] % 5) {
	case 0: case 1: case 2:
		a_request((const char *)data + 1, size - 1, data[0] % 5);
		return 0;
	case 4:
		a_multipart(data + 1, size - 1);
		return 0;
	default:
		break;
	}
	which = take(&b) % RIGHT;
	j = json_loads(right[which], 0, NULL);
	while (b.n)
		json_change(j, &b);
	text = json_dumps(j, JSON_COMPACT);
	json_decref(j);
	if (text)
		a_request(text, strlen(text), which < 4 ? 0 : which < 6 ? 1 : 2);
	free(text);
	return 0;
}
