// SPDX-License-Identifier: MIT
/*
 * Events of a Realtime client, one after the other on one session: nearly right
 * ones, and bytes. Answers that are asked for are made by a tiny model. Whatever
 * comes, each message that goes out is JSON with a type, and the list of items
 * holds each once.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "json_ops.h"
#include "seeds.h"
#include "tiny_service.h"
#include "server/realtime_priv.h"
#include "server/websocket.h"

#define MUST(x) do { if (!(x)) __builtin_trap(); } while (0)

static const char *const right[] = {
	"{\"type\":\"session.update\",\"event_id\":\"e\",\"session\":{\"type\":\"realtime\",\"instructions\":\"Be brief.\",\"output_modalities\":[\"text\"],\"temperature\":1,\"max_output_tokens\":4,"
	"\"tool_choice\":\"auto\",\"tools\":[{\"type\":\"function\",\"name\":\"f\",\"parameters\":{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"boolean\"}},\"required\":[\"a\"]}}],"
	"\"audio\":{\"input\":{\"format\":{\"type\":\"audio/pcm\",\"rate\":24000},\"turn_detection\":{\"type\":\"server_vad\",\"threshold\":0.5,\"silence_duration_ms\":300,\"create_response\":true}},"
	"\"output\":{\"format\":{\"type\":\"audio/pcm\"},\"voice\":\"slt\"}}}}",
	"{\"type\":\"conversation.item.create\",\"previous_item_id\":\"root\",\"item\":{\"id\":\"a\",\"type\":\"message\",\"role\":\"user\",\"content\":[{\"type\":\"input_text\",\"text\":\"hi\"}]}}",
	"{\"type\":\"conversation.item.create\",\"item\":{\"id\":\"root\",\"type\":\"message\",\"role\":\"assistant\",\"content\":[{\"type\":\"output_audio\",\"transcript\":\"yes\"}]}}",
	"{\"type\":\"conversation.item.create\",\"item\":{\"id\":\"c\",\"type\":\"function_call\",\"call_id\":\"x\",\"name\":\"f\",\"arguments\":\"{}\"}}",
	"{\"type\":\"conversation.item.create\",\"previous_item_id\":\"c\",\"item\":{\"id\":\"d\",\"type\":\"function_call_output\",\"call_id\":\"x\",\"output\":\"ok\"}}",
	"{\"type\":\"conversation.item.retrieve\",\"item_id\":\"a\"}",
	"{\"type\":\"conversation.item.delete\",\"item_id\":\"c\"}",
	"{\"type\":\"conversation.item.truncate\",\"item_id\":\"root\",\"content_index\":0,\"audio_end_ms\":0}",
	"{\"type\":\"response.create\",\"response\":{\"max_output_tokens\":3,\"output_modalities\":[\"text\"],\"metadata\":{\"k\":\"v\"},\"tool_choice\":\"none\"}}",
	"{\"type\":\"response.create\",\"response\":{\"tool_choice\":{\"type\":\"function\",\"name\":\"f\"},\"temperature\":2}}",
	"{\"type\":\"response.cancel\"}",
	"{\"type\":\"input_audio_buffer.append\",\"audio\":\"AAAA\"}",
	"{\"type\":\"input_audio_buffer.commit\"}",
	"{\"type\":\"input_audio_buffer.clear\"}",
	"{\"type\":\"transcription_session.update\",\"session\":{\"turn_detection\":null,\"input_audio_format\":\"pcm16\",\"modalities\":[\"text\"],\"max_response_output_tokens\":\"inf\"}}",
	"{\"type\":\"output_audio_buffer.clear\"}",
};
#define RIGHT (sizeof(right) / sizeof(right[0]))

static struct service *s;

static uint8_t buf[1 << 22];
static size_t n_buf;

/* Unmasked frames of a server, whole texts each, as far as they are there. */
static void read_all(int fd)
{
	ssize_t k;
	size_t at = 0;

	while ((k = recv(fd, buf + n_buf, sizeof(buf) - n_buf, MSG_DONTWAIT)) > 0)
		n_buf += (size_t)k;
	while (n_buf - at >= 2) {
		uint64_t len = buf[at + 1] & 0x7f;
		size_t head = 2;

		if (len == 126 && n_buf - at >= 4) {
			len = (uint64_t)buf[at + 2] << 8 | buf[at + 3];
			head = 4;
		} else if (len == 127 && n_buf - at >= 10) {
			len = 0;
			for (int i = 0; i < 8; i++)
				len = len << 8 | buf[at + 2 + (size_t)i];
			head = 10;
		} else if (len >= 126) {
			break;
		}
		if (n_buf - at < head + len)
			break;
		if ((buf[at] & 0xf) == 1) {
			json_t *j = json_loadb((char *)buf + at + head, len, 0, NULL);

			MUST(json_is_string(json_object_get(j, "type")));
			json_decref(j);
		}
		at += head + len;
	}
	memmove(buf, buf + at, n_buf - at);
	n_buf -= at;
}

static void once_each(struct rt_session *c)
{
	pthread_mutex_lock(&c->lock);
	for (size_t i = 0; i < c->n_items; i++) {
		MUST(c->items[i].role && c->items[i].id[0]);
		MUST(rt_item_find(c, c->items[i].id) == &c->items[i]);
	}
	pthread_mutex_unlock(&c->lock);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	uint8_t all[8 * RIGHT + 1] = { 0 };
	size_t n = 0;

	s = tiny_service();
	all[n++] = 0;
	for (uint8_t i = 0; i < RIGHT; i++) {
		all[n++] = i;
		all[n++] = 0;
	}
	fuzz_seed(*argc, *argv, "in-order", all, n);
	fuzz_seed(*argc, *argv, "raw", "\1\xff{\"type\":\"response.cancel\"}", 28);
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct bytes b = { data + 1, size - 1 };
	struct rt_session *c;
	int fd[2], big = 1 << 22;

	n_buf = 0;
	if (!size || socketpair(AF_UNIX, SOCK_STREAM, 0, fd))
		return 0;
	setsockopt(fd[0], SOL_SOCKET, SO_SNDBUF, &big, sizeof(big));
	c = rt_session_new(s, -1, data[0] & 1);
	MUST(c);
	c->fd = fd[0];
	MUST(websocket_open(fd[0], NULL, 0, 1 << 20, &c->ws) == 0);
	c->max_tokens = 8;
	for (int events = 0; b.n && events < 40; events++) {
		const unsigned int which = take(&b);

		if (which == 0xff) {
			size_t k = b.n < 400 ? b.n : 400;

			rt_take_event(c, (const char *)b.p, k);
			b.p += k;
			b.n -= k;
		} else {
			json_t *j = json_loads(right[which % RIGHT], 0, NULL);
			char *text;

			for (unsigned int k = take(&b) % 4; k; k--)
				json_change(j, &b);
			text = json_dumps(j, JSON_COMPACT);
			json_decref(j);
			if (text)
				rt_take_event(c, text, strlen(text));
			free(text);
		}
		once_each(c);
		read_all(fd[1]);
	}
	rt_end_response(c, true);
	read_all(fd[1]);
	/* Its last words are not waited for. */
	shutdown(fd[1], SHUT_RDWR);
	websocket_close(c->ws);
	rt_session_free(c);
	close(fd[0]);
	close(fd[1]);
	return 0;
}
