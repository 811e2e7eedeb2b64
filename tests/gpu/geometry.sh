#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Models of real geometry against llama.cpp's committed vectors. Files that are not in
# GEOMETRY_DIR as NAME.gguf are written (0.4 to 2.5 GB each) and removed again.
# Those in models/ are there. usage: tests/gpu/geometry.sh [cpu|cuda [NAME...]]   (cpu qwen3-0.6b home-q8_0 home-q4_k_m)
set -o pipefail
cd "$(dirname "$0")/../.." || exit 1
BUILD=${BUILD:-build}
where=${1:-cpu}
shift || true
[ $# -gt 0 ] || set -- qwen3-0.6b home-q8_0 home-q4_k_m
n=0 rc=0
skip() { n=$((n + 1)); echo "ok $n - $1 # SKIP $2"; }

if [ -z "${PREBUILT:-}" ]; then
	make -s --no-print-directory -j2 BUILD="$BUILD" "$BUILD/tests/random_gguf" "$BUILD/tests/gpu_geometry" >&2 || {
		echo "not ok 1 - the test builds"
		exit 1
	}
fi
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
for name; do
	file=${GEOMETRY_DIR:-}/$name.gguf
	[ ! -f "models/$name.gguf" ] || file=models/$name.gguf
	if [ ! -f "$file" ]; then
		case $name in
		qwen3-0.6b) mib=379 ;;
		qwen3-1.7b) mib=1057 ;;
		qwen3-4b) mib=2382 ;;
		*) mib=941 ;;
		esac
		file=$tmp/$name.gguf
		free=$(df -Pm "$tmp" | awk 'NR == 2 { print $4 }')
		room=$(awk '/MemAvailable/ { print int($2 / 1024) }' /proc/meminfo)
		if [ "${free:-0}" -lt $((mib + 64)) ]; then
			skip "$name" "$free MiB are free where temporary files go, its file has $mib"
			continue
		fi
		if [ "${room:-0}" -lt $((mib * 2 + 512)) ]; then
			skip "$name" "$room MiB of memory are available, $((mib * 2 + 512)) are needed"
			continue
		fi
		"$BUILD/tests/random_gguf" "$file" "$name" >&2 || {
			n=$((n + 1)); echo "not ok $n - $name: its file can be written"
			rc=1
			continue
		}
	fi
	"$BUILD/tests/gpu_geometry" "$where" "$file" "$name" | grep -v '^1\.\.' || rc=1
	rm -f "$tmp/$name.gguf"
done
exit $rc
