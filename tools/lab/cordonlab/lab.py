# SPDX-License-Identifier: BSD-3-Clause
"""A lab: guests, the card between them, and the end of both."""

import contextlib
import itertools
import os
import shutil
import tempfile
import time
from pathlib import Path

from . import accel, host, initrd, module, qemu
from .card import Cordond, make_ports
from .errors import GuestFailed, LabError, LabTimeout
from .guest import Guest
from .root import Root

#: longest directory name that leaves room for a socket's name (108 bytes in all)
MAX_DIRECTORY = 70
MANAGEMENT = "10.200.0.{}"
SSH_OPTIONS = ("Host *\n\tStrictHostKeyChecking no\n\tUserKnownHostsFile /dev/null\n"
               "\tLogLevel ERROR\n")
_numbers = itertools.count(1)


class Lab:
    """Guests that are wired together; a context manager.

    kernel: a series ("6.12", "7.3"), or one for each guest. vms: number of guests.
    ports: ports of each guest, or a list with one number for each. wiring: "back2back",
    "loop", "chain", or pairs of (vm, port). vcpus, mem (MiB): of each guest.
    management: a network of all guests beside the card. capture: True, or names of
    ports, to capture what passes a port. build: the build directory of the checkout.
    cordond_args, kernel_args, qemu_args: words for their command lines.
    keep_logs: keep the logs although nothing failed.
    """

    def __init__(self, kernel="7.3", vms=1, ports=0, wiring="back2back", *, vcpus=2, mem=768,
                 build=None, management=False, capture=(), cordond=None, cordond_args=(),
                 cordond_env=None, kernel_args=(), qemu_args=(), boot_timeout=120,
                 keep_logs=False, name="lab", root=None):
        self.kernels = [kernel] * vms if isinstance(kernel, str) else list(kernel)
        self.counts = [ports] * vms if isinstance(ports, int) else list(ports)
        if not len(self.kernels) == len(self.counts) == vms or vms < 1:
            raise LabError("kernel and ports must name one value, or one for each guest")
        self.wiring, self.capture = wiring, capture
        self.vcpus, self.mem = vcpus, mem
        self.build = module.build_dir(build)
        self.management = management
        self.cordond_binary = Path(cordond or os.environ.get("CORDOND")
                                   or self.build / "firmware/cordond").resolve()
        self.cordond_args, self.cordond_env = list(cordond_args), cordond_env
        self.kernel_args, self.qemu_args = list(kernel_args), list(qemu_args)
        self.boot_timeout, self.keep_logs = boot_timeout, keep_logs
        self.name = name
        self.root = root
        self.vms, self.ports = [], []
        self.cordond = self.directory = self.share = self.logs = self.accel = None
        self._janitor = None
        self._held = contextlib.ExitStack()

    # -- life

    def __enter__(self):
        try:
            self._start()
        except BaseException as err:
            self.stop(keep=isinstance(err, Exception))
            raise
        return self

    def __exit__(self, kind, _error, _trace):
        if kind and not issubclass(kind, Exception):
            self.stop()  # Ctrl-C or a signal: not a failure, nothing to keep
            return
        failures = self.failures()
        self.stop(keep=bool(kind or failures or self.keep_logs))
        if kind is None and failures:
            raise GuestFailed("\n".join(failures))

    def _start(self):
        self.root = self.root or Root()
        self._held.enter_context(host.locked(self.root.lock, shared=True))
        self.accel = accel.choose(self.root)
        self._make_directories()
        captures = self._captures()
        self.ports = make_ports(self.counts, self.wiring, self.directory, captures)
        if self.ports:
            self.cordond = Cordond(self.cordond_binary, self.ports, self.logs / "cordond.log",
                                   self.cordond_args, self.cordond_env)
            self.cordond.start()
        for number in range(len(self.kernels)):
            self._launch(number)
        for vm in self.vms:
            self._wait_boot(vm)
        if self.management:
            names = "".join(f"{MANAGEMENT.format(vm.number + 1)} {vm.name}\n" for vm in self.vms)
            for vm in self.vms:
                vm.run("cat >> /etc/hosts", check=True, stdin=names)

    def _make_directories(self):
        base = tempfile.gettempdir()
        self.directory = Path(tempfile.mkdtemp(
            prefix="cordon-lab-", dir=base if len(base) < MAX_DIRECTORY - 20 else "/tmp"))
        self._janitor = host.Janitor(self.directory)
        self.share = self.directory / "share"
        self.share.mkdir()
        where = os.environ.get("LAB_LOGS")
        if not where:
            above = self.build if self.build.exists() else self.build.parent
            where = self.build / "lab" if os.access(above, os.W_OK) else host.cache_dir() / "logs"
        stamp = time.strftime("%Y%m%d-%H%M%S")
        self.logs = Path(where).resolve() / f"{self.name}-{stamp}-{os.getpid()}-{next(_numbers)}"
        self.logs.mkdir(parents=True)

    def _captures(self):
        total = sum(self.counts)
        names = [f"p{n}" for n in range(total)] if self.capture is True else self.capture or ()
        return {name: self.logs / f"{name}.pcapng" for name in names}

    def _launch(self, number):
        kernel = self.root.kernel(self.kernels[number])
        name = f"vm{number}"
        sockets, logs = self.directory / name, self.logs / name
        sockets.mkdir()
        logs.mkdir()
        image = self.directory / f"initrd-{kernel.release}"
        if not image.exists():
            shutil.copy(initrd.get(self.root, kernel), image)
        vm = Guest(number, name, logs, self.share)
        self.vms.append(vm)
        binds = [(host.tree(), "ro")]
        if self._build_outside():
            binds.append((self.build, "ro"))
        binds += [self.directory, self.logs]
        vm.launch(self.root.argv(self._qemu_argv(vm, kernel, image), binds), sockets)

    def _wait_boot(self, vm):
        """Emulated timers on a busy host can stop a kernel in its calibration: try twice."""
        try:
            vm.wait_ready(self.boot_timeout)
        except LabTimeout:
            if self.accel == "kvm" or vm.console.booted():
                raise
            host.say(f"{vm.name} stopped in its first seconds, it is reset; "
                     f"console log: {vm.console.path}")
            vm.qmp("system_reset")
            vm.wait_ready(self.boot_timeout)

    def _build_outside(self):
        return self.build.is_dir() and host.tree() not in self.build.parents

    def _qemu_argv(self, vm, kernel, image):
        """The whole command line of a guest's QEMU."""
        number = vm.number
        sockets = self.directory / vm.name
        words = [f"lab.name={vm.name}"]
        shares = [("root", "/.root", False), ("tree", host.tree(), False),
                  ("share", self.share, True)]
        if self._build_outside():
            words.append("lab.build")
            shares.append(("build", self.build, False))
        if self.management:
            words.append(f"lab.mgmt={MANAGEMENT.format(number + 1)}/24")
        argv = qemu.machine_args(self.accel, self.vcpus, self.mem)
        argv += qemu.kernel_args(kernel, image, words + self.kernel_args)
        argv += qemu.line_args(sockets, vm.console.path)
        argv += qemu.share_args(shares)
        if self.management:
            argv += qemu.management_args(self.directory, number, len(self.kernels))
        for port in self.ports:
            if port.vm == number:
                argv += qemu.port_args(port.index, port)
        return argv + self.qemu_args

    def stop(self, keep=False):
        """End all processes and remove all that is temporary; keep=True keeps the logs."""
        for vm in self.vms:
            vm.stop()
        if self.cordond:
            self.cordond.stop()
        if self._janitor:
            self._janitor.close()
            self._janitor = None
        self._held.close()
        if self.logs and not keep:
            shutil.rmtree(self.logs, ignore_errors=True)

    # -- looking at it

    def failures(self):
        """Everything so far that fails the run, as sentences."""
        found = []
        for vm in self.vms:
            try:
                vm.check_console()
                vm.require_alive()
            except GuestFailed as err:
                found.append(str(err))
        if self.cordond:
            found += self.cordond.failures()
        return found

    def check(self):
        """Raise GuestFailed if anything has failed so far."""
        found = self.failures()
        if found:
            raise GuestFailed("\n".join(found))

    def capture_file(self, port):
        """Where the capture of a port is, such as "p0"."""
        return self.logs / f"{port}.pcapng"

    # -- helpers

    def module_in_guest(self, series):
        """The path of cordon.ko for a kernel, as a guest sees it."""
        return module.in_guest(self.build, series)

    def enable_ssh(self):
        """Let root of every guest log in to every other by its name (management=True)."""
        if not self.management:
            raise LabError("enable_ssh needs a lab with management=True")
        first = self.vms[0]
        first.run("ssh-keygen -q -t ed25519 -N '' -f /lab/id_ed25519", check=True)
        # The subshell: sshd stays in the foreground as a session leader whose parent is init.
        for vm in self.vms:
            vm.run("install -d -m 700 /root/.ssh && install -m 600 /lab/id_ed25519 /root/.ssh/ && "
                   "install -m 600 /lab/id_ed25519.pub /root/.ssh/authorized_keys && "
                   "cat > /root/.ssh/config && chmod 600 /root/.ssh/config && (/usr/sbin/sshd; :)",
                   check=True, stdin=SSH_OPTIONS)
