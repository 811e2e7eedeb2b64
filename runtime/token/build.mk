# SPDX-License-Identifier: MIT
RT_SRCS += \
	runtime/token/bpe.c \
	runtime/token/chat.c \
	runtime/token/chat_parse.c \
	runtime/token/chat_qwen.c \
	runtime/token/detok.c \
	runtime/token/json_text.c \
	runtime/token/pretok.c \
	runtime/token/template_id.c \
	runtime/token/tokenizer.c \
	runtime/token/tokenizer_read.c \
	# EOL
FUZZERS += \
	fuzz_chat \
	# EOL
TESTS += \
	test_chat \
	test_tokenizer \
	test_vocab \
	# EOL
PKGS += jansson libpcre2-8
