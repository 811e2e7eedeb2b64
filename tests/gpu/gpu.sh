#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Everything of the CUDA part that this machine can run, as TAP, in parts that
# each end within LIMIT seconds (540) and say when they begin.
#
# usage: tests/gpu/gpu.sh [all | PART...]    (without: compile kernels models)
#   compile     every kernel for SM 8.7 and 9.0, no spills (needs nvcc, no GPU)
#   kernels     each kernel against its C twin, small shapes
#   models      whole models, the engine over them, the shipped models
#   geometry    models of real geometry, the home models: llama.cpp's log-probabilities and text
#   text        the same text as llama-server writes on this GPU (LLAMA_SERVER)
#   serve       hearthd on this GPU: tool calls, foreseen tokens, several at once, who leaves, what is too large
#   memcheck racecheck synccheck   kernels, tiny models and the engine under compute-sanitizer
#   full-gemv full-gemm full-rest  the kernels at real sizes
#   speed       bench_gpu on the 4B geometry, and each kernel by itself
#   llama       llama-bench on the same file (LLAMA_BENCH, VOCAB)
#   speed8 llama8   the same under a limit of 8 SMs (an MPS daemon)
#   table       the ratios of what LOG holds, beside what is wanted
#
# BUILD=build   PREBUILT=1: programs are there (make gpu-build), nothing is made
# LOG=build/log/gpu   what each part printed
# GEOMETRY_DIR=DIR    where files of random_gguf are kept between runs
# VOCAB=FILE          a vocabulary for them, which llama.cpp needs
# MODEL=FILE          a model to measure instead of the 4B geometry
# LLAMA_BENCH=PATH LLAMA_SERVER=PATH   llama.cpp's programs, CUDA build
set -o pipefail
cd "$(dirname "$0")/../.." || exit 1
export BUILD=${BUILD:-build}
LOG=${LOG:-$BUILD/log/gpu}
LIMIT=${LIMIT:-540}
ALL="compile kernels models geometry text serve memcheck racecheck synccheck speed llama speed8 llama8 full-gemv full-gemm full-rest table"
n=0 rc=0
mkdir -p "$LOG"

ok() { n=$((n + 1)); echo "ok $n - $*"; }
bad() { n=$((n + 1)); echo "not ok $n - $*"; rc=1; }
# A program's own TAP, numbered on; its time is bounded.
tap() {
	local line r before=$n was=$rc
	rc=0
	while IFS= read -r line; do
		case $line in
		"ok "*) n=$((n + 1)); echo "ok $n - ${line#* - }" ;;
		"not ok "*) n=$((n + 1)); rc=1; echo "not ok $n - ${line#* - }" ;;
		"Bail out!"*) bad "${line#Bail out! }" ;;
		1..*) ;;
		*) printf '%s\n' "$line" ;;
		esac
	done < <(timeout -k 10 "$LIMIT" "$@" 2>&1 | tee -a "$LOG/$part.log"; echo "${PIPESTATUS[0]}" >"$LOG/.rc")
	r=$(cat "$LOG/.rc")
	case $r in
	0) [ "$n" -gt "$before" ] || bad "$part: no result: $*" ;;
	1) [ "$rc" -ne 0 ] || bad "$part: exit code 1: $*" ;;
	124|137) bad "$part: no end after $LIMIT s: $*" ;;
	*) bad "$part: exit code $r: $*" ;;
	esac
	[ "$was" -eq 0 ] || rc=$was
}
# A program that prints figures.
figures() {
	if timeout -k 10 "$LIMIT" "$@" 2>&1 | tee -a "$LOG/$part.log"; then
		ok "$part: ${1##*/} ran to its end"
	else
		bad "$part: ${1##*/} failed or took more than $LIMIT s"
	fi
}
# Files are written once a run, and kept where GEOMETRY_DIR was given.
if [ -z "${GEOMETRY_DIR:-}" ]; then
	GEOMETRY_DIR=$(mktemp -d) || exit 1
	trap 'rm -rf "$GEOMETRY_DIR"' EXIT
fi
export GEOMETRY_DIR
geometry_file() {
	local f=${GEOMETRY_DIR}/$1.gguf
	[ -f "$f" ] || "$BUILD/tests/random_gguf" "$f" "$1" ${VOCAB:+"$VOCAB"} || return 1
	echo "$f"
}
# What is measured. llama.cpp cannot read a file without a vocabulary.
measured() {
	if [ -n "${MODEL:-}" ]; then echo "$MODEL"; else geometry_file qwen3-4b; fi
}
PROGRAMS="tests/gpu_kernels tests/gpu_model tests/gpu_geometry tests/random_gguf bin/bench_gpu bin/bench_kernels bin/hearthd"
built=
build() {
	[ -z "$built" ] || return 0
	make -s --no-print-directory -j"$(nproc)" CUDA=1 BUILD="$BUILD" gpu-build >&2 || { bad "the programs build (make CUDA=1 gpu-build)"; return 1; }
	built=1
}
brought() {   # what PREBUILT promises
	local f missing=
	for f in $PROGRAMS; do
		[ -x "$BUILD/$f" ] || missing="$missing $BUILD/$f"
	done
	[ -z "$missing" ] || bad "PREBUILT is set, and these are not here (make CUDA=1 gpu-build makes them):$missing"
	[ -z "$missing" ]
}
mps() {   # COMMAND... on 8 SMs of 132
	local dir chosen=${CUDA_VISIBLE_DEVICES-}
	dir=$(mktemp -d) || return
	export CUDA_MPS_PIPE_DIRECTORY=$dir/pipe CUDA_MPS_LOG_DIRECTORY=$dir/log   # sockets: a long path does not do
	mkdir "$dir/pipe" "$dir/log"
	nvidia-cuda-mps-control -d >/dev/null 2>&1
	# The daemon hands on the GPUs that it sees itself, counted from 0 again: a choice made twice finds none.
	unset CUDA_VISIBLE_DEVICES
	CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=${MPS_PERCENT:-6} figures "$@"
	echo quit | nvidia-cuda-mps-control >/dev/null 2>&1
	cat "$dir"/log/*.log >"$LOG/mps.log" 2>/dev/null
	unset CUDA_MPS_PIPE_DIRECTORY CUDA_MPS_LOG_DIRECTORY
	[ -z "$chosen" ] || export CUDA_VISIBLE_DEVICES=$chosen
	rm -rf "$dir"
}
no_spills() {   # BUILD ARCHS
	local none said
	case " $2 " in
	*" 87 "*) ;;
	*) ok "no kernel spills registers on SM 8.7 # SKIP the kernels were compiled for SM $2 alone"; return ;;
	esac
	# A report that says nothing of SM 8.7 must not pass for one without spills.
	none=$(grep -ls 'Compiling entry function' "$1"/obj/kernels/*.cu.log | xargs -r grep -L "for 'sm_87'")
	if [ -n "$none" ] || ! grep -qs "for 'sm_87'" "$1"/obj/kernels/*.cu.log; then
		bad "registers that spill: no report of SM 8.7 in ${none:-$1/obj/kernels}: make CUDA_ARCHS='87 90' cuda-objs writes them"
		return
	fi
	said=$(BUILD=$1 tools/kernel_table.sh spills)
	if [ -z "$said" ]; then ok "no kernel spills registers on SM 8.7"; else bad "spilling kernels: $said"; fi
}
bench_llama() {   # KV PROMPTS DEPTHS REPEATS
	echo "== KV $1"
	"$LLAMA_BENCH" -m "$2" -ngl 99 -fa 1 -ctk "$1" -ctv "$1" -p "$3" -n 128 -r "$5" &&
	{ [ "$4" = 0 ] || "$LLAMA_BENCH" -m "$2" -ngl 99 -fa 1 -ctk "$1" -ctv "$1" -p 0 -n 128 -d "$4" -r 3; }
}
export -f bench_llama

run_part() {
	case $1 in
	compile)
		if [ -n "${PREBUILT:-}" ]; then
			ok "the kernels were compiled elsewhere # SKIP PREBUILT is set"
			return
		fi
		if make -s --no-print-directory -j2 BUILD="$BUILD" cuda-objs >&2; then
			ok "every kernel compiles for SM $(make -s --no-print-directory print-CUDA_ARCHS)"
		else
			bad "every kernel compiles"
			return
		fi
		for setting in 1 0 1; do
			make -s --no-print-directory BUILD="$BUILD/settings" CUDA=$setting "$BUILD/settings/obj/runtime/model/ops_cuda.o" >&2
			case $setting$(nm "$BUILD/settings/obj/runtime/model/ops_cuda.o" | grep -c ' U hk_') in
			00|1[1-9]*) ok "what was built with another setting is built again for CUDA=$setting" ;;
			*) bad "what was built with another setting is built again for CUDA=$setting" ;;
			esac
		done
		for arch in 87 90; do
			make -s --no-print-directory BUILD="$BUILD/settings" CUDA_ARCHS=$arch "$BUILD/settings/obj/kernels/speed.cu.o" >&2
			if [ "$(grep -o 'sm_[0-9]*' "$BUILD/settings/obj/kernels/speed.cu.log" | sort -u)" = sm_$arch ]; then
				ok "what was compiled for another GPU is compiled again for SM $arch"
			else
				bad "what was compiled for another GPU is compiled again for SM $arch"
			fi
		done
		said=$(make -s --no-print-directory BUILD="$BUILD" NVCC= CUDA=1 gpu-build 2>&1) && said="built: $said"
		case $said in
		gpu-build:*"nvcc was not found"*PREBUILT*) ok "without nvcc gpu-build says what to do" ;;
		*) bad "without nvcc gpu-build says what to do: $said" ;;
		esac
		mkdir -p "$BUILD/settings/bin" "$BUILD/settings/tests"
		for release in 11.4 11.8; do
			printf '#!/bin/sh\necho "Cuda compilation tools, release %s, V%s.1"\n' $release $release >"$BUILD/settings/nvcc" && chmod +x "$BUILD/settings/nvcc"
			said=$(make -s --no-print-directory NVCC="$BUILD/settings/nvcc" CUDA=1 print-CUDA_ON)
			[ $release = 11.8 ] || said=$said$(make -s --no-print-directory NVCC="$BUILD/settings/nvcc" cuda-objs gpu-build 2>&1)
			case $release:$said in
			11.8:1|11.4:cuda-objs:*"nvcc is of CUDA 11.4, and 11.8 or newer is needed"*) ok "an nvcc of CUDA $release is taken, or refused by its number" ;;
			*) bad "an nvcc of CUDA $release is taken, or refused by its number: $said" ;;
			esac
		done
		for f in $PROGRAMS; do
			printf '#!/bin/sh\necho ok 1 - "$@"\n' >"$BUILD/settings/$f" && chmod +x "$BUILD/settings/$f"
		done
		for nodes in "$BUILD/none /dev/null" "/dev/null $BUILD/none" $BUILD/none; do
			said=$(PREBUILT=1 GPU_NODES=$nodes BUILD="$BUILD/settings" LOG="$BUILD/settings" tests/gpu/gpu.sh kernels 2>&1)
			case $nodes:$said in
			*null*:*"ok 1 - quick"*|$BUILD/none:*SKIP*) ok "a GPU is where one of its nodes is: $nodes" ;;
			*) bad "a GPU is where one of its nodes is: $nodes: $said" ;;
			esac
		done
		printf '#!/bin/sh\n[ "$1" != -d ] || echo "daemon $CUDA_VISIBLE_DEVICES" >"$CUDA_MPS_LOG_DIRECTORY/control.log"\n' >"$BUILD/settings/nvidia-cuda-mps-control"
		printf '#!/bin/sh\necho "client ${CUDA_VISIBLE_DEVICES-all} of $CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"; cat "$CUDA_MPS_LOG_DIRECTORY/control.log"\n' >"$BUILD/settings/bin/bench_gpu"
		chmod +x "$BUILD/settings/nvidia-cuda-mps-control"
		said=$(PATH=$(cd "$BUILD/settings" && pwd):$PATH PREBUILT=1 CUDA_VISIBLE_DEVICES=1 MODEL=none GPU_NODES=/dev/null BUILD="$BUILD/settings" LOG="$BUILD/settings" tests/gpu/gpu.sh speed8 2>&1)
		case $said in
		*"client all of 6"*"daemon 1"*"ok 1 - speed8: bench_gpu ran"*) ok "a client of an MPS daemon takes what the daemon has, whatever GPU was chosen" ;;
		*) bad "a client of an MPS daemon takes what the daemon has, whatever GPU was chosen: $said" ;;
		esac
		rm -rf "$BUILD/settings"
		said=$(GPU_NODES=$BUILD/none LOG="$BUILD/none" tests/gpu/gpu.sh table kernel 2>&1) && said="passed: $said"
		case $said in
		"not ok 1 - no part \"kernel\"; the parts: "*) ok "a part that is none is refused, GPU or not" ;;
		*) bad "a part that is none is refused, GPU or not: $said" ;;
		esac
		case $(GPU_NODES=$BUILD/none LOG="$BUILD/none" tests/gpu/gpu.sh table 2>&1) in
		*"nothing was measured"*"1..0") ok "a table of nothing says so" ;;
		*) bad "a table of nothing says so" ;;
		esac
		rm -rf "$BUILD/none"
		said=$(PREBUILT=1 BUILD=$BUILD/none LOG="$LOG" tests/gpu/gpu.sh kernels 2>&1) && said="passed: $said"
		case $said in
		"not ok 1 - PREBUILT is set"*$BUILD/none/bin/hearthd*) ok "PREBUILT without the programs names them" ;;
		*) bad "PREBUILT without the programs names them: $said" ;;
		esac
		for wish in "87:87:0:ok 1 - no kernel spills registers on SM 8.7" "87:87:4:not ok 1 - spilling kernels: k " \
			"90:90:0:ok 1 - *# SKIP*SM 90 alone" "87 90:90:0:not ok 1 - *no report of SM 8.7 in*k.cu.log" "87::0:not ok 1 - *no report of SM 8.7 in*"; do
			IFS=: read -r archs arch bytes want <<<"$wish"
			mkdir -p "$BUILD/none/obj/kernels"
			[ -z "$arch" ] || printf "ptxas info    : Compiling entry function 'k' for 'sm_%s'\n    0 bytes stack frame, %s bytes spill stores, %s bytes spill loads\nUsed 9 registers\n" \
				"$arch" "$bytes" "$bytes" >"$BUILD/none/obj/kernels/k.cu.log"
			said=$(n=0; no_spills "$BUILD/none" "$archs")
			case $said in
			$want*) ok "registers that spill are looked for: $wish" ;;
			*) bad "registers that spill are looked for: $wish: $said" ;;
			esac
			rm -rf "$BUILD/none"
		done
		no_spills "$BUILD" "$(make -s --no-print-directory print-CUDA_ARCHS)"
		;;
	kernels) tap "$BUILD/tests/gpu_kernels" quick ;;
	models)
		tap "$BUILD/tests/gpu_model"
		tap "$BUILD/tests/gpu_model" models/home-q4_k_m.gguf 256
		tap "$BUILD/tests/gpu_model" models/home-q8_0.gguf 256
		;;
	geometry)
		for name in qwen3-0.6b qwen3-1.7b qwen3-4b qwen2.5-1.5b; do
			geometry_file "$name" >/dev/null || bad "the file of $name can be written"
			tap env PREBUILT=1 tests/gpu/geometry.sh cuda "$name"
		done
		tap env PREBUILT=1 tests/gpu/geometry.sh cuda home-q8_0 home-q4_k_m
		;;
	text)
		if [ -z "${LLAMA_SERVER:-}" ] || [ -z "${VOCAB:-}" ]; then
			ok "text beside llama-server # SKIP LLAMA_SERVER and VOCAB are not given"
			return
		fi
		for name in qwen3-0.6b qwen3-1.7b qwen3-4b qwen2.5-1.5b; do
			f=$(geometry_file "$name") || { bad "the file of $name"; continue; }
			tap tests/gpu/text.py --llama-server "$LLAMA_SERVER" --model "$f" --name "$name"
		done
		;;
	serve) tap env HEARTH_COMPUTE=cuda tests/e2e/serve.py ;;
	memcheck|racecheck|synccheck)
		san=$(command -v compute-sanitizer || ls /usr/local/cuda/bin/compute-sanitizer 2>/dev/null)
		if [ -z "$san" ]; then
			ok "$1 # SKIP compute-sanitizer is not installed"
			return
		fi
		for program in "gpu_kernels quick" gpu_model; do
			log=$LOG/$1-${program% *}.log
			if SANITIZED=1 timeout -k 10 "$LIMIT" "$san" --tool "$1" --error-exitcode 9 $BUILD/tests/$program >"$log" 2>&1; then
				ok "$1, $program: $(grep -E 'ERROR SUMMARY|RACECHECK SUMMARY' "$log" | tail -n 1 | sed 's/=* *//')"
			else
				bad "$1, $program: $(grep -E '=====|^not ok' "$log" | tail -n 1); log $log"
			fi
		done
		;;
	full-gemv) tap "$BUILD/tests/gpu_kernels" gemv ;;
	full-gemm) tap "$BUILD/tests/gpu_kernels" gemm ;;
	full-rest) tap "$BUILD/tests/gpu_kernels" raw norm swiglu embed rope attn attn_rope kv_copy pick refuse ;;
	speed)
		nvidia-smi --query-gpu=name,driver_version,clocks.sm,clocks.mem --format=csv,noheader 2>/dev/null | tee -a "$LOG/$part.log"
		f=$(measured) || { bad "the file of qwen3-4b"; return; }
		figures "$BUILD/bin/bench_gpu" "$f"
		figures "$BUILD/bin/bench_kernels"
		;;
	llama|llama8|speed8)
		if [ "$1" != llama ] && ! command -v nvidia-cuda-mps-control >/dev/null; then
			ok "$1 # SKIP nvidia-cuda-mps-control is not installed"
			return
		fi
		f=$(measured) || { bad "the file of qwen3-4b"; return; }
		if [ "$1" = speed8 ]; then
			mps "$BUILD/bin/bench_gpu" "$f" quick
			return
		fi
		if [ -z "${LLAMA_BENCH:-}" ] || [ -z "${MODEL:-}${VOCAB:-}" ]; then
			ok "llama-bench # SKIP LLAMA_BENCH, or MODEL or VOCAB, is not given"
			return
		fi
		export LLAMA_BENCH
		if [ "$1" = llama ]; then
			figures bash -c "bench_llama q8_0 '$f' 18,33,64,128,235,512,2048 4096,16384 5"
			figures bash -c "bench_llama f16 '$f' 18,33,64,128,235,512,2048 0 5"
		else
			mps bash -c "bench_llama q8_0 '$f' 33,128,512 0 3"
		fi
		;;
	table) tests/gpu/table.py "$LOG" | tee "$LOG/table.log" ;;
	esac
}

[ $# -gt 0 ] || set -- compile kernels models
[ "$*" != all ] || set -- $ALL
for part; do
	case " $ALL " in
	*" $part "*) ;;
	*) bad "no part \"$part\"; the parts: $ALL"; echo "1..$n"; exit 1 ;;
	esac
done
gpu=
for f in ${GPU_NODES:-/dev/nvidiactl /dev/nvhost-gpu /dev/nvmap}; do   # a card has one of them, a Jetson the others
	[ ! -e "$f" ] || gpu=1
done
i=0
for part; do
	i=$((i + 1))
	case $part in
	compile)
		if [ -z "${PREBUILT:-}" ] && [ -z "$(make -s --no-print-directory print-NVCC)" ]; then
			ok "CUDA kernels # SKIP $(make -s --no-print-directory print-CUDA_WHY)"
			continue
		fi ;;
	table) ;;
	*)
		if [ -n "${PREBUILT:-}" ]; then
			brought || break
		elif [ -n "$gpu" ] && [ -z "$(make -s --no-print-directory print-NVCC)" ]; then
			ok "$part on a GPU # SKIP $(make -s --no-print-directory print-CUDA_WHY); make CUDA=1 gpu-build on a machine that has it, then PREBUILT=1 here (docs/cuda.md)"
			continue
		fi
		if [ -z "$gpu" ]; then
			ok "$part on a GPU # SKIP no NVIDIA GPU on this machine"
			continue
		fi
		[ -n "${PREBUILT:-}" ] || build || break ;;
	esac
	echo "# $part ($i of $#), after $SECONDS s"
	[ "$part" = table ] || rm -f "$LOG/$part.log"
	run_part "$part"
done
echo "1..$n"
exit $rc
