# SPDX-License-Identifier: MIT
RT_SRCS += \
	runtime/cache/kv.c \
	# EOL
