# SPDX-License-Identifier: BSD-3-Clause
"""A guest: a QEMU process, its agent, its console, its files."""

import base64
import json
import shutil
import signal
import socket
import time
from itertools import count
from pathlib import Path

from . import host, qemu
from .channel import Channel
from .console import Console
from .errors import GuestFailed, LabTimeout
from .result import Result

#: seconds that a reply may take beyond what the guest was told
MARGIN = 15


def _unpack(data):
    return base64.b64decode(data)


class Process:
    """A command that was started in a guest and runs on its own."""

    def __init__(self, guest, command, job):
        self.guest = guest
        self.command = command
        self._job = job
        self._result = None
        self._seen = {"out": 0, "err": 0}

    def poll(self):
        """Return the Result, or None while the command runs."""
        if self._result is None and self._read(0, 0)["status"] is not None:
            self.wait()
        return self._result

    def wait(self, timeout=60, check=False):
        """Wait for the end and return the Result."""
        if self._result is None:
            reply = self.guest.channel.call("wait", timeout, f"the end of: {self.command}",
                                            job=self._job)
            self._result = self.guest.result(self.command, reply)
        return self._result.checked(self.guest.name) if check else self._result

    def kill(self, sig=signal.SIGTERM):
        """Send a signal to the command and what it started."""
        if self._result is None:
            self.guest.channel.call("kill", MARGIN, f"a signal to: {self.command}",
                                    job=self._job, sig=int(sig))

    def stop(self, timeout=10):
        """SIGTERM, and SIGKILL if that isn't enough; return the Result."""
        self.kill()
        try:
            return self.wait(timeout)
        except LabTimeout:
            self.kill(signal.SIGKILL)
            return self.wait(timeout)

    def _read(self, out, err):
        return self.guest.channel.call("read", MARGIN, f"output of: {self.command}",
                                       job=self._job, out=out, err=err)

    def new_output(self):
        """Return (stdout, stderr, ended) with the bytes that came since the last call."""
        reply = self._read(self._seen["out"], self._seen["err"])
        out, err = _unpack(reply["out"]), _unpack(reply["err"])
        self._seen["out"] += len(out)
        self._seen["err"] += len(err)
        return out, err, reply["status"] is not None

    @property
    def output(self):
        """All that the command has printed so far, both streams."""
        if self._result is not None:
            return self._result.output
        reply = self._read(0, 0)
        return (_unpack(reply["out"]) + _unpack(reply["err"])).decode("utf-8", "replace")

    def wait_output(self, text, timeout=30):
        """Wait until the command has printed a text."""
        end = time.monotonic() + timeout
        while text not in self.output:
            if self.poll() is not None:
                raise GuestFailed(f"{self.guest.name}: ended without printing {text!r}: "
                                  f"{self.command}\n{self.output[-2000:]}")
            if time.monotonic() > end:
                raise LabTimeout(f"{self.guest.name}: {timeout} s without {text!r} from: "
                                 f"{self.command}\n{self.output[-2000:]}")
            time.sleep(0.1)


class Guest:
    """A virtual machine of a Lab. Lab makes and starts it."""

    def __init__(self, number, name, directory, share):
        self.number = number
        self.name = name
        self.directory = directory
        self.share = share
        self.console = Console(name, directory / "console.log")
        self.qemu_log = directory / "qemu.log"
        self.proc = None
        self.channel = None
        self._sockets = None
        self._files = count(1)

    # -- life

    def launch(self, argv, sockets):
        """Start QEMU; argv enters the root. sockets: the directory of its sockets."""
        self._sockets = sockets
        with open(self.qemu_log, "ab") as out:
            self.proc = host.spawn(argv, stdout=out, stderr=out)

    def wait_ready(self, timeout):
        """Wait until the guest runs commands."""
        if self.channel is None:
            self.channel = Channel(self._sockets / "agent.sock", self.name, self.require_alive)
        try:
            self.channel.wait_hello(timeout)
        except LabTimeout as err:
            raise self._hang(err) from None

    def alive(self):
        return self.proc is not None and self.proc.poll() is None

    def require_alive(self):
        """Raise GuestFailed if the guest can't answer any more."""
        line = self.console.dead()
        if line:
            raise GuestFailed(f"{self.name} is dead: {line}\nconsole log: {self.console.path}\n"
                              + self.console.tail())
        if not self.alive():
            log = self.qemu_log.read_text(encoding="utf-8", errors="replace")[-2000:]
            raise GuestFailed(f"{self.name}: QEMU ended, status {self.proc.returncode}; logs: "
                              f"{self.qemu_log}, {self.console.path}\n{log}")

    def stop(self):
        """Power off, hard: nothing in a guest outlives it."""
        if self.channel:
            self.channel.close()
        if self.proc:
            host.end(self.proc, grace=0)

    def reboot(self, timeout=120):
        """Reset as the guest's own reboot does, and wait until it is up again."""
        self.channel.expect_hello()
        self.start("sleep 0.2; echo b > /proc/sysrq-trigger")
        self.wait_ready(timeout)

    def _hang(self, err):
        return LabTimeout(f"{err}\nconsole log: {self.console.path}\n{self.console.tail()}")

    # -- commands

    def run(self, command, timeout=60, check=False, *, env=None, cwd=None, stdin=None):
        """Run a command and return its Result.

        command: list, or a string for bash. Past the timeout (seconds) the command is
        killed and LabTimeout raised. check=True raises CommandFailed unless it exits 0.
        """
        fields = self._fields(command, env, cwd, stdin)
        limit = None if timeout is None else timeout + MARGIN
        try:
            reply = self.channel.call("run", limit, f"the end of: {command}", timeout=timeout,
                                      **fields)
        except LabTimeout as err:
            raise self._hang(err) from None
        result = self.result(command, reply)
        if result.timed_out:
            raise self._hang(f"{self.name}: {timeout:g} s were not enough for: {result.command}\n"
                             f"{result.output[-2000:]}")
        return result.checked(self.name) if check else result

    def start(self, command, timeout=None, *, env=None, cwd=None, stdin=None):
        """Start a command in the background and return its Process."""
        reply = self.channel.call("start", MARGIN, f"start of: {command}", timeout=timeout,
                                  **self._fields(command, env, cwd, stdin))
        return Process(self, command, reply["job"])

    @staticmethod
    def _fields(command, env, cwd, stdin):
        if isinstance(stdin, str):
            stdin = stdin.encode()
        argv = command if isinstance(command, str) else [str(word) for word in command]
        return {"argv": argv, "env": env, "cwd": None if cwd is None else str(cwd),
                "stdin": None if stdin is None else base64.b64encode(stdin).decode()}

    @staticmethod
    def result(command, reply):
        return Result(command, reply["status"], _unpack(reply["out"]), _unpack(reply["err"]),
                      reply["timed_out"])

    # -- files

    def put(self, source, target):
        """Copy a file or directory of the host into the guest."""
        name = f".put-{self.number}-{next(self._files)}"
        passing = self.share / name
        try:
            if Path(source).is_dir():
                shutil.copytree(source, passing, symlinks=True)
            else:
                shutil.copy2(source, passing)
            self.run(["cp", "-aT", f"/lab/{name}", str(target)], check=True)
        finally:
            _discard(passing)

    def get(self, source, target):
        """Copy a file or directory of the guest to the host."""
        name = f".get-{self.number}-{next(self._files)}"
        passing = self.share / name
        try:
            self.run(["cp", "-rLT", str(source), f"/lab/{name}"], check=True)
            if passing.is_dir():
                shutil.copytree(passing, target, dirs_exist_ok=True)
            else:
                shutil.copy2(passing, target)
        finally:
            _discard(passing)

    def write(self, path, text, mode=0o644):
        """Make a file in the guest."""
        script = 'mkdir -p "${1%/*}" && cat > "$1" && chmod "$2" "$1"'
        self.run(["sh", "-c", script, "sh", str(path), f"{mode:o}"], check=True, stdin=text)

    def read(self, path):
        """Return the text of a file in the guest."""
        return self.run(["cat", str(path)], check=True).stdout

    # -- looking at it

    def netdev(self, port):
        """Return the name of the network device of a port, or None while it has no driver."""
        names = self.run(["ls", f"/sys/bus/pci/devices/{qemu.port_address(port)}/net"]).stdout
        return names.split()[0] if names.split() else None

    def dmesg(self):
        return self.run(["dmesg"], check=True).stdout

    def check_console(self):
        """Raise GuestFailed if the kernel complained on the console."""
        self.console.check()

    @property
    def shell_socket(self):
        """A UNIX socket with a shell behind it."""
        return self._sockets / "shell.sock"

    def qmp(self, command, timeout=30, **arguments):
        """Run a command of QEMU's machine protocol and return what it returns."""
        with socket.socket(socket.AF_UNIX) as sock:
            sock.settimeout(timeout)
            sock.connect(str(self._sockets / "qmp.sock"))
            with sock.makefile("rw", encoding="utf-8") as stream:
                stream.readline()
                for request in ({"execute": "qmp_capabilities"},
                                {"execute": command, "arguments": arguments}):
                    stream.write(json.dumps(request) + "\n")
                    stream.flush()
                    reply = _qmp_reply(stream)
        if "error" in reply:
            raise GuestFailed(f"{self.name}: {command}: {reply['error']['desc']}")
        return reply["return"]


def _qmp_reply(stream):
    """The next line that is no event."""
    while True:
        line = stream.readline()
        if not line:
            return {"error": {"desc": "QEMU closed the connection"}}
        reply = json.loads(line)
        if "event" not in reply and "QMP" not in reply:
            return reply


def _discard(path):
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)
