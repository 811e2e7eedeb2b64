#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# hearthd in a guest with the module: its cache of prompts outlives the process
# in the region that the module keeps, and is refused when model, template or
# format differ; keys live under the administrator's budgets. TAP. Emulated, a
# few minutes, so it is no part of make test.
set -u
cd "$(dirname "$0")/../.." || exit 1
build=${BUILD:-build}
out=$build/vm/serve
mkdir -p "$out"
out=$(cd "$out" && pwd)
skip() { echo "ok - serve # SKIP $*"; exit 0; }
fail() { echo "not ok - serve: $*"; exit 1; }
for p in cpio curl qemu-system-x86_64 python3; do command -v $p >/dev/null || skip "$p is not installed"; done
[ "$(uname -m)" = x86_64 ] || skip "only on x86-64"
busybox=$(command -v busybox) && ! ldd "$busybox" >/dev/null 2>&1 || skip "busybox-static is not installed"
model=models/home-q4_k_m.gguf
[ -e $model ] || skip "there is no model at $model"
kdir=$(tests/vm/kernel.sh get bookworm amd64 2>"$out/kernel.log") || skip "no kernel: $(tail -n 1 "$out/kernel.log")"
make -s BUILD="$out/b" KDIR="$kdir/build" NVCC= module >"$out/module.log" 2>&1 || fail "no module (log: $out/module.log)"

# -- the root: programs with their libraries, as they are on this machine
root=$out/root
rm -rf "$root"
mkdir -p "$root"/{bin,proc,sys,dev,tmp}
cp "$busybox" "$root/bin/busybox"
cp "$out/b/module/kmod/hearth.ko" "$root/"
strip --strip-debug "$root/hearth.ko"
for p in "$build/bin/hearthd" "$build/bin/hearthctl" "$(command -v curl)"; do
	cp "$p" "$root/bin/"
	ldd "$p" | sed -n 's/.*[ \t]\(\/[^ ]*\) (.*/\1/p' | while read -r l; do
		mkdir -p "$root/$(dirname "$l")"
		cp -Lu "$l" "$root/$l"
	done
done
strip "$root"/bin/hearth* 2>/dev/null
cp $model "$root/model.gguf"
# The same weights under a template that says the same in other bytes.
python3 - $model "$root/other.gguf" <<'P' || fail "the template cannot be changed"
import sys
b = open(sys.argv[1], "rb").read()
at = b.index(b"tokenizer.chat_template")
at = b.index(b"{{- ", at)
open(sys.argv[2], "wb").write(b[:at] + b"{{-\n" + b[at + 4:])
P
words=$(python3 -c 'print(" ".join(["The kitchen has a lamp, a fan and a radio; the hall has a door."] * 14))')
printf '{"messages":[{"role":"system","content":"%s"},{"role":"user","content":"turn on the lamp"}],"temperature":0,"max_tokens":8}' "$words" >"$root/ask.json"
cat >"$root/conf.yaml" <<'Y'
model: {path: /model.gguf, id: home, context: 1024, sessions: 2, threads: 2}
memory: {device_required: true}
cache: {file: /tmp/prefix.kv}
http: {unix: /tmp/h.sock}
Y
cat >"$root/tenants.yaml" <<'Y'
model: {path: /model.gguf, id: home, context: 1024, sessions: 2, threads: 2}
memory: {device_required: true, tenants: [{name: kids}]}
http: {unix: /tmp/h.sock}
keys: [{name: a, key: kidskidskidskids, tenant: kids}, {name: b, key: ownownownownownn}]
Y
cat >"$root/init" <<'S'
#!/bin/busybox sh
/bin/busybox --install -s /bin
export PATH=/bin
mount -t proc proc /proc; mount -t sysfs sys /sys; mount -t devtmpfs dev /dev; mount -t tmpfs tmp /tmp
stty -F /dev/ttyS1 raw -echo
exec >/dev/ttyS1 2>&1
bad=0
t() { n=$1; shift; if "$@" >/tmp/why 2>&1; then echo "ok - $n"; else echo "not ok - $n"; sed 's/^/# /' /tmp/why /tmp/log | tail -n 12; bad=1; fi; }
start() { # FILE [OPTIONS]: until it serves
	f=$1; shift
	rm -f /tmp/h.sock
	hearthd -c "$f" "$@" 2>/tmp/log & pid=$!
	i=0
	while ! grep -q "hearthd: ready" /tmp/log && kill -0 $pid 2>/dev/null && [ $i -lt 3000 ]; do usleep 100000; i=$((i + 1)); done
}
stop() { kill -${1:-TERM} $pid; wait $pid 2>/dev/null; }
say() { curl -sS -m 600 --unix-socket /tmp/h.sock -H 'Content-Type: application/json' "$@"; }
ask() { say -d @/ask.json http://x/v1/chat/completions >/tmp/answer; }
cached() { sed -n 's/.*"cached_tokens": *\([0-9]*\).*/\1/p' /tmp/answer; }
content() { sed -n 's/.*"message": *\({[^}]*}\).*/\1/p' /tmp/answer; }
insmod /hearth.ko || echo "not ok - the module loads"
for p in "weights weights 64M" "kv kv 64M" "scratch scratch 128M" "account account 1G"; do hearthctl pool create $p; done

start /conf.yaml
t "hearthd serves from the module's pools" grep -q "hearthd: ready" /tmp/log
t "it answers" ask
content >/tmp/first
t "from nothing" test "$(cached)" = 0
t "with something" test -s /tmp/first
stop
t "the region of keys and values is left behind" sh -c 'hearthctl regions kv | grep -v weights | grep -q .'
t "the file is an index, no pages" test "$(stat -c %s /tmp/prefix.kv)" -lt 8192

start /conf.yaml
t "the next process says what it found" grep -q "prefix cache: [1-9][0-9]* tokens from /tmp/prefix.kv, 0 left out" /tmp/log
t "it answers" ask
t "from what was kept" test "$(cached)" -ge 128
content >/tmp/second
t "the same" cmp /tmp/first /tmp/second
stop KILL

start /conf.yaml
t "also after a kill" grep -q "prefix cache: [1-9][0-9]* tokens" /tmp/log
t "it answers" ask
t "from what was kept" test "$(cached)" -ge 128
content >/tmp/second
t "the same" cmp /tmp/first /tmp/second
stop

# one byte of the index that is not what it was
cp /tmp/prefix.kv /tmp/good.kv
printf '\377' | dd of=/tmp/prefix.kv bs=1 seek=600 conv=notrunc 2>/dev/null
start /conf.yaml
t "a damaged index is not believed" grep -q "prefix cache: begins empty: .*damaged" /tmp/log
t "it answers" ask
content >/tmp/second
t "the same" cmp /tmp/first /tmp/second
stop

refused() { # NAME FILE OPTIONS...: what was kept is of another kind
	kind=$1; shift
	cp /tmp/prefix.kv /tmp/keep.kv
	start "$@"
	t "$kind: refused, and why" grep -q "prefix cache: begins empty" /tmp/log
	echo "# $(grep "begins empty" /tmp/log)"
	t "$kind: it answers" ask
	t "$kind: from nothing" test "$(cached)" = 0
	stop
	cp /tmp/keep.kv /tmp/prefix.kv
}
refused "another template" /conf.yaml -m /other.gguf
sed 's/threads: 2/threads: 2, kv: f16/' /conf.yaml >/f16.yaml
refused "another format" /f16.yaml
# its region gave way to theirs: the index finds nothing, and says so
start /conf.yaml
t "the index of a region that is gone" grep -q "prefix cache: .*left out\|begins empty" /tmp/log
t "it answers" ask
content >/tmp/second
t "the same" cmp /tmp/first /tmp/second
stop

# -- tenants: the administrator's budgets
start /tenants.yaml
t "without a pool of sessions it does not start, and says how to make one" grep -q "hearthctl pool create sessions account" /tmp/log
wait $pid
hearthctl pool create sessions account 64M
# six pages of 32 tokens: a word fits, the long prompt does not
page=$(($(hearthctl --json regions kv | sed -n 's/.*"size": *\([0-9]*\).*/\1/p' | head -n 1) / 64))
t "the size of a page is known" test "$page" -gt 1000
t "the administrator's budget" hearthctl budget set kids sessions max=$((page * 6))
start /tenants.yaml
t "hearthd serves" grep -q "hearthd: ready" /tmp/log
t "within it" sh -c "curl -sS -m 600 --unix-socket /tmp/h.sock -H 'Authorization: Bearer kidskidskidskids' -d '{\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}],\"max_tokens\":4}' http://x/v1/chat/completions | grep -q finish_reason"
t "a prompt over it is refused with the figures" sh -c "curl -sS -m 600 --unix-socket /tmp/h.sock -H 'Authorization: Bearer kidskidskidskids' -d @/ask.json http://x/v1/chat/completions | grep -q 'budget of cache of the key or its tenant holds 192'"
t "others go on" sh -c "curl -sS -m 600 --unix-socket /tmp/h.sock -H 'Authorization: Bearer ownownownownownn' -d @/ask.json http://x/v1/chat/completions | grep -q finish_reason"
t "the budget may change while it serves" hearthctl budget set kids sessions max=$((page * 2))
t "and holds at once" sh -c "curl -sS -m 600 --unix-socket /tmp/h.sock -H 'Authorization: Bearer kidskidskidskids' -d '{\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}],\"max_tokens\":400}' http://x/v1/chat/completions | grep -q '\"completion_tokens\": *[0-9]\{1,2\},'"
stop
sed 's/{name: kids}/{name: kids, kv_max: 1M}/' /tenants.yaml >/both.yaml
start /both.yaml
t "limits in the configuration are refused beside the administrator's" grep -q "its budget is the administrator's" /tmp/log
wait $pid
t "the kernel log is clean" sh -c '! dmesg | grep -E "BUG:|WARNING:|Oops|Call Trace"'
[ $bad = 0 ] && echo success || echo failure
sleep 1
poweroff -f
S
chmod +x "$root/init"
(cd "$root" && find . | cpio -o -H newc --quiet | gzip -1) >"$out/initrd" || fail "no initramfs"
rm -rf "$root"

: >"$out/result.log"
start=$SECONDS
timeout -k 5 "${VM_TIMEOUT:-1500}" qemu-system-x86_64 -accel tcg,thread=multi -smp 2 -nographic -no-reboot -nodefaults \
	-net none -machine q35 -cpu max -m 2048 -kernel "$kdir/vmlinuz" -initrd "$out/initrd" \
	-chardev "file,id=con,path=$out/console.log" -chardev "file,id=res,path=$out/result.log" \
	-serial chardev:con -serial chardev:res \
	-append "console=ttyS0 no_timer_check nowatchdog rcupdate.rcu_cpu_stall_timeout=300 panic=-1 quiet" </dev/null >"$out/qemu.log" 2>&1
tr -d '\r' <"$out/result.log" | sed 's/^ok - /ok - serve: /; s/^not ok - /not ok - serve: /' | grep -vE '^(success|failure)$'
word=$(tr -d '\r' <"$out/result.log" | tail -n 1)
echo "# serve: $((SECONDS - start)) s in the guest"
[ "$word" = success ] || [ "$word" = failure ] || { tail -n 25 "$out/console.log" | sed 's/^/# /'; fail "the guest gave no verdict"; }
[ "$word" = success ]
