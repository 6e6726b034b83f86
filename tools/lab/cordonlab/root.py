# SPDX-License-Identifier: BSD-3-Clause
"""The root: a Debian tree with kernels, compilers and QEMU, kept in a cache."""

import os
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

from . import host, mirror, recipe, space
from .errors import LabError
from .result import Result

STAMP = ".cordon-lab-root"
KEY_FILES = ("bin/busybox", "usr/bin/qemu-system-x86_64", "usr/bin/gcc", "usr/bin/python3",
             "usr/sbin/charon-systemd", "usr/bin/tshark", "usr/sbin/ethtool")


class Kernel(NamedTuple):
    """A kernel of the root; paths are as seen inside."""

    release: str
    headers: str
    image: str
    modules: str


class Root:
    """A root of the current recipe; made when there is none."""

    def __init__(self, make=True, rebuild=False):
        self.path = host.cache_dir() / f"root-{recipe.digest()}"
        self.lock = self.path.with_name(self.path.name + ".lock")
        if make and (rebuild or self.fault()):
            self._make(rebuild)

    def fault(self, path=None):
        """Return why this root, or the one being made at path, can't be used, or None."""
        path = path or self.path
        if not (path / STAMP).exists():
            return f"there is no finished root at {path}"
        for name in KEY_FILES:
            if not os.path.lexists(path / name):
                return f"{path} lacks {name}"
        for series in recipe.SERIES:
            if series not in _kernels(path, True):
                return f"{path} lacks kernel {series} or its headers"
        return None

    def kernels(self, bootable=True):
        """Map a series such as "7.3" to its Kernel.

        With bootable=False, series that only have headers are there too.
        """
        return _kernels(self.path, bootable)

    def kernel(self, series):
        try:
            return self.kernels()[series]
        except KeyError:
            raise LabError(f"no kernel {series}; there are: "
                           + ", ".join(self.kernels())) from None

    # -- running commands inside

    def argv(self, argv, binds=(), cwd=None):
        """The host command line that runs argv inside; the checkout is always bound.

        Later binds lie on top of earlier ones.
        """
        tree = host.tree()
        if (tree, "ro") not in binds:
            binds = [tree, *binds]
        return space.enter_argv(self.path, argv, binds, cwd or tree)

    def run(self, argv, binds=(), cwd=None, *, env=None, timeout=600, check=False,
            stdin=None, echo=False):
        """Run a command inside the root and return a Result.

        argv: list, or a string for the shell. binds: host directories to be seen at
        the same path, writable, or (path, "ro"). The checkout is bound, writable, and is
        the working directory unless cwd says otherwise. echo=True: output goes to the
        terminal and not into the Result.
        """
        if isinstance(argv, str):
            argv = ["/bin/sh", "-c", argv]
        pipe = None if echo else subprocess.PIPE
        data = stdin.encode() if isinstance(stdin, str) else stdin
        with host.locked(self.lock, shared=True):
            result = self._run(argv, binds, cwd, env, timeout, data, pipe)
        return result.checked("root") if check else result

    def _run(self, argv, binds, cwd, env, timeout, data, pipe):
        """Run a command to its end or its time-out."""
        proc = host.spawn(self.argv(argv, binds, cwd), env=space.environment(env),
                          stdin=subprocess.PIPE if data is not None else subprocess.DEVNULL,
                          stdout=pipe, stderr=pipe)
        timed_out = False
        try:
            out, err = proc.communicate(data, timeout=timeout)
        except subprocess.TimeoutExpired:
            timed_out = True
            host.end(proc, grace=0)
            out, err = proc.communicate()
        except BaseException:
            host.end(proc, grace=0)
            raise
        return Result(argv, proc.returncode, out, err, timed_out)

    def interactive(self, argv, binds=(), cwd=None):
        """Run a command on this terminal; Ctrl-C reaches it. Returns its exit status."""
        with host.locked(self.lock, shared=True):
            return subprocess.call(self.argv(argv, binds, cwd), env=space.environment())

    # -- making and removing

    def _make(self, rebuild):
        host.require_packages()
        with host.locked(self.lock):
            fault = self.fault()
            if fault is None and not rebuild:
                return
            host.say("making the root;", fault or "asked to")
            part = self.path.with_name(self.path.name + ".part")
            log = self.path.with_name(self.path.name + ".log")
            remove_tree(part)
            try:
                self._build(part, log)
                fault = self.fault(part)
                if fault:
                    raise LabError(f"the new root is not whole: {fault}; see {log}")
                remove_tree(self.path)
                part.rename(self.path)
            except BaseException:
                remove_tree(part)
                raise

    def _build(self, part, log):
        started = time.monotonic()
        source = mirror.find().sources()
        names = recipe.resolve(source)
        listing = self.path.with_name(self.path.name + ".list")
        listing.write_text(source, encoding="utf-8")
        argv = [*space.unshare_argv(), "mmdebstrap", "--mode=root", "--variant=apt",
                "--architectures=amd64", "--include=" + ",".join(names)]
        argv += [f"--aptopt={opt}" for opt in (*recipe.APT_OPTIONS, *mirror.network_options())]
        argv += [f"--dpkgopt={opt}" for opt in recipe.DPKG_OPTIONS]
        argv += [f"--customize-hook={hook}" for hook in self._hooks()]
        argv += [mirror.RELEASE, str(part), str(listing)]
        # INITRD=No: initramfs-tools makes no initrd, the lab has its own.
        env = dict(os.environ, INITRD="No", DEBIAN_FRONTEND="noninteractive", LC_ALL="C.UTF-8",
                   PATH=space.PATH)
        host.say(f"{len(names)} packages and what they need; log: {log}")
        with open(log, "w", encoding="utf-8", errors="replace") as out:
            proc = host.spawn(argv, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True, errors="replace")
            try:
                _show_progress(proc.stdout, out, started)
                status = proc.wait()
            except BaseException:
                host.end(proc, grace=0)
                raise
        listing.unlink()
        if status:
            tail = log.read_text(encoding="utf-8", errors="replace").splitlines()[-15:]
            raise LabError("mmdebstrap failed; log: " + f"{log}\n" + "\n".join(tail))
        host.say(f"the root is made, {time.monotonic() - started:.0f} s")

    @staticmethod
    def _hooks():
        """Last touches, run by mmdebstrap with the root as $1."""
        return (
            'rm -f "$1/etc/resolv.conf" "$1/etc/apt/apt.conf.d/99mmdebstrap"',
            'rm -rf "$1/etc/apt/sources.list" "$1/etc/apt/sources.list.d"',
            'printf "127.0.0.1 localhost\\n::1 localhost\\n" > "$1/etc/hosts"',
            'touch "$1/' + STAMP + '"',
        )


def _kernels(path, bootable):
    found = {}
    for headers in sorted(path.glob("usr/src/linux-headers-*-amd64")):
        release = headers.name.removeprefix("linux-headers-")
        image = f"/boot/vmlinuz-{release}"
        here = (path / image[1:]).exists()
        if bootable and not here:
            continue
        series = re.match(r"\d+\.\d+", release)
        if series:
            found[series.group()] = Kernel(
                release, f"/usr/src/{headers.name}", image if here else "",
                f"/usr/lib/modules/{release}")
    return found


def _show_progress(lines, log, started):
    """Copy to the log; say each stage, and how far it is every ten seconds."""
    said = time.monotonic()
    unpacked = configured = 0
    for line in lines:
        log.write(line)
        log.flush()
        unpacked += line.startswith("Unpacking ")
        configured += line.startswith("Setting up ")
        now = time.monotonic()
        if line.startswith(("I: ", "E: ")):
            host.say(f"[{now - started:3.0f} s]", line[3:].strip())
        elif now - said > 10:
            said = now
            host.say(f"[{now - started:3.0f} s] {unpacked} packages unpacked, "
                     f"{configured} set up")


def remove_tree(path):
    """Remove a root; a user's has files of other ids, so it's done in the namespace."""
    if not Path(path).exists():
        return
    done = subprocess.run([*space.unshare_argv(), "rm", "-rf", "--", str(path)],
                          check=False, stdout=sys.stderr)
    if done.returncode:
        raise LabError(f"can't remove {path}")
