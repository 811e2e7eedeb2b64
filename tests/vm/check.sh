#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# sparse and checkpatch over the module, against Debian's 6.1 headers. TAP.
set -u
cd "$(dirname "$0")/../.." || exit 1
out=${BUILD:-build}/vm/check
rm -rf "$out"
mkdir -p "$out/kmod/core" "$out/uapi/linux" "$out/tests/vectors"
out=$(cd "$out" && pwd)
bad=0
skip() { echo "ok - $1 # SKIP $2"; }

kdir=$(tests/vm/kernel.sh get bookworm amd64 2>"$out/kernel.log") || { skip "module checks" "no kernel headers: $(tail -n 1 "$out/kernel.log")"; exit 0; }
cp -p kmod/*.[ch] kmod/Kbuild kmod/conftest.sh "$out/kmod/"
rm -f "$out/kmod/conftest.h" "$out"/kmod/*.mod.c
cp -p kmod/core/*.[ch] "$out/kmod/core/"
cp -p uapi/linux/*.h "$out/uapi/linux/"
cp -p tests/vectors/*.h "$out/tests/vectors/"
if command -v sparse >/dev/null; then
	make -C "$kdir/build" M="$out/kmod" CC=gcc C=2 CF=-Wsparse-error W=1 modules >"$out/sparse.log" 2>&1
	# The kernel's own headers are not ours to judge.
	if grep -E "^$out/.*(warning|error):" "$out/sparse.log" >"$out/sparse.ours" || ! [ -e "$out/kmod/hearth.ko" ]; then
		echo "not ok - sparse finds nothing"
		head -n 20 "$out/sparse.ours" | sed 's/^/# /'
		bad=1
	else
		echo "ok - sparse finds nothing"
	fi
else
	skip sparse "sparse is not installed"
fi
cp=$(find -L "$kdir/build/scripts" -maxdepth 1 -name checkpatch.pl | head -n 1)
if [ -z "$cp" ]; then
	tarball=$(tests/vm/kernel.sh source 2>/dev/null) &&
		tar -C "$out" --strip-components=1 -xf "$tarball" linux-source-6.1/scripts/checkpatch.pl \
			linux-source-6.1/scripts/spelling.txt linux-source-6.1/scripts/const_structs.checkpatch &&
		cp=$out/scripts/checkpatch.pl
fi
if [ -n "$cp" ] && command -v perl >/dev/null; then
	# Off: what our header style and a module out of the tree make pointless.
	if perl "$cp" --no-tree --terse --no-summary --max-line-length=110 \
		--ignore SPDX_LICENSE_TAG,LINUX_VERSION_CODE,FILE_PATH_CHANGES,NEW_TYPEDEFS,MACRO_ARG_REUSE,COMPLEX_MACRO,MACRO_WITH_FLOW_CONTROL,CONST_STRUCT,TRAILING_SEMICOLON,MULTISTATEMENT_MACRO_USE_DO_WHILE,OPEN_ENDED_LINE,LONG_LINE_STRING,BLOCK_COMMENT_STYLE \
		-f "$out"/kmod/*.h $(ls kmod/*.c | grep -v "\.mod\.c") kmod/core/*.[ch] uapi/linux/*.h >"$out/checkpatch.log" 2>&1; then
		echo "ok - checkpatch finds nothing"
	else
		echo "not ok - checkpatch finds nothing"
		head -n 40 "$out/checkpatch.log" | sed 's/^/# /'
		bad=1
	fi
else
	skip checkpatch "no checkpatch.pl or perl"
fi
exit $bad
