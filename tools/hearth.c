// SPDX-License-Identifier: MIT
/* hearth: the assistant from the command line. docs/man/hearth.1 */
#include "hearth.h"

#include "base/version.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

static const struct {
	const char *name;
	int (*run)(int argc, char **argv);
	const char *what;
} commands[] = {
	{ "turn", main_turn, "a whole voice turn: sound in, a changed home and sound out" },
	{ "plan", main_plan, "what memory a model needs, before anything is loaded" },
	{ "say", main_say, "a text as a WAV file, in any voice there is" },
	{ "bench", main_bench, "percentiles of many turns: hearth bench turns" },
	{ "eval-home", main_eval, "how many answers of a home model are right" },
};

static void usage(FILE *out)
{
	size_t i;

	fputs("usage: hearth COMMAND [OPTION...]\n\n", out);
	for (i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
		fprintf(out, "  %-9s %s\n", commands[i].name, commands[i].what);
	fputs("\nhearth COMMAND --help tells its options; hearth --version its version.\n", out);
}

/*
 * A standard file that the caller closed would be the number of the next file
 * opened, and what is printed would go into it. In its place comes one that
 * is empty and cannot be written.
 */
static void hold_standard_files(void)
{
	int fd;

	do {
		fd = open("/dev/null", O_RDONLY);
	} while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd >= 0)
		close(fd);
}

/* What was printed has arrived, or the command has failed, whatever it was. */
static int printed(int code)
{
	const bool lost = fflush(stdout) != 0;

	if (code == EXIT_OUTPUT || !(lost || ferror(stdout)))
		return code;
	return complain(EXIT_OUTPUT, "standard output cannot be written%s%s", lost ? ": " : "", lost ? strerror(errno) : "");
}

int main(int argc, char **argv)
{
	char name[32];
	size_t i;

	hold_standard_files();
	if (argc < 2) {
		usage(stderr);
		return EXIT_USAGE;
	}
	if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h") || !strcmp(argv[1], "help")) {
		usage(stdout);
		return printed(EXIT_OK);
	}
	if (!strcmp(argv[1], "--version")) {
		puts("hearth " HEARTH_VERSION);
		return printed(EXIT_OK);
	}
	for (i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		if (strcmp(commands[i].name, argv[1]))
			continue;
		/* how getopt_long() begins its sentences */
		snprintf(name, sizeof(name), "hearth %s", argv[1]);
		argv[1] = name;
		return printed(commands[i].run(argc - 1, argv + 1));
	}
	return complain(EXIT_USAGE, "there is no command \"%s\"; hearth --help lists them", argv[1]);
}
