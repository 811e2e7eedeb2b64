// SPDX-License-Identifier: MIT
#include "server/page.h"

#include <string.h>

/* Each file as it lies in runtime/server/web; the path is from the top folder, where make runs. */
#define FILE_IN(sym, name) \
	__asm__(".pushsection .rodata\n.balign 8\n.global " #sym "_begin\n.hidden " #sym "_begin\n" #sym "_begin:\n" \
		".incbin \"runtime/server/web/" name "\"\n.global " #sym "_end\n.hidden " #sym "_end\n" #sym "_end:\n.byte 0\n.popsection\n"); \
	extern const char sym##_begin[], sym##_end[];

FILE_IN(web_index, "index.html")
FILE_IN(web_style, "style.css")
FILE_IN(web_app, "app.js")
FILE_IN(web_speaker, "speaker.js")
FILE_IN(web_waterfall, "waterfall.js")
FILE_IN(web_memory, "memory.js")
FILE_IN(web_mic, "mic.js")
FILE_IN(web_icon, "icon.svg")

static const struct { const char *name, *type, *begin, *end; } files[] = {
	{ "style.css", "text/css; charset=utf-8", web_style_begin, web_style_end },
	{ "app.js", "text/javascript; charset=utf-8", web_app_begin, web_app_end },
	{ "speaker.js", "text/javascript; charset=utf-8", web_speaker_begin, web_speaker_end },
	{ "waterfall.js", "text/javascript; charset=utf-8", web_waterfall_begin, web_waterfall_end },
	{ "memory.js", "text/javascript; charset=utf-8", web_memory_begin, web_memory_end },
	{ "mic.js", "text/javascript; charset=utf-8", web_mic_begin, web_mic_end },
	{ "icon.svg", "image/svg+xml", web_icon_begin, web_icon_end },
};

static void reply(struct http_req *r, const char *type, const char *begin, const char *end)
{
	/* Nothing from elsewhere, nothing inline, in nobody's frame. */
	http_answer_header(r, "Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
			   "connect-src 'self'; worker-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'");
	http_answer_header(r, "X-Content-Type-Options", "nosniff");
	http_answer_header(r, "Referrer-Policy", "no-referrer");
	http_answer_header(r, "Permissions-Policy", "microphone=(self), camera=(), geolocation=()");
	http_answer_header(r, "Cross-Origin-Opener-Policy", "same-origin");
	http_answer_header(r, "Cache-Control", "no-cache");
	http_reply(r, 200, type, begin, (size_t)(end - begin));
}

void api_page(struct http_req *r, void *service)
{
	reply(r, "text/html; charset=utf-8", web_index_begin, web_index_end);
}

void api_page_file(struct http_req *r, void *service)
{
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		if (!strcmp(http_rest(r), files[i].name)) {
			reply(r, files[i].type, files[i].begin, files[i].end);
			return;
		}
	}
	http_error(r, 404, "not_found", NULL, "the page has no file of that name");
}
