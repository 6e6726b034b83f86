# SPDX-License-Identifier: BSD-3-Clause
"""KVM or not: /dev/kvm counts only where a stock kernel really boots on it."""

import os
import shutil
import tempfile
import time
from pathlib import Path

from . import host, initrd, qemu
from .errors import LabError

PROBE_SECONDS = 20


def choose(root):
    """Return "kvm" or "tcg". LAB_ACCEL overrides; a verdict is kept until the next boot."""
    wish = os.environ.get("LAB_ACCEL")
    if wish:
        if wish not in ("kvm", "tcg"):
            raise LabError(f"LAB_ACCEL must be kvm or tcg, not {wish}")
        return wish
    if not os.access("/dev/kvm", os.R_OK | os.W_OK):
        return "tcg"
    verdict = host.cache_dir() / f"accel-{host.boot_id()}"
    with host.locked(host.cache_dir() / "accel.lock"):
        if not verdict.exists():
            for old in host.cache_dir().glob("accel-*"):
                old.unlink()
            verdict.write_text(_probe(root), encoding="ascii")
        return verdict.read_text(encoding="ascii")


def _probe(root):
    """Boot a guest that only says it is there."""
    host.say("trying a guest on /dev/kvm")
    kernel = list(root.kernels().values())[-1]
    directory = Path(tempfile.mkdtemp(prefix="cordon-lab-"))
    janitor = host.Janitor(directory)
    try:
        shutil.copy(initrd.get(root, kernel), directory / "initrd")
        argv = [*qemu.machine_args("kvm", 1, 256),
                *qemu.kernel_args(kernel, directory / "initrd", ["lab.probe"]),
                "-serial", f"file:{directory}/console.log", "-no-reboot"]
        with open(directory / "qemu.log", "wb") as out:
            proc = host.spawn(root.argv(argv, [directory]), stdout=out, stderr=out)
        try:
            good = _says_it(proc, directory)
        finally:
            host.end(proc, grace=0)
    finally:
        janitor.close()
    host.say("guests run on KVM" if good else
             "a stock kernel does not boot on /dev/kvm; guests run without it")
    return "kvm" if good else "tcg"


def _says_it(proc, directory):
    """Wait for the guest's word, QEMU's end or its complaint, or the time-out."""
    end = time.monotonic() + PROBE_SECONDS
    console, log = directory / "console.log", directory / "qemu.log"
    while time.monotonic() < end:
        ended = proc.poll() is not None
        if console.exists() and b"LAB-PROBE-OK" in console.read_bytes():
            return True
        if ended or b"KVM internal error" in log.read_bytes():
            return False
        time.sleep(0.1)
    return False
