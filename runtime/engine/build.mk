# SPDX-License-Identifier: MIT
RT_SRCS += \
	runtime/engine/batch.c \
	runtime/engine/book.c \
	runtime/engine/cache.c \
	runtime/engine/engine.c \
	runtime/engine/plan.c \
	runtime/engine/session.c \
	runtime/engine/worker.c \
	# EOL
BENCHES += \
	bench_engine \
	# EOL
PKGS += jansson
TESTS += \
	test_engine \
	test_engine_many \
	test_engine_plan \
	test_engine_rows \
	test_numerics \
	# EOL
