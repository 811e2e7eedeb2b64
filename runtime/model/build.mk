# SPDX-License-Identifier: MIT
RT_SRCS += \
	runtime/model/cpu_pack.c \
	runtime/model/cpu_plain.c \
	runtime/model/model.c \
	runtime/model/ops_cpu.c \
	runtime/model/ops_cpu_matmul.c \
	runtime/model/ops_cpu_rows.c \
	runtime/model/ops_cuda.c \
	runtime/model/ops_cuda_plan.c \
	runtime/model/ops_cuda_step.c \
	runtime/model/ops_cuda_warm.c \
	runtime/model/ops_ref.c \
	runtime/model/qwen.c \
	# EOL
TESTS += \
	test_kernels_cpu \
	test_model \
	# EOL

# One file per instruction set; which one runs is decided by cpuid at run time.
# Products and sums may fuse; nothing else about floats is relaxed.
CPU_FLAGS := -O3 -ffp-contract=fast -fno-math-errno
# Sanitizers see every access of the unrolled loops: minutes of compiling for nothing.
ifneq ($(SAN),)
CPU_FLAGS := -O1 -ffp-contract=fast -fno-math-errno -DCPU_NO_UNROLL
endif
# Unrolled it takes minutes of compiling and is slower.
CFLAGS_runtime/model/cpu_plain.c := $(CPU_FLAGS) -DCPU_NO_UNROLL
ifneq ($(filter x86_64,$(ARCH)),)
RT_SRCS += \
	runtime/model/cpu_avx2.c \
	runtime/model/cpu_avx512.c \
	# EOL
CFLAGS_runtime/model/cpu_avx2.c := $(CPU_FLAGS) -mavx2 -mfma -mf16c
CFLAGS_runtime/model/cpu_avx512.c := $(CPU_FLAGS) -mavx2 -mfma -mf16c \
	-mavx512f -mavx512bw -mavx512vl -mavx512dq -mavx512vnni -mprefer-vector-width=512
endif
ifneq ($(filter aarch64 arm64,$(ARCH)),)
RT_SRCS += runtime/model/cpu_neon.c
CFLAGS_runtime/model/cpu_neon.c := $(CPU_FLAGS) -march=armv8.2-a+dotprod
endif
