# SPDX-License-Identifier: MIT
LIBHEARTH_SRCS += \
	runtime/base/err.c \
	runtime/base/thread.c \
	# EOL
RT_SRCS += \
	runtime/base/yaml.c \
	# EOL
PKGS += yaml-0.1
TESTS += \
	test_err \
	test_yaml \
	# EOL
