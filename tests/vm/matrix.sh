#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The VM tests on several kernels, in one go or in many. Prints TAP, and last
#   N passed, N failed, N skipped
#
#   matrix.sh [SUITE[-ARCH]]...  default: 5.10, 6.12 and the newest that Debian
#                                has, amd64 and arm64; also "debug"
#
# A program that passed in a guest is kept with the digest of what it tested: the
# module, the program, the kernel. It is not run again while that stays the
# same; what it printed then is printed again, behind a line that says so.
# FRESH=1 forgets all of that. So an interrupted run goes on where it was.
# VM_GUESTS: how many run side by side (2; a guest seldom keeps a processor busy).
set -u
cd "$(dirname "$0")/../.." || exit 1
export BUILD=${BUILD:-build}/matrix
mkdir -p "$BUILD/vm"
exec 9>"$BUILD/vm/lock"
flock -n 9 || { echo "# waits for another run of this in the same folder"; flock 9; }
pieces=()
for p in "${@:-bullseye trixie sid}"; do
	for p in $p; do
		case $p in
		debug) pieces+=(debug-amd64) ;;
		*-amd64|*-arm64) pieces+=("$p") ;;
		bullseye|bookworm|trixie|sid) pieces+=("$p-amd64" "$p-arm64") ;;
		*) echo "matrix.sh: $p is no suite; usage: matrix.sh [SUITE[-ARCH]]..." >&2; exit 2 ;;
		esac
	done
done

module_files() { find Kbuild kmod uapi tests/vectors/*_cases.h tests/vm/probe -type f \( -name '*.[ch]' -o -name Kbuild -o -name '*.sh' \) ! -name conftest.h ! -name '*.mod.c'; }
# What a program is made of, beside the module.
program_files() {
	case $1 in
	vm_hearthctl) echo tests/unit/test_hearthctl.sh tests/vm/{keep,setuidgid}.c tools/hearthctl* runtime/dev/* runtime/base/{err,yaml}.[ch] ;;
	vm_libhearth) echo tests/unit/{test_device.c,device_*} tests/vm/mini/* runtime/dev/* runtime/base/err.[ch] ;;
	vm_load) echo tests/unit/{test_load,synth}.c tests/vm/mini/* runtime/gguf/* runtime/dev/* runtime/base/err.[ch] ;;
	vm_*32) echo "tests/vm/${1%32}.c" ;;
	*) echo "tests/vm/$1.c" ;;
	esac
}
# key PIECE LINE: the digest of everything that LINE of the list tests there
key() {
	# shellcheck disable=SC2046
	{ echo "$1 $2"; cat "$BUILD/vm/$1/release"
	  sha256sum $(module_files | sort) tests/vm/{init,vm}.[ch] $(program_files "${2%% *}") 2>/dev/null; } | sha256sum | cut -c1-32
}

# harvest DIR: keeps what passed in the guest that ran last, however it ended.
# One file a program: the lines it printed.
harvest() {
	local d=$1 prog k
	[ -e "$d/running" ] || return 0
	rm -rf "$d/new"; mkdir -p "$d/new" "$d/passed"
	tr -d '\r' <"$d/result.log" 2>/dev/null | awk -v d="$d/new" '
		/^# vm_[a-z0-9_]+: [0-9]+ s$/ {
			p = $2; sub(/:$/, "", p)
			if (ok && !bad) { printf "%s%s\n", block, $0 > (d "/" p); close(d "/" p) }
			block = ""; ok = bad = 0; next
		}
		/vectors of the core/ { next }
		/^ok/ { ok = 1 }
		/^not ok/ { bad = 1 }
		{ block = block $0 "\n" }'
	while read -r k prog; do
		[ -e "$d/new/$prog" ] && mv "$d/new/$prog" "$d/passed/$k"
	done <"$d/running"
	rm -rf "$d/new" "$d/running"
}

guests=() piece_of_guest=()
interrupted() {
	trap '' TERM INT
	[ ${#guests[@]} -gt 0 ] && kill "${guests[@]}" 2>/dev/null
	wait
	for p in "${pieces[@]}"; do harvest "$BUILD/vm/$p"; done
	echo "# interrupted; what passed is kept, the next run goes on from there"
	exit 143
}
trap interrupted TERM INT HUP

# begin PIECE: what passed before, and a guest for the rest
begin() {
	local piece=$1 d=$BUILD/vm/$1 list=all suite=${1%-*} arch=${1##*-} line prog k old=()
	local -x VM_TIMEOUT=${VM_TIMEOUT:-1800} VM_MEM=${VM_MEM:-1024}
	[ "$suite" = debug ] && list=debug VM_MEM=2048
	mkdir -p "$d"
	[ -z "${FRESH:-}" ] || rm -rf "$d/passed" "$d/running"
	harvest "$d"
	mkdir -p "$d/passed"
	: >"$d/release"
	if [ "$suite" = debug ]; then tests/vm/debug-kernel.sh; else tests/vm/kernel.sh get "$suite" "$arch"; fi \
		2>/dev/null | while read -r line; do cat "$line/release"; done >"$d/release"
	: >"$d/tap"; : >"$d/next"
	while read -r line; do
		prog=${line%% *}
		case $prog in vm_*) ;; *) continue ;; esac
		k=$(key "$piece" "$line")
		if [ -e "$d/passed/$k" ]; then
			old+=("$prog")
			sed "s/^ok - /ok - $piece: /" "$d/passed/$k" >>"$d/tap"
		else
			echo "$k $prog" >>"$d/next"
		fi
	done <"tests/vm/$list.list"
	if [ ${#old[@]} -gt 0 ]; then
		echo "# $piece: passed before with this very module, test and kernel (FRESH=1 runs them again): ${old[*]}"
		cat "$d/tap"
	fi
	rm -f "$d/result.log"
	mv "$d/next" "$d/running"
	VM_SKIP=${old[*]-} tests/vm/run.sh "$suite" "$arch" "$list" >"$d/tap.new" 2>&1 &
	guests+=($!) piece_of_guest+=("$piece")
}

# end: waits for the guests that were begun
end() {
	local i d
	for i in "${!guests[@]}"; do
		d=$BUILD/vm/${piece_of_guest[$i]}
		wait "${guests[$i]}" || bad=1
		harvest "$d"
		cat "$d/tap.new"
		cat "$d/tap.new" >>"$d/tap"
		taps+=("$d/tap")
	done
	guests=() piece_of_guest=()
}

bad=0 taps=()
for p in "${pieces[@]}"; do
	begin "$p"
	[ ${#guests[@]} -lt "${VM_GUESTS:-2}" ] || end
done
end
skip=$(cat "${taps[@]}" | grep -cE '^(not )?ok .*# *(SKIP|skip)')
ok=$(cat "${taps[@]}" | grep -E '^ok ' | grep -cvE '# *(SKIP|skip)')
no=$(cat "${taps[@]}" | grep -E '^not ok ' | grep -cvE '# *(SKIP|skip)')
[ "$bad" -eq 0 ] || [ "$no" -gt 0 ] || no=1
[ "$no" -eq 0 ] || grep -hE '^not ok ' "${taps[@]}" | sed 's/^/failed: /'
echo "$ok passed, $no failed, $skip skipped"
[ "$no" -eq 0 ] && [ "$ok" -gt 0 ]
