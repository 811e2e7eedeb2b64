#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# hearth and, when its path is given, llama-bench on the same file, one after
# the other on the same GPU.
# usage: tests/gpu/bench.sh MODEL.gguf [LLAMA_BENCH]
set -eu
cd "$(dirname "$0")/../.."
BUILD=${BUILD:-build}
model=${1:?usage: tests/gpu/bench.sh MODEL.gguf [LLAMA_BENCH]}
llama=${2:-}
make -s --no-print-directory -j"$(nproc)" CUDA=1 BUILD="$BUILD" "$BUILD/bin/bench_gpu" "$BUILD/bin/bench_kernels"
nvidia-smi --query-gpu=name,driver_version,clocks.sm,clocks.mem --format=csv,noheader 2>/dev/null || true
"$BUILD/bin/bench_gpu" "$model"
"$BUILD/bin/bench_kernels"
if [ -n "$llama" ]; then
	for kv in q8_0 f16; do
		echo "== llama-bench, KV $kv"
		"$llama" -m "$model" -ngl 99 -fa 1 -ctk $kv -ctv $kv -p 18,33,64,128,235,512,2048 -n 128 -r 8
		"$llama" -m "$model" -ngl 99 -fa 1 -ctk $kv -ctv $kv -p 0 -n 128 -d 4096,16384 -r 3
	done
fi
