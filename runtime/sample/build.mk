# SPDX-License-Identifier: MIT
RT_SRCS += \
	runtime/sample/sampler.c \
	runtime/sample/stop.c \
	# EOL

# No fused products: a seed gives the same text on every machine.
CFLAGS_runtime/sample/sampler.c := -O3 -ffp-contract=off
TESTS += \
	test_sampler \
	# EOL
