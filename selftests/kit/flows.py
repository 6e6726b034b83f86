# SPDX-License-Identifier: GPL-2.0-only
"""SAs side by side at one end, each with addresses of its own, and packets whose every field is chosen."""

import ast
import hashlib
import hmac
import struct
from dataclasses import dataclass, field, replace

from .host import DEV, Host
from .suite import SUITES, Suite, make_bytes
from .xfrm import Policy, Sa

PORT = 5000
ICV = 16

# Python begins in half the time without its site packages, and a guest may be slow.
PYTHON = "python3 -I -S"

# Gets all that comes through a connection, then sends it back.
ECHO = """
import socket, sys
s = socket.create_server(("::", 7777), family=socket.AF_INET6, dualstack_ipv6=True)
print("listens", flush=True)
for _ in range(int(sys.argv[1])):
    c, _ = s.accept()
    data = bytearray()
    while part := c.recv(65536):
        data += part
    c.sendall(data)
    c.close()
"""

CALLER = """
import os, socket, sys
for target in sys.argv[2:]:
    data, back = os.urandom(int(sys.argv[1])), bytearray()
    c = socket.create_connection((target, 7777), 30)
    c.sendall(data)
    c.shutdown(socket.SHUT_WR)
    while part := c.recv(65536):
        back += part
    c.close()
    if back != data:
        sys.exit(target)
"""

SENDER = """
import socket, sys
found, raw = [], {}
for p in eval(open(sys.argv[1]).read()):
    if "frame" in p:
        if p["dev"] not in raw:
            raw[p["dev"]] = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
            raw[p["dev"]].bind((p["dev"], 0))
        raw[p["dev"]].send(p["frame"])
        continue
    six = ":" in p["dst"]
    s = socket.socket(socket.AF_INET6 if six else socket.AF_INET, socket.SOCK_DGRAM)
    s.bind((p["src"], p["sport"]))
    for option in p.get("options", []):
        s.setsockopt(*option)
    error, mtu = 0, 0
    try:
        if p.get("connect"):
            s.connect((p["dst"], p["dport"]))
            mtu = s.getsockopt(41, 24) if six else s.getsockopt(0, 14)
        s.sendto(bytes(p["size"] + mtu), (p["dst"], p["dport"]))
    except OSError as e:
        error = e.errno
    found.append((error, mtu))
    s.close()
print(found)
"""

# Ends when it gets a packet that says so.
RECEIVER = """
import select, socket, sys, time
port, dev, last = int(sys.argv[1]), sys.argv[2], sys.argv[3].encode()
raw = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
raw.bind((dev, 3))
raw.setsockopt(socket.SOL_SOCKET, 33, 1 << 23)
udp = {}
for family, options in ((socket.AF_INET, ((0, 13, 1), (0, 12, 1))), (socket.AF_INET6, ((41, 66, 1), (41, 51, 1), (41, 26, 1)))):
    s = socket.socket(family, socket.SOCK_DGRAM)
    for option in options:
        s.setsockopt(*option)
    s.setsockopt(socket.SOL_SOCKET, 33, 1 << 23)
    s.bind(("", port))
    udp[s] = []
frames, end, done = [], time.monotonic() + 40, False
print("listens", flush=True)
while time.monotonic() < end:
    ready = select.select([raw, *udp], [], [], 0.2)[0]
    if done and not ready:
        break
    for s in ready:
        if s is raw:
            data, address = raw.recvfrom(65536)
            if address[2] != 4:
                frames.append(data)
                done = done or last in data
        else:
            data, control, _, source = s.recvmsg(65536, 1024)
            udp[s].append((data, source[0], sorted((kind, value) for _, kind, value in control)))
print({"frames": frames, "udp": sum(udp.values(), [])})
"""


@dataclass
class Flow:
    """SAs of both directions, and who uses them.

    family, inner: of the gateways, and of who uses the SAs, if another one.
    extra, extra_in: words for `ip xfrm state` of the SA out and the one in.
    offload: instead of that of Flows.
    """

    number: int
    left: Host
    right: Host
    mode: str
    family: int
    extra: str = ""
    extra_in: str = ""
    suite: Suite = field(default_factory=lambda: SUITES["null-sha256-128"])
    inner: int = 0
    offload: str = ""

    def __post_init__(self):
        self.inner = self.inner or self.family
        one, other = self.left.address(self.family), self.there if self.mode == "transport" else self.right.address(self.family)
        more = {"mode": self.mode, "reqid": 100 + self.number, "suite": self.suite}
        self.out = Sa(one, other, 0x2000 + self.number, extra=self.extra, **more)
        self.back = Sa(other, one, 0x3000 + self.number, extra=self.extra_in, **more)
        if self.mode == "beet":
            self.out.selector, self.back.selector = f"src {self.here} dst {self.there}", f"src {self.there} dst {self.here}"

    @property
    def there(self):
        """Who is reached."""
        if self.mode == "transport":
            return f"10.9.0.{20 + self.number}" if self.family == 4 else f"fd09::20:{self.number:x}"
        return f"10.10.2.{20 + self.number}" if self.inner == 4 else f"fd10:2::20:{self.number:x}"

    @property
    def here(self):
        """The end itself."""
        return self.left.address(self.family) if self.mode == "transport" else self.left.inner(self.inner)

    def answers(self):
        """What makes the right end answer, in software and without the words of the SAs here."""
        prefix, nodad = (32, "") if self.inner == 4 else (128, " nodad")
        yield f"-{self.inner} addr replace {self.there}/{prefix} dev {DEV if self.mode == 'transport' else 'dum0'}{nodad}"
        for sa, direction, src, dst in ((self.out, "in", self.here, self.there), (self.back, "out", self.there, self.here)):
            sa = replace(sa, extra="")
            yield f"xfrm state add {sa.words(direction)}"
            yield f"xfrm policy add {Policy(src, dst, direction, sa).words()}"

    def commands(self, offload, mac):
        """What adds it at the left end. mac: of the right one."""
        offload = self.offload or offload
        near = self.here if self.mode != "tunnel" else ("10.10.1.0/24" if self.inner == 4 else "fd10:1::/64")
        yield f"xfrm state add {self.out.words('out', offload)}"
        yield f"xfrm state add {self.back.words('in', offload)}"
        for src, dst, direction, sa in ((near, self.there, "out", self.out), (self.there, near, "in", self.back),
                                        (self.there, near, "fwd", self.back)):
            if direction != "fwd" or self.mode == "tunnel":
                yield f"xfrm policy add {Policy(src, dst, direction, sa).words(offload)}"
        # In packet mode the core takes the inner address for that of a neighbour (docs/cordon.rst).
        yield f"-{self.inner} neigh replace {self.there} lladdr {mac} dev {DEV}"


class Flows:
    """A context manager: some flows are up at the left end, in one mode. answering: and at the right one."""

    def __init__(self, flows, offload, answering=False):
        self.flows = flows
        self.offload = offload
        self.answering = answering
        self.left, self.right = flows[0].left, flows[0].right

    def __enter__(self):
        mac = self.right.mac()
        self._run(self.left, [c for flow in self.flows for c in flow.commands(self.offload, mac)])
        if self.answering:
            self._run(self.right, [c for flow in self.flows for c in flow.answers()])
        return self

    @staticmethod
    def _run(host, commands):
        for family in ("-4 ", "-6 ", ""):
            some = [c.removeprefix(family) for c in commands if c.startswith(family) and (family or c[0] != "-")]
            if some:
                host.vm.write("/tmp/flows", "\n".join([*some, ""]))
                host.run(f"ip {family}-batch /tmp/flows")

    def __exit__(self, *_):
        self.left.clear_xfrm()
        if self.answering:
            self.right.clear_xfrm()
            for flow in self.flows:
                self.right.run(f"ip addr del {flow.there} dev {DEV if flow.mode == 'transport' else 'dum0'}", check=False)


def echo(here, there, targets, size):
    """Send bytes over TCP to each target, addresses of the other end, and get them back; all of it is over afterwards."""
    there.vm.write("/tmp/echo", ECHO)
    here.vm.write("/tmp/caller", CALLER)
    server = there.vm.start(f"{PYTHON} /tmp/echo {len(targets)}", timeout=90)
    server.wait_output("listens")
    here.run(f"{PYTHON} /tmp/caller {size} {' '.join(targets)}", timeout=90)
    assert server.wait(60).status == 0
    for host in (here, there):
        host.wait(lambda host=host: not host.run("ss -Htn state connected exclude time-wait '( sport = :7777 or dport = :7777 )'"
                                                 ).stdout, "closed connections")


def send(host, packets, netns=""):
    """Send packets by a host: {frame, dev}, or datagrams {src, sport, dst, dport, size, options}; (errno, MTU) of those."""
    host.vm.write("/tmp/packets", repr(packets))
    host.vm.write("/tmp/sender", SENDER)
    prefix = f"ip netns exec {netns} " if netns else ""
    return ast.literal_eval(host.run(f"{prefix}{PYTHON} /tmp/sender /tmp/packets").stdout)


class Receiver:
    """What a host gets while it is entered, the last thing being `last`: frames from a device, datagrams to PORT."""

    def __init__(self, host, dev, last, netns=""):
        self.host, self.dev, self.last, self.netns = host, dev, last, netns
        self.frames, self.udp = [], []
        self._process = None

    def __enter__(self):
        self.host.vm.write("/tmp/receiver", RECEIVER)
        prefix = f"ip netns exec {self.netns} " if self.netns else ""
        self._process = self.host.vm.start(f"{prefix}{PYTHON} /tmp/receiver {PORT} {self.dev} {self.last}", timeout=90)
        self._process.wait_output("listens")
        return self

    def __exit__(self, *error):
        if error[0]:
            self._process.stop()
            return
        found = ast.literal_eval(self._process.wait(90).stdout.splitlines()[-1])
        self.frames, self.udp = found["frames"], found["udp"]


def auth_key(sa):
    """Key of an SA's HMAC."""
    return bytes.fromhex(make_bytes(sa.suite.auth_key // 8, sa.spi + 101)[2:])


def seal(sa, seq, payload, next_header):
    """An ESP packet of an SA with NULL encryption and HMAC-SHA2-256-128."""
    pad = -(len(payload) + 2) % 4
    esp = struct.pack("!II", sa.spi, seq) + payload + bytes(range(1, pad + 1)) + bytes([pad, next_header])
    return esp + hmac.digest(auth_key(sa), esp, hashlib.sha256)[:ICV]


def unseal(sa, esp):
    """(number, payload, padding, next header); the ICV has to be right."""
    assert hmac.digest(auth_key(sa), esp[:-ICV], hashlib.sha256)[:ICV] == esp[-ICV:]
    spi, seq = struct.unpack_from("!II", esp)
    assert spi == sa.spi
    plain = esp[8:-ICV]
    end = len(plain) - 2 - plain[-2]
    return seq, plain[:end], plain[end:-2], plain[-1]
