# SPDX-License-Identifier: MIT
PROGS += \
	hearth \
	hearthctl \
	# EOL
hearthctl_SRCS := \
	tools/hearthctl.c \
	tools/hearthctl_act.c \
	tools/hearthctl_apply.c \
	tools/hearthctl_netlink.c \
	tools/hearthctl_show.c \
	tools/hearthctl_unload.c \
	# EOL
hearthctl_LIBS := $(shell $(PKG_CONFIG) --libs libnl-genl-3.0 2>/dev/null)
CFLAGS_tools/hearthctl_netlink.c := $(shell $(PKG_CONFIG) --cflags libnl-genl-3.0 2>/dev/null)
hearth_SRCS := \
	tools/hearth.c \
	tools/hearth_bench.c \
	tools/hearth_common.c \
	tools/hearth_eval.c \
	tools/hearth_plan.c \
	tools/hearth_say.c \
	tools/hearth_turn.c \
	tools/paths.c \
	# EOL
SCRIPT_TESTS += \
	tests/e2e/home_model.py \
	tests/e2e/turn.py \
	# EOL
# one version, of debian/build.mk, wherever one is said
$(foreach f,tools/hearth.c tools/hearthctl.c tools/hearthd.c runtime/server/wyoming_info.c,$(eval CFLAGS_$(f) := -DHEARTH_VERSION='"$(VERSION)"'))
