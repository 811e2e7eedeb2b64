# SPDX-License-Identifier: MIT
LIBHEARTH_SRCS += \
	runtime/dev/device.c \
	runtime/dev/device_budget.c \
	runtime/dev/device_event.c \
	runtime/dev/device_pool.c \
	runtime/dev/device_region.c \
	runtime/dev/device_state.c \
	runtime/dev/device_tenant.c \
	runtime/dev/embedded.c \
	runtime/dev/embedded_budget.c \
	runtime/dev/embedded_charge.c \
	runtime/dev/embedded_event.c \
	runtime/dev/embedded_obj.c \
	runtime/dev/embedded_pool.c \
	runtime/dev/embedded_region.c \
	runtime/dev/embedded_tenant.c \
	runtime/dev/hearth.c \
	runtime/dev/text.c \
	# EOL
TESTS += \
	test_device \
	test_embedded \
	test_nomem \
	# EOL
BENCHES += \
	bench_dev \
	# EOL
test_device_OBJS := $(patsubst %,$(BUILD)/obj/tests/unit/device_%.o,fx budget region event)
$(BUILD)/tests/test_device: $(test_device_OBJS)
test_nomem_OBJS = $(addprefix -Wl$(,)--wrap=,malloc calloc realloc mmap memfd_create ftruncate mprotect eventfd)
