#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Boots a whole Debian with systemd, the packages hearth and hearth-dkms as make
# deb makes them, and a file in /etc/hearth, and looks whether everything is as
# the packages promise: module loaded, node and group, budgets applied before
# anything else, a wrong file refused with line and column. TAP. Emulated; needs
# root, for debootstrap and chroot.
set -u
cd "$(dirname "$0")/../.." || exit 1
out=${BUILD:-build}/vm/boot
mkdir -p "$out"
out=$(cd "$out" && pwd)
skip() { echo "ok - boot # SKIP $*"; exit 0; }
fail() { echo "not ok - boot: $*"; exit 1; }
for p in debootstrap cpio qemu-system-x86_64 dpkg-deb; do command -v $p >/dev/null || skip "$p is not installed"; done
[ "$(id -u)" = 0 ] || skip "needs root"
[ "$(uname -m)" = x86_64 ] || skip "only on x86-64"

kdir=$(tests/vm/kernel.sh get bookworm amd64 2>"$out/kernel.log") || skip "no kernel: $(tail -n 1 "$out/kernel.log")"
cache=${HEARTH_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/hearth}/vm
if [ ! -e "$cache/boot-root/etc/debian_version" ]; then
	rm -rf "$cache/boot-root.tmp"
	debootstrap --variant=minbase --include=systemd-sysv,udev,kmod,libjansson4,libyaml-0-2,libnl-genl-3-200 \
		bookworm "$cache/boot-root.tmp" >"$out/debootstrap.log" 2>&1 || skip "debootstrap: $(tail -n 1 "$out/debootstrap.log")"
	rm -rf "$cache"/boot-root.tmp/{var/cache/apt,var/lib/apt/lists,usr/share/doc,usr/share/man,usr/share/locale,usr/share/i18n}
	mv "$cache/boot-root.tmp" "$cache/boot-root"
fi
make -s DEB_BUILD="${BUILD:-build}" DEB_OUT="$out/deb" DEB_ZIP=-Znone NVCC="${NVCC-}" deb >"$out/deb.log" 2>&1 || fail "no packages (log: $out/deb.log)"
make -s BUILD="$out/b" KDIR="$kdir/build" NVCC= module >"$out/module.log" 2>&1 || fail "no module (log: $out/module.log)"

# -- the root
root=$out/root
rm -rf "$root"
cp -a "$cache/boot-root" "$root"
cp "$out"/deb/hearth_*.deb "$root/hearth.deb"
# Its speech libraries are not for this; its scripts run as on any installation.
chroot "$root" dpkg --force-depends -i /hearth.deb >"$out/dpkg.log" 2>&1 || fail "dpkg -i (log: $out/dpkg.log)"
rm "$root/hearth.deb"
dpkg-deb -x "$out"/deb/hearth-dkms_*.deb "$root"
rel=$(cat "$kdir/release")
mkdir -p "$root/lib/modules/$rel/updates/dkms"
# What DKMS would have built.
cp "$out/b/module/kmod/hearth.ko" "$root/lib/modules/$rel/updates/dkms/"
strip --strip-debug "$root/lib/modules/$rel/updates/dkms/hearth.ko"
touch "$root/lib/modules/$rel/modules.order" "$root/lib/modules/$rel/modules.builtin"
depmod -b "$root" "$rel"
cat >"$root/etc/hearth/budgets.yaml" <<'Y'
pools:
  kv:      {kind: kv, size: 64M}
  account: {kind: account, size: 256M}
tenants:
  stt:
    class: stt
    priority: 80
    budget:
      account: {min: 64M, max: 128M}
Y
cat >"$root/verdict.sh" <<'S'
#!/bin/bash
exec >/dev/ttyS1 2>&1
stty -F /dev/ttyS1 raw -echo
bad=0
t() { local n=$1; shift; if "$@" >/tmp/log 2>&1; then echo "ok - $n"; else echo "not ok - $n"; sed 's/^/# /' /tmp/log; bad=1; fi; }
stamp() { systemctl show -P "$1" "$2"; }
t "the module is loaded" grep -q '^hearth ' /proc/modules
t "by modules-load" sh -c "journalctl -b -t systemd-modules-load | grep -q \"Inserted module 'hearth'\""
t "the unit is enabled by the package" systemctl is-enabled hearth.service
t "the unit has done its work" systemctl is-active hearth.service
t "after the modules, before sysinit is reached" test "$(stamp ActiveEnterTimestampMonotonic hearth.service)" -le "$(stamp ActiveEnterTimestampMonotonic sysinit.target)"
t "nothing failed" sh -c 'test -z "$(systemctl --failed --no-legend)"'
t "the group is there" getent group hearth
t "the node is the group's" sh -c 'stat -c "%U %G %a" /dev/hearth | grep -qx "root hearth 660"'
t "the pools are there" sh -c "hearthctl --json pool | grep -q '\"size\": 67108864'"
t "the budgets too" sh -c "hearthctl --json tenant show stt | grep -q '\"min\": 67108864'"
useradd -G hearth member; useradd stranger
t "a member of the group may look" setpriv --reuid member --regid member --init-groups hearthctl status
t "and may not set" sh -c '! setpriv --reuid member --regid member --init-groups hearthctl budget set stt account max=1M && setpriv --reuid member --regid member --init-groups hearthctl budget set stt account max=1M 2>&1 | grep -q administrator'
t "a stranger is told how" sh -c 'setpriv --reuid stranger --regid stranger --init-groups hearthctl status 2>&1 | grep -q "join the group hearth"'
printf 'tenants:\n  stt:\n    budgt: {account: {max: 1M}}\n' >/etc/hearth/budgets.yaml
t "a wrong file is refused" sh -c '! systemctl reload hearth'
t "with line and column in the journal" sh -c "journalctl -b -u hearth | grep -q 'budgets.yaml.*line 3, column 5'"
t "and what was applied holds" sh -c "hearthctl --json tenant show stt | grep -q '\"min\": 67108864'"
t "systemd finds nothing wrong with the unit" systemd-analyze verify --man=no hearth.service
t "the manual pages are there" test -e /usr/share/man/man4/hearth.4.gz
t "the kernel log is clean" sh -c '! dmesg | grep -E "BUG:|WARNING:|Oops|Call Trace"'
[ $bad = 0 ] && echo success || echo failure
systemctl --no-block poweroff -f
S
chmod +x "$root/verdict.sh"
cat >"$root/etc/systemd/system/verdict.service" <<'U'
[Unit]
After=multi-user.target
[Service]
Type=oneshot
ExecStart=/verdict.sh
[Install]
WantedBy=default.target
U
mkdir -p "$root/etc/systemd/system/graphical.target.wants"
ln -s ../verdict.service "$root/etc/systemd/system/graphical.target.wants/verdict.service"
for u in getty.target apt-daily.timer apt-daily-upgrade.timer dpkg-db-backup.timer e2scrub_reap.service fstrim.timer; do
	ln -sf /dev/null "$root/etc/systemd/system/$u"
done
ln -sf /sbin/init "$root/init"
(cd "$root" && find . | cpio -o -H newc --quiet | gzip -1) >"$out/initrd"
rm -rf "$root"

: >"$out/result.log"
start=$SECONDS
timeout -k 5 "${VM_TIMEOUT:-900}" qemu-system-x86_64 -accel tcg,thread=multi -smp 2 -nographic -no-reboot -nodefaults \
	-net none -machine q35 -cpu max -m 2048 -kernel "$kdir/vmlinuz" -initrd "$out/initrd" \
	-chardev "file,id=con,path=$out/console.log" -chardev "file,id=res,path=$out/result.log" \
	-serial chardev:con -serial chardev:res \
	-append "console=ttyS0 no_timer_check nowatchdog rcupdate.rcu_cpu_stall_timeout=300 panic=-1 systemd.default_timeout_start_sec=600" </dev/null >"$out/qemu.log" 2>&1
tr -d '\r' <"$out/result.log" | sed 's/^ok - /ok - boot: /; s/^not ok - /not ok - boot: /' | grep -vE '^(success|failure)$'
word=$(tr -d '\r' <"$out/result.log" | tail -n 1)
echo "# boot: $((SECONDS - start)) s in the guest"
[ "$word" = success ] || [ "$word" = failure ] || { tail -n 25 "$out/console.log" | sed 's/^/# /'; fail "the guest gave no verdict"; }
[ "$word" = success ]
