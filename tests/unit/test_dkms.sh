#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# DKMS builds what install-dkms installs, for a kernel that is not the running
# one; make module builds the same; the device-tree overlay of the docs compiles.
#   test_dkms.sh [SUITE [ARCH]]  for that kernel of Debian's instead of bookworm's
set -u
cd "$(dirname "$0")/../.." || exit 1
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
bad=0
t() { # NAME COMMAND...
	local name=$1
	shift
	if "$@" >"$tmp/log" 2>&1; then echo "ok - $name"; else
		bad=1
		echo "not ok - $name"
		tail -n 20 "$tmp/log" "$tmp"/dkms/hearth/*/build/make.log 2>/dev/null | sed 's/^/# /'
	fi
}
skip() { echo "ok - $1 # SKIP $2"; }

if command -v dtc >/dev/null; then
	# The first block of the page that is a device tree.
	awk '/^```dts$/ { on = 1; next } /^```$/ { on = 0 } on' docs/uapi.md >"$tmp/o.dts"
	t "the overlay of the docs compiles" dtc -q -@ -I dts -O dtb -o "$tmp/o.dtbo" "$tmp/o.dts"
	t "and has a node that can be a pool" sh -c "dtc -q -I dtb -O dts '$tmp/o.dtbo' | grep -q 'hearth-weights {' &&
		! grep -qE 'no-map|reusable' '$tmp/o.dts'"
else
	skip "the overlay of the docs compiles" "dtc is not installed"
fi

host=$(dpkg --print-architecture 2>/dev/null)
suite=${1:-bookworm} arch=${2:-$host}
for_arch=() dkms_arch=()
if [ "$arch" = arm64 ] && [ "$host" != arm64 ]; then
	command -v aarch64-linux-gnu-gcc >/dev/null || { skip "DKMS builds the module" "aarch64-linux-gnu-gcc is not installed"; exit $bad; }
	export ARCH=arm64 CROSS_COMPILE=aarch64-linux-gnu-
	for_arch=(KARCH=arm64 ARCH=x86_64 CROSS_COMPILE=$CROSS_COMPILE) dkms_arch=(--arch aarch64)
fi
# A release's headers name its own compiler, which comes with them there.
mkdir "$tmp/bin"
for v in 10 12 14; do
	command -v "${CROSS_COMPILE:-}gcc-$v" >/dev/null || ln -s "$(command -v "${CROSS_COMPILE:-}gcc")" "$tmp/bin/${CROSS_COMPILE:-}gcc-$v"
done
PATH=$PATH:$tmp/bin
kdir=$(tests/vm/kernel.sh get "$suite" "$arch" 2>"$tmp/log")
if [ -z "$kdir" ]; then
	skip "DKMS builds the module" "no kernel headers: $(tail -n 1 "$tmp/log")"
	exit $bad
fi
t "make module builds the module" make -s BUILD="$tmp/b" NVCC= "${for_arch[@]}" KDIR="$kdir/build" module
t "which has its version" sh -c "strings -n 8 '$tmp/b/module/kmod/hearth.ko' | grep -qx 'version=$(make -s NVCC= print-VERSION)'"
t "and is for that kernel" sh -c "strings '$tmp/b/module/kmod/hearth.ko' | grep -q 'vermagic=$(cat "$kdir/release") '"
t "nothing is left beside the sources" sh -c "! ls kmod/*.ko kmod/*.o kmod/conftest.h 2>/dev/null | grep -q ."
t "without a kernel tree it says what to do" sh -c "! make -s BUILD='$tmp/b' NVCC= KDIR=/nowhere module >'$tmp/out' 2>&1 && grep -q 'headers, or say KDIR=' '$tmp/out'"

if ! command -v dkms >/dev/null || [ "$(id -u)" != 0 ]; then
	skip "DKMS builds the module" "needs dkms, and root"
	exit $bad
fi
sys=$tmp/root
t "the source is installed" make -s NVCC= PREFIX=/usr DESTDIR="$sys" install-dkms
mkdir -p "$tmp/dkms" "$tmp/mods"
d="dkms --dkmstree $tmp/dkms --sourcetree $sys/usr/src --installtree $tmp/mods -m hearth -v $(make -s NVCC= print-VERSION) -k $(cat "$kdir/release") ${dkms_arch[*]}"
t "DKMS builds the module" $d --kernelsourcedir "$kdir/build" build
t "and says so" sh -c "$d status | grep -q ': built'"
t "and has it" sh -c "find '$tmp/dkms' -name 'hearth.ko*' | grep -q /module/"
exit $bad
