#!/bin/sh
# SPDX-License-Identifier: MIT
# hearthctl: what it says and its exit codes. Without an argument everything
# that needs no module; with the path of a device node, as root, the rest too
# (it makes its own pools and removes them). Plain sh: it also runs in a guest
# that has nothing but busybox.
dev=$1
ctl=${HEARTHCTL:-build/bin/hearthctl}
tmp=${TMPDIR:-/tmp}/hearthctl-test.$$
mkdir -p "$tmp" || exit 1
trap 'rm -rf "$tmp"' EXIT
bad=0

# t NAME CODE TEXT COMMAND...: the exit code, and a text in what was printed
t() {
	name=$1 code=$2 text=$3
	shift 3
	"$@" >"$tmp/out" 2>&1 </dev/null
	got=$?
	if [ $got -eq "$code" ] && { [ -z "$text" ] || grep -qF -e "$text" "$tmp/out"; }; then
		echo "ok - $name"
		# refusals are for people: their sentences are there to be read
		[ "$code" -eq 0 ] || sed -n '1s/^/#   /p' "$tmp/out"
	else
		bad=1
		echo "not ok - $name"
		echo "# exit code $got, not $code, or no \"$text\" in:"
		sed 's/^/#   /' "$tmp/out"
	fi
}
# has NAME TEXT: also in what the last t printed
has() {
	if grep -qF -e "$2" "$tmp/out"; then echo "ok - $1"; else
		bad=1
		echo "not ok - $1"
		sed 's/^/#   /' "$tmp/out"
	fi
}
f() { cat >"$tmp/$1"; }
# Waits until a command holds; as long as that may take on a busy machine.
until_so() {
	n=0
	while ! "$@" >/dev/null 2>&1; do
		n=$((n + 1))
		[ $n -lt 1200 ] || return 1
		sleep 0.1
	done
}
# hold ARGUMENTS...: a program in the background that has charged, and sleeps
hold() {
	$c exec "$@" -- sleep 10000 &
	held=$!
	until_so grep -qx sleep /proc/$held/comm
}
# What a watcher in the background heard, of acts that go on until it heard one.
heard() { sh -c "$1" >/dev/null 2>&1; [ -s "$tmp/watch" ]; }
# Ends what holds a charge in the background.
let_go() { kill $held; wait $held 2>/dev/null; }

t "help lists the commands" 0 "apply [--dry-run]" $ctl --help
t "no command is a usage error" 2 "usage:" $ctl
t "an unknown command is a usage error" 2 "there is no command frobnicate" $ctl frobnicate
t "an unknown option is a usage error" 2 "usage:" $ctl --frobnicate status
t "status takes no arguments" 2 "takes no arguments" $ctl status x
t "budget needs something to set" 2 "something to set" $ctl budget set llm kv
t "a limit has a name" 2 "is no limit" $ctl budget set llm kv mox=1G
t "a limit has a size" 2 "is no limit" $ctl budget set llm kv max=1Q
t "a size does not overflow" 2 "is no limit" $ctl budget set llm kv max=99999999999G
t "a class is known" 2 "is no class" $ctl budget set llm kv max=1G --class frog
t "a priority has bounds" 2 "is no priority" $ctl budget set llm kv max=1G --priority 1001
t "a kind is known" 2 "is no kind" $ctl pool create x frog 1G
t "a pool has a size" 2 "is no size" $ctl pool create x kv max
t "an account has no node" 2 "has no node" $ctl pool create x account 1G --node n
t "exec needs a tenant" 2 "--tenant NAME" $ctl exec -- true
t "exec needs a command" 2 "a command" $ctl exec --tenant x
t "exec understands charges" 2 "is no charge" $ctl exec --tenant x --charge account -- true
t "watch counts from 1" 2 "is no number" $ctl watch --count 0
if [ -e /sys/class/misc/hearth ]; then
	t "a device that is missing though the module is loaded" 3 "a container must be given the device" $ctl --device /dev/no-hearth status
else
	t "a device that is missing is named, with what to do" 3 "modprobe hearth" $ctl --device /dev/no-hearth status
fi
t "what is no hearth device is said to be none" 1 "/dev/null is not a hearth device" $ctl --device /dev/null status
t "an unknown option of a command is a usage error" 2 "--frob is no option here" $ctl watch --frob
t "an option without its value is a usage error" 2 "lacks its value" $ctl exec --tenant
t "unload takes no arguments" 2 "takes no arguments" $ctl unload now
t "an error is JSON where that was asked for" 3 '"exit":3' $ctl --json --device /dev/no-hearth status
has "with the sentence in it" '{"error":"'
t "a usage error too, and behind the command" 2 '"exit":2' $ctl frobnicate --json
t "and that of an option before the command" 2 '"exit":2' $ctl --frobnicate --json status
t "and that of no command" 2 '"exit":2' $ctl --json
t "and nothing else is printed then" 2 "" sh -c "test \$($ctl --frobnicate --json 2>&1 | wc -l) = 1 && exit 2"
t "and that of a file" 6 '"exit":6' $ctl --json apply "$tmp/none.yaml"
t "a full disk is a failure" 1 "cannot write" sh -c "$ctl --help >/dev/full"

# The manual has the exit codes that the program has, and each is seen in here.
if [ -e docs/man/hearthctl.1 ]; then
	sed -n '/^enum {/,/^};/s/.*EX_[A-Z_]* = \([0-9]*\),/\1/p' tools/hearthctl.h | sort -n >"$tmp/codes"
	sed -n '/^\.SH EXIT STATUS/,/^\.SH FILES/s/^\.BR* \(.*\)/\1/p' docs/man/hearthctl.1 | tr -d '," ' |
		sed 's/^126127$/126 127/' | tr ' ' '\n' | sort -n >"$tmp/man"
	t "the manual lists the exit codes that there are" 0 "" diff "$tmp/codes" "$tmp/man"
	for x in $(cat "$tmp/codes"); do
		t "exit code $x has a test" 0 "" grep -qE "^[[:space:]]*t \"[^\"]*\" $x " tests/unit/test_hearthctl.sh
	done
fi

f good.yaml <<'Y'
pools:
  t-kv: {kind: kv, size: 8M}
  t-account: {kind: account, size: 64M}
tenants:
  t-llm:
    class: llm
    priority: 20
    budget:
      t-kv: {min: 2M, low: 2M, high: 6M, max: 8M}
      t-account: {max: 32M}
  t-stt:
    class: stt
    budget:
      t-kv: {min: 1M}
Y
d="--device /dev/no-hearth"
[ -n "$dev" ] && d="--device $dev"
if [ -z "$dev" ] && [ ! -e /dev/hearth ]; then
	t "netlink without the module says what to do" 3 "modprobe hearth" $ctl watch --netlink --count 1
	t "a good file can be tried without a device" 0 "would apply: 2 pools, 3 budgets" $ctl apply --dry-run "$tmp/good.yaml"
	t "and says so as JSON" 0 '"applied": false' $ctl --json apply --dry-run "$tmp/good.yaml"
fi
t "a file that is not there" 6 "No such file" $ctl $d apply "$tmp/none.yaml"
refused() { # NAME TEXT: the file on stdin is refused with that
	cat >"$tmp/bad.yaml"
	t "$1" 6 "$2" $ctl $d apply "$tmp/bad.yaml"
}
refused "broken YAML has line and column" "line 3, column 1" <<'Y'
tenants:
  a: {budget: {t-kv: {max: 12}
Y
refused "a list is not a configuration" "line 1, column 1" <<'Y'
- a
Y
refused "a misspelt key is named" 'line 3, column 5: the key "clas"' <<'Y'
tenants:
  a:
    clas: llm
    budget: {t-kv: {max: 1M}}
Y
refused "a wrong size is named" "line 3, column 26: max is to be bytes" <<'Y'
tenants:
  a:
    budget: {t-kv: {max: 12X}}
Y
refused "a wrong class is named" "line 3, column 12: frog is no class" <<'Y'
tenants:
  a:
    class: frog
    budget: {t-kv: {max: 1M}}
Y
refused "a wrong kind is named" "frog is no kind" <<'Y'
pools:
  p: {kind: frog, size: 1M}
Y
refused "a pool needs a size" "needs a size" <<'Y'
pools:
  p: {kind: kv}
Y
refused "a pool given twice is refused" "line 3, column 3" <<'Y'
pools:
  p: {kind: kv, size: 1M}
  p: {kind: kv, size: 2M}
Y
refused "a tenant needs a budget" "needs a budget" <<'Y'
tenants:
  a: {class: llm}
Y
mkdir -p "$tmp/conf.d"
cp "$tmp/good.yaml" "$tmp/conf.d/10.yaml"
echo 'tenants: {t-llm: {budget: {t-kv: {max: 1M}}}}' >"$tmp/conf.d/20.yaml"
t "a tenant in two files of a folder is refused" 6 "20.yaml line 1, column 11: tenant t-llm is described twice" $ctl $d apply "$tmp/conf.d"

if [ -z "$dev" ]; then
	[ $bad -eq 0 ]
	exit
fi

# -- with the module ------------------------------------------------------------
c="$ctl --device $dev"
t "a good file is applied" 0 "applied: 2 pools, 3 budgets" $c apply "$tmp/good.yaml"
t "and can be applied again" 0 "applied: 2 pools, 3 budgets" $c apply "$tmp/good.yaml"
t "status shows the pools" 0 "t-kv" $c status
has "and the system's memory" "system memory:"
has "and the tenants" "t-llm"
t "status as JSON" 0 '"level":' $c --json status
t "pool lists them" 0 "t-account" $c pool
t "pool as JSON" 0 '"size": 8388608' $c pool --json
t "tenant show" 0 "32.0M" $c tenant show t-llm
t "tenant show of nobody" 7 "there is no tenant t-nobody" $c tenant show t-nobody
t "tenant as JSON" 0 '"priority": 20' $c --json tenant show t-llm

sed 's/min: 1M/min: 7M/' "$tmp/good.yaml" >"$tmp/bad.yaml"
t "a min that does not fit is refused with line and column" 6 "bad.yaml line 14, column 7: tenant t-stt cannot be guaranteed" $c apply "$tmp/bad.yaml"
has "and says whose min is in the way" "tenant t-llm has 2.0 MiB"
t "nothing was changed" 0 "1.0M" $c tenant show t-stt
t "the file can be tried without changing anything" 0 "would apply" $c apply --dry-run "$tmp/good.yaml"
sed 's/t-kv: {kind: kv, size: 8M}/t-kv: {kind: weights, size: 8M}/' "$tmp/good.yaml" >"$tmp/bad.yaml"
t "a pool of another kind is refused" 1 "is there and of kind kv" $c apply "$tmp/bad.yaml"

sed 's/size: 8M/size: 4M/; s/min: 2M, low: 2M, high: 6M, max: 8M/min: 1M/' "$tmp/good.yaml" >"$tmp/small.yaml"
t "a pool shrinks together with its guarantees" 0 "applied" $c apply "$tmp/small.yaml"
t "so that it is small" 0 '"size": 4194304' $c --json pool
t "and grows together with them" 0 "applied" $c apply "$tmp/good.yaml"
hold --tenant t-llm --charge t-kv=5M
sed 's/t-stt:/t-new:/' "$tmp/small.yaml" >"$tmp/bad.yaml"
t "a pool cannot shrink below what is charged" 8 "bad.yaml line 2, column 3: pool t-kv cannot shrink" $c apply "$tmp/bad.yaml"
has "and it is said by how much" "5.0 MiB are charged in it, too much by 1.0 MiB"
has "and who holds it" "tenant t-llm holds most (5.0 MiB)"
t "nor below what is guaranteed" 5 "3.0 MiB of it are guaranteed, too much by 1.0 MiB" $c pool resize t-kv 2M
has "and it is said to whom" "tenant t-llm has the largest min (2.0 MiB)"
t "and then budgets are as they were" 0 '"min": 2097152' $c --json tenant show t-llm
t "and tenants too" 7 "there is no tenant t-new" $c tenant show t-new
t "and pools too" 0 '"size": 8388608' $c --json pool
let_go

t "a guarantee is not given away, and it is said whose" 5 "is guaranteed to others (tenant t-llm may still claim 2.0 MiB" $c exec --tenant t-tts --charge t-kv=6M -- echo never
has "and how much could be had" "so 5.0 MiB would fit"
hold --tenant t-llm --charge t-kv=6M
t "a full pool names who holds it" 5 "tenant t-llm holds most (6.0 MiB)" $c exec --tenant t-tts --charge t-kv=3M -- echo never
has "and by how much it is too small" "the pool has 8.0 MiB, 1.0 MiB would fit"
t "with a time limit that is said too" 5 "in the time given" $c exec --tenant t-tts --charge t-kv=3M --wait 50 -- echo never
let_go
t "budget set keeps what is not named" 0 "" $c budget set t-llm t-kv high=5M
t "so the rest is as it was" 0 '"min": 2097152' $c --json tenant show t-llm
has "and high is new" '"high": 5242880'
t "budget set makes a tenant" 0 "" $c budget set t-tts t-account max=1M --class tts --priority 70
t "that is kept" 0 "kept" $c tenant show t-tts
t "budget set refuses what does not fit" 5 "cannot be guaranteed" $c budget set t-tts t-kv min=7M
t "budget set refuses min over max" 1 "is larger than max" $c budget set t-tts t-kv min=2M max=1M
t "budget set needs a pool that is there" 7 "there is no pool t-none" $c budget set t-tts t-none max=1M

t "exec charges and runs" 0 "hello t-tts" $c exec --tenant t-tts --charge t-account=1M -- sh -c 'echo hello $HEARTH_TENANT'
t "exec gives the command's exit code" 9 "" $c exec --tenant t-tts -- sh -c 'exit 9'
t "exec refuses what does not fit" 5 "its max is 1.0 MiB" $c exec --tenant t-tts --charge t-account=2M -- echo never
t "exec needs a pool that is there" 7 "there is no pool t-none" $c exec --tenant t-tts --charge t-none=1M -- true
t "exec of what is no program" 126 "cannot be run" $c exec --tenant t-tts -- /
t "exec of nothing" 127 "cannot be run" $c exec --tenant t-tts -- /nothing/there
hold --tenant t-tts --charge t-account=512K
t "the charge lasts while the command runs" 0 '"current": 524288' $c --json tenant show t-tts
t "an open tenant cannot be removed" 8 "end the program that has it open" $c tenant remove t-tts
t "a pool in use cannot be removed" 8 "in use, 512.0 KiB are charged in it" $c pool remove t-account
has "and it is said by whom" "tenant t-tts holds most (512.0 KiB)"
let_go
t "and goes with it" 0 '"current": 0' $c --json tenant show t-tts

$c watch --count 1 >"$tmp/watch" 2>&1 &
w=$!
until_so heard "$c budget set t-tts t-account max=3M; $c budget set t-tts t-account max=2M"
wait $w
t "watch tells a change of limits" 0 "budget" cat "$tmp/watch"
has "with the tenant" "t-tts"
$c --json watch --tenant t-tts --count 1 >"$tmp/watch" 2>&1 &
w=$!
until_so heard "$c budget set t-llm t-account max=3M; $c budget set t-llm t-account max=2M; $c exec --tenant t-tts --charge t-account=3M -- true"
wait $w
t "watch of one tenant passes the others over" 0 '"tenant":"t-tts"' cat "$tmp/watch"
has "and names the limit that refused" '"limit":"max"'
$c --json watch --netlink --tenant t-tts --count 1 >"$tmp/watch" 2>&1 &
w=$!
until_so heard "$c budget set t-tts t-account max=3M; $c budget set t-tts t-account max=1M"
wait $w
t "watch by netlink tells the same" 0 '"tenant":"t-tts"' cat "$tmp/watch"
t "with a new limit" 0 "" grep -qE '"limit":(1048576|3145728)[,}]' "$tmp/watch"
t "watch ends after its time" 0 "" $c watch --seconds 1

if command -v setuidgid >/dev/null; then
	chmod 666 "$dev"
	t "everybody who may open it can look" 0 "t-kv" setuidgid 65534:65534 $c status
	t "setting a budget needs the administrator" 4 "administrator" setuidgid 65534:65534 $c budget set t-tts t-account max=2M
	t "and so does applying" 4 "administrator" setuidgid 65534:65534 $c apply "$tmp/good.yaml"
	t "and making a pool" 4 "administrator" setuidgid 65534:65534 $c pool create t-mine kv 4M
	chmod 600 "$dev"
	t "who may not open it is told how" 4 "join the group hearth" setuidgid 65534:65534 $c status
else
	echo "ok - what a plain user is told # SKIP no setuidgid here"
fi

t "regions" 0 "REGION" $c regions
t "regions of no pool" 7 "there is no pool t-none (hearthctl status" $c regions t-none
t "drop of nothing" 7 "has no region nothing" $c drop t-kv nothing

t "a pool can be made" 0 "" $c pool create t-extra scratch 4M
t "but not twice" 8 "already" $c pool create t-extra scratch 4M
t "and resized" 0 "" $c pool resize t-extra 8M
t "and is there" 0 '"size": 8388608' $c --json pool
t "a pool that the system cannot give" 1 "cannot give" $c pool create t-huge kv 4096G
has "and by how much it is too large" "too few"
t "nor grow to that" 1 "cannot give that much" $c pool resize t-extra 4096G
has "by how much as well" "too few"
t "and removed" 0 "" $c pool remove t-extra
t "and is gone" 7 "there is no pool" $c pool remove t-extra
if command -v hearth-keep >/dev/null; then
	hearth-keep t-kv models/a:1 >/dev/null
	t "a kept region is shown without its owner" 0 "models/a:1" $c regions t-kv
	has "with its state" "sealed"
	has "and its digest" "abababababababab"
	t "and as JSON" 0 '"sealed": true' $c regions --json
	if [ "$dev" = /dev/hearth ]; then
		t "it keeps the module in, and it is said how to end that" 8 "hearthctl drop t-kv models/a:1" $c unload
	fi
	t "its pool cannot be removed" 8 "in use" $c pool remove t-kv
	if command -v setuidgid >/dev/null; then
		chmod 666 "$dev"
		t "a plain user cannot drop it" 4 "administrator" setuidgid 65534:65534 $c drop t-kv models/a:1
		chmod 600 "$dev"
	fi
	t "the administrator drops it" 0 "" $c drop t-kv models/a:1
	t "once" 7 "has no region models/a:1" $c drop t-kv models/a:1
else
	echo "ok - regions that are kept # SKIP no hearth-keep here: only in a guest"
fi
t "an act says so in JSON" 0 '"done": true' $c --json budget set t-tts t-account max=3M
t "a refusal is JSON too" 7 '"error":"there is no pool t-none"' $c --json pool remove t-none
t "exec refuses as JSON" 5 '"exit":5' $c --json exec --tenant t-tts --charge t-account=4M -- echo never
if [ "$dev" = /dev/hearth ] && [ -d /proc/self/fd ]; then
	hold --tenant t-tts
	t "unloading in use is refused, and says by whom" 8 "process $held (sleep) has it open" $c unload
	t "and in JSON" 8 '"exit":8' $c unload --json
	has "by whom as well" "$held (sleep)"
	let_go
	if command -v setuidgid >/dev/null; then
		t "unloading needs the administrator" 4 "administrator" setuidgid 65534:65534 $c unload --json
	fi
fi
for x in t-llm t-stt t-tts; do t "tenant $x is removed" 0 "" $c tenant remove $x; done
t "a tenant is removed once" 7 "there is no tenant" $c tenant remove t-llm
for x in t-kv t-account; do t "pool $x is removed" 0 "" $c pool remove $x; done
[ $bad -eq 0 ]
