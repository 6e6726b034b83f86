# SPDX-License-Identifier: GPL-2.0-only
"""SAs and policies, as iproute2 takes them."""

from dataclasses import dataclass, field, replace

from .host import DEV, Host
from .suite import Suite


def make_key(bits, seed=0):
    """Different bytes everywhere, so that a slip in the order shows; salt included."""
    return "0x" + bytes((seed + 7 * n) & 0xFF for n in range(bits // 8 + 4)).hex()


@dataclass
class Sa:
    """An SA of one direction. suite: instead of bits, icv, key and algorithm."""

    src: str
    dst: str
    spi: int
    mode: str = "transport"
    reqid: int = 1
    bits: int = 128
    icv: int = 128
    esn: bool = False
    window: int = 32
    key: str = ""
    algorithm: str = "rfc4106(gcm(aes))"
    suite: Suite = None
    extra: str = ""
    selector: str = ""

    def words(self, direction, offload=None, replay=""):
        """Arguments of `ip xfrm state`."""
        out = (f"src {self.src} dst {self.dst} proto esp spi {self.spi:#x} reqid {self.reqid} mode {self.mode} "
               f"{replay or self._replay(direction, offload)} {self._algorithms()} {self.extra}")
        if self.selector:
            out += f" sel {self.selector}"
        if offload:
            out += f" offload {offload} dev {DEV} dir {direction}"
        return out

    def _algorithms(self):
        if self.suite:
            return self.suite.words(self.spi)
        key = self.key or make_key(self.bits, self.spi)
        return f"aead '{self.algorithm}' {key} {self.icv}"

    def _replay(self, direction, offload):
        # An SA that says that it is an outbound one has no window; in software it doesn't say so.
        if self.esn and direction == "out" and offload:
            return "flag esn"
        if self.esn:
            return f"flag esn replay-window {self.window or 32}"
        return f"replay-window {self.window}" if direction == "in" else ""

    def add(self, host, direction, offload=None, check=True, replay="", verb="add"):
        """Add it to a host."""
        return host.run(f"ip xfrm state {verb} {self.words(direction, offload, replay)}", check=check)

    def delete(self, host, check=True):
        """Delete it."""
        return host.run(f"ip xfrm state delete src {self.src} dst {self.dst} proto esp spi {self.spi:#x}", check=check)


@dataclass
class Policy:
    """A policy with one template, or none."""

    src: str
    dst: str
    direction: str
    template: Sa = None
    priority: int = 0
    action: str = "allow"
    extra: str = ""

    def words(self, offload=None):
        """Arguments of `ip xfrm policy`."""
        out = f"src {self.src} dst {self.dst} {self.extra} dir {self.direction} priority {self.priority} action {self.action}"
        if offload == "packet":
            out += f" offload packet dev {DEV}"
        if self.template:
            t = self.template
            out += f" tmpl src {t.src} dst {t.dst} proto esp reqid {t.reqid} mode {t.mode}"
        return out

    def add(self, host, offload=None, check=True):
        """Add it to a host. Only packet offload has policies in the card."""
        return host.run(f"ip xfrm policy add {self.words(offload)}", check=check)


@dataclass
class Tunnel:
    """SAs and policies of both directions between two hosts.

    left_offload, right_offload: None (software), "crypto" or "packet".
    lan: for the hosts behind the ends, not for the ends themselves.
    outer, inner: address families; in transport mode they are the same.
    """

    left: Host
    right: Host
    mode: str = "transport"
    outer: int = 4
    inner: int = 4
    left_offload: str = None
    right_offload: str = None
    lan: bool = False
    sa: dict = field(default_factory=dict)

    def __post_init__(self):
        one, other = self.left.address(self.outer), self.right.address(self.outer)
        template = Sa("", "", 0, mode=self.mode, **self.sa)
        self.out = replace(template, src=one, dst=other, spi=0x1000)
        self.back = replace(template, src=other, dst=one, spi=0x1001)
        if self.mode == "beet":
            here, there = self.target(self.left), self.target(self.right)
            self.out.selector, self.back.selector = f"src {here} dst {there}", f"src {there} dst {here}"

    def target(self, host):
        """The address that traffic to a host goes to."""
        if self.lan:
            return host.lan(self.inner)
        return host.inner(self.inner) if self.mode != "transport" else host.address(self.outer)

    def up(self):
        """Add all of it."""
        for host, offload, sa_out, sa_in in ((self.left, self.left_offload, self.out, self.back),
                                             (self.right, self.right_offload, self.back, self.out)):
            sa_out.add(host, "out", offload)
            sa_in.add(host, "in", offload)
            other = self.right if host is self.left else self.left
            here, there = self.target(host), self.target(other)
            Policy(here, there, "out", sa_out).add(host, offload)
            Policy(there, here, "in", sa_in).add(host, offload)
            if self.lan:
                Policy(there, here, "fwd", sa_in).add(host, offload)
            elif self.mode != "transport" and self.inner == 6 and offload == "packet":
                # The core takes the inner address for that of a neighbour (docs/cordon.rst, packet mode).
                host.run(f"ip -6 neigh replace {there} lladdr {other.mac()} dev {DEV}")
        return self

    def down(self):
        """Delete it, and all else."""
        self.left.clear_xfrm()
        self.right.clear_xfrm()

    def __enter__(self):
        try:
            return self.up()
        except BaseException:
            self.down()
            raise

    def __exit__(self, *_):
        self.down()
