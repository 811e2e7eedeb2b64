#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Boots a kernel in QEMU with the module and the test programs, prints TAP.
#
#   run.sh SUITE ARCH [LIST]     Debian's kernel of bullseye, bookworm, trixie or
#                                sid, for amd64 or arm64
#   run.sh debug amd64 [LIST]    the kernel of debug-kernel.sh
#
# LIST is a file of tests/vm/*.list without its ending; default: all. Emulated
# (TCG), never KVM: it runs anywhere, and the same everywhere.
# VM_TIMEOUT: seconds after which a guest counts as hung (900).
# VM_SKIP: programs of the list to leave out.
set -u
cd "$(dirname "$0")/../.." || exit 1
suite=${1:-bookworm} arch=${2:-amd64} list=${3:-all}
name=$suite-$arch
out=${BUILD:-build}/vm/$name
mkdir -p "$out"
out=$(cd "$out" && pwd)

skip() { echo "ok - $name # SKIP $*"; exit 0; }
fail() { echo "not ok - $name: $*"; exit 1; }

command -v cpio >/dev/null || skip "cpio is not installed"
command -v make >/dev/null || skip "make is not installed"
case $arch in
amd64)
	qemu=qemu-system-x86_64; cross= karch=x86_64; cc=${VM_CC:-gcc} cc32=i686-linux-gnu-gcc
	[ "$(uname -m)" = x86_64 ] || { cross=x86_64-linux-gnu-; cc=${cross}gcc; } ;;
arm64)
	qemu=qemu-system-aarch64; cross=aarch64-linux-gnu- karch=arm64; cc=${cross}gcc cc32=arm-linux-gnueabihf-gcc
	[ "$(uname -m)" != aarch64 ] || { cross=; cc=gcc; } ;;
*) fail "unknown architecture $arch" ;;
esac
command -v $qemu >/dev/null || skip "$qemu is not installed"
command -v $cc >/dev/null || skip "$cc is not installed"

if [ "$suite" = debug ]; then
	kdir=$(tests/vm/debug-kernel.sh 2>"$out/kernel.log") || skip "no debug kernel: $(tail -n 1 "$out/kernel.log")"
else
	kdir=$(tests/vm/kernel.sh get "$suite" "$arch" 2>"$out/kernel.log") ||
		skip "no kernel of $suite for $arch: $(tail -n 1 "$out/kernel.log")"
fi

# -- the module, in a copy, because kbuild writes beside the sources
src=$out/src
mkdir -p "$src"
cp -p Kbuild "$src/"
# What a build in the tree has left there (for another kernel) stays behind.
copy_dir() {
	local f
	mkdir -p "$src/$1"
	for f in "$1"/*.[ch]; do
		case $f in */conftest.h|*.mod.c) ;; *) cp -pu "$f" "$src/$1/" ;; esac
	done
}
for d in kmod kmod/core uapi/linux tests/vectors; do copy_dir $d; done
cp -pu kmod/Kbuild kmod/conftest.sh "$src/kmod/"
mkdir -p "$src/probe"
cp -pu tests/vm/probe/* "$src/probe/"
# The compiler is this machine's, whatever the kernel was made with; a flag that
# only a newer one has is switched off, and type information for BPF, which
# wants one more program. Warnings that count are ours.
kmake=(ARCH=$karch CROSS_COMPILE=$cross CC="$cc" CONFIG_CC_HAS_MIN_FUNCTION_ALIGNMENT=
	CONFIG_DEBUG_INFO_BTF_MODULES= -j2)
# Where function tracing wants every function aligned, and this compiler cannot
# promise it, the module goes untraced; else loading it would end the kernel.
grep -q ^CONFIG_DYNAMIC_FTRACE_WITH_CALL_OPS=y "$kdir/build/.config" &&
	! $cc -fmin-function-alignment=8 -fsyntax-only -xc /dev/null 2>/dev/null &&
	kmake+=(CC_FLAGS_FTRACE=)
make -C "$kdir/build" M="$src/kmod" "${kmake[@]}" HEARTH_SELFTEST=y W=1 modules >"$out/module.log" 2>&1 ||
	{ grep -E 'error|warning' "$out/module.log" | head -n 20 | sed 's/^/# /'; fail "the module does not build (log: $out/module.log)"; }
if grep -E "^$src/.*warning:" "$out/module.log" >"$out/warnings"; then
	head -n 20 "$out/warnings" | sed 's/^/# /'
	fail "the module builds with warnings"
fi
echo "ok - $name: the module builds without a warning"
# The driver that tests play a device with; after the module, whose findings
# about the kernel it uses.
make -C "$kdir/build" M="$src/probe" "${kmake[@]}" modules >"$out/probe.log" 2>&1 ||
	{ grep -E 'error|warning' "$out/probe.log" | head -n 20 | sed 's/^/# /'; fail "the probe does not build (log: $out/probe.log)"; }

# -- the programs
# program OUT "COMPILER FLAGS" SOURCE...: one object a source, of the compiler's
# cache where there is one; linked with the libraries in $with.
rm -rf "$out/obj"
mkdir -p "$out/obj"
program() {
	local to=$1 how=$2 s o objs= kind
	shift 2
	kind=$(echo "$how" | cksum | cut -d' ' -f1)
	for s in "$@"; do
		o=$out/obj/$kind-$(echo "$s" | tr / -).o
		# shellcheck disable=SC2086
		[ -e "$o" ] || $(command -v ccache) $how -c -o "$o" "$s" || return 1
		objs="$objs $o"
	done
	# shellcheck disable=SC2086
	$how -o "$to" $objs ${with:-}
}
# Libraries of the guest's kind: this machine's, or Debian's for another.
libs=
busybox=$(command -v busybox)
other_libs() {
	local dir
	[ -n "$cross" ] && [ -z "$libs" ] || return 0
	dir=$(tests/vm/kernel.sh libs $arch 2>"$out/libs.log") || { why="no libraries of $arch: $(tail -n 1 "$out/libs.log")"; return 1; }
	busybox=$dir/bin/busybox
	libs="-I$dir/usr/include -I$dir/usr/include/libnl3 -L$dir/usr/lib/${cross%-} -L$dir/lib/${cross%-}"
}
ctl_in_guest() {
	other_libs || return 1
	[ -n "$busybox" ] && ! ldd "$busybox" >/dev/null 2>&1 || { why="busybox-static is not installed"; return 1; }
	# libyaml has a yaml_free of its own, which only a static link can see
	with="-ljansson -lyaml -lnl-genl-3 -lnl-3" program "$root/hearthctl" \
		"$cc $flags -D_GNU_SOURCE -Dyaml_free=hearth_yaml_free -Iruntime ${libs:-$(pkg-config --cflags libnl-genl-3.0)}" \
		tools/hearthctl*.c runtime/dev/*.c runtime/base/err.c runtime/base/yaml.c kmod/core/*.c 2>"$out/hearthctl.log" ||
		{ why="jansson, libyaml and libnl cannot be linked statically"; return 1; }
	mkdir -p "$root/bin" "$root/tmp"
	cp "$busybox" "$root/bin/busybox"
	$cc $flags -D_GNU_SOURCE -o "$root/bin/setuidgid" tests/vm/setuidgid.c 2>>"$out/hearthctl.log" &&
		program "$root/bin/hearth-keep" "$cc $flags" tests/vm/keep.c tests/vm/vm.c 2>>"$out/hearthctl.log" ||
		{ why="the helpers do not build"; return 1; }
	cp tests/unit/test_hearthctl.sh "$root/"
	printf '#!/bin/busybox sh\n/bin/busybox --install -s /bin\nexport PATH=/bin HEARTHCTL=/hearthctl\nexec sh /test_hearthctl.sh /dev/hearth\n' >"$root/vm_hearthctl"
	chmod +x "$root/vm_hearthctl"
}
root=$out/root
rm -rf "$root"
mkdir -p "$root"
$cc -O1 -g0 -Wall -Wextra -Wno-unused-parameter -Wno-missing-field-initializers -static -o "$root/init" tests/vm/init.c || fail "init does not build"
flags="-O1 -g0 -Wall -Wextra -Wno-unused-parameter -Wno-missing-field-initializers -static -pthread -Iuapi -I."
left_out() { case " ${VM_SKIP:-} " in *" $1 "*) return 0 ;; esac; return 1; }
for p in $(sed -n 's/^\(vm_[a-z0-9_]*\).*/\1/p' "tests/vm/$list.list" | sort -u); do
	left_out "$p" && continue
	case $p in
	vm_libhearth) # the library's own unit tests, over the device
		program "$root/$p" "$cc $flags -D_GNU_SOURCE -Itests/vm/mini -Itests/unit -Iruntime" \
			tests/unit/test_device.c tests/unit/device_*.c runtime/dev/*.c runtime/base/err.c kmod/core/*.c ;;
	vm_load) # weights out of a file into the device's memory
		other_libs || { echo "ok - $name: load # SKIP $why"; continue; }
		have= uring=
		{ [ -n "$libs" ] || pkg-config --exists liburing; } && have=-DHEARTH_URING uring=-luring
		with="$uring -lm" program "$root/$p" \
			"$cc $flags -D_GNU_SOURCE -ffp-contract=off -Itests/vm/mini -Itests/unit -Iruntime $have $libs" \
			tests/unit/test_load.c tests/unit/synth.c runtime/gguf/*.c runtime/dev/*.c runtime/base/err.c kmod/core/*.c ;;
	vm_hearthctl) # needs libraries, and a shell
		ctl_in_guest || { echo "ok - $name: hearthctl # SKIP $why"; continue; } ;;
	vm_*32) # a 32-bit program on the 64-bit kernel
		command -v $cc32 >/dev/null || { echo "ok - $name: $p # SKIP $cc32 is not installed"; continue; }
		program "$root/$p" "$cc32 $flags -D_FILE_OFFSET_BITS=64 -D_TIME_BITS=64" tests/vm/${p%32}.c tests/vm/vm.c ;;
	*)
		program "$root/$p" "$cc $flags" tests/vm/$p.c tests/vm/vm.c ;;
	esac || fail "$p does not build"
done
${cross}strip "$root"/vm_* "$root/init" 2>/dev/null
cp "$src/kmod/hearth.ko" "$root/hearth.ko"
cp "$src/probe/probe.ko" "$root/probe.ko"
${cross}strip --strip-debug "$root/hearth.ko" "$root/probe.ko" 2>/dev/null

# -- modules of the kernel that tests want
want() {
	local m f args
	for m in "$@"; do
		args=
		[ $m = brd ] && args=" rd_nr=2 rd_size=40960"
		f=$(find -L "$kdir/modules/" -name "$m.ko*" 2>/dev/null | head -n 1)
		[ -n "$f" ] || continue
		case $f in
		*.xz) xz -dc "$f" >"$root/$m.ko" ;;
		*.zst) zstd -qdc "$f" >"$root/$m.ko" ;;
		*) cp "$f" "$root/$m.ko" ;;
		esac
		echo "load /$m.ko$args" >>"$root/tests"
	done
}
: >"$root/tests"
want brd
# A file system on a disk, for what reads files past the page cache. Where the
# kernel cannot have it, those tests say so.
disk() {
	command -v mke2fs >/dev/null && truncate -s 40M "$root/disk.img" &&
		mke2fs -q -F -t ext4 -O ^has_journal,^metadata_csum,^orphan_file "$root/disk.img" 2>"$out/mke2fs.log" ||
		mke2fs -q -F -t ext4 -O ^has_journal,^metadata_csum "$root/disk.img" 2>"$out/mke2fs.log" ||
		{ rm -f "$root/disk.img"; return; }
	want crc16 crc32c_generic mbcache jbd2 ext4
	echo disk >>"$root/tests"
}
disk
while read -r line; do
	case $line in vm_*) [ -e "$root/${line%% *}" ] || continue ;; esac
	echo "$line"
done <"tests/vm/$list.list" >>"$root/tests"
if [ -n "${VM_SKIP:-}" ] && ! grep -q ^vm_ "$root/tests"; then
	echo "# $name: nothing is left to run"
	exit 0
fi
(cd "$root" && find . | cpio -o -H newc --quiet | gzip -1) >"$out/initrd" || fail "no initramfs"

# -- the guest
append="panic=-1 oops=panic quiet loglevel=4 printk.devkmsg=on"
# A benchmark's clock counts the guest's instructions: what else this machine
# does then does not show. VM_CLOCK=host: its time instead.
cpus=(-accel tcg,thread=multi -smp 2)
[ "$list" = bench ] && [ "${VM_CLOCK:-}" != host ] && cpus=(-accel tcg,thread=single -smp 1 -icount shift=1,sleep=off)
args=("${cpus[@]}" -nographic -no-reboot -nodefaults -net none
	-kernel "$kdir/vmlinuz" -initrd "$out/initrd"
	-chardev "file,id=con,path=$out/console.log" -chardev "file,id=res,path=$out/result.log")
# A guest that gets no CPU for a while has not stalled.
patient="nowatchdog rcupdate.rcu_cpu_stall_timeout=300"
case $arch in
amd64)
	args+=(-machine q35 -cpu max -m "${VM_MEM:-1024}" -serial chardev:con -serial chardev:res)
	# Under load the emulated timer may come too late for the check at boot.
	append="console=ttyS0 no_timer_check $patient $append" ;;
arm64)
	args+=(-machine virt -cpu cortex-a76 -m "${VM_MEM:-1024}" -serial chardev:con -device pci-serial,chardev=res)
	append="console=ttyAMA0 $patient $append"
	if command -v dtc >/dev/null; then
		tests/vm/reserved.sh "$out" "${VM_MEM:-1024}" && args+=(-dtb "$out/virt.dtb")
	fi ;;
esac
: >"$out/result.log"
start=$SECONDS
timeout -k 5 "${VM_TIMEOUT:-900}" $qemu "${args[@]}" -append "$append" </dev/null >"$out/qemu.log" 2>&1 &
guest=$!
# Who ends this ends the guest, and does not wait for it.
trap 'kill $guest; exit 143' TERM INT HUP
wait $guest
rc=$?
trap - TERM INT HUP
tr -d '\r' <"$out/result.log" | sed "s/^ok - /ok - $name: /; s/^not ok - /not ok - $name: /" | grep -vE '^(success|failure)$'
word=$(tr -d '\r' <"$out/result.log" | tail -n 1)
echo "# $name: $((SECONDS - start)) s in the guest"
if [ "$word" != success ] && [ "$word" != failure ]; then
	tail -n 25 "$out/console.log" "$out/qemu.log" | sed 's/^/# /'
	fail "the guest gave no verdict (exit $rc)"
fi
[ "$word" = success ]
