#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# Builds the driver: build.sh KDIR OUTDIR [MAKE-ARGUMENT...]
#
# The sources are copied to OUTDIR first, so that builds for several kernels don't disturb each
# other and the checkout stays clean. The module ends up as OUTDIR/cordon.ko.
set -eu

if [ $# -lt 2 ]; then
	echo "usage: $0 KDIR OUTDIR [MAKE-ARGUMENT...]" >&2
	exit 2
fi
kdir=$1
mkdir -p "$2"
out=$(cd "$2" && pwd)
shift 2
top=$(cd "$(dirname "$0")/.." && pwd)

if [ ! -f "$kdir/Makefile" ]; then
	echo "$0: $kdir is no kernel build directory: install headers or set KDIR" >&2
	exit 1
fi

# Files keep their times, so that only what changed is built; files that are gone go.
for dir in drivers include; do
	mkdir -p "$out/$dir"
	(cd "$top" && find $dir -type f \( -name '*.[ch]' -o -name Makefile \)) |
	while read -r file; do
		mkdir -p "$out/$(dirname "$file")"
		cmp -s "$top/$file" "$out/$file" || cp -p "$top/$file" "$out/$file"
	done
	(cd "$out" && find $dir -type f \( -name '*.[ch]' -o -name Makefile \) ! -name '*.mod.c') |
	while read -r file; do
		[ -e "$top/$file" ] || rm -f "$out/$file"
	done
done
cmp -s "$top/Kbuild" "$out/Kbuild" || cp -p "$top/Kbuild" "$out/Kbuild"

make -C "$kdir" M="$out" "$@" modules
cp "$out/drivers/net/ethernet/cordon/cordon.ko" "$out/cordon.ko"
