// SPDX-License-Identifier: MIT
#include "unit.h"

#include <fcntl.h>
#include <math.h>
#include <sys/resource.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "voice/audio.h"
#include "voice/resample.h"

/* -- a WAV built byte by byte ------------------------------------------------------ */

struct wav {
	uint8_t b[1 << 20];
	size_t n;
	size_t data_size_at;
};

static struct wav w;

static void put(const void *p, size_t n)
{
	memcpy(w.b + w.n, p, n);
	w.n += n;
}

static void put16(unsigned v)
{
	uint8_t b[2] = { (uint8_t)v, (uint8_t)(v >> 8) };

	put(b, 2);
}

static void put32(uint32_t v)
{
	put16(v & 0xffff);
	put16(v >> 16);
}

static void head(int tag, int channels, int rate, int bits, uint32_t data_size)
{
	w.n = 0;
	put("RIFF", 4);
	put32(36 + data_size);
	put("WAVEfmt ", 8);
	put32(16);
	put16((unsigned)tag);
	put16((unsigned)channels);
	put32((uint32_t)rate);
	put32((uint32_t)(rate * channels * bits / 8));
	put16((unsigned)(channels * bits / 8));
	put16((unsigned)bits);
	put("data", 4);
	w.data_size_at = w.n;
	put32(data_size);
}

/* 16-bit mono, @n samples of a ramp. */
static void ramp(int rate, int n)
{
	head(1, 1, rate, 16, (uint32_t)n * 2);
	for (int i = 0; i < n; i++)
		put16((unsigned)(i * 7 - 1000) & 0xffff);
}

static int open_w(int rate, struct audio_in **in, struct hearth_err *err)
{
	return audio_in_mem(w.b, w.n, rate, in, err);
}

static size_t read_all(struct audio_in *in, int16_t *out, size_t room)
{
	struct hearth_err err = { 0 };
	size_t n = 0;
	ssize_t got;

	while ((got = audio_in_read(in, out + n, room - n < 777 ? room - n : 777, &err)) > 0) {
		n += (size_t)got;
		if (n == room)
			break;
	}
	if (got < 0)
		fail_msg("%s", err.text);
	return n;
}

static void refused(int code, const char *part)
{
	struct hearth_err err = { 0 };
	struct audio_in *in = NULL;

	assert_int_equal(open_w(16000, &in, &err), code);
	assert_null(in);
	if (!strstr(err.text, part))
		fail_msg("\"%s\" does not say \"%s\"", err.text, part);
}

static int16_t pcm[400000];

static void sixteen_bit_mono_passes_unchanged(void **state)
{
	struct audio_in *in;

	ramp(16000, 5000);
	assert_int_equal(open_w(16000, &in, NULL), 0);
	assert_int_equal(audio_in_info(in)->frames, 5000);
	assert_int_equal(audio_in_info(in)->channels, 1);
	assert_int_equal(audio_in_info(in)->rate, 16000);
	assert_string_equal(audio_in_info(in)->format, "16-bit PCM");
	assert_null(audio_in_remark(in));
	assert_int_equal(read_all(in, pcm, 6000), 5000);
	for (int i = 0; i < 5000; i++)
		assert_int_equal(pcm[i], (int16_t)(i * 7 - 1000));
	audio_in_close(in);
}

/* Every width of the same value, half of full scale; a little off by its own rounding. */
static void every_width_gives_the_same_sound(void **state)
{
	static const struct {
		int tag, bits;
		const char *bytes;
		int expect, slack;
	} forms[] = {
		{ 1, 8, "\xc0", 16384, 0 },
		{ 1, 16, "\x00\x40", 16384, 0 },
		{ 1, 24, "\x00\x00\x40", 16384, 0 },
		{ 1, 32, "\x00\x00\x00\x40", 16384, 0 },
		{ 3, 32, "\x00\x00\x00\x3f", 16384, 0 },
		{ 3, 64, "\x00\x00\x00\x00\x00\x00\xe0\x3f", 16384, 0 },
		{ 6, 8, "\xa5", 264 << 6, 0 },          /* G.711: segment 7, first step */
		{ 7, 8, "\x8f", (132 << 7) - 132, 0 },  /* G.711: segment 7, first step */
	};

	for (size_t f = 0; f < sizeof(forms) / sizeof(forms[0]); f++) {
		struct audio_in *in;

		head(forms[f].tag, 1, 16000, forms[f].bits, (uint32_t)(100 * forms[f].bits / 8));
		for (int i = 0; i < 100; i++)
			put(forms[f].bytes, (size_t)forms[f].bits / 8);
		assert_int_equal(open_w(16000, &in, NULL), 0);
		assert_int_equal(read_all(in, pcm, 200), 100);
		for (int i = 0; i < 100; i++)
			if (abs(pcm[i] - forms[f].expect) > forms[f].slack)
				fail_msg("codec %d, %d bits: %d", forms[f].tag, forms[f].bits, pcm[i]);
		audio_in_close(in);
	}
}

static void eight_channels_are_averaged(void **state)
{
	struct audio_in *in;

	head(1, 8, 16000, 16, 8 * 2 * 50);
	for (int i = 0; i < 50; i++)
		for (int c = 0; c < 8; c++)
			put16((unsigned)(c * 100 + i)); /* average: 350 + i */
	assert_int_equal(open_w(16000, &in, NULL), 0);
	assert_int_equal(audio_in_info(in)->channels, 8);
	assert_int_equal(read_all(in, pcm, 100), 50);
	for (int i = 0; i < 50; i++)
		assert_int_equal(pcm[i], 350 + i);
	audio_in_close(in);
}

/* A tone keeps its frequency and loudness through soxr; expected from the formula. */
static void a_tone_survives_every_rate(void **state)
{
	static const int rates[] = { 8000, 11025, 16000, 22050, 32000, 44100, 48000, 96000, 192000 };

	for (size_t r = 0; r < sizeof(rates) / sizeof(rates[0]); r++) {
		struct audio_in *in;
		size_t n;
		double worst = 0;
		int count = rates[r] / 2;

		head(3, 1, rates[r], 32, (uint32_t)count * 4);
		for (int i = 0; i < count; i++) {
			float x = 0.4f * (float)sin(2 * M_PI * 440.0 * i / rates[r]);

			put(&x, 4);
		}
		assert_int_equal(open_w(16000, &in, NULL), 0);
		n = read_all(in, pcm, sizeof(pcm) / 2);
		assert_in_range(n, 7999, 8001);
		for (size_t i = 800; i < 7200; i++) {
			double want = 0.4 * 32768 * sin(2 * M_PI * 440.0 * (double)i / 16000);

			if (fabs(pcm[i] - want) > worst)
				worst = fabs(pcm[i] - want);
		}
		if (worst > 4)
			fail_msg("from %d Hz: off by %.1f", rates[r], worst);
		audio_in_close(in);
	}
}

static void one_kilohertz_is_read_and_remarked_on(void **state)
{
	struct audio_in *in;

	ramp(1000, 1000);
	assert_int_equal(open_w(16000, &in, NULL), 0);
	assert_non_null(strstr(audio_in_remark(in), "1000 Hz"));
	assert_in_range(read_all(in, pcm, 20000), 15990, 16010);
	audio_in_close(in);
}

static void a_float_file_that_is_too_loud_saturates(void **state)
{
	struct audio_in *in;
	const float x[4] = { 2.0f, -3.0f, NAN, 1.0f };

	head(3, 1, 16000, 32, sizeof(x));
	put(x, sizeof(x));
	assert_int_equal(open_w(16000, &in, NULL), 0);
	assert_int_equal(read_all(in, pcm, 10), 4);
	assert_int_equal(pcm[0], 32767);
	assert_int_equal(pcm[1], -32768);
	assert_int_equal(pcm[2], 0);
	assert_int_equal(pcm[3], 32767);
	audio_in_close(in);
}

static void what_is_no_wav_gets_a_sentence(void **state)
{
	w.n = 0;
	refused(-EBADMSG, "empty file");
	put("hello, this is some text and not a sound", 40);
	refused(-EBADMSG, "not a WAV file");
	w.n = 3;
	refused(-EBADMSG, "not a WAV file");
	ramp(16000, 10);
	memcpy(w.b + 8, "AVI ", 4);
	refused(-EBADMSG, "not a WAV file");
}

static void a_cut_off_wav_is_refused_with_both_lengths(void **state)
{
	ramp(16000, 16000);
	w.n -= 16000;
	refused(-EBADMSG, "cut off: its header promises 1.00 s of sound (32000 bytes), the file holds 0.50 s (16000 bytes)");
	ramp(16000, 100);
	w.n = 16;
	refused(-EBADMSG, "ends within its header");
	ramp(16000, 100);
	w.n = 30;
	refused(-EBADMSG, "a chunk of its header is larger than the file");
	ramp(16000, 100);
	w.n = 40;
	refused(-EBADMSG, "ends before its samples");
}

static void zero_samples_get_a_sentence(void **state)
{
	ramp(16000, 0);
	refused(-ENODATA, "holds no samples");
}

static void broken_headers_are_refused(void **state)
{
	ramp(16000, 100);
	w.b[22] = 0;
	refused(-EBADMSG, "0 channels");
	ramp(16000, 100);
	w.b[22] = 200;
	refused(-ENOTSUP, "200 channels");
	ramp(16000, 100);
	memset(w.b + 24, 0, 4);
	refused(-EBADMSG, "sample rate of 0 Hz");
	ramp(16000, 100);
	memset(w.b + 24, 0xff, 4);
	refused(-ENOTSUP, "sample rate of 4294967295 Hz");
	ramp(16000, 100);
	w.b[32] = 3;
	refused(-EBADMSG, "frame size");
	ramp(16000, 100);
	w.b[34] = 12;
	refused(-ENOTSUP, "12 bits");
	ramp(16000, 100);
	w.b[20] = 0x55; /* MP3 */
	refused(-ENOTSUP, "codec 0x0055");
	ramp(16000, 100);
	w.b[16] = 4;
	refused(-EBADMSG, "format chunk is too short");
	ramp(16000, 100);
	memset(w.b + 16, 0xff, 4);
	refused(-EBADMSG, "larger than the file");
	head(1, 1, 16000, 16, 3);
	put("\1\2\3", 3);
	refused(-EBADMSG, "within a frame");
}

static void a_stream_without_a_length_is_read_to_its_end(void **state)
{
	struct audio_in *in;

	/* All ones, as a recorder to a pipe writes. */
	ramp(16000, 300);
	memset(w.b + 4, 0xff, 4);
	memset(w.b + w.data_size_at, 0xff, 4);
	assert_int_equal(open_w(16000, &in, NULL), 0);
	assert_int_equal(audio_in_info(in)->frames, 300);
	assert_int_equal(read_all(in, pcm, 1000), 300);
	audio_in_close(in);
	/* Zero, with samples after it. */
	ramp(16000, 300);
	memset(w.b + 4, 0, 4);
	memset(w.b + w.data_size_at, 0, 4);
	assert_int_equal(open_w(16000, &in, NULL), 0);
	assert_int_equal(read_all(in, pcm, 1000), 300);
	audio_in_close(in);
}

static void chunks_before_and_after_the_samples_are_skipped(void **state)
{
	struct audio_in *in;

	w.n = 0;
	put("RIFF", 4);
	put32(0);
	put("WAVE", 4);
	put("LIST", 4);
	put32(5);
	put("abcde\0", 6);
	put("fmt ", 4);
	put32(16);
	put16(1);
	put16(1);
	put32(16000);
	put32(32000);
	put16(2);
	put16(16);
	put("data", 4);
	put32(8);
	put("\1\0\2\0\3\0\4\0", 8);
	put("LIST", 4);
	put32(4);
	put("zzzz", 4);
	assert_int_equal(open_w(16000, &in, NULL), 0);
	assert_int_equal(read_all(in, pcm, 100), 4);
	assert_int_equal(pcm[3], 4);
	audio_in_close(in);
}

static void big_endian_and_extensible_are_read(void **state)
{
	struct audio_in *in;

	w.n = 0;
	put("RIFX\0\0\0\x28WAVEfmt \0\0\0\x10\0\1\0\1\0\0\x3e\x80\0\0\x7d\0\0\2\0\x10" "data\0\0\0\4\x12\x34\xff\xff", 48);
	assert_int_equal(open_w(16000, &in, NULL), 0);
	assert_int_equal(read_all(in, pcm, 100), 2);
	assert_int_equal(pcm[0], 0x1234);
	assert_int_equal(pcm[1], -1);
	audio_in_close(in);

	w.n = 0;
	put("RIFF", 4);
	put32(64);
	put("WAVEfmt ", 8);
	put32(40);
	put16(0xfffe);
	put16(1);
	put32(16000);
	put32(48000);
	put16(3);
	put16(24);
	put16(22);
	put16(24);
	put32(4);
	put("\1\0\0\0\0\0\x10\0\x80\0\0\xaa\0\x38\x9b\x71", 16);
	put("data", 4);
	put32(6);
	put("\0\0\x40\0\0\xc0", 6);
	assert_int_equal(open_w(16000, &in, NULL), 0);
	assert_string_equal(audio_in_info(in)->format, "24-bit PCM");
	assert_int_equal(read_all(in, pcm, 100), 2);
	assert_int_equal(pcm[0], 16384);
	assert_int_equal(pcm[1], -16384);
	audio_in_close(in);
}

/* -- files, pipes, the writer ---------------------------------------------------------- */

static char dir[] = "/tmp/test_audio.XXXXXX";
static char path[128];

static const char *in_dir(const char *name)
{
	snprintf(path, sizeof(path), "%s/%s", dir, name);
	return path;
}

static int entries(void)
{
	char cmd[128], out[32] = "";
	FILE *f;

	snprintf(cmd, sizeof(cmd), "ls -A %s | wc -l", dir);
	f = popen(cmd, "r");
	assert_non_null(fgets(out, sizeof(out), f));
	pclose(f);
	return atoi(out);
}

static void missing_and_unreadable_files_say_so(void **state)
{
	struct hearth_err err = { 0 };
	struct audio_in *in;

	assert_int_equal(audio_in_wav("/nonexistent/a.wav", 16000, &in, &err), -ENOENT);
	assert_non_null(strstr(err.text, "/nonexistent/a.wav: No such file"));
	assert_int_equal(audio_in_wav("/tmp", 16000, &in, &err), -EISDIR);
	assert_non_null(strstr(err.text, "folder"));
}

static void what_is_written_reads_back(void **state)
{
	struct hearth_err err = { 0 };
	struct audio_out *out;
	struct audio_in *in;
	int16_t x[1000];

	for (int i = 0; i < 1000; i++)
		x[i] = (int16_t)(i * 31 - 15000);
	assert_int_equal(audio_out_wav(in_dir("a.wav"), 22050, &out, &err), 0);
	for (int i = 0; i < 30; i++)
		assert_int_equal(audio_out_write(out, x, 1000, &err), 0);
	assert_int_equal(entries(), 0); /* nothing is there before it is whole */
	assert_int_equal(audio_out_commit(out, &err), 0);
	assert_int_equal(audio_out_samples(out), 30000);
	audio_out_close(out);
	assert_int_equal(entries(), 1);
	assert_int_equal(audio_in_wav(path, 22050, &in, &err), 0);
	assert_int_equal(audio_in_info(in)->frames, 30000);
	assert_int_equal(read_all(in, pcm, 40000), 30000);
	for (int i = 0; i < 30000; i++)
		assert_int_equal(pcm[i], x[i % 1000]);
	audio_in_close(in);
	unlink(path);
}

static void without_commit_the_old_file_stays_and_nothing_else(void **state)
{
	struct audio_out *out;
	FILE *f = fopen(in_dir("old.wav"), "w");
	char text[16] = "";

	fputs("old content", f);
	fclose(f);
	assert_int_equal(audio_out_wav(path, 16000, &out, NULL), 0);
	assert_int_equal(audio_out_write(out, (int16_t[]){ 1, 2, 3 }, 3, NULL), 0);
	audio_out_close(out);
	assert_int_equal(entries(), 1);
	f = fopen(path, "r");
	assert_non_null(fgets(text, sizeof(text), f));
	fclose(f);
	assert_string_equal(text, "old content");
	/* And with it the new one replaces it, through a symbolic link too. */
	assert_int_equal(symlink("old.wav", in_dir("link.wav")), 0);
	assert_int_equal(audio_out_wav(path, 16000, &out, NULL), 0);
	assert_int_equal(audio_out_write(out, (int16_t[]){ 1, 2, 3 }, 3, NULL), 0);
	assert_int_equal(audio_out_commit(out, NULL), 0);
	audio_out_close(out);
	assert_int_equal(entries(), 2);
	f = fopen(in_dir("old.wav"), "r");
	assert_non_null(fgets(text, 5, f));
	fclose(f);
	assert_string_equal(text, "RIFF");
	unlink(path);
	unlink(in_dir("link.wav"));
}

static void a_killed_writer_leaves_nothing(void **state)
{
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		struct audio_out *out;

		audio_out_wav(in_dir("k.wav"), 16000, &out, NULL);
		audio_out_write(out, pcm, 100000, NULL);
		raise(SIGKILL);
	}
	waitpid(pid, &status, 0);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(entries(), 0);
}

static void outputs_that_cannot_be_are_refused_at_once(void **state)
{
	struct hearth_err err = { 0 };
	struct audio_out *out;

	assert_int_equal(audio_out_wav("/nonexistent/x.wav", 16000, &out, &err), -ENOENT);
	assert_non_null(strstr(err.text, "/nonexistent/x.wav: cannot be written"));
	assert_int_equal(audio_out_wav("/tmp", 16000, &out, &err), -EISDIR);
	assert_int_equal(audio_out_wav("/proc/x.wav", 16000, &out, &err) < 0, 1);
}

static void no_write_permission_is_said(void **state)
{
	struct hearth_err err = { 0 };
	struct audio_out *out;

	if (geteuid() == 0) {
		pid_t pid = fork();
		int status;

		/* As nobody: root may write anywhere. */
		if (pid == 0) {
			if (setgid(65534) || setuid(65534))
				_exit(9);
			_exit(audio_out_wav("/usr/x.wav", 16000, &out, &err) == -EACCES &&
			      strstr(err.text, "Permission denied") ? 0 : 1);
		}
		waitpid(pid, &status, 0);
		assert_int_equal(status, 0);
		return;
	}
	assert_int_equal(audio_out_wav("/usr/x.wav", 16000, &out, &err), -EACCES);
	assert_non_null(strstr(err.text, "Permission denied"));
}

static void a_full_disk_is_said_and_leaves_nothing(void **state)
{
	struct hearth_err err = { 0 };
	struct audio_out *out;
	struct rlimit old, tight = { 50000, RLIM_INFINITY };

	/* /dev/full is a device: its samples are written at commit. */
	assert_int_equal(audio_out_wav("/dev/full", 16000, &out, &err), 0);
	assert_int_equal(audio_out_write(out, pcm, 1000, &err), 0);
	assert_int_equal(audio_out_commit(out, &err), -ENOSPC);
	assert_non_null(strstr(err.text, "/dev/full: cannot be written: No space left on device"));
	audio_out_close(out);
	/* A file that may not grow: the nearest thing to a full disk without mounting one. */
	signal(SIGXFSZ, SIG_IGN);
	getrlimit(RLIMIT_FSIZE, &old);
	tight.rlim_max = old.rlim_max;
	setrlimit(RLIMIT_FSIZE, &tight);
	assert_int_equal(audio_out_wav(in_dir("full.wav"), 16000, &out, &err), 0);
	assert_int_equal(audio_out_write(out, pcm, 100000, &err), -EFBIG);
	audio_out_close(out);
	setrlimit(RLIMIT_FSIZE, &old);
	assert_int_equal(entries(), 0);
}

static void a_pipe_is_read_and_a_cut_one_says_where(void **state)
{
	struct hearth_err err = { 0 };
	struct audio_in *in;
	char name[64];
	int p[2];
	ssize_t got;

	ramp(16000, 8000);
	assert_int_equal(pipe(p), 0);
	snprintf(name, sizeof(name), "/dev/fd/%d", p[0]);
	assert_int_equal(write(p[1], w.b, w.n), w.n);
	close(p[1]);
	assert_int_equal(audio_in_wav(name, 16000, &in, &err), 0);
	assert_int_equal(read_all(in, pcm, 10000), 8000);
	assert_int_equal(pcm[7999], (int16_t)(7999 * 7 - 1000));
	audio_in_close(in);
	close(p[0]);

	assert_int_equal(pipe(p), 0);
	snprintf(name, sizeof(name), "/dev/fd/%d", p[0]);
	assert_int_equal(write(p[1], w.b, w.n - 8000), w.n - 8000);
	close(p[1]);
	assert_int_equal(audio_in_wav(name, 16000, &in, &err), 0);
	while ((got = audio_in_read(in, pcm, 1000, &err)) > 0)
		;
	assert_int_equal(got, -EBADMSG);
	assert_non_null(strstr(err.text, "promises 0.50 s of sound, it ended after 0.25 s"));
	audio_in_close(in);
	close(p[0]);
}

/* An hour is streamed: the memory of the process does not grow with it. */
static void an_hour_takes_no_more_memory_than_a_second(void **state)
{
	struct hearth_err err = { 0 };
	struct audio_in *in;
	struct rusage before, after;
	int64_t total = 0;
	ssize_t n;
	int fd;

	head(1, 1, 48000, 16, 3600u * 48000 * 2);
	fd = open(in_dir("hour.wav"), O_CREAT | O_RDWR, 0600);
	assert_int_equal(write(fd, w.b, w.n), w.n);
	assert_int_equal(ftruncate(fd, 44 + 3600LL * 48000 * 2), 0); /* a hole: an hour of silence */
	close(fd);
	getrusage(RUSAGE_SELF, &before);
	assert_int_equal(audio_in_wav(path, 16000, &in, &err), 0);
	while ((n = audio_in_read(in, pcm, 1024, &err)) > 0)
		total += n;
	getrusage(RUSAGE_SELF, &after);
	assert_int_equal(n, 0);
	assert_in_range(total, 3600 * 16000 - 2, 3600 * 16000 + 2);
	assert_in_range(after.ru_maxrss - before.ru_maxrss, 0, 8000); /* KiB */
	audio_in_close(in);
	unlink(path);
}

static void a_stopped_source_ends(void **state)
{
	struct audio_in *in;

	ramp(16000, 5000);
	assert_int_equal(open_w(16000, &in, NULL), 0);
	assert_int_equal(audio_in_read(in, pcm, 100, NULL) > 0, 1);
	audio_in_stop(in);
	assert_int_equal(audio_in_read(in, pcm, 100, NULL), 0);
	audio_in_close(in);
	audio_in_close(NULL);
	audio_out_close(NULL);
}

/* -- the sound card: ALSA's own null device is always there -------------------------- */

static void a_missing_device_is_said(void **state)
{
	struct hearth_err err = { 0 };
	struct audio_out *out;
	struct audio_in *in;

	assert_int_equal(audio_out_card("no-such-device", 16000, &out, &err), -ENODEV);
	assert_non_null(strstr(err.text, "sound card \"no-such-device\": cannot be opened: No such"));
	assert_non_null(strstr(err.text, "aplay -L lists"));
	assert_int_equal(audio_in_mic("no-such-device", 16000, &in, &err), -ENODEV);
	assert_non_null(strstr(err.text, "microphone \"no-such-device\": cannot be opened: No such"));
	assert_non_null(strstr(err.text, "arecord -L lists"));
}

static void the_null_device_plays_and_records(void **state)
{
	struct hearth_err err = { 0 };
	struct audio_out *out;
	struct audio_in *in;

	if (audio_out_card("null", 16000, &out, &err))
		fail_msg("%s", err.text);
	assert_int_equal(audio_out_write(out, pcm, 32000, &err), 0);
	assert_int_equal(audio_out_samples(out), 32000);
	assert_int_equal(audio_out_commit(out, &err), 0);
	audio_out_stop(out);
	assert_int_equal(audio_out_write(out, pcm, 10, &err), -ECANCELED);
	audio_out_close(out);
	if (audio_in_mic("null", 16000, &in, &err))
		fail_msg("%s", err.text);
	assert_int_equal(audio_in_read(in, pcm, 512, &err) > 0, 1);
	audio_in_stop(in);
	assert_int_equal(audio_in_read(in, pcm, 512, &err), 0);
	audio_in_close(in);
}

static int setup(void **state)
{
	return mkdtemp(dir) ? 0 : -1;
}

static int teardown(void **state)
{
	return rmdir(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sixteen_bit_mono_passes_unchanged),
		cmocka_unit_test(every_width_gives_the_same_sound),
		cmocka_unit_test(eight_channels_are_averaged),
		cmocka_unit_test(a_tone_survives_every_rate),
		cmocka_unit_test(one_kilohertz_is_read_and_remarked_on),
		cmocka_unit_test(a_float_file_that_is_too_loud_saturates),
		cmocka_unit_test(what_is_no_wav_gets_a_sentence),
		cmocka_unit_test(a_cut_off_wav_is_refused_with_both_lengths),
		cmocka_unit_test(zero_samples_get_a_sentence),
		cmocka_unit_test(broken_headers_are_refused),
		cmocka_unit_test(a_stream_without_a_length_is_read_to_its_end),
		cmocka_unit_test(chunks_before_and_after_the_samples_are_skipped),
		cmocka_unit_test(big_endian_and_extensible_are_read),
		cmocka_unit_test(missing_and_unreadable_files_say_so),
		cmocka_unit_test(what_is_written_reads_back),
		cmocka_unit_test(without_commit_the_old_file_stays_and_nothing_else),
		cmocka_unit_test(a_killed_writer_leaves_nothing),
		cmocka_unit_test(outputs_that_cannot_be_are_refused_at_once),
		cmocka_unit_test(no_write_permission_is_said),
		cmocka_unit_test(a_full_disk_is_said_and_leaves_nothing),
		cmocka_unit_test(a_pipe_is_read_and_a_cut_one_says_where),
		cmocka_unit_test(an_hour_takes_no_more_memory_than_a_second),
		cmocka_unit_test(a_stopped_source_ends),
		cmocka_unit_test(a_missing_device_is_said),
		cmocka_unit_test(the_null_device_plays_and_records),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("audio", tests, setup, teardown);
}
