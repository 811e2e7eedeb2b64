#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# What is installed and packaged: files in their places, one version
# everywhere, a program built against the installed library, the Debian
# packages and what they need.
set -u
cd "$(dirname "$0")/../.." || exit 1
B=${BUILD:-build}
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
bad=0
ok() { echo "ok - $1"; }
not_ok() { bad=1; echo "not ok - $1"; sed 's/^/# /' "$tmp/log" 2>/dev/null | tail -n 20; }
t() { # NAME COMMAND...
	local name=$1
	shift
	if "$@" >"$tmp/log" 2>&1; then ok "$name"; else not_ok "$name"; fi
}

root=$tmp/root
t "make install works" make -s BUILD="$B" PREFIX=/usr DESTDIR="$root" install
for f in usr/bin/hearthctl usr/include/hearth/hearth.h usr/include/hearth/linux/hearth.h \
	usr/lib/libhearth.so.0 usr/lib/pkgconfig/libhearth.pc usr/share/man/man1/hearthctl.1 \
	usr/share/man/man4/hearth.4 usr/lib/udev/rules.d/60-hearth.rules \
	usr/lib/systemd/system/hearth.service usr/lib/systemd/system/hearthd.service usr/lib/sysusers.d/hearth.conf \
	usr/lib/modules-load.d/hearth.conf usr/src/hearth-0.1.0/dkms.conf \
	usr/src/hearth-0.1.0/kmod/core/budget.c usr/src/hearth-0.1.0/Kbuild etc/hearth; do
	t "installed: $f" test -e "$root/$f"
done
t "no placeholder is left in what was installed" \
	sh -c "! grep -rIlE '@(BINDIR|PREFIX|LIBDIR|INCDIR|VERSION)@' '$root/usr/lib/pkgconfig' '$root/usr/lib/systemd'"

mkdir "$tmp/etc"
sed "s|/usr/share|$root/usr/share|" "$root/usr/share/hearth/docs/examples/hearthd.yaml" >"$tmp/etc/hearthd.yaml"
t "the installed example serves from /etc too" "$root/usr/bin/hearthd" -c "$tmp/etc/hearthd.yaml" --check
t "hearthd's unit may use a Jetson's GPU, whose nodes are the group video's" grep -q '^SupplementaryGroups=.*video' "$root/usr/lib/systemd/system/hearthd.service"

cat >"$tmp/user.c" <<'C'
#include <hearth.h>
#include <stdio.h>
#include <string.h>
int main(void)
{
	struct hearth_pool_spec spec = { .kind = HEARTH_KIND_KV, .name = "kv", .size = 1 << 20 };
	struct hearth_err err;
	struct hearth_options o;
	struct hearth_tenant *t;
	struct hearth_region *r;
	struct hearth *h;

	hearth_options_defaults(&o);
	o.backend = HEARTH_BACKEND_EMBEDDED;
	o.pools = &spec;
	o.n_pools = 1;
	if (hearth_open(&o, &h, &err) ||
	    hearth_tenant_open(h, "t", HEARTH_CLASS_LLM, 1, &t, &err) ||
	    hearth_region_alloc(t, hearth_pool(h, HEARTH_KIND_KV), 4096, 0, 0, 0, &r, &err)) {
		puts(err.text);
		return 1;
	}
	memset(hearth_region_ptr(r), 1, hearth_region_size(r));
	hearth_close(h);
	return 0;
}
C
flags() { PKG_CONFIG_SYSROOT_DIR=$root PKG_CONFIG_PATH=$root/usr/lib/pkgconfig PKG_CONFIG_ALLOW_SYSTEM_LIBS=1 pkg-config "$@" libhearth; }
t "a program builds with pkg-config's flags" \
	sh -c "cc -Wall -Wextra -Werror -std=c99 $(flags --cflags) -o '$tmp/user' '$tmp/user.c' $(flags --libs)"
t "and runs with the installed library" env LD_LIBRARY_PATH="$root/usr/lib" "$tmp/user"
t "the header is good C++ too" sh -c "printf '#include <hearth.h>\nint main() { return 0; }\n' >'$tmp/u.cc' && c++ -Wall -Wextra -Werror $(flags --cflags) -fsyntax-only '$tmp/u.cc'"

grep -oE '\bhearth_[a-z_]+\(' runtime/dev/hearth.h | tr -d '(' | sort -u >"$tmp/declared"
nm -D --defined-only "$root/usr/lib/libhearth.so.0" | awk '$2 == "T" { sub(/@.*/, "", $3); print $3 }' | sort -u >"$tmp/exported"
t "the library exports what the header declares, and nothing else" diff "$tmp/declared" "$tmp/exported"

version=$(make -s print-VERSION)
t "dkms.conf has the version" grep -q "^PACKAGE_VERSION=\"$version\"" dkms.conf
t "the changelog has it" grep -q "^hearth ($version)" debian/changelog
t "the module has it" grep -q "MODULE_VERSION(\"$version\")" kmod/main.c
t "hearthctl has it" sh -c "'$B/bin/hearthctl' --version | grep -qx 'hearthctl $version'"
sed -n '/^\(NEEDED\|OPTIONAL\)=(/,/^)/p' tools/deps.sh | grep -oE '[a-z0-9.+-]+-dev' | sort >"$tmp/needed"
grep -oE '^ [a-z0-9.+-]+-dev' debian/control | tr -d ' ' | sort >"$tmp/depends"
t "the packages are built with every library that the build needs" diff "$tmp/needed" "$tmp/depends"

# liburing is optional: the loader's tests pass without it, and make says so.
printf '#!/bin/sh\ncase "$*" in *liburing*) exit 1 ;; esac\nexec pkg-config "$@"\n' >"$tmp/pkg-config"
chmod +x "$tmp/pkg-config"
t "without liburing it is said what is left out" sh -c "make BUILD='$tmp/none' NVCC= PKG_CONFIG='$tmp/pkg-config' uring-note | grep -q 'io_uring left out'"
t "the loader builds without it" sh -c "cc -std=gnu11 -Wall -Wextra -Werror -Wno-unused-parameter -D_GNU_SOURCE -Iruntime -Iuapi -I. -c -o '$tmp/pull.o' runtime/gguf/pull.c &&
	cc -o '$tmp/test_load' '$B/obj/tests/unit/test_load.o' '$tmp/pull.o' '$B/lib/libhearthtest.a' '$B/lib/libhearthrt.a' '$B/lib/libhearth.a' $(make -s BUILD="$B" print-LDLIBS) -lcmocka"
t "and passes its tests" sh -c "'$tmp/test_load' && ! nm -u '$tmp/pull.o' | grep -q io_uring"

if command -v systemd-analyze >/dev/null && systemd-analyze --help 2>/dev/null | grep -q verify; then
	sed -i 's|/usr/bin/hearthctl|/bin/true|' "$root/usr/lib/systemd/system/hearth.service"
	t "systemd understands the unit" systemd-analyze verify --man=no "$root/usr/lib/systemd/system/hearth.service"
	sed -i 's|/usr/bin/hearthd|/bin/true|' "$root/usr/lib/systemd/system/hearthd.service"
	t "and hearthd's" systemd-analyze verify --man=no "$root/usr/lib/systemd/system/hearthd.service"
else
	echo "ok - systemd understands the unit # SKIP systemd-analyze is not installed"
fi

if ! command -v dh >/dev/null || ! command -v dh_dkms >/dev/null; then
	echo "ok - Debian packages # SKIP debhelper or dh-dkms is not installed"
	[ $bad -eq 0 ]
	exit
fi
t "make deb works" make -s BUILD="$B" DEB_BUILD="$B" DEB_OUT="$tmp/deb" DEB_ZIP=-Znone deb
for p in hearth-dkms hearth libhearth-dev; do
	mkdir -p "$tmp/x/$p"
	t "package $p" sh -c "dpkg-deb -x '$tmp'/deb/${p}_${version}_*.deb '$tmp/x/$p'"
done
t "hearth-dkms holds the module's source" test -e "$tmp/x/hearth-dkms/usr/src/hearth-$version/kmod/region.c"
t "and loads it at boot" test -e "$tmp/x/hearth-dkms/usr/lib/modules-load.d/hearth.conf"
t "and is built by DKMS when installed" sh -c "dpkg-deb --ctrl-tarfile '$tmp'/deb/hearth-dkms_*.deb | tar -xO ./postinst | grep -q dkms"
t "hearth holds hearthctl" test -x "$tmp/x/hearth/usr/bin/hearthctl"
t "and its unit" sh -c "find '$tmp/x/hearth' -name hearth.service | grep -q systemd/system"
t "and hearthd's" sh -c "find '$tmp/x/hearth' -name hearthd.service | grep -q systemd/system"
t "and its udev rule" sh -c "find '$tmp/x/hearth' -name 60-hearth.rules | grep -q udev/rules.d"
t "and its manual pages" test -e "$tmp/x/hearth/usr/share/man/man4/hearth.4.gz"
t "libhearth-dev holds the header" test -e "$tmp/x/libhearth-dev/usr/include/hearth/hearth.h"
t "and needs the library of the same version" sh -c "dpkg-deb -f '$tmp'/deb/libhearth-dev_*.deb Depends | grep -q 'hearth (= $version)'"
t "nothing of the build is left in debian/" test ! -e debian/tmp -a ! -e debian/hearth -a ! -e debian/files
[ $bad -eq 0 ]
