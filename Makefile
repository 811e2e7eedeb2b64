# SPDX-License-Identifier: MIT
# hearth: the targets that people type. Lists of files live in each folder's
# build.mk; this file only says how a thing in a list is built.
#
#   make            build every program into build/bin
#   make demo       set up what is missing, build, run a whole voice turn
#   make test       set up what is missing, build, run every test
#   make help       the rest

.DEFAULT_GOAL := all
BUILD ?= build
V     ?= 0

CC      ?= gcc
ifeq ($(origin CC),default)
CC      := gcc
endif
CCACHE  := $(shell command -v ccache 2>/dev/null)
PKG_CONFIG ?= pkg-config
Q       := $(if $(filter 1,$(V)),,@)
say      = $(if $(filter 1,$(V)),,@printf '  %-7s %s\n' '$(1)' '$(2)';)

ARCH    := $(shell uname -m)

# -- lists, filled by each folder's build.mk ---------------------------------
CORE_SRCS     :=   # kmod/core, compiled for userspace
LIBHEARTH_SRCS:=   # the device client, shipped as libhearth
RT_SRCS       :=   # everything else in runtime/, one static library
PROGS         :=   # names in build/bin; NAME_SRCS lists their sources
TESTS         :=   # names of tests/unit/NAME.c, linked with everything, print TAP
TESTLIB_SRCS  :=   # helpers that tests, fuzzers and benches share
SCRIPT_TESTS  :=   # executables that print TAP, run after the unit tests
FUZZERS       :=   # names of tests/fuzz/NAME.c
BENCHES       :=   # names of tests/bench/NAME.c, built into build/bin
PKGS          :=   # pkg-config packages that must exist
LIBS          :=   # libraries without a pkg-config file

MKS := kmod/core/build.mk $(sort $(wildcard runtime/*/build.mk)) \
       $(wildcard debian/build.mk kernels/build.mk tools/build.mk tests/build.mk tests/vm/build.mk)
include $(MKS)

PKGS     := $(sort $(PKGS))
CPPFLAGS += -Iruntime -Iuapi -I. -D_GNU_SOURCE $(shell $(PKG_CONFIG) --cflags $(PKGS) 2>/dev/null)
WARN     := -Wall -Wextra -Wno-unused-parameter -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wvla -Wpointer-arith
CFLAGS   ?= -O2 -g
HCFLAGS  := -std=gnu11 -fno-strict-aliasing -fvisibility=hidden -fPIC -pthread $(WARN) $(if $(WERROR),-Werror)
LDLIBS   += $(shell $(PKG_CONFIG) --libs $(PKGS) 2>/dev/null) $(LIBS) -lm -lpthread -ldl

# SAN=asan|tsan|fuzzer: whole tree again under a sanitizer (own BUILD folder).
ifeq ($(SAN),asan)
SANFLAGS := -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer
else ifeq ($(SAN),tsan)
SANFLAGS := -fsanitize=thread -fno-omit-frame-pointer
else ifeq ($(SAN),fuzzer)
SANFLAGS := -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer
endif
# Under load the arithmetic would take all the time there is; its threads share
# nothing but what thread.c, which stays watched, hands them.
ifdef PLAIN_MATH
$(foreach f,$(wildcard runtime/model/cpu_*.c runtime/model/ops_*.c runtime/sample/sampler.c),$(eval CFLAGS_$(f) += -O2 -fno-sanitize=thread))
endif
HCFLAGS += $(SANFLAGS)
LDFLAGS += $(SANFLAGS)

obj       = $(patsubst %.c,$(BUILD)/obj/%.o,$(1))
CORE_LIB  := $(BUILD)/lib/libhearthcore.a
DEV_LIB   := $(BUILD)/lib/libhearth.a
DEV_SO    := $(BUILD)/lib/libhearth.so.0
RT_LIB    := $(BUILD)/lib/libhearthrt.a
ALL_LIBS  := $(RT_LIB) $(DEV_LIB)
TEST_LIB  := $(BUILD)/lib/libhearthtest.a
PROG_BINS := $(addprefix $(BUILD)/bin/,$(PROGS))
TEST_BINS := $(addprefix $(BUILD)/tests/,$(TESTS))
BENCH_BINS:= $(addprefix $(BUILD)/bin/,$(BENCHES))

all: $(PROG_BINS) $(BENCH_BINS) $(DEV_SO) ## build programs and libraries

# Per-file flags: CFLAGS_runtime/model/ops_avx2.c := -mavx2 -mfma
$(BUILD)/obj/%.o: %.c Makefile
	@mkdir -p $(@D)
	$(call say,CC,$<)$(CCACHE) $(CC) $(CPPFLAGS) $(HCFLAGS) $(CFLAGS) $(CFLAGS_$<) -MMD -MP -c -o $@ $<

$(DEV_LIB): $(call obj,$(CORE_SRCS) $(LIBHEARTH_SRCS))
$(RT_LIB): $(call obj,$(RT_SRCS))
$(TEST_LIB): $(call obj,$(TESTLIB_SRCS))
$(DEV_LIB) $(RT_LIB) $(TEST_LIB):
	@mkdir -p $(@D)
	$(call say,AR,$@)rm -f $@ && ar rcs $@ $^

$(DEV_SO): $(call obj,$(CORE_SRCS) $(LIBHEARTH_SRCS)) $(wildcard runtime/dev/libhearth.map)
	@mkdir -p $(@D)
	$(call say,LD,$@)$(CC) -shared -Wl,-soname,libhearth.so.0 $(addprefix -Wl$(,)--version-script=,$(filter %.map,$^)) $(LDFLAGS) -o $@ $(filter %.o,$^) -lpthread
, := ,

define prog_rule
$(BUILD)/bin/$(1): $(call obj,$($(1)_SRCS)) $(ALL_LIBS)
	@mkdir -p $$(@D)
	$$(call say,LD,$$@)$$(CC) $$(LDFLAGS) -o $$@ $$(filter %.o,$$^) $(ALL_LIBS) $$($(1)_LIBS) $$(LDLIBS)
endef
$(foreach p,$(PROGS),$(eval $(call prog_rule,$(p))))

$(BUILD)/bin/bench_%: $(BUILD)/obj/tests/bench/bench_%.o $(TEST_LIB) $(ALL_LIBS)
	@mkdir -p $(@D)
	$(call say,LD,$@)$(CC) $(LDFLAGS) -o $@ $< $(TEST_LIB) $(ALL_LIBS) $(LDLIBS)

$(BUILD)/tests/%: $(BUILD)/obj/tests/unit/%.o $(TEST_LIB) $(ALL_LIBS)
	@mkdir -p $(@D)
	$(call say,LD,$@)$(CC) $(LDFLAGS) -o $@ $< $($*_OBJS) $(TEST_LIB) $(ALL_LIBS) $(LDLIBS) -lcmocka

$(BUILD)/fuzz/%: $(BUILD)/obj/tests/fuzz/%.o $(TEST_LIB) $(ALL_LIBS)
	@mkdir -p $(@D)
	$(call say,LD,$@)$(CC) -fsanitize=fuzzer,address,undefined -o $@ $< $(TEST_LIB) $(ALL_LIBS) $(LDLIBS)

# -- what people type ---------------------------------------------------------
deps:        ## install what is missing (prints it first)
	@tools/deps.sh install
deps-demo:
	@tools/deps.sh install demo
deps-check:  ## only say what is missing
	@tools/deps.sh check

speech: all  ## fetch the voice detector's weights, once
	@BUILD=$(BUILD) tools/speech.sh install

demo: deps-demo   ## a whole voice turn: build what is missing, speak a command, answer it
	@$(MAKE) --no-print-directory -j$$(nproc) $(BUILD)/bin/hearth $(BUILD)/bin/hearthd $(BUILD)/bin/silero-convert
	@BUILD=$(BUILD) tools/speech.sh install
	@BUILD=$(BUILD) tools/demo.sh $(DEMO)

bench: all   ## figures of this machine; BENCH="--llama-bench PATH --model FILE" compares
	@BUILD=$(BUILD) tools/speech.sh install
	@BUILD=$(BUILD) tools/bench.sh $(BENCH)

bench-serve: all ## hearthd beside llama-server; BENCH="--llama-server PATH --model FILE"
	@tests/bench/serve.py --hearthd $(BUILD)/bin/hearthd $(BENCH)

test: deps   ## every test of this machine; last line: N passed, N failed, N skipped
	@$(MAKE) --no-print-directory -j$$(nproc) all unit-build
	@BUILD=$(BUILD) tools/speech.sh install
	@tests/run.sh all

load: all    ## 32 clients of every kind at hearthd, leaving in the middle, for LOAD_SECONDS (300)
	@BUILD=$(BUILD) tests/e2e/load.py $${LOAD_SECONDS:-300}

load-tsan:   ## twelve of them at hearthd under TSan, for LOAD_SECONDS (60)
	@$(MAKE) --no-print-directory -j$$(nproc) BUILD=build-tsan-load SAN=tsan PLAIN_MATH=1 CFLAGS='-O1 -g' build-tsan-load/bin/hearthd
	@BUILD=build-tsan-load HEARTH_TEST_TIMEOUT=1200 LOAD_THREADS=1 TSAN_OPTIONS="suppressions=tests/e2e/tsan.supp" tests/e2e/load.py $${LOAD_SECONDS:-60} 12

unit-build: $(TEST_BINS)
unit: unit-build ## unit tests only (no set-up)
	@BUILD=$(BUILD) tests/run.sh unit

asan tsan: ## unit tests under ASan+UBSan, under TSan
	@$(MAKE) --no-print-directory -j$$(nproc) BUILD=build-$@ SAN=$@ CFLAGS='-O1 -g' unit

fuzz-build:
	@$(MAKE) --no-print-directory -j$$(nproc) BUILD=build-fuzz CC=clang CCACHE= SAN=fuzzer CFLAGS='-O1 -g' fuzz-bins
fuzz-bins: $(addprefix $(BUILD)/fuzz/,$(FUZZERS))
fuzz: fuzz-build ## run every fuzzer for FUZZ_SECONDS (600) each
	@FUZZ_SECONDS=$${FUZZ_SECONDS:-600} tests/run.sh fuzz

clean:       ## remove build output
	rm -rf build build-*

help:        ## this list
	@grep -hE '^[a-z-]+( [a-z-]+)*:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/' | sort | expand -t 20

print-%:
	@echo $($*)

-include $(shell find $(BUILD)/obj -name '*.d' 2>/dev/null)
# Objects that only a pattern rule names are kept. Without names all would be such, and make would not look for one
# whose source is older than the archive it belongs to.
.SECONDARY: $(call obj,$(wildcard tests/unit/test_*.c tests/bench/*.c tests/fuzz/*.c tests/gpu/test_*.c))
.PHONY: deps-demo load load-tsan all bench bench-serve demo deps deps-check speech test unit unit-build asan tsan fuzz fuzz-build fuzz-bins clean help
