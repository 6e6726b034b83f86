#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Makes sure that the host has the packages of the named groups: installs them as root, names them otherwise.
set -eu

build='gcc libc6-dev make pkg-config libssl-dev liburcu-dev libcmocka-dev libjansson-dev rsync'
lab='python3 python3-pytest python3-cryptography python3-scapy python3-docutils mmdebstrap debian-archive-keyring uidmap xz-utils util-linux'
lint='clang clang-tidy cppcheck codespell pylint pycodestyle shellcheck perl git'

case $(dpkg --print-architecture) in
amd64) build="$build libipsec-mb-dev" ;;
esac

missing=
for group in "$@"; do
	case $group in
	build) packages=$build ;;
	lab) packages=$lab ;;
	lint) packages=$lint ;;
	*)
		echo "setup: no group '$group'" >&2
		exit 2
		;;
	esac
	for package in $packages; do
		status=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)
		[ "$status" = installed ] || missing="$missing $package"
	done
done
[ -n "$missing" ] || exit 0

if [ "$(id -u)" -ne 0 ]; then
	echo "setup: please have these packages installed:$missing" >&2
	exit 1
fi
log=${TMPDIR:-/tmp}/cordon-setup.log
echo "setup: installing$missing (log: $log)"
# Word splitting is meant.
# shellcheck disable=SC2086
{
	export DEBIAN_FRONTEND=noninteractive
	apt-get install -y --no-install-recommends $missing >"$log" 2>&1 ||
		{ apt-get update >>"$log" 2>&1 && apt-get install -y --no-install-recommends $missing >>"$log" 2>&1; }
} || {
	tail -n 20 "$log" >&2
	exit 1
}
