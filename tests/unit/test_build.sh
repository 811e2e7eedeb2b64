#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# What make builds again.
set -u
cd "$(dirname "$0")/../.." || exit 1
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
bad=0
ok() { echo "ok - $1"; }
not_ok() { bad=1; echo "not ok - $1"; sed 's/^/# /' "$tmp/log" 2>/dev/null | tail -n 20; }
lib=$tmp/lib/libhearth.a
build() { make -s --no-print-directory BUILD="$tmp" "$lib" >"$tmp/log" 2>&1; }

if build && [ -f "$lib" ]; then ok "a library builds in a folder of its own"; else not_ok "a library builds in a folder of its own"; fi
# As a file that came with an older time, after the archive was made: its object is not there.
rm "$tmp/obj/kmod/core/budget.o"
ar d "$lib" budget.o
touch "$lib"
if build && [ -f "$tmp/obj/kmod/core/budget.o" ] && ar t "$lib" | grep -qx budget.o; then
	ok "a source that is older than an archive without it is compiled and put in"
else
	not_ok "a source that is older than an archive without it is compiled and put in: $(ar t "$lib" | tr '\n' ' ')"
fi
echo "1..2"
exit $bad
