# SPDX-License-Identifier: MIT
PROGS += \
	hearthctl \
	# EOL
hearthctl_SRCS := \
	tools/hearthctl.c \
	tools/hearthctl_act.c \
	tools/hearthctl_apply.c \
	tools/hearthctl_show.c \
	# EOL
