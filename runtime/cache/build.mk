# SPDX-License-Identifier: MIT
RT_SRCS += \
	runtime/cache/kv.c \
	runtime/cache/prefix.c \
	# EOL
TESTS += \
	test_kv \
	# EOL
