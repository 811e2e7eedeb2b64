#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The kernels and the CUDA table on the host emulation: no GPU needed.
set -o pipefail
cd "$(dirname "$0")/../.." || exit 1
BUILD=${BUILD:-build}
if ! command -v "${CXX:-g++}" >/dev/null; then
	echo "ok 1 - emulated kernels # SKIP no C++ compiler (${CXX:-g++})"
	exit 0
fi
make -s --no-print-directory -j2 BUILD="$BUILD" "$BUILD/tests/emu_kernels" "$BUILD/tests/emu_model" "$BUILD/tests/emu_hearthd" >&2 || {
	echo "not ok 1 - the emulation builds"
	exit 1
}
rc=0
# One core each: the kernels' lines come last.
said=$(mktemp) || exit 1
trap 'rm -f "$said"' EXIT
"$BUILD/tests/emu_kernels" quick >"$said" 2>&1 &
kernels=$!
"$BUILD/tests/emu_model" | grep -v '^1\.\.' || rc=1
# Trained weights: the model that is shipped, against the CPU backend.
"$BUILD/tests/emu_model" models/home-q4_k_m.gguf 16 | grep -v '^1\.\.' || rc=1
if command -v python3 >/dev/null; then
	BUILD=$BUILD tests/gpu/lost.py | grep -v '^1\.\.' || rc=1
else
	echo "ok 1 - a GPU that is lost while hearthd serves # SKIP no python3"
fi
wait "$kernels" || rc=1
grep -v '^1\.\.' "$said" || rc=1
exit $rc
