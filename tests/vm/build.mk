# SPDX-License-Identifier: MIT
SCRIPT_TESTS += \
	tests/vm/check.sh \
	tests/vm/netlink_spec.py \
	tests/vm/test-vm.sh \
# EOL

test-vm:        ## the module in QEMU: Debian's 6.1 kernel, amd64 and arm64
	@SCRIPT_TIMEOUT=1500 tests/run.sh scripts tests/vm/test-vm.sh
test-vm-matrix: ## the same on 5.10, 6.12 and the newest kernel; MATRIX="sid-arm64 ..." of them
	@tests/vm/matrix.sh $(MATRIX)
test-vm-boot:   ## the packages on a Debian that boots: unit, rule, group, budgets
	@tests/vm/boot.sh
test-vm-serve:  ## hearthd on the module: the kept region, budgets of tenants (some minutes)
	@tests/vm/serve.sh
test-vm-debug:  ## on a kernel with KASAN, lockdep, kmemleak, fault injection
	@tests/vm/matrix.sh debug
bench-vm:       ## speed of the module against the kernel's own means, as ratios
	@VM_TIMEOUT=1800 VM_MEM=3072 tests/vm/run.sh bookworm amd64 bench
check-kmod:     ## sparse and checkpatch over the module
	@tests/vm/check.sh
.PHONY: test-vm test-vm-matrix test-vm-boot test-vm-serve test-vm-debug bench-vm check-kmod
