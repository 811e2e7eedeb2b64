# SPDX-License-Identifier: MIT
RT_SRCS += \
	runtime/token/bpe.c \
	runtime/token/detok.c \
	runtime/token/pretok.c \
	runtime/token/tokenizer.c \
	# EOL
TESTS += \
	test_tokenizer \
	test_vocab \
	# EOL
PKGS += libpcre2-8
