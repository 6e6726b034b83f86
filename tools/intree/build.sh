#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The part of tools/intree.sh that runs in the lab's root: build.sh CHECKOUT SOURCE
set -eu

top=$1
cd "$2"
net=drivers/net/ethernet
jobs=-j$(nproc)

fail() {
	echo "intree: $*"
	exit 1
}

# The kernel's own configuration, without what only costs time here, and without the driver.
if [ ! -e .prepared ]; then
	rm -rf $net/cordon include/cordon
	cp /boot/config-7.3*-amd64 .config
	scripts/config -e DEBUG_INFO_NONE -d DEBUG_INFO_BTF -d DEBUG_INFO_DWARF_TOOLCHAIN_DEFAULT -d RUST
	make olddefconfig
	make "$jobs" modules_prepare
	touch .prepared
fi

# Drop in: two directories, and a line in each of two files.
rm -rf $net/cordon include/cordon
cp -r "$top/$net/cordon" $net/
cp -r "$top/include/cordon" include/
grep -q 'ethernet/cordon/Kconfig' $net/Kconfig ||
	sed -i '\,^source "drivers/net/ethernet/cortina/Kconfig",i source "drivers/net/ethernet/cordon/Kconfig"' $net/Kconfig
# The dollar is for make.
# shellcheck disable=SC2016
grep -q 'cordon/' $net/Makefile ||
	sed -i '/^obj-.*cortina\//i obj-$(CONFIG_NET_VENDOR_CORDON) += cordon/' $net/Makefile
grep -q 'ethernet/cordon/Kconfig' $net/Kconfig || fail "$net/Kconfig has another shape than expected"

# Kconfig asks for the driver, and for its parts once the driver is on.
sed -i '/CORDON/d' .config
make listnewconfig >.new
for symbol in NET_VENDOR_CORDON CORDON; do
	grep -q "^CONFIG_$symbol=" .new || fail "Kconfig doesn't show $symbol"
done
scripts/config -m CORDON
make listnewconfig >.new
for symbol in CORDON_IPSEC CORDON_MACSEC; do
	grep -q "^CONFIG_$symbol=" .new || fail "Kconfig doesn't show $symbol"
done
scripts/config -e CORDON_IPSEC -e CORDON_MACSEC
make olddefconfig
for line in CONFIG_CORDON=m CONFIG_CORDON_IPSEC=y CONFIG_CORDON_MACSEC=y; do
	grep -qx "$line" .config || fail "$line doesn't stay in .config"
done
echo "intree: Kconfig shows CORDON, CORDON_IPSEC and CORDON_MACSEC"

# There is no vmlinux whose symbols modpost could look up.
make "$jobs" W=1 KBUILD_MODPOST_WARN=1 $net/cordon/cordon.ko 2>.errors || {
	cat .errors
	fail "the module doesn't build"
}
cat .errors
if grep -E '(cordon)/[^ ]*: (warning|error)' .errors; then
	fail "the module builds with warnings"
fi
echo "intree: $net/cordon/cordon.ko builds in linux $(make -s kernelversion)"
