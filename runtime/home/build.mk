# SPDX-License-Identifier: MIT
PKGS += \
	jansson \
	yaml-0.1 \
	# EOL
RT_SRCS += \
	runtime/home/call.c \
	runtime/home/home.c \
	runtime/home/load.c \
	runtime/home/timer.c \
	# EOL
TESTS += \
	test_home \
	# EOL
FUZZERS += \
	fuzz_home \
	# EOL
