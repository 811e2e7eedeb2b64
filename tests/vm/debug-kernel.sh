#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Builds, once, an x86-64 kernel with KASAN, lockdep, kmemleak and fault
# injection out of Debian's 6.1 source, and prints the folder that holds it:
# vmlinuz, build (for the module), release. Kept in the cache folder under the
# version and the configuration's digest.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
cache=${HEARTH_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/hearth}/vm
die() { echo "debug-kernel.sh: $*" >&2; exit 1; }
for t in flex bison bc; do command -v $t >/dev/null || die "$t is needed to build a kernel"; done

sum=$(sha256sum <"$here/debug.config" | cut -c1-12)
tarball=$("$here/kernel.sh" source)
ver=$(basename "$(dirname "$tarball")"); ver=${ver#source-}
dir=$cache/debug-$ver-$sum
if [ ! -e "$dir/ok" ]; then
	# The module's build folder stays where it was built: kbuild records it.
	rm -rf "$dir"; mkdir -p "$dir"
	tar -C "$dir" -xf "$tarball"
	mv "$dir"/linux-source-6.1 "$dir/build"
	cd "$dir/build"
	make -s tinyconfig >/dev/null 2>&1
	./scripts/kconfig/merge_config.sh -m .config "$here/debug.config" >/dev/null 2>&1
	make -s olddefconfig >&2
	for o in $(sed -n 's/^\(CONFIG_[A-Z0-9_]*\)=y$/\1/p' "$here/debug.config"); do
		grep -q "^$o=y" .config || echo "debug-kernel.sh: $o could not be switched on" >&2
	done
	make -s -j"$(nproc)" KCFLAGS=-w bzImage modules >&2
	make -s kernelrelease >"$dir/release"
	cp arch/x86/boot/bzImage "$dir/vmlinuz"
	find . -name '*.o' ! -path './scripts/*' ! -path './tools/*' -delete
	rm -f vmlinux .tmp_vmlinux*
	touch "$dir/ok"
fi
echo "$dir"
