// SPDX-License-Identifier: MIT
/* hearth say: a text as a WAV file, in any voice there is. */
#include "hearth.h"

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "voice/speak.h"

static const char help[] =
	"usage: hearth say [OPTION...] TEXT...\n"
	"\n"
	"  -o, --out FILE       the WAV file (default: say.wav)\n"
	"      --voice NAME     slt, rms, awb, kal16 (flite) or espeak-ng (default: slt)\n"
	"      --play           play it too\n"
	"      --sound DEVICE   ALSA device (default: default)\n";

struct saying {
	struct audio_out *file, *card;
	struct hearth_err err;
	int status;
	uint64_t samples;
};

static int on_audio(void *ctx, uint64_t id, const int16_t *pcm, size_t n, bool first)
{
	struct saying *s = ctx;

	if (!s->status && s->file)
		s->status = audio_out_write(s->file, pcm, n, &s->err);
	if (!s->status && s->card)
		s->status = audio_out_write(s->card, pcm, n, &s->err);
	return s->status;
}

static void on_done(void *ctx, uint64_t id, int status, uint64_t samples)
{
	struct saying *s = ctx;

	s->samples += samples;
	if (status && !s->status) {
		s->status = status;
		err_set(&s->err, status, "the speech engine failed: %s", strerror(-status));
	}
}

int main_say(int argc, char **argv)
{
	static const struct option options[] = {
		{ "out", required_argument, NULL, 'o' }, { "voice", required_argument, NULL, 'v' }, { "play", no_argument, NULL, 'p' },
		{ "sound", required_argument, NULL, 's' }, { "help", no_argument, NULL, 'h' }, { NULL, 0, NULL, 0 }
	};
	const char *out = "say.wav", *sound = "default";
	struct tts_options to;
	struct saying s = { .status = 0 };
	struct tts_events ev = { .audio = on_audio, .done = on_done, .ctx = &s };
	struct tts *tts = NULL;
	bool play = false;
	int opt, code = 0, i;

	tts_defaults(&to);
	while ((opt = getopt_long(argc, argv, "o:h", options, NULL)) != -1) {
		switch (opt) {
		case 'o': out = optarg; break;
		case 'v': to.voice = optarg; break;
		case 'p': play = true; break;
		case 's': sound = optarg; break;
		case 'h': fputs(help, stdout); return EXIT_OK;
		default: return EXIT_USAGE;
		}
	}
	if (optind == argc)
		return complain(EXIT_USAGE, "nothing to say; hearth say --help tells more");
	stop_on_signals();
	if (tts_open(&to, NULL, &ev, &tts, &s.err))
		return complain(EXIT_SPEECH, "%s", s.err.text);
	if (*out && audio_out_wav(out, tts_rate(tts), &s.file, &s.err))
		code = complain(EXIT_OUTPUT, "%s", s.err.text);
	if (!code && play && audio_out_card(sound, tts_rate(tts), &s.card, &s.err))
		code = complain(EXIT_DEVICE, "%s", s.err.text);
	for (i = optind; !code && i < argc; i++) {
		char *spoken;

		if (speak_text(argv[i], strlen(argv[i]), &spoken))
			code = complain(EXIT_OTHER, "out of memory");
		else if (tts_say(tts, (uint64_t)i, spoken, -1))
			code = complain(EXIT_USAGE, "this cannot be said in one piece: \"%.60s\"", argv[i]);
		else
			free(spoken);
	}
	tts_drain(tts, -1);
	if (!code && s.status)
		code = complain(EXIT_OUTPUT, "%s", s.err.text);
	if (!code && !s.samples)
		code = complain(EXIT_USAGE, "there is nothing in it that can be said");
	if (!code && s.file && audio_out_commit(s.file, &s.err))
		code = complain(EXIT_OUTPUT, "%s", s.err.text);
	if (!code && s.card)
		audio_out_commit(s.card, NULL);
	tts_close(tts);
	audio_out_close(s.file);
	audio_out_close(s.card);
	return code;
}
