#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The VM tests on the other kernels: 5.10, 6.12 and the newest that Debian has.
set -u
cd "$(dirname "$0")" || exit 1
bad=0
for suite in bullseye trixie sid; do
	for arch in amd64 arm64; do
		./run.sh $suite $arch all || bad=1
	done
done
exit $bad
