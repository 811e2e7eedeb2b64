#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The part of the VM tests that every run has: Debian's 6.1, amd64 and arm64.
set -u
cd "$(dirname "$0")" || exit 1
bad=0
./run.sh bookworm amd64 all || bad=1
./run.sh bookworm arm64 all || bad=1
exit $bad
