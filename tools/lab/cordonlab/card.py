# SPDX-License-Identifier: BSD-3-Clause
"""The cards of a lab: how ports are wired, and the cordond that carries them."""

import re
import time
from dataclasses import dataclass
from pathlib import Path

from . import host, qemu
from .errors import LabError, LabTimeout

#: what in cordond's log fails a run
TROUBLE = re.compile(r"Sanitizer|runtime error:|Assertion .* failed|: BUG\b")


@dataclass
class Port:
    """One function of the card: where it is plugged in, and what it is wired to."""

    name: str
    vm: int
    index: int
    socket: Path
    wire: str = "none"
    capture: Path = None


def make_ports(counts, wiring, directory, captures=()):
    """Return a list of Ports.

    counts: ports of each guest. wiring: a name of WIRINGS, or pairs of ends; an end is
    (vm, index), and the second one may also be a string that cordond takes as a wire.
    captures: maps a port's name to a file.
    """
    ports = [Port(f"p{number}", vm, index, Path(directory) / f"p{number}.sock")
             for number, (vm, index) in enumerate(
                 (vm, index) for vm, count in enumerate(counts) for index in range(count))]
    if any(count > qemu.MAX_PORTS for count in counts):
        raise LabError(f"a guest has at most {qemu.MAX_PORTS} ports")
    at = {(port.vm, port.index): port for port in ports}
    if isinstance(wiring, str):
        if wiring not in WIRINGS:
            raise LabError(f"no wiring {wiring!r}; there are: " + ", ".join(WIRINGS))
        wiring = WIRINGS[wiring](counts)
    for here, there in wiring:
        try:
            one = at[tuple(here)]
            other = there if isinstance(there, str) else at[tuple(there)]
        except KeyError as err:
            raise LabError(f"the wiring names a port that no guest has: {err}") from None
        _join(one, other)
    for port in ports:
        port.capture = dict(captures).get(port.name)
    return ports


def _join(one, other):
    """Wire a port to another, or to what cordond takes as a wire."""
    ends = [(one, other if isinstance(other, str) else other.name)]
    if isinstance(other, Port):
        ends.append((other, one.name))
    for port, wire in ends:
        if port.wire != "none":
            raise LabError(f"the wiring names port {port.index} of guest {port.vm} twice")
        port.wire = wire


def _back_to_back(counts):
    """Guests in pairs, port k to port k."""
    for vm in range(0, len(counts) - 1, 2):
        for index in range(min(counts[vm], counts[vm + 1])):
            yield (vm, index), (vm + 1, index)


def _loop(counts):
    """Ports of one guest in pairs."""
    for vm, count in enumerate(counts):
        for index in range(0, count - 1, 2):
            yield (vm, index), (vm, index + 1)


def _chain(counts):
    """A guest's last port to the next guest's first."""
    for vm in range(len(counts) - 1):
        if counts[vm] and counts[vm + 1]:
            yield (vm, counts[vm] - 1), (vm + 1, 0)


WIRINGS = {"back2back": _back_to_back, "loop": _loop, "chain": _chain}


class Cordond:
    """The process that carries all ports of a lab."""

    def __init__(self, binary, ports, log, args=(), env=None):
        self.binary = Path(binary)
        self.ports = ports
        self.log = Path(log)
        self.args = list(args)
        self.env = env
        self.proc = None
        self._meant_to_end = False

    def argv(self):
        """The command line: all that the lab knows of cordond's options is here."""
        argv = [str(self.binary)]
        for port in self.ports:
            argv += ["--port", f"name={port.name},socket={port.socket},wire={port.wire}"]
        for port in self.ports:
            if port.capture:
                argv += ["--capture", f"{port.name}={port.capture}"]
        return argv + self.args

    def start(self, timeout=20):
        if not self.binary.exists():
            raise LabError(f"there is no {self.binary}; build it (make firmware), or set CORDOND")
        with open(self.log, "ab") as out:
            self.proc = host.spawn(self.argv(), stdout=out, stderr=out, env=self.env)
        end = time.monotonic() + timeout
        while not all(port.socket.exists() for port in self.ports):
            if self.proc.poll() is not None:
                raise LabError(f"cordond ended at its start, status {self.proc.returncode}; "
                               f"log: {self.log}\n{self.log_text()[-2000:]}")
            if time.monotonic() > end:
                raise LabTimeout(f"cordond opened no sockets within {timeout} s; log: {self.log}")
            time.sleep(0.02)

    @property
    def pid(self):
        return self.proc.pid

    def alive(self):
        return self.proc is not None and self.proc.poll() is None

    def log_text(self):
        return self.log.read_text(encoding="utf-8", errors="replace") if self.log.exists() else ""

    def expect_end(self):
        """A test is about to end cordond; that is no failure."""
        self._meant_to_end = True

    def stop(self):
        """End it as an operator would; return its exit status."""
        if self.proc is None:
            return None
        if self.alive():
            host.end(self.proc, grace=5)
        else:
            host.end(self.proc, grace=0)
        return self.proc.returncode

    def failures(self):
        """What went wrong with it so far, as sentences."""
        found = [f"cordond: {line.strip()} (log: {self.log})"
                 for line in self.log_text().splitlines() if TROUBLE.search(line)][:5]
        if self.proc is not None and not self._meant_to_end:
            status = self.proc.poll()
            if status not in (None, 0, -15):
                found.append(f"cordond ended with status {status} (log: {self.log})")
        return found
