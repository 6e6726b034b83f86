# SPDX-License-Identifier: BSD-3-Clause
"""Private namespaces: how a command gets into the root, for root and for a user.

The root itself is mounted read-only under a tmpfs that has its top-level directories
and empty ones where the host's paths are bound, so that nothing can alter it and the
paths of the checkout agree inside and outside.
"""

import os
import pwd
from pathlib import Path

from . import host
from .errors import LabError

#: where the untouched root is seen inside, to be exported to guests
PRISTINE = "/.root"
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

# $1 root, $2 mount point, $3 working directory, then pairs of mode and path up to
# "--", then the command. The shell stays as process 1: it reaps, and the command
# gets signals as usual.
SCRIPT = r"""
set -e
root=$1 mnt=$2 cwd=$3
shift 3
mount -t tmpfs -o mode=755 lab "$mnt"
for entry in "$root"/*; do
	name=${entry##*/}
	if [ -L "$entry" ]; then
		ln -s "$(readlink "$entry")" "$mnt/$name"
		continue
	fi
	[ -d "$entry" ] || continue
	mkdir "$mnt/$name"
	case $name in
	dev|proc|sys|tmp|run|home|root|mnt|media|srv|opt) continue ;;
	esac
	mount --bind "$entry" "$mnt/$name"
	mount -o remount,bind,ro "$mnt/$name" 2>/dev/null || :
done
mkdir "$mnt/.root" "$mnt/run/lock"
chmod 1777 "$mnt/tmp"
mount --bind "$root" "$mnt/.root"
mount -o remount,bind,ro "$mnt/.root" 2>/dev/null || :
mount -t tmpfs -o mode=1777 lab "$mnt/var/tmp"
mount -t proc proc "$mnt/proc" 2>/dev/null || mount --rbind /proc "$mnt/proc"
mount --rbind /sys "$mnt/sys"
mount --rbind /dev "$mnt/dev"
while [ "$1" != -- ]; do
	mkdir -p "$mnt$2"
	mount --rbind "$2" "$mnt$2"
	[ "$1" = rw ] || mount -o remount,bind,ro "$mnt$2" 2>/dev/null || :
	shift 2
done
shift
chroot "$mnt" /usr/bin/env -C "$cwd" -- "$@" || exit
exit 0
"""


def _require_subids():
    """An ordinary user needs ranges of ids for the owners of the root's files."""
    me = pwd.getpwuid(os.geteuid())
    for name in ("/etc/subuid", "/etc/subgid"):
        try:
            lines = Path(name).read_text(encoding="utf-8").splitlines()
        except OSError:
            lines = []
        if not any(line.split(":")[0] in (me.pw_name, str(me.pw_uid)) for line in lines):
            raise LabError(f"{name} gives {me.pw_name} no ids; as root: usermod "
                           f"--add-subuids 100000-165535 --add-subgids 100000-165535 {me.pw_name}")


def unshare_argv():
    """unshare(1) with its options, to be followed by the command."""
    argv = ["unshare"]
    if not host.is_root():
        _require_subids()
        argv += ["--user", "--map-root-user", "--map-auto"]
    return argv + ["--mount", "--propagation", "private", "--pid", "--fork",
                   "--kill-child=KILL", "--"]


def enter_argv(root, argv, binds=(), cwd="/"):
    """The command line that runs argv inside the root.

    binds: paths, or (path, "ro"|"rw"), of host directories to be seen at the same place.
    """
    mnt = host.cache_dir() / "mnt"
    mnt.mkdir(exist_ok=True)
    pairs = []
    for bind in binds:
        path, mode = (bind, "rw") if isinstance(bind, (str, os.PathLike)) else bind
        path = Path(path).resolve()
        if not path.is_dir():
            raise LabError(f"not a directory, can't be bound into the root: {path}")
        pairs += [mode, str(path)]
    return [*unshare_argv(), "/bin/sh", "-c", SCRIPT, "lab-enter", str(root), str(mnt),
            str(cwd), *pairs, "--", *map(os.fspath, argv)]


def environment(extra=None):
    """The environment inside the root: none of the host's, but for a terminal."""
    env = {"PATH": PATH, "HOME": "/root", "LANG": "C.UTF-8", "TMPDIR": "/tmp"}
    for name in ("TERM", "COLUMNS", "LINES", "MAKEFLAGS"):
        if name in os.environ:
            env[name] = os.environ[name]
    env.update(extra or {})
    return env
