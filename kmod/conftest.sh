#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# conftest.sh OUTPUT COMPILER FLAGS...
# Finds out what the kernel that is built against has, by compiling small
# pieces: stable and vendor kernels take changes back, so a version number says
# nothing. Each NAME becomes 1 or 0 in OUTPUT; compat.h uses them.
set -u
out=$1
shift
tmp=$out.d
rm -rf "$tmp"
mkdir -p "$tmp"
names=

# check NAME COMPILER FLAGS...: does the piece on standard input compile?
check() {
	name=$1
	shift
	names="$names $name"
	cat >"$tmp/$name.c"
	# What is not declared is an error in every dialect. Other warnings are not:
	# they may come from a compiler that the headers were not made for.
	("$@" -Werror=implicit-function-declaration -Werror=incompatible-pointer-types \
		-Werror=int-conversion -fsyntax-only \
		"$tmp/$name.c" >"$tmp/$name.log" 2>&1 && : >"$tmp/$name.ok") &
}

check HAVE_NOTHING "$@" <<'EOF'
#include <linux/kernel.h>
EOF
check HAVE_VM_FLAGS_SET "$@" <<'EOF'
#include <linux/mm.h>
void t(struct vm_area_struct *v);
void t(struct vm_area_struct *v) { vm_flags_set(v, VM_MIXEDMAP); vm_flags_clear(v, VM_MAYEXEC); }
EOF
check HAVE_SHRINKER_ALLOC "$@" <<'EOF'
#include <linux/mm.h>
#include <linux/shrinker.h>
struct shrinker *t(void);
struct shrinker *t(void) { return shrinker_alloc(0, "x"); }
EOF
check HAVE_REGISTER_SHRINKER_NAME "$@" <<'EOF'
#include <linux/mm.h>
#include <linux/shrinker.h>
int t(struct shrinker *s);
int t(struct shrinker *s) { return register_shrinker(s, "x"); }
EOF
check HAVE_VMAP_IOSYS "$@" <<'EOF'
#include <linux/dma-buf.h>
#include <linux/iosys-map.h>
static int f(struct dma_buf *b, struct iosys_map *m) { return 0; }
const struct dma_buf_ops t = { .vmap = f };
EOF
check HAVE_VMAP_DMA_BUF_MAP "$@" <<'EOF'
#include <linux/dma-buf.h>
#include <linux/dma-buf-map.h>
static int f(struct dma_buf *b, struct dma_buf_map *m) { return 0; }
const struct dma_buf_ops t = { .vmap = f };
EOF
check HAVE_IMPORT_NS_BARE "$@" <<'EOF'
#include <linux/module.h>
MODULE_IMPORT_NS(DMA_BUF);
EOF
check HAVE_GENL_RESV_START_OP "$@" <<'EOF'
#include <net/genetlink.h>
const struct genl_family t = { .resv_start_op = 1 };
EOF
check HAVE_MCAST_FLAGS "$@" <<'EOF'
#include <net/genetlink.h>
const struct genl_multicast_group t = { .name = "x", .flags = 0 };
EOF
check HAVE_DMA_BUF_VMAP_UNLOCKED "$@" <<'EOF'
#include <linux/dma-buf.h>
void *t = dma_buf_vmap_unlocked;
EOF
check HAVE_DMA_BUF_UNLOCKED "$@" <<'EOF'
#include <linux/dma-buf.h>
struct sg_table *t(struct dma_buf_attachment *a);
struct sg_table *t(struct dma_buf_attachment *a) { return dma_buf_map_attachment_unlocked(a, 0); }
EOF
wait

if [ ! -e "$tmp/HAVE_NOTHING.ok" ]; then
	echo "conftest.sh: nothing compiles with these flags:" >&2
	cat "$tmp/HAVE_NOTHING.log" >&2
	exit 1
fi
{
	echo "/* made by conftest.sh */"
	for n in $names; do
		if [ -e "$tmp/$n.ok" ]; then echo "#define $n 1"; else echo "#define $n 0"; fi
	done
} >"$out.new"
mv "$out.new" "$out"
rm -rf "$tmp"
