#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Proves that drivers/net/ethernet/cordon and include/cordon drop into a kernel tree: puts them into
# Debian's kernel source, has Kconfig ask for them, and builds the module there.
# The source is unpacked and prepared once, in the cache; runs in the lab's root.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
top=$(dirname "$here")
: "${BUILD:=$top/build}"
cache=${XDG_CACHE_HOME:-$HOME/.cache}/cordon

# All of Kconfig and make; code only of what makes a module, and the tools that this takes.
source=$("$here/ksource.sh" intree Makefile Kbuild Kconfig MAINTAINERS '*/Kconfig*' '*/Makefile*' '*/Kbuild*' \
	'scripts' 'include' 'arch/x86' 'tools/objtool' 'tools/lib' 'tools/include' 'tools/build' \
	'tools/scripts' 'tools/arch' 'tools/bpf' 'tools/docs' 'kernel' 'lib' 'security' 'usr' 'rust' 'mm' 'init' 'certs')
mkdir -p "$BUILD"
log=$BUILD/intree.log
exec 9>"$source.lock"
flock 9

if ! /usr/bin/python3 "$here/lab/lab" in-root --bind "$cache" -- "$here/intree/build.sh" "$top" "$source" >"$log" 2>&1; then
	tail -n 30 "$log" >&2
	echo "intree: failed; log: $log" >&2
	exit 1
fi
grep '^intree: ' "$log"
