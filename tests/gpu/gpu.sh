#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Everything of the CUDA part that this machine can run: with nvcc, every kernel
# compiles for SM 8.7 and 9.0 without spills; with a GPU, the tests run on it.
# `gpu.sh all` also runs them under compute-sanitizer.
cd "$(dirname "$0")/../.." || exit 1
BUILD=${BUILD:-build}
rc=0 n=0
ok() { n=$((n + 1)); echo "ok $n - $*"; }
bad() { n=$((n + 1)); echo "not ok $n - $*"; rc=1; }

if [ -z "$(make -s --no-print-directory print-NVCC)" ]; then
	ok "CUDA kernels # SKIP nvcc was not found"
	exit 0
fi
if make -s --no-print-directory -j2 BUILD="$BUILD" cuda-objs >&2; then
	ok "every kernel compiles for SM $(make -s --no-print-directory print-CUDA_ARCHS)"
else
	bad "every kernel compiles"
	exit 1
fi
spills=$(tools/kernel_table.sh spills)
if [ -z "$spills" ]; then ok "no kernel spills registers"; else bad "spilling kernels: $spills"; fi

if ! ls /dev/nvidiactl /dev/nvhost-gpu /dev/nvmap >/dev/null 2>&1; then
	ok "kernels and models on a GPU # SKIP no NVIDIA GPU on this machine"
	exit $rc
fi
make -s --no-print-directory -j"$(nproc)" CUDA=1 BUILD="$BUILD" "$BUILD/tests/gpu_kernels" "$BUILD/tests/gpu_model" >&2 || {
	bad "the GPU tests build"
	exit 1
}
run() {
	"$@" | grep -v '^1\.\.'
	[ "${PIPESTATUS[0]}" -eq 0 ] || rc=1
}
run "$BUILD/tests/gpu_kernels"
run "$BUILD/tests/gpu_model"
run "$BUILD/tests/gpu_model" models/home-q4_k_m.gguf 256
run "$BUILD/tests/gpu_model" models/home-q8_0.gguf 256
if [ "${1:-}" = all ]; then
	san=$(command -v compute-sanitizer || ls /usr/local/cuda/bin/compute-sanitizer 2>/dev/null)
	if [ -z "$san" ]; then
		ok "compute-sanitizer # SKIP it is not installed"
	else
		for tool in memcheck racecheck synccheck; do
			log=$BUILD/log/sanitize-$tool.log
			mkdir -p "$BUILD/log"
			if "$san" --tool $tool --error-exitcode 9 "$BUILD/tests/gpu_kernels" quick >"$log" 2>&1; then
				ok "$tool: $(grep -E 'ERROR SUMMARY|RACECHECK SUMMARY' "$log" | tail -n 1 | sed 's/=* *//')"
			else
				bad "$tool: $(grep -E '=====' "$log" | tail -n 1); log $log"
			fi
		done
	fi
fi
exit $rc
