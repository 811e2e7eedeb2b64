# SPDX-License-Identifier: MIT
RT_SRCS += \
	runtime/gguf/digest.c \
	runtime/gguf/gguf.c \
	runtime/gguf/head.c \
	runtime/gguf/head_keys.c \
	runtime/gguf/head_tensors.c \
	runtime/gguf/load.c \
	runtime/gguf/meta.c \
	runtime/gguf/pack.c \
	runtime/gguf/place.c \
	runtime/gguf/pull.c \
	runtime/gguf/quant.c \
	runtime/gguf/shelf.c \
	runtime/gguf/touch.c \
	runtime/gguf/window.c \
	# EOL
TESTLIB_SRCS += \
	tests/unit/synth.c \
	# EOL
BENCHES += \
	bench_load \
	# EOL
FUZZERS += \
	fuzz_gguf \
	# EOL
TESTS += \
	test_gguf \
	test_load \
	test_quant \
	# EOL
# Ubuntu 20.04 (JetPack 5) has no liburing: then one read at a time, still O_DIRECT.
ifeq ($(shell $(PKG_CONFIG) --exists liburing && echo y),y)
PKGS += liburing
CFLAGS_runtime/gguf/pull.c := -DHEARTH_URING
else
all: uring-note
uring-note:
	@$(if $(findstring s,$(firstword -$(MAKEFLAGS))),:,printf '  %-7s %s\n' NOTE 'io_uring left out (liburing was not found): weights are read one piece at a time')
.PHONY: uring-note
endif

# The reference conversion rounds after every operation, on every machine.
CFLAGS_runtime/gguf/quant.c := -ffp-contract=off
