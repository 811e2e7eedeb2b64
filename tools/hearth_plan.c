// SPDX-License-Identifier: MIT
/* hearth plan: the memory plan, from the model's head alone. */
#include "hearth.h"

#include <errno.h>
#include <getopt.h>
#include <string.h>

static const char help[] =
	"usage: hearth plan [OPTION...] [MODEL.gguf]\n"
	"\n"
	"Says what every tenant would be charged in each pool, and whether that fits.\n"
	"Nothing is loaded.\n"
	"\n"
	"  -H, --home FILE      the home, YAML: its description is to fit the context\n"
	"  -c, --ctx N          context in tokens (default: 4096)\n"
	"      --kv TYPE        int8 or f16\n"
	"  -t, --threads N      threads of the model\n"
	"      --budget T.P=N   the most that tenant T may take in pool P, like llm.kv=64M\n"
	"      --backend NAME   compute backend\n"
	"  -j, --json           as JSON\n";

int main_plan(int argc, char **argv)
{
	static const struct option options[] = { COMMON_OPTIONS, { NULL, 0, NULL, 0 } };
	struct hearth_err err = { 0 };
	struct voice_plan plan;
	struct common c;
	bool home = false;
	int opt, code = 0;

	common_defaults(&c);
	while ((opt = getopt_long(argc, argv, COMMON_SHORT, options, NULL)) != -1) {
		if (opt == 'h') {
			fputs(help, stdout);
			return EXIT_OK;
		}
		if (opt == '?')
			return EXIT_USAGE;
		home |= opt == 'H';
		code = common_option(&c, opt, optarg);
		if (code)
			return code;
	}
	if (argc - optind > 1)
		return complain(EXIT_USAGE, "one model at a time");
	if (optind < argc)
		c.voice.model = argv[optind];
	/* The example's home is no reason to refuse a plan that does not name it; one that is named must be there. */
	if (home) {
		struct home *h = NULL;

		if (home_load(c.voice.home, &h, &err))
			return complain(EXIT_HOME, "%s", err.text);
		home_free(h);
	}
	if (voice_plan(&c.voice, &plan, &err))
		return complain(err.code == -E2BIG || err.code == -ENOMEM ? EXIT_FIT : EXIT_MODEL, "%s", err.text);
	if (home && plan.fits && voice_plan_home(&c.voice, &plan, &err)) {
		plan.fits = false;
		memcpy(plan.why_not, err.text, sizeof(plan.why_not));
	}
	if (c.json) {
		json_t *doc = plan_json(&plan);

		code = put_json(doc, NULL);
		json_decref(doc);
	} else {
		print_plan(stdout, &plan);
	}
	if (code || plan.fits)
		return code;
	return complain(EXIT_FIT, "the plan does not fit: %s", plan.why_not);
}
