#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Runs the checkers in tools/lint/checks; prints what they find, and nothing when all is well.
# lint.sh [CHECK...]          all of them, or the named ones
# lint.sh --prove [CHECK...]  plants a bug for each checker in a copy of the tree; it has to find it
# lint.sh --list              names them
set -eu

LINT=$(cd "$(dirname "$0")" && pwd)/lint
TOP=$(cd "$LINT/../.." && pwd)
: "${BUILD:=$TOP/build}"
TREE=$TOP
OUT=$BUILD/lint
export LINT TOP TREE OUT BUILD
. "$LINT/lib.sh"

# Copies the files of the tree, no products.
copy_tree() {
	rm -rf "$1"
	mkdir -p "$1"
	all_files | tar -C "$TREE" -cf - -T - | tar -C "$1" -xf -
}

# A checker that says nothing about its seeded bug is worth nothing.
prove() {
	if [ ! -e "$LINT/seeds/$1" ]; then
		echo "$1: has no seeded bug"
		return 1
	fi
	TREE=$TOP
	copy_tree "$OUT/prove/tree"
	TREE=$OUT/prove/tree
	(cd "$TREE" && sh "$LINT/seeds/$1")
	mkdir -p "$OUT/prove/$1"
	OUT=$OUT/prove/$1 LINT_KERNELS=7.3 "$LINT/checks/$1" >"$OUT/prove/$1.log" 2>&1 || :
	if grep -q seeded_bug "$OUT/prove/$1.log"; then
		echo "$1: finds its seeded bug"
	else
		echo "$1: does NOT find its seeded bug (log: $OUT/prove/$1.log)"
		return 1
	fi
}

action=check
case ${1-} in
--list)
	ls "$LINT/checks"
	exit
	;;
--prove)
	action=prove
	shift
	;;
esac
all=$(ls "$LINT/checks")
# Word splitting is meant.
# shellcheck disable=SC2086
[ $# -gt 0 ] || set -- $all

status=0
mkdir -p "$OUT"
for name; do
	if [ ! -x "$LINT/checks/$name" ]; then
		echo "lint: no check '$name'; lint.sh --list names them" >&2
		exit 2
	fi
	case $action in
	prove)
		(prove "$name") || status=1
		;;
	check)
		"$LINT/checks/$name" >"$OUT/$name.log" 2>&1 || echo "$name: failed" >>"$OUT/$name.log"
		[ ! -s "$OUT/$name.log" ] || status=1
		cat "$OUT/$name.log"
		;;
	esac
done
exit $status
