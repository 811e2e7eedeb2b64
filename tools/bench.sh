#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Every figure of hearth that this machine can give, ratios in one run.
#   tools/bench.sh [--llama-bench PATH] [--model FILE.gguf] [--rounds N]
# --llama-bench: llama.cpp's program, for the comparison; without it our own
#   figures come alone. --model: the file for decode, prefill and load (the
#   home model; a bigger one tells more of loading).
set -eu
cd "$(dirname "$0")/.."
BUILD=${BUILD:-build}
llama= model=models/home-q8_0.gguf rounds=5
while [ $# -gt 0 ]; do
	case "$1" in
	--llama-bench) llama=$2; shift 2 ;;
	--model) model=$2; shift 2 ;;
	--rounds) rounds=$2; shift 2 ;;
	*) echo "usage: tools/bench.sh [--llama-bench PATH] [--model FILE.gguf] [--rounds N]" >&2; exit 2 ;;
	esac
done
title() { printf '\n== %s\n' "$*"; }

title "machine"
grep -m1 'model name' /proc/cpuinfo 2>/dev/null | sed 's/.*: //' || uname -m
echo "$(nproc) cores, $(awk '/MemTotal/ { printf "%.1f GB", $2 / 1e6 }' /proc/meminfo), kernel $(uname -r), load $(cut -d' ' -f1 /proc/loadavg), commit $(git rev-parse --short HEAD 2>/dev/null || echo unknown)"

title "decode and prefill${llama:+, against $llama}"
"$BUILD/bin/bench_engine" "$model" ${llama:+--llama-bench "$llama"} --rounds "$rounds" --threads "$(nproc)"

title "model load against dd iflag=direct"
"$BUILD/bin/bench_load" "$model" "$rounds"

title "turns: speech end to first audio"
if [ -r models/home-q8_0.gguf ]; then
	mkdir -p "$BUILD/bench"
	i=0
	wavs=()
	for text in "turn on the kitchen light" "lock the front door" "set the thermostat to twenty one degrees" "turn off the wall lamp"; do
		i=$((i + 1))
		"$BUILD/bin/hearth" say --voice rms -o "$BUILD/bench/$i.wav" "$text"
		wavs+=("$BUILD/bench/$i.wav")
	done
	"$BUILD/bin/hearth" bench turns --rounds "$rounds" "${wavs[@]}"
	echo "  (at most 500 with the wait and 200 without it, at the median; resident under 400 MiB)"
else
	echo "left out: models/home-q8_0.gguf is not in this tree"
fi
