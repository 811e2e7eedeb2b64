# SPDX-License-Identifier: MIT
RT_SRCS += \
	# EOL
