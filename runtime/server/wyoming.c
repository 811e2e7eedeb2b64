// SPDX-License-Identifier: MIT
#include "server/wyoming.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/mono.h"
#include "server/listen.h"
#include "server/service.h"
#include "server/speech.h"
#include "server/wyoming_priv.h"
#include "server/zeroconf.h"
#include "voice/chunker.h"

#define FULL_MS 100              /* without a descriptor to spare */
#define LINGER_MS 1000           /* for a client to read why it is over */

/* -- one connection ------------------------------------------------------------------ */

static void take_event(struct client *c, const struct wyoming_event *e)
{
	const char *text = json_string_value(json_object_get(e->data, "text"));

	if (!strcmp(e->type, "describe")) {
		describe(c);
	} else if (!strcmp(e->type, "ping")) {
		say_event(c, "pong", text ? json_pack("{s:s}", "text", text) : json_object(), NULL, 0);
	} else if (!strcmp(e->type, "transcribe")) {
		c->stream_text = true;
		c->detecting = false;
	} else if (!strcmp(e->type, "detect")) {
		detect(c, e->data);
	} else if (!strcmp(e->type, "audio-start")) {
		audio_start(c, e->data);
	} else if (!strcmp(e->type, "audio-chunk")) {
		audio_chunk(c, e);
	} else if (!strcmp(e->type, "audio-stop")) {
		audio_stop(c);
	} else if (!strcmp(e->type, "synthesize")) {
		synthesize(c, e->data);
	} else if (!strcmp(e->type, "synthesize-start")) {
		synthesize_start(c, e->data);
	} else if (!strcmp(e->type, "synthesize-chunk")) {
		synthesize_chunk(c, text);
	} else if (!strcmp(e->type, "synthesize-stop")) {
		synthesize_stop(c);
	} else if (!strcmp(e->type, "transcript")) {
		handle_text(c, e->data, false);
	} else if (!strcmp(e->type, "recognize")) {
		handle_text(c, e->data, true);
	}
	/* Anything else is of a newer protocol, or for somebody else: ignored, as the protocol asks. */
}

/* How long to wait for the next byte; what is due when it does not come is in client_thread(). */
static int patience(struct client *c)
{
	int due = speak_due(c), limit = c->gate || c->wake || wyoming_half(c->in) ? STALL_MS : IDLE_MS;

	return due >= 0 && due < limit ? due : limit;
}

/* What was said last is to be read: closed with bytes unread, the connection would be reset and it lost. */
static void let_read(struct client *c)
{
	const int64_t until = mono_ns() + LINGER_MS * 1000000;
	struct pollfd p = { .fd = c->fd, .events = POLLIN };
	char waste[4096];
	int64_t left;

	shutdown(c->fd, SHUT_WR);
	while ((left = (until - mono_ns()) / 1000000) > 0 && poll(&p, 1, (int)left) > 0 && recv(c->fd, waste, sizeof(waste), MSG_DONTWAIT) > 0)
		;
}

static void *client_thread(void *arg)
{
	struct client *c = arg;
	struct pollfd p[2] = { { .fd = c->fd, .events = POLLIN }, { .fd = c->w->wake[0], .events = POLLIN } };
	struct wyoming_event e;
	char buf[16384];
	const char *why = "";
	int rc = 0, waited = 0;

	while (!c->gone && !rc && !atomic_load(&c->w->stopping)) {
		int ms = patience(c), k = poll(p, 2, ms);
		ssize_t n;

		if (k < 0 && errno == EINTR)
			continue;
		if (k == 0) {
			speak_tick(c);
			waited += ms;
			if (waited < STALL_MS)
				continue;
			if (c->gate || c->wake) {
				/* The recogniser is one for all: who sends nothing lets go of it. */
				hearing_over(c);
				c->failed = true;
				say_error(c, "audio-timeout", "no audio came for 15 s");
				waited = 0;
				continue;
			}
			if (wyoming_half(c->in)) {
				rc = -EBADMSG;
				why = "half an event came, and nothing more for 15 s";
				break;
			}
			if (waited < IDLE_MS)
				continue;
			break;
		}
		if (!p[0].revents)
			continue;  /* the server stops */
		waited = 0;
		n = recv(c->fd, buf, sizeof(buf), 0);
		if (n <= 0)
			break;
		rc = wyoming_feed(c->in, buf, (size_t)n, &why);
		while (!c->gone && wyoming_next(c->in, &e)) {
			take_event(c, &e);
			wyoming_event_done(&e);
		}
	}
	if (rc == -EBADMSG)
		say_error(c, "bad-event", why);
	/* Who speaks, listens for the wake word or has text spoken waits for an answer that does not come. */
	if (atomic_load(&c->w->stopping) && (c->gate || c->detecting || c->streaming || c->told)) {
		hearing_over(c);
		say_stopping(c);
		let_read(c);
	}
	hearing_over(c);
	chunker_free(c->chunker);
	c->chunker = NULL;
	wyoming_reader_free(c->in);
	free(c->backlog);
	c->backlog = NULL;
	shutdown(c->fd, SHUT_RDWR);
	pthread_mutex_lock(&c->w->lock);
	close(c->fd);
	c->fd = -1;
	c->live = false;
	pthread_cond_broadcast(&c->w->ended);
	pthread_mutex_unlock(&c->w->lock);
	return NULL;
}

static void admit(struct wyoming *w, int fd, unsigned int services)
{
	struct client *c = NULL;

	pthread_mutex_lock(&w->lock);
	for (int i = 0; i < WYOMING_CLIENTS && !c; i++)
		if (!w->clients[i].live)
			c = &w->clients[i];
	if (c) {
		if (c->thread)
			pthread_join(c->thread, NULL);
		if (c->w)
			pthread_mutex_destroy(&c->out);
		memset(c, 0, sizeof(*c));
		pthread_mutex_init(&c->out, NULL);
		c->w = w;
		c->fd = fd;
		c->services = services;
		if (wyoming_reader_new(&c->in) == 0) {
			c->live = true;
			if (pthread_create(&c->thread, NULL, client_thread, c)) {
				wyoming_reader_free(c->in);
				c->live = false;
				c->thread = 0;
			}
		}
	}
	/* Full: the connection is closed at once, which a client sees and retries. */
	if (!c || !c->live)
		close(fd);
	pthread_mutex_unlock(&w->lock);
}

static void *accept_thread(void *arg)
{
	struct wyoming *w = arg;
	struct pollfd p[CONFIG_MAX_WYOMING + 1];

	for (unsigned int i = 0; i < w->n; i++)
		p[i] = (struct pollfd){ .fd = w->fd[i], .events = POLLIN };
	p[w->n] = (struct pollfd){ .fd = w->wake[0], .events = POLLIN };
	while (poll(p, w->n + 1, -1) >= 0 || errno == EINTR) {
		if (atomic_load(&w->stopping))
			break;
		for (unsigned int i = 0; i < w->n; i++) {
			int fd = p[i].revents & POLLIN ? accept4(w->fd[i], NULL, NULL, SOCK_CLOEXEC) : -1;

			if (fd >= 0)
				admit(w, fd, w->cfg->wy[i].services);
			else if (p[i].revents & POLLIN && (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS))
				/* The client goes on knocking: not at the price of a core. */
				poll(&p[w->n], 1, FULL_MS);
		}
	}
	return NULL;
}

/* Announces what can be reached from the network. */
static void announce(struct wyoming *w, void (*said)(void *arg, const char *line))
{
	uint16_t ports[CONFIG_MAX_WYOMING];
	struct hearth_err err = { 0 };
	unsigned int n = 0;
	char name[96], host[48] = "host";

	for (unsigned int i = 0; i < w->n; i++)
		if (!w->cfg->wy[i].at.unix_path && !config_is_loopback(w->cfg->wy[i].at.host))
			ports[n++] = w->port[i];
	if (!n)
		return;
	gethostname(host, sizeof(host) - 1);
	snprintf(name, sizeof(name), "hearth %s", host);
	if (zeroconf_start(name, "_wyoming._tcp", ports, n, said, w, &w->zeroconf, &err))
		said(w, err.text);
}

int wyoming_start(const struct config *cfg, struct service *s, void (*said)(void *arg, const char *line), struct wyoming **ret, struct hearth_err *err)
{
	struct wyoming *w = calloc(1, sizeof(*w));
	unsigned int all = 0;
	int rc = 0;

	if (!w)
		return err_set(err, -ENOMEM, "out of memory");
	w->cfg = cfg;
	w->service = s;
	w->said = said;
	w->wake[0] = w->wake[1] = -1;
	pthread_mutex_init(&w->lock, NULL);
	mono_cond(&w->ended);
	for (; w->n < cfg->n_wy && !rc; w->n++) {
		const struct config_listen *l = &cfg->wy[w->n].at;
		int fd = l->unix_path ? listen_unix(l->unix_path, err) : listen_tcp(l->host, l->port, &w->port[w->n], err);

		if (fd < 0) {
			rc = fd;
			break;
		}
		w->fd[w->n] = fd;
		all |= cfg->wy[w->n].services;
	}
	if (!rc && all & (WYOMING_HANDLE | WYOMING_INTENT))
		rc = assistant_open(cfg, s, &w->assistant, err);
	if (!rc && (pipe2(w->wake, O_CLOEXEC) || pthread_create(&w->thread, NULL, accept_thread, w)))
		rc = err_set(err, -EAGAIN, "no thread for the Wyoming server");
	if (rc) {
		w->thread = 0;
		wyoming_stop(w);
		return rc;
	}
	if (cfg->zeroconf)
		announce(w, said);
	*ret = w;
	return 0;
}

unsigned int wyoming_addresses(const struct wyoming *w)
{
	return w->n;
}

uint16_t wyoming_port(const struct wyoming *w, unsigned int i)
{
	return w->port[i];
}

/* Lock held. */
static struct client *some_live(struct wyoming *w)
{
	for (int i = 0; i < WYOMING_CLIENTS; i++)
		if (w->clients[i].live)
			return &w->clients[i];
	return NULL;
}

void wyoming_stop(struct wyoming *w)
{
	struct timespec until;
	int rc = 0;

	if (!w)
		return;
	zeroconf_stop(w->zeroconf);
	atomic_store(&w->stopping, true);
	if (w->thread) {
		if (write(w->wake[1], "x", 1) < 0)
			shutdown(w->fd[0], SHUT_RDWR);
		pthread_join(w->thread, NULL);
	}
	/* Each sees it by itself and says what there is to say; who does not get done with it is cut off. */
	pthread_mutex_lock(&w->lock);
	until = mono_after(STOP_MS);
	while (some_live(w) && !rc)
		rc = pthread_cond_timedwait(&w->ended, &w->lock, &until);
	for (int i = 0; i < WYOMING_CLIENTS; i++)
		if (w->clients[i].live)
			shutdown(w->clients[i].fd, SHUT_RDWR);
	pthread_mutex_unlock(&w->lock);
	for (int i = 0; i < WYOMING_CLIENTS; i++) {
		if (!w->clients[i].w)
			continue;
		if (w->clients[i].thread)
			pthread_join(w->clients[i].thread, NULL);
		pthread_mutex_destroy(&w->clients[i].out);
	}
	for (unsigned int i = 0; i < w->n; i++) {
		close(w->fd[i]);
		if (w->cfg->wy[i].at.unix_path)
			unlink(w->cfg->wy[i].at.unix_path);
	}
	if (w->wake[0] >= 0) {
		close(w->wake[0]);
		close(w->wake[1]);
	}
	assistant_close(w->assistant);
	pthread_cond_destroy(&w->ended);
	pthread_mutex_destroy(&w->lock);
	free(w);
}
