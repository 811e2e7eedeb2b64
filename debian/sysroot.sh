#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A folder with everything of Debian that hearth is built with, for another
# architecture than this machine's: what cross-built packages are linked with.
#
#   sysroot.sh ARCH [SUITE]      prints the folder (bookworm when not given)
#
# It holds tree/ (the unpacked packages), pkg-config (asks only there) and
# admin/ (what dpkg-shlibdeps asks which package a library is of). Nothing is
# installed: apt is given lists, a cache and a status of its own, because asking
# the machine's own for libraries of another architecture may make it remove the
# machine's compiler. Kept in the cache folder until the packages asked for change.
set -eu
cd "$(dirname "$0")/.." || exit 1
arch=${1:?usage: sysroot.sh ARCH [SUITE]} suite=${2:-bookworm}
die() { echo "sysroot.sh: $*" >&2; exit 1; }
for t in apt-get dpkg-deb python3; do command -v $t >/dev/null || die "$t is needed"; done
keyring=/usr/share/keyrings/debian-archive-keyring.gpg
[ -r $keyring ] || die "no $keyring: install debian-archive-keyring"
triple=$(dpkg-architecture -a "$arch" -q DEB_HOST_MULTIARCH 2>/dev/null) || die "$arch is no architecture, or dpkg-dev is not installed"

mapfile -t pkgs < <(grep -oE '^ [a-z0-9.+-]+-dev' debian/control | tr -d ' ')
pkgs+=(libc6-dev)
sum=$(printf '%s\n' 4 "${pkgs[@]}" | sha256sum | cut -c1-12)
dir=${HEARTH_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/hearth}/sysroot-$arch-$suite-$sum
[ ! -e "$dir/ok" ] || { echo "$dir"; exit 0; }

apt=$dir/apt
rm -rf "$dir"; mkdir -p "$apt/lists/partial" "$apt/cache/archives/partial" "$dir/tree" "$dir/admin/info"
: >"$apt/status"
mirror=$(tests/vm/kernel.sh mirror) || exit 1
echo "deb [signed-by=$keyring] $mirror $suite main" >"$apt/sources.list"
opts=(-qq -o Dir::Etc::sourcelist="$apt/sources.list" -o Dir::Etc::sourceparts=-
      -o Dir::State="$apt" -o Dir::State::lists="$apt/lists" -o Dir::State::status="$apt/status"
      -o Dir::Cache="$apt/cache" -o Acquire::Languages=none -o Acquire::Retries=2
      -o APT::Architecture="$arch" -o APT::Architectures="$arch" -o APT::Sandbox::User=root)
apt-get "${opts[@]}" update >&2 || die "the package lists of $suite for $arch cannot be had"
apt-get "${opts[@]}" --download-only --no-install-recommends -y install "${pkgs[@]}" >&2 ||
	die "the packages of $suite for $arch cannot be had"

python3 - "$dir" "$arch" <<'PY'
import glob, os, re, subprocess, sys
top, arch = sys.argv[1:]
root, admin = top + "/tree", top + "/admin"
status = []
for deb in sorted(glob.glob(top + "/apt/cache/archives/*.deb")):
    subprocess.run(["dpkg-deb", "-x", deb, root], check=True)
    control = subprocess.run(["dpkg-deb", "-f", deb], check=True, capture_output=True, text=True).stdout.rstrip("\n")
    name = re.search(r"^Package: (.*)$", control, re.M).group(1)
    if re.search(r"^Multi-Arch: same$", control, re.M):
        name += ":" + arch
    subprocess.run(["dpkg-deb", "-e", deb, top + "/control"], check=True)
    for kind in "symbols", "shlibs":
        if os.path.exists(f"{top}/control/{kind}"):
            os.rename(f"{top}/control/{kind}", f"{admin}/info/{name}.{kind}")
    subprocess.run(["rm", "-rf", top + "/control"], check=True)
    tar = subprocess.run(["dpkg-deb", "--fsys-tarfile", deb], check=True, capture_output=True).stdout
    names = subprocess.run(["tar", "-t"], input=tar, check=True, capture_output=True).stdout.decode().split("\n")
    # By where they are: that is what dpkg is asked for.
    with open(f"{admin}/info/{name}.list", "w") as f:
        f.writelines(root + n[1:].rstrip("/") + "\n" for n in names if n[1:].rstrip("/"))
    status.append(re.sub(r"^(Package: .*)$", r"\1\nStatus: install ok installed", control, count=1, flags=re.M))
open(admin + "/status", "w").write("\n\n".join(status) + "\n")
open(admin + "/arch", "w").write(arch + "\n")
open(admin + "/info/format", "w").write("1\n")  # the names of those files have architectures
PY
# Links that lead out of the folder lead into it.
find "$dir/tree" -type l -lname '/*' | while read -r l; do ln -sfn "$dir/tree$(readlink "$l")" "$l"; done
# What update-alternatives would have linked.
for l in blas/libblas.so.3 lapack/liblapack.so.3; do
	[ ! -e "$dir/tree/usr/lib/$triple/$l" ] || ln -sf "$l" "$dir/tree/usr/lib/$triple/${l#*/}"
done
cat >"$dir/pkg-config" <<S
#!/bin/sh
r=$dir/tree
export PKG_CONFIG_SYSROOT_DIR=\$r PKG_CONFIG_LIBDIR=\$r/usr/lib/$triple/pkgconfig:\$r/usr/lib/pkgconfig:\$r/usr/share/pkgconfig
exec pkg-config "\$@"
S
chmod +x "$dir/pkg-config"
rm -rf "$apt" "$dir"/tree/usr/share/{doc,man,locale}
touch "$dir/ok"
echo "$dir"
