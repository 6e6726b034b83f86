#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# Builds and installs selftests of the kernel; runs inside the lab's root.
# build.sh TARBALL DIRECTORY TARGET...: leaves DIRECTORY/kselftest.tar
set -eu

tarball=$1 work=$2
shift 2
name=$(basename "$tarball" .tar.xz)
jobs=-j$(nproc)

mkdir "$work/source"
cd "$work/source"
# The generator of the netlink library looks for MAINTAINERS to find the top of the tree.
tar --strip-components=1 -xf "$tarball" "$name/Makefile" "$name/Kbuild" "$name/Kconfig" \
	"$name/MAINTAINERS" "$name/scripts" "$name/include" "$name/lib" "$name/arch/x86" "$name/tools" \
	"$name/Documentation/netlink"
make -s "$jobs" headers
make -s "$jobs" -C tools/testing/selftests TARGETS="$*" install INSTALL_PATH="$work/installed"

cd "$work"
find installed -name __pycache__ -prune -exec rm -rf {} +
tar -cf kselftest.tar -C installed .
rm -rf source installed
