#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# One whole voice turn, end to end: a command is spoken by one voice, and hearth
# listens, acts in the home of docs/examples/home.yaml and answers in another.
#   tools/demo.sh [OPTION of hearth turn...]
set -eu
cd "$(dirname "$0")/.."
BUILD=${BUILD:-build}
hearth=$BUILD/bin/hearth
dir=$BUILD/demo
mkdir -p "$dir"

if [ ! -r models/home-q8_0.gguf ]; then
	echo "demo: the home model models/home-q8_0.gguf is not in this tree" >&2
	exit 6
fi
command=${DEMO_COMMAND:-turn on the kitchen light}
[ -f "$dir/command.wav" ] && [ -f "$dir/command.txt" ] && [ "$(cat "$dir/command.txt")" = "$command" ] || {
	"$hearth" say --voice rms -o "$dir/command.wav" "$command"
	printf '%s' "$command" >"$dir/command.txt"
}
echo "demo: \"$command\", spoken by the voice rms, is in $dir/command.wav; slt will answer"
exec "$hearth" turn -o "$dir/reply.wav" --trace "$dir/trace.json" "$@" "$dir/command.wav"
