# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=sh
# Shared by tools/lint.sh and its checks. TOP: the checkout with the tools; TREE: the tree that is
# examined; OUT: where products go; all three are set by lint.sh.

# Files of the tree that are, or could be, in version control.
all_files() {
	(
		cd "$TREE" || exit
		if [ -e .git ]; then
			git ls-files -co --exclude-standard | while read -r file; do
				[ ! -f "$file" ] || echo "$file"
			done
		else
			find . -name build -prune -o -name __pycache__ -prune -o -type f -print | sed 's,^\./,,'
		fi
	)
}

# Files whose names match an extended regular expression.
files() {
	all_files | grep -E "$1" || :
}

# Scripts: by the end of their name, or by their first line.
scripts() {
	all_files | while read -r file; do
		case $file in
		*"$1") echo "$file" ;;
		*.*[a-z]) ;;
		*) head -n 1 "$TREE/$file" | grep -qE "^#!.*[/ ]$2\$" && echo "$file" ;;
		esac
	done
}

# Runs a command in the lab's root, in TREE.
in_root() {
	mkdir -p "$OUT"
	/usr/bin/python3 "$TOP/tools/lab/lab" in-root --bind "$TREE" --bind "$OUT" --bind "$CACHE" -- \
		/usr/bin/env -C "$TREE" "$@"
}

CACHE=${XDG_CACHE_HOME:-$HOME/.cache}/cordon

# The checkers of the kernel source.
kernel_scripts() {
	"$TOP/tools/ksource.sh" lint scripts/checkpatch.pl scripts/const_structs.checkpatch \
		scripts/spelling.txt scripts/kernel-doc 'tools/docs/*' 'tools/lib/python/*' \
		'Documentation/dev-tools/checkpatch.rst'
}
