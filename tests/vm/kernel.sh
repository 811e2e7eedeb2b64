#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Gets Debian kernels to test the module with, without installing any of them.
#
#   kernel.sh get SUITE ARCH     image and headers of the suite's kernel, unpacked;
#                                prints the folder
#   kernel.sh source             the source of the 6.1 kernel; prints the tarball
#   kernel.sh libs ARCH          the static libraries and the busybox that a guest of
#                                another architecture needs; prints the folder
#   kernel.sh mirror             prints where Debian's packages are got from
#
# SUITE is bullseye, bookworm, trixie or sid; ARCH is amd64 or arm64. The
# packages are read with an apt configuration of their own (own lists, own
# cache, both architectures), because asking the machine's own apt for kernels
# of another architecture makes it remove the machine's compiler. They are
# unpacked into the cache folder and reused until the suite has a newer one.
set -eu

cache=${HEARTH_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/hearth}/vm
apt=$cache/apt
die() { echo "kernel.sh: $*" >&2; exit 1; }

command -v apt-get >/dev/null && command -v dpkg-deb >/dev/null || die "apt-get and dpkg-deb are needed"

# The mirror that this machine uses for Debian, else Debian's own.
mirror() {
	local m
	m=$( { sed -n 's/^URIs: *\([^ ]*\).*/\1/p' /etc/apt/sources.list.d/*.sources
	       sed -n 's/^deb \(\[[^]]*\] \)\?\([^ ]*\) .*/\2/p' /etc/apt/sources.list /etc/apt/sources.list.d/*.list
	     } 2>/dev/null | grep -E '/debian/?$' | head -n 1)
	echo "${m:-http://deb.debian.org/debian}"
}

keyring=/usr/share/keyrings/debian-archive-keyring.gpg
[ -r $keyring ] || die "no $keyring (package debian-archive-keyring)"

opts=(-o Dir::Etc::sourcelist="$apt/sources.list" -o Dir::Etc::sourceparts=-
      -o Dir::State::lists="$apt/lists" -o Dir::State::status=/dev/null
      -o Dir::Cache="$apt/cache" -o Dir::Cache::pkgcache=pkgcache.bin
      -o Dir::Cache::srcpkgcache=srcpkgcache.bin -o Acquire::Languages=none
      -o APT::Architectures::=amd64 -o APT::Architectures::=arm64
      -o APT::Sandbox::User=root -o Acquire::Retries=2)

# Lists older than a day are read again; without a network the old ones serve.
update() {
	local s
	mkdir -p "$apt/lists/partial" "$apt/cache/archives/partial"
	[ -n "$(find "$apt/stamp" -mmin -1440 2>/dev/null)" ] && return 0
	for s in bullseye bookworm trixie sid; do
		echo "deb [signed-by=$keyring] $(mirror) $s main"
	done >"$apt/sources.list"
	if apt-get "${opts[@]}" -qq update >&2; then
		touch "$apt/stamp"
	else
		ls "$apt"/lists/*_Packages >/dev/null 2>&1 || die "no package lists can be had"
	fi
}

# candidate PACKAGE:ARCH SUITE -> version. Short names have blanks before them.
candidate() { apt-cache "${opts[@]}" madison "$1" | sed 's/^ *//' | awk -F'[ |]+' -v s="$2/main" '$4 == s { print $2; exit }'; }

# depends PACKAGE:ARCH=VERSION -> names
depends() { apt-cache "${opts[@]}" show "$1" | sed -n 's/^Depends: //p' | head -n 1 | tr ',' '\n' | sed 's/^ *//; s/[ (|].*//'; }

fetch() { # PACKAGE:ARCH[=VERSION]... into the current folder
	apt-get "${opts[@]}" -qq download "$@" >&2
}

# kbuild's programs of a newer suite want a newer C library than this machine
# may have: then they are run with the suite's own.
old_libc() { # TMP DIR SUITE KBUILD
	local sys=$1/root host f old=
	local kb=$sys/usr/lib/$4
	# Not every one of them wants the new one.
	for f in $(find "$kb" -type f -perm -u+x); do
		[ "$(head -c 4 "$f" | tail -c 3)" = ELF ] || continue
		{ "$f" </dev/null 2>&1 || true; } | grep -q 'GLIBC_.*not found' && { old=1; break; }
	done
	[ -n "$old" ] || return 0
	host=$(dpkg --print-architecture)
	mkdir -p "$1/libc"
	(cd "$1/debs" && for f in libc6 libelf1t64 zlib1g libzstd1; do
		fetch "$f:$host=$(candidate "$f:$host" "$3")"
		dpkg-deb -x "$f"_*.deb "$1/libc"
	done)
	find "$kb" -type f -perm -u+x | while read -r f; do
		[ "$(head -c 4 "$f" | tail -c 3)" = ELF ] || continue
		# Some run another one of their kind, which they find by their own name.
		mv "$f" "$f.elf"
		# shellcheck disable=SC2016
		printf '#!/bin/sh\nl=%s/libc/usr/lib/x86_64-linux-gnu\nexec $l/ld-linux-x86-64.so.2 --library-path $l --argv0 "$0" %s "$@"\n' \
			"$2" "$2/${f#"$1"/}.elf" >"$f"
		chmod +x "$f"
	done
}

get() {
	local suite=$1 arch=$2 ver image headers common kbuild kver dir tmp more
	# What was found today is not looked up again.
	if [ -n "$(find "$cache/$suite-$arch.dir" -mmin -1440 2>/dev/null)" ] &&
	   [ -e "$(cat "$cache/$suite-$arch.dir")/ok" ]; then
		cat "$cache/$suite-$arch.dir"
		return
	fi
	update
	ver=$(candidate "linux-image-$arch:$arch" "$suite")
	[ -n "$ver" ] || die "$suite has no linux-image-$arch"
	dir=$cache/$suite-$arch-$ver
	if [ ! -e "$dir/ok" ]; then
		image=$(depends "linux-image-$arch:$arch=$ver" | grep -m1 ^linux-image-)
		headers=$(depends "linux-headers-$arch:$arch=$ver" | grep -m1 ^linux-headers-)
		common=$(depends "$headers:$arch=$ver" | grep -m1 -- '-common')
		kbuild=$(depends "$headers:$arch=$ver" | grep -m1 ^linux-kbuild-)
		kver=${image#linux-image-}
		tmp=$dir.tmp.$$
		sys=$tmp/root
		rm -rf "$tmp"; mkdir -p "$tmp/debs" "$sys"
		# kbuild's programs run here, so they are this machine's kind.
		# Newer suites have the kernel and its modules in packages of their own.
		more=$(depends "$image:$arch=$ver" | grep -E '^linux-(binary|modules)-' | sed "s/\$/:$arch=$ver/") || more=
		# shellcheck disable=SC2086
		(cd "$tmp/debs" && fetch "$image:$arch=$ver" "$headers:$arch=$ver" "$common=$ver" \
			"$kbuild:$(dpkg --print-architecture)=$ver" $more)
		for d in "$tmp"/debs/*.deb; do dpkg-deb -x "$d" "$sys"; done
		[ -d "$sys/usr/lib/modules" ] && [ ! -e "$sys/lib" ] && ln -s usr/lib "$sys/lib"
		# Header packages name each other by absolute path.
		find "$sys/usr/src/$headers" -maxdepth 1 -type f -exec \
			sed -i "s#/usr/src/#$dir/root/usr/src/#g" {} +
		for l in scripts tools; do
			[ -L "$sys/usr/src/$headers/$l" ] || continue
			ln -sfn "../../lib/$kbuild/$l" "$sys/usr/src/$headers/$l"
		done
		cp "$sys/boot/vmlinuz-$kver" "$tmp/vmlinuz" 2>/dev/null ||
			cp "$sys/lib/modules/$kver/vmlinuz" "$tmp/vmlinuz"
		ln -s "root/usr/src/$headers" "$tmp/build"
		ln -s "root/lib/modules/$kver" "$tmp/modules"
		echo "$kver" >"$tmp/release"
		old_libc "$tmp" "$dir" "$suite" "$kbuild"
		rm -rf "$tmp/debs" "$sys/usr/share" "$sys/boot"
		touch "$tmp/ok"
		rm -rf "$dir"; mv "$tmp" "$dir"
	fi
	echo "$dir" >"$cache/$suite-$arch.dir"
	echo "$dir"
}

source_61() {
	local ver dir tmp
	dir=$(ls -d "$cache"/source-* 2>/dev/null | tail -n 1)
	if [ -n "$dir" ] && [ -e "$dir/ok" ]; then
		echo "$dir/linux-source-6.1.tar.xz"
		return
	fi
	update
	ver=$(candidate linux-source-6.1 bookworm)
	[ -n "$ver" ] || die "bookworm has no linux-source-6.1"
	dir=$cache/source-$ver
	if [ ! -e "$dir/ok" ]; then
		tmp=$dir.tmp.$$
		rm -rf "$tmp"; mkdir -p "$tmp"
		(cd "$tmp" && fetch "linux-source-6.1=$ver" && dpkg-deb -x ./*.deb . && mv usr/src/linux-source-6.1.tar.xz . && rm -rf usr ./*.deb)
		touch "$tmp/ok"
		rm -rf "$dir"; mv "$tmp" "$dir"
	fi
	echo "$dir/linux-source-6.1.tar.xz"
}

libs() {
	local arch=$1 dir=$cache/libs-$1 tmp p
	[ -e "$dir/ok" ] && { echo "$dir"; return; }
	update
	tmp=$dir.tmp.$$
	rm -rf "$tmp"; mkdir -p "$tmp/debs"
	(cd "$tmp/debs" && for p in busybox-static libjansson-dev libnl-3-dev libnl-genl-3-dev liburing-dev libyaml-dev; do
		fetch "$p:$arch=$(candidate "$p:$arch" bookworm)"
	done)
	for p in "$tmp"/debs/*.deb; do dpkg-deb -x "$p" "$tmp"; done
	rm -rf "$tmp/debs" "$tmp/usr/share"
	touch "$tmp/ok"
	rm -rf "$dir"; mv "$tmp" "$dir"
	echo "$dir"
}

case "${1:-}" in
get)    [ $# -eq 3 ] || die "usage: kernel.sh get SUITE ARCH"; get "$2" "$3" ;;
source) source_61 ;;
libs)   [ $# -eq 2 ] || die "usage: kernel.sh libs ARCH"; libs "$2" ;;
mirror) mirror ;;
*)      die "usage: kernel.sh get SUITE ARCH | source | libs ARCH | mirror" ;;
esac
