# SPDX-License-Identifier: MIT
# Installing, and Debian packages. Paths as everywhere: make install
# PREFIX=/usr DESTDIR=/somewhere. What the system reads at boot (udev, systemd,
# sysusers, modules-load) goes below SYSDIR, which is PREFIX/lib.

VERSION   := 0.1.0
PREFIX    ?= /usr/local
BINDIR    ?= $(PREFIX)/bin
LIBDIR    ?= $(PREFIX)/lib
INCDIR    ?= $(PREFIX)/include
DATADIR   ?= $(PREFIX)/share
SYSDIR    ?= $(PREFIX)/lib
CONFDIR   ?= /etc/hearth
DKMSDIR   ?= /usr/src/hearth-$(VERSION)
INSTALL   ?= install
D          = $(DESTDIR)

install: all install-dkms ## install programs, libhearth, unit files, module source
	$(INSTALL) -d $D$(BINDIR) $D$(LIBDIR)/pkgconfig $D$(INCDIR)/hearth/linux $D$(DATADIR)/hearth/models \
		$D$(DATADIR)/hearth/docs/examples $D$(SYSDIR)/udev/rules.d $D$(SYSDIR)/sysusers.d \
		$D$(SYSDIR)/systemd/system $D$(CONFDIR)
	$(INSTALL) $(PROG_BINS) $D$(BINDIR)/
	$(INSTALL) -m 644 $(DEV_SO) $D$(LIBDIR)/libhearth.so.$(VERSION)
	ln -sf libhearth.so.$(VERSION) $D$(LIBDIR)/libhearth.so.0
	ln -sf libhearth.so.0 $D$(LIBDIR)/libhearth.so
	$(INSTALL) -m 644 runtime/dev/hearth.h $D$(INCDIR)/hearth/hearth.h
	$(INSTALL) -m 644 uapi/linux/*.h $D$(INCDIR)/hearth/linux/
	sed -e 's|@PREFIX@|$(PREFIX)|; s|@LIBDIR@|$(LIBDIR)|; s|@INCDIR@|$(INCDIR)|; s|@VERSION@|$(VERSION)|' \
		runtime/dev/libhearth.pc.in >$D$(LIBDIR)/pkgconfig/libhearth.pc
	for m in docs/man/*.[1-9]; do \
		$(INSTALL) -d $D$(DATADIR)/man/man$${m##*.} && \
		$(INSTALL) -m 644 $$m $D$(DATADIR)/man/man$${m##*.}/ || exit 1; done
	for f in $(wildcard models/*.gguf models/*.txt); do \
		$(INSTALL) -m 644 $$f $D$(DATADIR)/hearth/models/ || exit 1; done
	$(INSTALL) -m 644 docs/examples/*.yaml $D$(DATADIR)/hearth/docs/examples/
	# whole paths: it is copied to /etc
	sed -e 's|path: ../../models|path: $(DATADIR)/hearth/models|; s|home: home.yaml|home: $(DATADIR)/hearth/docs/examples/home.yaml|' \
		docs/examples/hearthd.yaml >$D$(DATADIR)/hearth/docs/examples/hearthd.yaml
	$(INSTALL) -m 644 debian/hearth.udev $D$(SYSDIR)/udev/rules.d/60-hearth.rules
	$(INSTALL) -m 644 debian/hearth.sysusers.conf $D$(SYSDIR)/sysusers.d/hearth.conf
	for u in hearth hearthd; do \
		sed -e 's|@BINDIR@|$(BINDIR)|' debian/$$u.service.in >$D$(SYSDIR)/systemd/system/$$u.service && \
		chmod 644 $D$(SYSDIR)/systemd/system/$$u.service || exit 1; done
	chmod 644 $D$(LIBDIR)/pkgconfig/libhearth.pc

install-dkms: ## only the module's source, where DKMS builds it from
	$(INSTALL) -d $D$(DKMSDIR)/kmod/core $D$(DKMSDIR)/uapi/linux $D$(SYSDIR)/modules-load.d
	$(INSTALL) -m 644 debian/hearth.modules-load.conf $D$(SYSDIR)/modules-load.d/hearth.conf
	$(INSTALL) -m 644 Kbuild dkms.conf $D$(DKMSDIR)/
	$(INSTALL) -m 644 kmod/*.[ch] kmod/Kbuild $D$(DKMSDIR)/kmod/
	$(INSTALL) kmod/conftest.sh $D$(DKMSDIR)/kmod/
	$(INSTALL) -m 644 kmod/core/*.[ch] $D$(DKMSDIR)/kmod/core/
	$(INSTALL) -m 644 uapi/linux/*.h $D$(DKMSDIR)/uapi/linux/

# The module alone, for the kernel tree in KDIR: the running one's, or any that
# was prepared (make modules_prepare). Of another machine's kind with KARCH=arm64
# CROSS_COMPILE=aarch64-linux-gnu-. Ends in build/module, beside no source.
KDIR      ?= /lib/modules/$(shell uname -r)/build
KARCH     ?= $(ARCH:aarch64=arm64)
MODULE    := $(BUILD)/module
module: ## hearth.ko for the kernel in KDIR, into build/module/kmod
	@test -e '$(KDIR)/Makefile' || { echo "module: $(KDIR) is no kernel tree: install the kernel's headers, or say KDIR="; exit 1; }
	@mkdir -p $(MODULE)
	@$(MAKE) -s --no-print-directory install-dkms DESTDIR=$(abspath $(MODULE))/tmp DKMSDIR=
	@cp -rpu $(MODULE)/tmp/kmod $(MODULE)/tmp/uapi $(MODULE)/tmp/Kbuild $(MODULE)/ && rm -rf $(MODULE)/tmp
	$(Q)env -u MAKEFLAGS -u MAKELEVEL $(MAKE) -C '$(KDIR)' ARCH=$(KARCH) CROSS_COMPILE=$(CROSS_COMPILE) \
		M=$(abspath $(MODULE))/kmod $(if $(wildcard $(KDIR)/Module.symvers),,KBUILD_MODPOST_WARN=1) modules

# Packages end in build/deb. They are built with the distribution's own flags
# in a folder of their own; DEB_BUILD=build reuses what is built already.
DEB_OUT   ?= $(BUILD)/deb
deb: ## Debian packages hearth-dkms, hearth, libhearth-dev into build/deb
	@command -v dh >/dev/null && command -v dh_dkms >/dev/null || \
		{ echo "deb: debhelper or dh-dkms is missing (apt-get install debhelper dh-dkms)"; exit 1; }
	@rm -rf $(DEB_OUT) && mkdir -p $(DEB_OUT)
	+@DEB_OUT=$(abspath $(DEB_OUT)) DEB_BUILD=$(or $(DEB_BUILD),build-deb) debian/rules binary >$(DEB_OUT)/log 2>&1 || \
		{ tail -n 30 $(DEB_OUT)/log; exit 1; }
	@debian/rules clean >/dev/null
	@ls $(DEB_OUT)/*.deb

# DEB_SUITE=bullseye links with the libraries of that release (glibc 2.31).
deb-arm64: ## the same for arm64, cross-built, into build/deb-arm64
	@command -v aarch64-linux-gnu-gcc >/dev/null || \
		{ echo "deb-arm64: the cross compiler is missing (apt-get install gcc-aarch64-linux-gnu)"; exit 1; }
	@sys=$$(debian/sysroot.sh arm64 $(DEB_SUITE)) || exit 1; \
	CROSS_CC="aarch64-linux-gnu-gcc --sysroot=$$sys/tree" CROSS_PKG_CONFIG=$$sys/pkg-config \
	DEB_SHLIBDEPS="-l$$sys/tree/usr/lib/aarch64-linux-gnu:$$sys/tree/lib/aarch64-linux-gnu -- --admindir=$$sys/admin" \
	dpkg-architecture -a arm64 -c $(MAKE) --no-print-directory \
		DEB_OUT=$(or $(DEB_ARM64_OUT),$(BUILD)/deb-arm64) DEB_BUILD=$(or $(DEB_BUILD),build-deb-arm64) deb

SCRIPT_TESTS += \
	tests/unit/test_build.sh \
	tests/unit/test_dkms.sh \
	tests/unit/test_hearthctl.sh \
	tests/unit/test_install.sh \
	# EOL
.PHONY: install install-dkms module deb deb-arm64
