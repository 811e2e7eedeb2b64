#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The part of the VM tests that every run has: Debian's 6.1, amd64 and arm64,
# side by side, because a guest seldom keeps more than one processor busy.
set -u
cd "$(dirname "$0")" || exit 1
tmp=$(mktemp) || exit 1
trap 'rm -f "$tmp"' EXIT
bad=0
# One after the other: both use the same package lists.
./kernel.sh get bookworm amd64 >/dev/null 2>&1
./kernel.sh get bookworm arm64 >/dev/null 2>&1
./run.sh bookworm arm64 all >"$tmp" 2>&1 &
./run.sh bookworm amd64 all || bad=1
wait $! || bad=1
cat "$tmp"
exit $bad
