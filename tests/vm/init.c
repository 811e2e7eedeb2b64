/* SPDX-License-Identifier: MIT */
/*
 * The first program of a test guest. Mounts what is needed, loads the modules,
 * runs the programs listed in /tests one after the other, looks at the kernel's
 * log after each, and writes results to a serial port of its own. Its last word
 * there is "success" or "failure"; a guest that hangs or panics says neither.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

static int port = 2, kmsg = -1, bad, selftests;

static void say(const char *fmt, ...)
{
	char buf[1200];
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(buf, sizeof(buf), fmt, ap);
	va_end(ap);
	if (n > (int)sizeof(buf) - 1)
		n = sizeof(buf) - 1;
	if (write(port, buf, n) != n)
		bad = 1;
}

/* Lines of the log that must never be there. */
static const char *const splats[] = {
	"BUG:", "WARNING:", "Oops", "general protection", "Unable to handle", "Call Trace",
	"KASAN", "UBSAN", "possible recursive locking", "circular locking", "inconsistent lock",
	"sleeping function called", "scheduling while atomic", "held lock freed", "blocked for more",
	"suspicious RCU", "INFO: task", "soft lockup", "refcount_t:", "list_add corruption",
	"list_del corruption", "Bad page", "bad page", "invalid opcode", "kernel BUG",
	"possible circular", "invalid wait context", "Internal error", "possible deadlock",
};

/* What a bad line is told with: those before it, and those after. */
#define BEFORE 8
#define AFTER 24

/* Reads what is new in the log; the number of lines that must not be there. */
static int scan_log(const char *what)
{
	static char last[BEFORE][200];
	char line[2048];
	unsigned int i, at = 0, more = 0;
	int hits = 0;
	ssize_t n;

	while ((n = read(kmsg, line, sizeof(line) - 1)) > 0 || (n < 0 && errno == EPIPE)) {
		char *text;

		if (n < 0)
			continue;
		line[n] = 0;
		text = strchr(line, ';');
		text = text ? text + 1 : line;
		text[strcspn(text, "\n")] = 0;
		if (strstr(text, "hearth: selftest")) {
			say("# %s\n", text);
			selftests += strstr(text, " passed") != NULL;
		}
		for (i = 0; i < sizeof(splats) / sizeof(*splats) && !strstr(text, splats[i]); i++)
			;
		if (i < sizeof(splats) / sizeof(*splats) && !hits++) {
			for (i = 0; i < BEFORE; i++) {
				if (last[(at + i) % BEFORE][0])
					say("# before: %s\n", last[(at + i) % BEFORE]);
			}
			more = AFTER;
		}
		if (more) {
			say("# kernel: %s\n", text);
			more--;
		}
		snprintf(last[at++ % BEFORE], sizeof(last[0]), "%.199s", text);
	}
	memset(last, 0, sizeof(last));
	if (hits)
		say("not ok - kernel log is clean after %s\n", what);
	return hits;
}

static int load(const char *path, const char *args)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC), ret;

	if (fd < 0)
		return -errno;
	ret = syscall(SYS_finit_module, fd, args, 0) ? -errno : 0;
	close(fd);
	return ret;
}

/* Runs a program; its lines go to the port. */
static void run(char *line)
{
	char *argv[16], *tok, *save = NULL, buf[4096], carry[4200];
	char path[128];
	int pipefd[2], status, n = 0;
	size_t have = 0;
	ssize_t got;
	pid_t pid;
	time_t t0 = time(NULL);

	for (tok = strtok_r(line, " ", &save); tok && n < 15; tok = strtok_r(NULL, " ", &save))
		argv[n++] = tok;
	argv[n] = NULL;
	if (!n)
		return;
	snprintf(path, sizeof(path), "/%s", argv[0]);
	if (pipe2(pipefd, O_CLOEXEC))
		return;
	pid = fork();
	if (!pid) {
		dup2(pipefd[1], 1);
		dup2(pipefd[1], 2);
		execv(path, argv);
		_exit(127);
	}
	close(pipefd[1]);
	while ((got = read(pipefd[0], buf, sizeof(buf))) > 0) {
		ssize_t i;

		for (i = 0; i < got; i++) {
			if (have < sizeof(carry) - 2)
				carry[have++] = buf[i];
			if (buf[i] != '\n')
				continue;
			carry[have] = 0;
			if (!strncmp(carry, "ok - ", 5))
				say("ok - %s: %s", argv[0], carry + 5);
			else if (!strncmp(carry, "not ok - ", 9))
				say("not ok - %s: %s", argv[0], carry + 9);
			else
				say("%s", carry);
			if (!strncmp(carry, "not ok", 6))
				bad = 1;
			have = 0;
		}
	}
	close(pipefd[0]);
	waitpid(pid, &status, 0);
	if (!WIFEXITED(status) || (WEXITSTATUS(status) && WEXITSTATUS(status) != 1)) {
		say("not ok - %s ended with status %#x\n", argv[0], status);
		bad = 1;
	} else if (WEXITSTATUS(status)) {
		bad = 1;
	}
	if (scan_log(argv[0]))
		bad = 1;
	say("# %s: %ld s\n", argv[0], (long)(time(NULL) - t0));
}

/* Puts the image on a disk whose blocks are memory, and works there. */
static void disk(void)
{
	char buf[65536];
	int from = open("/disk.img", O_RDONLY | O_CLOEXEC), to = open("/dev/ram1", O_WRONLY | O_CLOEXEC);
	ssize_t n = -1;

	while (from >= 0 && to >= 0 && (n = read(from, buf, sizeof(buf))) > 0) {
		static const char zeros[sizeof(buf)];

		/* The disk is zeros from the start, and takes no memory for those. */
		if (!memcmp(buf, zeros, n)) {
			lseek(to, n, SEEK_CUR);
			continue;
		}
		if (write(to, buf, n) != n) {
			n = -1;
			break;
		}
	}
	close(from);
	close(to);
	unlink("/disk.img");
	mkdir("/var", 0755);
	mkdir("/var/tmp", 0777);
	if (n || mount("/dev/ram1", "/var/tmp", "ext4", 0, NULL) || chdir("/var/tmp"))
		say("# no disk: %s\n", strerror(errno));
}

static void kmemleak(void)
{
	char line[1024];
	FILE *f;
	int fd, i, hits = 0;

	fd = open("/sys/kernel/debug/kmemleak", O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return;
	/* Twice: what a first scan finds may still be on a CPU's list. */
	for (i = 0; i < 2; i++) {
		sleep(6);
		if (write(fd, "scan", 4) != 4)
			return;
	}
	close(fd);
	f = fopen("/sys/kernel/debug/kmemleak", "r");
	while (f && fgets(line, sizeof(line), f)) {
		if (strstr(line, "[<") && strstr(line, "hearth") && hits++ < 20)
			say("# leak: %s", line);
	}
	if (f)
		fclose(f);
	say("%s - kmemleak finds nothing of the module\n", hits ? "not ok" : "ok");
	if (hits)
		bad = 1;
}

static void end(void)
{
	say("%s\n", bad ? "failure" : "success");
	tcdrain(port);
	usleep(100000);
	sync();
	reboot(RB_POWER_OFF);
	for (;;)
		pause();
}

int main(void)
{
	struct rlimit nofile = { 65536, 65536 };
	static const char *const ports[] = { "/dev/ttyS1", "/dev/ttyS0" };
	struct termios tio;
	char line[256];
	unsigned int i;
	FILE *f;

	mkdir("/proc", 0755);
	mkdir("/sys", 0755);
	mkdir("/dev", 0755);
	mkdir("/tmp", 0755);
	mount("proc", "/proc", "proc", 0, NULL);
	mount("sys", "/sys", "sysfs", 0, NULL);
	mount("dev", "/dev", "devtmpfs", 0, NULL);
	mount("tmp", "/tmp", "tmpfs", 0, NULL);
	mount("debug", "/sys/kernel/debug", "debugfs", 0, NULL);
	mount("trace", "/sys/kernel/tracing", "tracefs", 0, NULL);
	mkdir("/dev/shm", 0777);
	setrlimit(RLIMIT_NOFILE, &nofile);
	kmsg = open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC);

	/* arm64's console is another kind, so the port for results is ttyS0. */
	for (i = 0; i < 2; i++) {
		int fd = -1;

		if (i == 0 || access("/dev/ttyAMA0", F_OK) == 0)
			fd = open(ports[i], O_RDWR | O_NOCTTY | O_CLOEXEC);
		if (fd >= 0 && !tcgetattr(fd, &tio)) {
			cfmakeraw(&tio);
			tcsetattr(fd, TCSANOW, &tio);
			port = fd;
			break;
		}
		if (fd >= 0)
			close(fd);
	}

	f = fopen("/tests", "r");
	while (f && fgets(line, sizeof(line), f)) {
		line[strcspn(line, "\n")] = 0;
		if (!*line || *line == '#')
			continue;
		if (!strncmp(line, "load ", 5)) {
			char *args = strchr(line + 5, ' ');
			int ret;

			if (args)
				*args++ = 0;
			ret = load(line + 5, args ? args : "");
			if (ret) {
				say("not ok - load %s %s: %s\n", line + 5, args ? args : "",
				    strerror(-ret));
				bad = 1;
			}
			if (scan_log(line))
				bad = 1;
			if (strstr(line, "hearth.ko") && !ret) {
				say("%s - vectors of the core replayed in the kernel\n",
				    selftests == 4 ? "ok" : "not ok");
				bad |= selftests != 4;
			}
		} else if (!strcmp(line, "disk")) {
			disk();
		} else if (!strcmp(line, "kmemleak")) {
			kmemleak();
		} else {
			run(line);
		}
	}
	if (!f) {
		say("not ok - no /tests\n");
		bad = 1;
	}
	end();
	return 0;
}
