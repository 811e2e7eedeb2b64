# SPDX-License-Identifier: MIT
PKGS += \
	jansson \
	yaml-0.1 \
	# EOL
RT_SRCS += \
	runtime/home/call.c \
	runtime/home/home.c \
	runtime/home/load.c \
	runtime/home/names.c \
	runtime/home/prompt.c \
	runtime/home/taught.c \
	runtime/home/timer.c \
	# EOL
TESTS += \
	test_home \
	test_names \
	test_prompt \
	# EOL
FUZZERS += \
	fuzz_home \
	# EOL
