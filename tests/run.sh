#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Runs tests and counts their TAP lines. The last line it prints is
#   N passed, N failed, N skipped
# usage: tests/run.sh all|unit|scripts|fuzz [NAME...]
# A program that dies, hangs or prints no result is a failure, never silence.
set -u
cd "$(dirname "$0")/.." || exit 1
BUILD=${BUILD:-build}
TIMEOUT=${TIMEOUT:-300}
passed=0 failed=0 skipped=0
failures=()
tier=${1:-all}
shift || true
only=("$@")
logs=$BUILD/log
mkdir -p "$logs"

wanted() {
	[ ${#only[@]} -eq 0 ] && return 0
	local n
	for n in "${only[@]}"; do [ "$n" = "$1" ] && return 0; done
	return 1
}

# run_one NAME SECONDS COMMAND...
run_one() {
	local name=$1 limit=$2 log rc ok bad skip start
	shift 2
	log=$logs/$(printf %s "$name" | tr / _).log
	start=$SECONDS
	timeout -k 10 "$limit" "$@" >"$log" 2>&1 </dev/null
	rc=$?
	# cmocka before 2.0 says "not ok N # SKIP name" of a test that was skipped
	skip=$(grep -cE '^(not )?ok .*# *(SKIP|skip)' "$log")
	ok=$(grep -E '^ok ' "$log" | grep -cvE '# *(SKIP|skip)')
	bad=$(grep -E '^not ok ' "$log" | grep -cvE '# *(SKIP|skip)')
	if [ $rc -eq 124 ] || [ $rc -eq 137 ]; then
		bad=$((bad + 1)); echo "not ok - $name: no end after $limit s" | tee -a "$log"
	elif [ $rc -ne 0 ] && [ "$bad" -eq 0 ]; then
		bad=1; echo "not ok - $name: exit code $rc" | tee -a "$log"
	elif [ $((ok + bad + skip)) -eq 0 ]; then
		bad=1; echo "not ok - $name: printed no result" | tee -a "$log"
	fi
	passed=$((passed + ok)) failed=$((failed + bad)) skipped=$((skipped + skip))
	printf '%-28s %4d passed %3d failed %3d skipped  %4ds\n' "$name" "$ok" "$bad" "$skip" $((SECONDS - start))
	grep -hE '^# *skip reason|^(not )?ok .*# *(SKIP|skip)' "$log" | sort -u | sed 's/^/    /' | head -n 12
	if [ "$bad" -gt 0 ]; then
		failures+=("$name")
		grep -nE '^not ok|^# |ERROR|runtime error|Sanitizer' "$log" | grep -vE 'skip reason|# *SKIP' | head -n 40 | sed 's/^/    /'
		echo "    log: $log"
	fi
}

list() { make -s --no-print-directory BUILD="$BUILD" "print-$1"; }

if [ "$tier" = all ] || [ "$tier" = unit ]; then
	for t in $(list TESTS); do
		wanted "$t" && run_one "$t" "$TIMEOUT" "$BUILD/tests/$t"
	done
fi
if [ "$tier" = all ] || [ "$tier" = scripts ]; then
	for t in $(list SCRIPT_TESTS); do
		wanted "$t" && run_one "$t" "${SCRIPT_TIMEOUT:-1500}" "$t"
	done
fi
if [ "$tier" = all ] || [ "$tier" = fuzz ]; then
	secs=${FUZZ_SECONDS:-60}
	if ! command -v clang >/dev/null; then
		echo "ok 1 - fuzzers # SKIP clang is not installed"; skipped=$((skipped + 1))
	elif make --no-print-directory fuzz-build >"$logs/fuzz-build.log" 2>&1; then
		# Two at a time: each is one thread, and the smallest machine has two.
		pids=() names=()
		for t in $(list FUZZERS); do
			wanted "$t" || continue
			mkdir -p "build-fuzz/corpus/$t" "tests/fuzz/corpus/$t" "$logs/$t.d"
			( build-fuzz/fuzz/"$t" -max_total_time="$secs" -timeout=20 -rss_limit_mb=2048 \
				-artifact_prefix="$logs/$t.d/" -print_final_stats=1 \
				"build-fuzz/corpus/$t" "tests/fuzz/corpus/$t" >"$logs/$t.log" 2>&1 </dev/null ) &
			pids+=($!) names+=("$t")
			if [ ${#pids[@]} -ge 2 ]; then wait -n; fi
			while [ "$(jobs -rp | wc -l)" -ge 2 ]; do wait -n; done
		done
		for i in "${!pids[@]}"; do
			if wait "${pids[$i]}"; then
				passed=$((passed + 1))
				echo "${names[$i]}: $(grep -hE 'number_of_executed_units' "$logs/${names[$i]}.log" | sed 's/stat:://')"
			else
				failed=$((failed + 1)); failures+=("${names[$i]}")
				echo "not ok - ${names[$i]}"; tail -n 30 "$logs/${names[$i]}.log"
			fi
		done
	else
		echo "not ok - fuzzers do not build"; tail -n 30 "$logs/fuzz-build.log"
		failed=$((failed + 1)); failures+=(fuzz-build)
	fi
fi

[ ${#failures[@]} -gt 0 ] && printf 'failed: %s\n' "${failures[*]}"
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ] && [ $((passed)) -gt 0 ]
