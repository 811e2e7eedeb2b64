# SPDX-License-Identifier: MIT
LIBHEARTH_SRCS += \
	runtime/base/err.c \
	# EOL
TESTS += \
	test_err \
	# EOL
