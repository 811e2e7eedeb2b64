#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Finds, and with `install` installs, the distribution packages that hearth
# builds and tests with. Debian 12 and 13, Ubuntu 22.04 and 24.04.
#   tools/deps.sh check     say what is missing, change nothing (exit 1 if any)
#   tools/deps.sh install [demo]   print what will be installed, then install it
set -eu

# Needed: without one of these hearth does not build or its demo does not run.
NEEDED=(
	build-essential
	flite1-dev
	libasound2-dev
	libcmocka-dev
	libgnutls28-dev
	libjansson-dev
	libmicrohttpd-dev
	libnl-3-dev
	libnl-genl-3-dev
	libpcre2-dev
	libpocketsphinx-dev
	libsndfile1-dev
	libsoxr-dev
	libsphinxbase-dev
	libwslay-dev
	libxxhash-dev
	libyaml-dev
	pkg-config
	pocketsphinx-en-us
	python3
)

# Used where it can be had; Ubuntu 20.04 has none.
OPTIONAL=(
	liburing-dev
)

# Wanted for whole test coverage; left out with a line when they cannot be had.
WANTED=(
	bc
	bison
	busybox-static
	chromium
	clang
	cpio
	debian-archive-keyring
	debhelper
	device-tree-compiler
	dh-dkms
	espeak-ng
	flex
	gcc-aarch64-linux-gnu
	kmod
	libavahi-client-dev
	libc6-dev-arm64-cross
	libelf-dev
	libssl-dev
	python3-jsonschema
	python3-numpy
	qemu-system-arm
	qemu-system-x86
	sparse
	xz-utils
)

say() { printf 'deps: %s\n' "$*"; }

have() { dpkg-query -W -f '${db:Status-Abbrev}' "$1" 2>/dev/null | grep -q '^ii'; }

missing() {
	local p
	for p in "$@"; do have "$p" || printf '%s\n' "$p"; done
}

if ! command -v dpkg-query >/dev/null; then
	say "this is not a Debian or Ubuntu system; install the equivalents of: ${NEEDED[*]}"
	exit 1
fi

mapfile -t need < <(missing "${NEEDED[@]}")
mapfile -t may < <(missing "${OPTIONAL[@]}")
mapfile -t want < <(missing "${WANTED[@]}")
if [ "${2:-}" = demo ]; then
	want=() # a browser and two emulators are for the tests
	[ ${#need[@]} -gt 0 ] || may=() # what cannot be had is not asked for again and again
fi

case "${1:-check}" in
check)
	[ ${#need[@]} -gt 0 ] && say "missing (needed): ${need[*]}"
	[ ${#may[@]} -gt 0 ] && say "missing (optional): ${may[*]}; without it weights are read one piece at a time"
	[ ${#want[@]} -gt 0 ] && say "missing (wanted for all tests): ${want[*]}"
	command -v nvcc >/dev/null || [ -x /usr/local/cuda/bin/nvcc ] || say "no nvcc: the CUDA backend is left out, the CPU backend serves"
	[ $((${#need[@]} + ${#may[@]} + ${#want[@]})) -eq 0 ] && say "nothing is missing"
	[ ${#need[@]} -eq 0 ]
	;;
install)
	[ $((${#need[@]} + ${#may[@]} + ${#want[@]})) -eq 0 ] && exit 0
	sudo=()
	if [ "$(id -u)" -ne 0 ]; then
		command -v sudo >/dev/null || { say "missing: ${need[*]} ${may[*]} ${want[*]}; run as root or install sudo"; exit 1; }
		sudo=(sudo)
	fi
	say "will install with apt-get: ${need[*]} ${may[*]} ${want[*]}"
	"${sudo[@]}" apt-get update -qq || say "apt-get update failed; trying with the lists that are here"
	apt=("${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends)
	if [ ${#need[@]} -gt 0 ]; then
		"${apt[@]}" "${need[@]}" >/dev/null || { say "could not install: ${need[*]}"; exit 1; }
	fi
	for p in ${may[@]+"${may[@]}"}; do
		"${apt[@]}" "$p" >/dev/null 2>&1 || say "left out: $p cannot be had here; hearth works without it"
	done
	for p in ${want[@]+"${want[@]}"}; do
		"${apt[@]}" "$p" >/dev/null 2>&1 || say "left out: $p cannot be had here; the tests that need it will say so"
	done
	;;
*)
	say "usage: tools/deps.sh check|install"
	exit 2
	;;
esac
