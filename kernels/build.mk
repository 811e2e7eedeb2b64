# SPDX-License-Identifier: MIT
# The CUDA part is optional. CUDA=auto (default) builds the backend into the
# programs where nvcc and a GPU are; CUDA=1 wherever nvcc is; CUDA=0 never.
# `make cuda-objs` compiles every kernel wherever nvcc is, GPU or not.
RT_SRCS += \
	kernels/pack.c \
	kernels/served.c \
	kernels/step.c \
	# EOL
TESTLIB_SRCS += \
	kernels/twin.c \
	tests/gpu/gpu.c \
	# EOL
# The longest to compile first, so that it is not waited for alone at the end.
KERNELS := \
	kernels/gemv_other4.cu \
	kernels/gemv_other2.cu \
	kernels/gemv_other1.cu \
	kernels/attn.cu \
	kernels/device.cu \
	kernels/embed.cu \
	kernels/gemm.cu \
	kernels/gemm_f16.cu \
	kernels/gemm_free_mixed.cu \
	kernels/gemm_free_q4_k.cu \
	kernels/gemm_free_q6_k.cu \
	kernels/gemm_wide_mixed.cu \
	kernels/gemm_wide_q4_k.cu \
	kernels/gemm_wide_q6_k.cu \
	kernels/gemm_q4_0.cu \
	kernels/gemm_q4_1.cu \
	kernels/gemm_q4_k.cu \
	kernels/gemm_q5_0.cu \
	kernels/gemm_q5_1.cu \
	kernels/gemm_q5_k.cu \
	kernels/gemm_q6_k.cu \
	kernels/gemm_q8_0.cu \
	kernels/gemv.cu \
	kernels/gemv_main.cu \
	kernels/norm.cu \
	kernels/pick.cu \
	kernels/rope.cu \
	kernels/speed.cu \
	# EOL
SCRIPT_TESTS += \
	tests/gpu/emu.sh \
	tests/gpu/geometry.sh \
	tests/gpu/gpu.sh \
	# EOL

CUDA       ?= auto
NVCC       := $(firstword $(wildcard /usr/local/cuda/bin/nvcc) $(shell command -v nvcc 2>/dev/null))
# An older one (JetPack 5 has 11.4) is as good as none, and is named where that is said.
NVCC_OLD   := $(if $(NVCC),$(shell $(NVCC) --version 2>/dev/null | sed -n 's/.*release \([0-9]*\.[0-9]*\),.*/\1/p' | awk -F. '$$1 * 100 + $$2 < 1108'))
ifneq ($(NVCC_OLD),)
NVCC_WHY   := $(NVCC) is of CUDA $(NVCC_OLD), and 11.8 or newer is needed
override NVCC :=
endif
CUDA_ROOT  := $(patsubst %/bin/nvcc,%,$(realpath $(NVCC)))
CUDA_ARCHS ?= 87 90
CUDA_GPU   := $(wildcard /dev/nvidiactl /dev/nvhost-gpu /dev/nvmap)
CUDA_ON    := $(strip $(if $(SAN),,$(if $(NVCC),$(if $(filter 1,$(CUDA)),1,$(if $(filter auto,$(CUDA)),$(if $(CUDA_GPU),1))))))
NVFLAGS    := -std=c++17 -O3 -Iruntime -I. -Xcompiler -fPIC,-fno-exceptions,-fno-rtti,-fno-threadsafe-statics \
	--expt-relaxed-constexpr -Xptxas -v \
	$(foreach a,$(CUDA_ARCHS),-gencode arch=compute_$(a),code=sm_$(a)) \
	-gencode arch=compute_$(lastword $(CUDA_ARCHS)),code=compute_$(lastword $(CUDA_ARCHS))
CU_OBJS    := $(patsubst %.cu,$(BUILD)/obj/%.cu.o,$(KERNELS))

# The compiler's report of registers and spills stays beside the object.
$(BUILD)/obj/%.cu.o: %.cu
	@mkdir -p $(@D)
	$(call say,NVCC,$<)$(CCACHE) $(NVCC) $(NVFLAGS) -MMD -MP -MF $(@:.o=.d) -c -o $@ $< >$(@:.o=.log) 2>&1 \
		|| { cat $(@:.o=.log) >&2; exit 1; }
	@grep -E 'warning' $(@:.o=.log) >&2 || true

ifneq ($(NVCC),)
cuda-objs: $(CU_OBJS) ## compile every kernel (needs nvcc, no GPU)
else
cuda-objs:
	@echo 'cuda-objs: $(or $(NVCC_WHY),nvcc was not found); put CUDA 11.8 or newer into /usr/local/cuda or PATH' >&2
	@exit 1
endif

# What was built with one setting must not stay for another: files whose time changes with what they say.
CUDA_TABLE := $(addprefix runtime/model/,ops_cuda ops_cuda_plan ops_cuda_step ops_cuda_warm)
$(CUDA_TABLE:%=$(BUILD)/obj/%.o): $(BUILD)/obj/cuda.setting
$(BUILD)/obj/cuda.setting: cuda-setting
	@mkdir -p $(@D)
	@[ "$$(cat $@ 2>/dev/null)" = 'CUDA=$(or $(CUDA_ON),0)' ] || echo 'CUDA=$(or $(CUDA_ON),0)' >$@
$(CU_OBJS): $(BUILD)/obj/cuda.flags
$(BUILD)/obj/cuda.flags: cuda-setting
	@mkdir -p $(@D)
	@[ "$$(cat $@ 2>/dev/null)" = '$(NVCC) $(NVFLAGS)' ] || echo '$(NVCC) $(NVFLAGS)' >$@
.PHONY: cuda-setting

ifeq ($(CUDA_ON),1)
$(foreach f,$(CUDA_TABLE),$(eval CFLAGS_$(f).c := -DHEARTH_CUDA))
$(BUILD)/lib/libhearthrt.a: $(CU_OBJS)
LIBS += $(firstword $(wildcard $(CUDA_ROOT)/lib64/libcudart_static.a $(CUDA_ROOT)/targets/*/lib/libcudart_static.a)) -lrt
unit-build: $(BUILD)/tests/gpu_kernels $(BUILD)/tests/gpu_model
else
CUDA_WHY := $(if $(SAN),sanitizer build,$(if $(NVCC),no GPU here; CUDA=1 builds it in,$(or $(NVCC_WHY),nvcc was not found)))
all: cuda-note
cuda-note:
	@$(if $(findstring s,$(firstword -$(MAKEFLAGS))),:,printf '  %-7s %s\n' NOTE 'CUDA backend left out: $(CUDA_WHY)')
.PHONY: cuda-note
endif
.PHONY: cuda-objs

# The GPU tests' programs, on a machine with a GPU and, as far as they can be,
# on the emulation (kernels/emu) without one.
$(BUILD)/tests/gpu_%: $(BUILD)/obj/tests/gpu/test_%.o $(BUILD)/lib/libhearthtest.a $(BUILD)/lib/libhearthrt.a $(BUILD)/lib/libhearth.a
	@mkdir -p $(@D)
	$(call say,LD,$@)$(CC) $(LDFLAGS) -o $@ $(filter %.o,$^) $(filter %.a,$^) $(LDLIBS)
KERNEL_TESTS := $(patsubst %,$(BUILD)/obj/tests/gpu/kernels_%.o,fixture gemv gemm rows attn pick refuse)
$(BUILD)/tests/gpu_kernels $(BUILD)/tests/emu_kernels: $(KERNEL_TESTS)
$(BUILD)/tests/gpu_model $(BUILD)/tests/emu_model: $(addprefix $(BUILD)/obj/tests/gpu/,model_engine.o model_failures.o)

# Files of real geometry with random weights, and their test (no library of tests: it
# also runs where only a GPU is).
$(BUILD)/tests/random_gguf: $(BUILD)/obj/tests/gen/random_gguf.o $(BUILD)/lib/libhearthtest.a $(BUILD)/lib/libhearthrt.a $(BUILD)/lib/libhearth.a
	@mkdir -p $(@D)
	$(call say,LD,$@)$(CC) $(LDFLAGS) -o $@ $^ $(LDLIBS)

EMU_OBJS := $(patsubst %.cu,$(BUILD)/emu/%.o,$(filter-out kernels/device.cu,$(KERNELS))) \
	$(BUILD)/emu/kernels/emu/emu.o $(CUDA_TABLE:%=$(BUILD)/emu/%.o)
EMUFLAGS := -std=c++17 -O2 -g -DHEARTH_EMU -fno-exceptions -fno-rtti -fno-threadsafe-statics -Wall -Wno-unknown-pragmas \
	-Wno-unused-function -Wno-unused-variable -Iruntime -I.
# EMU_RACE=1, in a build folder of its own: the threads of a block are ThreadSanitizer's (kernels/emu/emu.h).
ifeq ($(EMU_RACE),1)
EMU_CU := -fsanitize=thread
EMU_CC := -DEMU_RACE
endif
$(BUILD)/emu/%.o: %.cu
	@mkdir -p $(@D)
	$(call say,EMU,$<)$(CCACHE) $(CXX) $(EMUFLAGS) $(EMU_CU) -MMD -MP -x c++ -c -o $@ $<
$(BUILD)/emu/%.o: %.cc
	@mkdir -p $(@D)
	$(call say,EMU,$<)$(CCACHE) $(CXX) $(EMUFLAGS) $(EMU_CC) -MMD -MP -c -o $@ $<
$(BUILD)/emu/%.o: %.c
	@mkdir -p $(@D)
	$(call say,EMU,$<)$(CCACHE) $(CC) $(CPPFLAGS) $(HCFLAGS) $(CFLAGS) -DHEARTH_CUDA -MMD -MP -c -o $@ $<
$(BUILD)/tests/emu_%: $(BUILD)/obj/tests/gpu/test_%.o $(EMU_OBJS) $(BUILD)/lib/libhearthtest.a $(BUILD)/lib/libhearthrt.a $(BUILD)/lib/libhearth.a
	@mkdir -p $(@D)
	$(call say,LD,$@)$(CC) $(LDFLAGS) $(EMU_CU) -o $@ $(filter %.o,$^) $(filter %.a,$^) $(LDLIBS)

# hearthd on the emulation, for what it does when a device fails.
$(BUILD)/tests/emu_hearthd: $(patsubst %.c,$(BUILD)/obj/%.o,$(hearthd_SRCS)) $(EMU_OBJS) $(BUILD)/lib/libhearthrt.a $(BUILD)/lib/libhearth.a
	@mkdir -p $(@D)
	$(call say,LD,$@)$(CC) $(LDFLAGS) -o $@ $(filter %.o,$^) $(filter %.a,$^) $(LDLIBS)

EMU_ARGS ?= quick
emu-race: ## kernels on the emulation, a block's threads under ThreadSanitizer (some 15 minutes): EMU_ARGS="quick norm attn"
	@$(MAKE) -s --no-print-directory NVCC= BUILD=$(BUILD)/race EMU_RACE=1 $(BUILD)/race/tests/emu_kernels
	setarch -R $(BUILD)/race/tests/emu_kernels $(EMU_ARGS)
.PHONY: emu-race

# Programs that the GPU tests need; they also run where nothing can be compiled
# (PREBUILT=1 tests/gpu/gpu.sh).
GPU_PROGS := $(addprefix $(BUILD)/,tests/gpu_kernels tests/gpu_model tests/gpu_geometry tests/random_gguf bin/bench_gpu bin/bench_kernels bin/hearthd)
ifeq ($(CUDA_ON),1)
gpu-build: $(GPU_PROGS)
else
gpu-build:
	@echo 'gpu-build: the CUDA backend is left out: $(CUDA_WHY)$(if $(NVCC),,; put CUDA 11.8 or newer into /usr/local/cuda or PATH, or build elsewhere and see PREBUILT in docs/cuda.md)' >&2
	@exit 1
endif
test-gpu: ## everything on this machine's GPU: LLAMA_BENCH=PATH LLAMA_SERVER=PATH VOCAB=FILE GPU_PARTS="..."
	@$(if $(LLAMA_BENCH),LLAMA_BENCH='$(LLAMA_BENCH)') $(if $(LLAMA_SERVER),LLAMA_SERVER='$(LLAMA_SERVER)') $(if $(VOCAB),VOCAB='$(VOCAB)') \
		BUILD=$(BUILD) tests/gpu/gpu.sh $(or $(GPU_PARTS),all)
bench-gpu: ## speed on this machine's GPU beside llama-bench: MODEL=FILE.gguf LLAMA_BENCH=PATH
	@$(if $(LLAMA_BENCH),LLAMA_BENCH='$(LLAMA_BENCH)') $(if $(MODEL),MODEL='$(MODEL)') BUILD=$(BUILD) tests/gpu/gpu.sh speed llama table
.PHONY: gpu-build test-gpu bench-gpu
-include $(shell find $(BUILD)/emu -name '*.d' 2>/dev/null)
