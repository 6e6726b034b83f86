# SPDX-License-Identifier: GPL-2.0-only
"""One guest with two ports, each in a network namespace; the frames come from outside of it."""

import contextlib
import os
import re
import select
import socket
import struct
import tempfile
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from cordonlab import Lab

from .stream import HERE, HERE_MAC, PEER, PEER_MAC, SINK_PORT

CARD, SOFTWARE = "card", "soft"
SIDES = (CARD, SOFTWARE)
#: frames that are under way at once, less than a ring holds
BATCH = 128
#: seconds that the guest may take for a batch
PATIENCE = 60
ARP_REQUEST, ARP_REPLY = 1, 2


@dataclass
class Verdict:
    """What came of a stream on each side."""

    delivered: dict
    counters: dict
    stats: dict
    kinds: Counter
    differences: list = field(default_factory=list)

    def __str__(self):
        return "\n".join([f"{sum(self.kinds.values())} frames: {dict(self.kinds)}", *self.differences,
                          *(f"{side}: {len(self.delivered[side])} delivered, {self.counters[side]}, {self.stats[side]}"
                            for side in SIDES)])


class End:
    """The far end of a port's wire."""

    def __init__(self, directory, name):
        self.port, self.here = directory / f"{name}.port", directory / f"{name}.peer"
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4 << 20)
        self.sock.bind(str(self.here))
        self.fences = 0

    @property
    def wire(self):
        """As cordond takes it."""
        return f"unix:{self.port}:{self.here}"

    def send(self, frame):
        """Waits as long as the card does; takes meanwhile what the guest sends."""
        while True:
            try:
                self.sock.sendto(frame, socket.MSG_DONTWAIT, str(self.port))
                return
            except BlockingIOError:
                select.select([self.sock], [], [], 0.001)
                self._drain()

    def _drain(self):
        with contextlib.suppress(BlockingIOError):
            while True:
                self.sock.recv(65536, socket.MSG_DONTWAIT)

    def fence(self):
        """Wait until the guest has taken all that was sent: it answers a question that comes behind it."""
        self.fences += 1
        asker = struct.pack("!BBH", 10, 9, self.fences % 60000 + 3)
        self.send(HERE_MAC + PEER_MAC + b"\x08\x06" + struct.pack("!HHBBH6s4s6s4s", 1, 0x0800, 6, 4, ARP_REQUEST,
                                                                  PEER_MAC, asker, bytes(6), HERE))
        self.sock.settimeout(PATIENCE)
        while True:
            frame = self.sock.recv(65536)
            if frame[12:14] == b"\x08\x06" and frame[20:22] == struct.pack("!H", ARP_REPLY) and frame[38:42] == asker:
                return


class Bench:
    """A context manager; run() compares both sides on one stream."""

    def __init__(self, kernel="7.3", **lab):
        self.kernel = kernel
        self._stack = contextlib.ExitStack()
        self._lab_args = lab
        self.lab = self.vm = None
        self.ends = {}

    def __enter__(self):
        with contextlib.ExitStack() as stack:
            directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="cordon-oracle-")))
            self.ends = {side: End(directory, side) for side in SIDES}
            for end in self.ends.values():
                stack.callback(end.sock.close)
            self.lab = stack.enter_context(Lab(kernel=self.kernel, vms=1, ports=2, name=f"oracle-{self.kernel}",
                                               wiring=[((0, n), self.ends[side].wire) for n, side in enumerate(SIDES)],
                                               **self._lab_args))
            self.vm = self.lab.vms[0]
            self._setup()
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *error):
        return self._stack.__exit__(*error)

    def _setup(self):
        self.vm.run(f"insmod {self.lab.module_in_guest(self.kernel)}", check=True)
        for number, side in enumerate(SIDES):
            self.vm.run(f"""set -e
                for n in $(seq 100); do name=$(ls /sys/bus/pci/drivers/cordon/*/net 2>/dev/null | wc -l); sleep 0.1
                    [ "$name" -ge 4 ] && break; done
                ip netns add {side}
                ip link set {self.vm.netdev(number)} netns {side} name cd0
                exec ip netns exec {side} bash -e <<'EOF'
                    ip link set lo up
                    ip link set cd0 address {HERE_MAC.hex(":")}
                    ethtool -L cd0 combined 1
                    echo 1 > /proc/sys/net/ipv6/conf/all/disable_ipv6
                    ip link set cd0 up
                    ip addr add {socket.inet_ntoa(HERE)}/16 dev cd0
                    ip addr add 10.10.1.1/32 dev lo
                    ip neigh replace {socket.inet_ntoa(PEER)} lladdr {PEER_MAC.hex(":")} dev cd0
                    ip route add 10.10.2.0/24 via {socket.inet_ntoa(PEER)}
EOF""", check=True)
        self.vm.write("/tmp/sink.py", (Path(__file__).parent / "sink.py").read_text(encoding="utf-8"))

    def _in(self, side, command, **options):
        return self.vm.run(f"ip netns exec {side} {command}", check=True, **options)

    def _add_sa(self, side, conf):
        here, there = socket.inet_ntoa(HERE), socket.inet_ntoa(PEER)
        offload = side == CARD
        replay = f"replay-window {conf.window} replay-seq {conf.first & 0xFFFFFFFF:#x}"
        if conf.esn:
            replay = f"flag esn {replay} replay-seq-hi {conf.first >> 32:#x}"
        selector = ("10.10.2.0/24", "10.10.1.0/24") if conf.mode == "tunnel" else (there, here)
        self._in(side, f"ip xfrm state add src {there} dst {here} proto esp spi {conf.spi:#x} reqid 1 mode {conf.mode} "
                       f"{replay} {conf.suite.words(conf.key_seed)}"
                       + (" offload packet dev cd0 dir in" if offload else ""))
        self._in(side, f"ip xfrm policy add src {selector[0]} dst {selector[1]} dir in"
                       + (" offload packet dev cd0" if offload else "")
                       + f" tmpl src {there} dst {here} proto esp reqid 1 mode {conf.mode}")

    def _counters(self, side):
        out = self._in(side, "cat /proc/net/xfrm_stat").stdout
        found = Counter({name: int(value) for name, value in map(str.split, out.splitlines()) if int(value)})
        if side == CARD:
            # The card counts dummy packets apart; software takes them for an error of the protocol.
            dummies = re.search(r"rx_drop_dummy: (\d+)", self._in(side, "ethtool -S cd0").stdout)
            found["XfrmInStateProtoError"] += int(dummies[1])
        return found

    def _stats(self, side, conf):
        out = self._in(side, f"ip -s xfrm state get src {socket.inet_ntoa(PEER)} dst {socket.inet_ntoa(HERE)} proto esp "
                             f"spi {conf.spi:#x}").stdout
        found = re.search(r"replay-window (\d+) replay (\d+) failed (\d+)", out)
        current = re.search(r"lifetime current:\s+(\d+)\(bytes\), (\d+)\(packets\)", out)
        return dict(zip(("window", "replayed", "failed", "bytes", "packets"), map(int, found.groups() + current.groups()),
                        strict=True))

    def _read(self, side):
        data = (self.lab.share / f"{side}.log").read_bytes()
        return [struct.unpack_from("!II", data, at) for at in range(0, len(data), 8)]

    def run(self, stream, count, software=None):
        """Send count frames of a stream to both sides. software: another configuration for that side."""
        confs = {CARD: stream.config, SOFTWARE: software or stream.config}
        address = "10.10.1.1" if stream.config.mode == "tunnel" else socket.inet_ntoa(HERE)
        before, sinks = {}, {}
        try:
            for side in SIDES:
                self._add_sa(side, confs[side])
                sinks[side] = self.vm.start(f"ip netns exec {side} python3 /tmp/sink.py {address} {SINK_PORT} "
                                            f"/lab/{side}.log", timeout=3000)
                sinks[side].wait_output("ready")
                before[side] = self._counters(side)
            for start in range(0, count, BATCH):
                frames = [stream.frame() for _ in range(min(BATCH, count - start))]
                for side in SIDES:
                    for frame in frames:
                        self.ends[side].send(frame)
                for side in SIDES:
                    self.ends[side].fence()
            stats = {side: self._stats(side, confs[side]) for side in SIDES}
            counters = {side: self._counters(side) - before[side] for side in SIDES}
        finally:
            for sink in sinks.values():
                sink.stop()
            for side in SIDES:
                self._in(side, "ip xfrm state flush")
                self._in(side, "ip xfrm policy flush")
        verdict = Verdict({side: self._read(side) for side in SIDES}, counters, stats, stream.kinds)
        self._compare(verdict, stream)
        self.lab.check()
        return verdict

    @staticmethod
    def _compare(verdict, stream):
        card, soft = (verdict.delivered[side] for side in SIDES)
        for name, there, missing in ((CARD, soft, set(soft) - set(card)), (SOFTWARE, card, set(card) - set(soft))):
            kinds = Counter(stream.kind_of[n] if n < len(stream.kind_of) else "garbled" for n, _ in missing)
            if missing:
                first = min(missing)[0]
                verdict.differences.append(f"{name} lacks {len(missing)} of {len(there)}: {dict(kinds)}, first {first}")
        if not verdict.differences and card != soft:
            verdict.differences.append("the order differs")
        for what in ("counters", "stats"):
            values = getattr(verdict, what)
            if values[CARD] != values[SOFTWARE]:
                verdict.differences.append(f"{what} differ: " + ", ".join(
                    f"{name} {values[CARD].get(name, 0)} != {values[SOFTWARE].get(name, 0)}"
                    for name in sorted(set(values[CARD]) | set(values[SOFTWARE]))
                    if values[CARD].get(name, 0) != values[SOFTWARE].get(name, 0)))


def seed():
    """Seed of this run; $SEED repeats one."""
    return int(os.environ.get("SEED") or int.from_bytes(os.urandom(4), "big"))
