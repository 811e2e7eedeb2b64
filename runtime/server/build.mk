# SPDX-License-Identifier: MIT
RT_SRCS += \
	runtime/server/alive.c \
	runtime/server/audio_api.c \
	runtime/server/base64.c \
	runtime/server/chat_api.c \
	runtime/server/chat_fields.c \
	runtime/server/chat_grammar.c \
	runtime/server/chat_logprob.c \
	runtime/server/chat_messages.c \
	runtime/server/chat_request.c \
	runtime/server/chat_stream.c \
	runtime/server/config.c \
	runtime/server/config_check.c \
	runtime/server/embed_api.c \
	runtime/server/feed.c \
	runtime/server/flow.c \
	runtime/server/gate.c \
	runtime/server/grammars.c \
	runtime/server/home_api.c \
	runtime/server/http.c \
	runtime/server/http_admit.c \
	runtime/server/http_answer.c \
	runtime/server/info_api.c \
	runtime/server/keyring.c \
	runtime/server/keeper.c \
	runtime/server/listen.c \
	runtime/server/page.c \
	runtime/server/prompt_size.c \
	runtime/server/realtime.c \
	runtime/server/realtime_answer.c \
	runtime/server/realtime_ask.c \
	runtime/server/realtime_input.c \
	runtime/server/realtime_items.c \
	runtime/server/responses_api.c \
	runtime/server/run.c \
	runtime/server/service.c \
	runtime/server/speech.c \
	runtime/server/speech_api.c \
	runtime/server/tenants.c \
	runtime/server/tls.c \
	runtime/server/transcribe.c \
	runtime/server/watch.c \
	runtime/server/websocket.c \
	runtime/server/wyoming.c \
	runtime/server/wyoming_frame.c \
	runtime/server/wyoming_handle.c \
	runtime/server/wyoming_hear.c \
	runtime/server/wyoming_info.c \
	runtime/server/wyoming_out.c \
	runtime/server/wyoming_speak.c \
	runtime/server/zeroconf.c \
	# EOL
# the page's files are taken in as they lie
$(BUILD)/obj/runtime/server/page.o: $(wildcard runtime/server/web/*)
PKGS += jansson libmicrohttpd
LIBS += -lgnutls -lwslay
SCRIPT_TESTS += tests/e2e/hearthd.py tests/e2e/load.py tests/e2e/operations.py tests/e2e/page.py tests/e2e/realtime.py tests/e2e/wyoming.py tests/e2e/schema.py tests/e2e/serve.py
PROGS += hearthd
hearthd_SRCS := tools/hearthd.c tools/paths.c
TESTS += \
	test_alive \
	test_config \
	test_feed \
	test_gone \
	test_http \
	test_service \
	test_keyring \
	test_tenants \
	test_wyoming_frame \
	# EOL
FUZZERS += \
	fuzz_realtime \
	fuzz_requests \
	fuzz_server \
	fuzz_wyoming \
	# EOL
