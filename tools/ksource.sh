#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Parts of Debian's kernel source, unpacked into the cache: ksource.sh NAME PATTERN...
# Prints the directory. NAME stands for the patterns: a script that wants others takes another name.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
series=7.3
name=$1
shift

root=$(/usr/bin/python3 "$here/lab/lab" root)
version=$(sed -n "/^Package: linux-source-$series\$/,/^\$/s/^Version: //p" "$root/var/lib/dpkg/status")
words=$(printf '%s\n' "$@" | sha256sum | cut -c1-8)
target=${XDG_CACHE_HOME:-$HOME/.cache}/cordon/linux-$version-$name-$words

if [ ! -e "$target" ]; then
	exec 9>"$target.lock"
	flock 9
fi
# Only a whole tree gets the final name.
if [ ! -e "$target" ]; then
	rm -rf "$target.part"
	mkdir "$target.part"
	for pattern; do
		printf 'linux-source-%s/%s\n' "$series" "$pattern"
	done >"$target.part/.patterns"
	tar -C "$target.part" --strip-components=1 --wildcards --wildcards-match-slash \
		-T "$target.part/.patterns" -xf "$root/usr/src/linux-source-$series.tar.xz"
	mv "$target.part" "$target"
fi
echo "$target"
