# SPDX-License-Identifier: MIT
RT_SRCS += \
	runtime/cache/kv.c \
	runtime/cache/prefix.c \
	runtime/cache/store.c \
	# EOL
TESTS += \
	test_kv \
	test_store \
	# EOL
