#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# From the compiler's reports: registers, shared memory, spills and occupancy of
# every kernel on SM 8.7 (64 Ki registers, 164 KiB shared, 48 warps an SM), as a
# Markdown table. `kernel_table.sh spills` names the kernels that spill there.
# usage: tools/kernel_table.sh [spills] (after make cuda-objs)
cd "$(dirname "$0")/.." || exit 1
BUILD=${BUILD:-build}
cat "$BUILD"/obj/kernels/*.cu.log | awk -v want="${1:-table}" '
/Compiling entry function/ {
	split($0, q, "\047"); k = q[2]; arch = q[4]
}
/bytes stack frame/ { spill = $5 + $9 }
/Used [0-9]+ registers/ {
	match($0, /Used [0-9]+/); r = substr($0, RSTART + 5, RLENGTH - 5)
	sm = 0
	if (match($0, /[0-9]+ bytes smem/)) { s = substr($0, RSTART, RLENGTH); sub(/ .*/, "", s); sm = s }
	if (want == "spills" && spill > 0 && arch == "sm_87") printf "%s (%s: %d bytes) ", k, arch, spill
	if (arch == "sm_87") { R[k] = r; S[k] = sm; P[k] = spill }
}
END {
	if (want == "spills") exit
	V[2] = V[12] = 144; V[3] = 160; V[6] = V[13] = 176; V[7] = 192; V[8] = 272; V[14] = 210; V[1] = 512
	print "| kernel | threads | registers | shared, bytes | spills | blocks an SM | warps of 48 |"
	print "|---|---|---|---|---|---|---|"
	for (k in R) {
		if (k ~ /7nothing/) continue   # device.cu: never run
		t = 256; dyn = 0
		if (k ~ /gemm_fewILi/) {   # two types, NT, WM: gemm_few.cuh
			match(k, /Li[0-9]+ELi[0-9]+ELi[0-9]+ELi[0-9]+E/)
			x = substr(k, RSTART, RLENGTH); gsub(/Li|E/, " ", x); split(x, a, " ")
			t = 64 * a[4]
			for (i = 1; i <= 2; i++) {
				two = a[3] <= 5 && a[4] == 4; st = 32 * a[4] * V[a[i]] + a[3] * 4096
				room = int((two ? 81 : 163) * 1024 / st); more = int((two ? 112 : 163) * 1024 / st)
				n = room > 3 ? 3 : room > 2 || more < 3 ? (room < 2 ? 2 : room) : 3
				if (st * n > dyn) dyn = st * n
			}
		} else if (k ~ /gemm_freeILi/) {   # two types, NT, WM: gemm_free.cuh
			match(k, /Li[0-9]+ELi[0-9]+ELi[0-9]+ELi[0-9]+E/)
			x = substr(k, RSTART, RLENGTH); gsub(/Li|E/, " ", x); split(x, a, " ")
			ks = a[4] == 1 ? 4 : 2
			t = 32 * a[4] * ks
			for (i = 1; i <= 2; i++) {
				st = a[4] * ks * (a[i] == 12 ? 2560 : 3648)
				n = a[4] == 1 && int(32 * 1024 / st) >= 3 ? 3 : 2
				st = st * n + (a[4] > 1 ? a[3] * 2048 * ks * n : 0)
				if (st > dyn) dyn = st
			}
			st = a[4] * ks * a[3] * 8 * 36 * 4   # what is added up at the end
			if (st > dyn) dyn = st
		} else if (k ~ /gemm_wideILi/) {   # two types, NT, TM: gemm_wide.cuh
			match(k, /Li[0-9]+ELi[0-9]+ELi[0-9]+ELi[0-9]+E/)
			x = substr(k, RSTART, RLENGTH); gsub(/Li|E/, " ", x); split(x, a, " ")
			for (i = 1; i <= 2; i++) {
				st = 8 * a[4] * (a[i] == 12 ? 1280 : 1824) + 8 * a[3] * 2048
				if (st > dyn) dyn = st
			}
			st = 4 * a[3] * 8 * (2 * a[4] * 16 + 4) * 4   # what is added up at the end
			if (st > dyn) dyn = st
			dyn += a[3] * 32
		} else if (k ~ /gemmILi/) {   # the type, NT, WN, KS
			match(k, /Li[0-9]+ELi[0-9]+ELi[0-9]+ELi[0-9]+E/)
			x = substr(k, RSTART, RLENGTH); gsub(/Li|E/, " ", x); split(x, a, " ")
			nb = a[2] * a[3] * 8; t = 128 * a[3] * a[4]; dyn = nb * 512 * (nb <= 40 ? 3 : 2)
		} else if (k ~ /attn/) {
			t = 128
			if (match(k, /Li[0-9]+E/)) { hd = substr(k, RSTART + 2, RLENGTH - 3) }
			f16 = k ~ /ELb1ELb/
			dyn = (4 * 16 * (hd + (hd > 64 ? 16 : 8)) + 144) * 4 + 16 * (hd + 8) * 2
			if (k ~ /ELb.ELb1E/) dyn += 8 * 2 * (f16 ? hd * 2 + 16 : hd + 16 + hd / 16) * 2   # 16 rows
		} else if (k ~ /gemv/) {
			if (match(k, /Li[0-9]+E/)) { nn = substr(k, RSTART + 2, RLENGTH - 3) }
			dyn = nn * 38 * 320 + (512 * nn + 32) * 4   # a row of 9728
		} else if (k ~ /rope|kv_copy/) t = 128
		else if (k ~ /pick/) t = 1024
		else if (k ~ /norm_short/) {   # warps, groups of a thread
			match(k, /Li[0-9]+E/); t = 32 * substr(k, RSTART + 2, RLENGTH - 3)
		}
		rr = int((R[k] + 7) / 8) * 8
		b = int(65536 / (rr * t)); bs = (S[k] + dyn) > 0 ? int(164 * 1024 / (S[k] + dyn + 1024)) : 16
		bw = int(1536 / t)
		if (bs < b) b = bs
		if (bw < b) b = bw
		if (b > 16) b = 16
		name = k; sub(/^_Z[0-9]+/, "", name);  sub(/PK(f|5uint4).*$/, "", name); sub(/Ev?[0-9]+[a-z_]+_args$/, "", name); sub(/v?[0-9]+[a-z_]+_args$/, "", name)
		gsub(/ILi/, "<", name); gsub(/ILb/, "<", name); gsub(/ELi/, ",", name); gsub(/ELb/, ",", name); if (name ~ /</) { sub(/E.*$/, "", name); name = name ">" }
		printf "| %s | %d | %d | %d | %d | %d | %d |\n", name, t, R[k], S[k] + dyn, P[k], b, b * t / 32 | "sort"
	}
}'
