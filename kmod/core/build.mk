# SPDX-License-Identifier: (GPL-2.0-only OR MIT)
CORE_SRCS += \
	kmod/core/args.c \
	kmod/core/budget.c \
	kmod/core/extent.c \
	kmod/core/pressure.c \
	# EOL
TESTS += \
	test_core \
	test_core_random \
	# EOL
CFLAGS_tests/unit/test_core.c := -Itests
