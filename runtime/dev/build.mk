# SPDX-License-Identifier: MIT
LIBHEARTH_SRCS += \
	runtime/dev/device.c \
	runtime/dev/device_event.c \
	runtime/dev/device_region.c \
	runtime/dev/embedded.c \
	runtime/dev/embedded_event.c \
	runtime/dev/embedded_region.c \
	runtime/dev/hearth.c \
	runtime/dev/text.c \
	# EOL
TESTS += \
	test_device \
	test_embedded \
	# EOL
BENCHES += \
	bench_dev \
	# EOL
