# SPDX-License-Identifier: MIT
RT_SRCS += \
	runtime/base/err.c \
	# EOL
TESTS += \
	test_err \
	# EOL
