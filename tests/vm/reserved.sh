#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# reserved.sh OUT MEM: writes OUT/virt.dtb, the device tree of QEMU's arm64 virt
# machine with reserved-memory nodes: a good one, and one of each wrong kind.
set -eu
out=$1 mem=$2
qemu-system-aarch64 -machine virt,dumpdtb="$out/base.dtb" -cpu cortex-a76 -smp 2 -m "$mem" \
	-nodefaults -nographic -device pci-serial >/dev/null 2>&1
dtc -q -I dtb -O dts "$out/base.dtb" >"$out/virt.dts"
# RAM begins at 1 GiB; the nodes lie near the end of the first 512 MiB.
python3 - "$out/virt.dts" <<'EOF'
import sys
path = sys.argv[1]
dts = open(path).read()
node = """
	reserved-memory {
		#address-cells = <0x02>;
		#size-cells = <0x02>;
		ranges;
		hearth-weights { reg = <0x0 0x58000000 0x0 0x04000000>; };
		hearth-ragged { reg = <0x0 0x5c001000 0x0 0x00601000>; };
		hearth-tiny { reg = <0x0 0x5ce00000 0x0 0x00100000>; };
		hearth-nomap { no-map; reg = <0x0 0x5d000000 0x0 0x00400000>; };
		hearth-cma { compatible = "shared-dma-pool"; reusable; reg = <0x0 0x5d800000 0x0 0x00800000>; };
		hearth-size { size = <0x0 0x00800000>; alignment = <0x0 0x00200000>; };
	};
};
"""
end = dts.rstrip()
assert end.endswith("};")
open(path, "w").write(end[:-2] + node)
EOF
dtc -q -I dts -O dtb "$out/virt.dts" >"$out/virt.dtb"
