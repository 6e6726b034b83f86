# SPDX-License-Identifier: GPL-2.0-only
"""SAs with attributes in any combination, and what must become of each on a card with known limits."""

import random
import re
from dataclasses import dataclass

from kit.host import DEV
from kit.suite import SUITES, Suite

SPI_BASE = 0x20000
ADDRESSES = {4: ("10.9.0.1", "10.9.0.2"), 6: ("fd09::1", "fd09::2")}
#: suites that no card has
OTHERS = (Suite("3des", "cbc(des3_ede)", 192, 96, 0, "hmac(sha1)", 160), Suite("md5", "cbc(aes)", 128, 96, 0, "hmac(md5)", 128),
          Suite("sha256-64", "cbc(aes)", 128, 64, 0, "hmac(sha256)", 256),
          Suite("camellia", "cbc(camellia)", 256, 128, 0, "hmac(sha256)", 256))
FLAGS = ("noecn", "decap-dscp", "nopmtudisc", "wildrecv", "icmp", "align4")
EXTRA_FLAGS = ("dont-encap-dscp", "oseq-may-wrap")
#: what the stack allows only of an SA of the other direction
NOT_OF = {"out": {"decap-dscp", "wildrecv", "icmp"}, "in": {"nopmtudisc", "dont-encap-dscp", "oseq-may-wrap"}}
LIMITS = ("limit packet-hard 1000", "limit packet-soft 10 limit packet-hard 1000", "limit byte-soft 5000 limit byte-hard 90000",
          "limit time-hard 3600", "limit time-use-soft 60 limit time-use-hard 90")
#: the card's count would never say the one before the other
CROSSED = ("limit packet-soft 100 limit packet-hard 10", "limit byte-soft 1000 limit byte-hard 100")
WINDOWS = (0, 1, 32, 33, 64, 128, 1000, 4096)


@dataclass
class Attributes:
    """An SA. flags: of both kinds."""

    number: int
    offload: str
    direction: str
    suite: Suite
    mode: str
    family: int
    selector: bool
    encap: bool
    esn: bool
    window: int
    limit: str
    flags: tuple
    mark: str

    @classmethod
    def any(cls, choose, number):
        """Any; mostly without what makes a refusal, or hardly one would pass. choose: a random.Random."""
        def rarely(odd, usual, one_in=12):
            return odd if choose.randrange(one_in) == 0 else usual

        return cls(
            number, choose.choice(("crypto", "packet")), choose.choice(("in", "out")),
            rarely(choose.choice(OTHERS), choose.choice(list(SUITES.values()))),
            choose.choice(("transport", "tunnel", "beet")), choose.choice((4, 6)), rarely(False, True),
            choose.randrange(4) == 0, choose.randrange(3) == 0, choose.choice(WINDOWS),
            rarely(choose.choice(CROSSED), choose.choice(("", *LIMITS)), 20),
            tuple(choose.sample(FLAGS + EXTRA_FLAGS, choose.choice((0, 0, 0, 0, 1, 1, 2)))),
            rarely(choose.choice(("mark 5", "output-mark 6")), "", 20))

    @property
    def spi(self):
        """Unlike those of others."""
        return SPI_BASE + self.number

    def command(self):
        """Arguments of ip."""
        here, there = ADDRESSES[self.family]
        src, dst = (here, there) if self.direction == "out" else (there, here)
        flags = " ".join(("esn",) * self.esn + tuple(flag for flag in self.flags if flag in FLAGS))
        extra = " ".join(flag for flag in self.flags if flag in EXTRA_FLAGS)
        words = [f"xfrm state add src {src} dst {dst} proto esp spi {self.spi:#x} reqid 1 mode {self.mode}", self.mark]
        if flags:
            words.append(f"flag {flags}")
        if extra:
            words.append(f"extra-flag {extra}")
        if self.direction == "in":
            words.append(f"replay-window {self.window}")
        words.append(self.suite.words(self.number))
        if self.encap:
            words.append("encap espinudp 4500 4500 0.0.0.0")
        if self.selector and self.mode == "beet":
            words.append(f"sel src {src} dst {dst}")
        return " ".join([*words, self.limit, f"offload {self.offload} dev {DEV} dir {self.direction}"])

    def refused_by_the_stack(self):
        """Does the stack say no before it asks the driver?"""
        return (bool(NOT_OF[self.direction] & set(self.flags)) or
                # "ESN requires a window" of who receives.
                (self.direction == "in" and self.esn and self.window == 0))

    def refusals(self, limits):
        """What the driver may name when it says no: patterns. None: it takes the SA. limits: kit.limits.Limits."""
        kind = self.offload
        inbound = self.direction == "in"
        has = limits.others
        tests = [
            (kind not in has["offloads"], f"{kind} offload not supported"),
            (self.mode not in has["modes"], r"mode \d+ \(\w+\) not supported, allowed:"),
            (f"IPv{self.family}" not in has["families"], r"address family \d+ not supported, allowed:"),
            (not limits.has_suite(self.suite), r"(not supported|not with|missing).*, allowed:"),
            (self.encap and f"IPv{self.family}" not in has.get(f"{kind} espinudp", ()), "encap"),
            (self.esn and "esn" not in has.get(f"{kind} flags", ()), "flag esn"),
            (inbound and self.window > limits.window, rf"replay window of {self.window} not supported, allowed: 0 to"),
            (self.limit in CROSSED, r"limit soft \d+ not supported, allowed: 1 to"),
            (inbound and self.mark, rf"{self.mark.split(' ')[0]} 0x\d of an inbound SA not supported, allowed: 0"),
            (self.mode == "beet" and kind == "packet" and not self.selector, "selector of /0 and /0 in BEET mode not supported"),
        ]
        tests += [(flag not in (*has.get(f"{kind} flags", ()), "align4"), f"flag {flag} not supported") for flag in self.flags]
        return [pattern for applies, pattern in tests if applies]


def _differences(sa, limits, status, output, offloaded):
    """What is wrong with how an SA was answered: None if nothing. offloaded: None: it isn't there."""
    if sa.refused_by_the_stack():
        return None if status and offloaded is None else "the stack takes it"
    patterns = sa.refusals(limits)
    if not patterns:
        return None if status == 0 and offloaded == sa.offload else "isn't offloaded"
    if sa.offload == "packet" and (status == 0 or offloaded is not None):
        return f"is taken, though: {patterns}"
    if sa.offload == "crypto" and (status or offloaded != ""):
        return f"isn't in software, though: {patterns}"
    said = re.search(r"(?:Error|Warning): cordon: (.*)\.$", output, re.M)
    if not said or not any(re.search(pattern, said[1]) for pattern in patterns):
        return f"doesn't say one of {patterns}"
    return None


def compare(host, limits, seed, count):
    """Add SAs of a seed to a host; return how many were of each fate, and what differs from the limits."""
    choose = random.Random(seed)
    sas = [Attributes.any(choose, number) for number in range(count)]
    # Not one `ip -batch`: whatever -force says, it ends at the first SA that is refused.
    host.vm.write("/tmp/attributes", "".join(f"ip {sa.command()} 2>&1; echo status $?\n" for sa in sas))
    outputs = re.split(r"status (\d+)\n", host.run("sh /tmp/attributes", timeout=60 + count // 2).stdout)
    modes = {}
    for text in host.run("ip xfrm state").stdout.split("\nsrc "):
        found = re.search(r"offload parameters:.* mode (\w+)", text)
        modes[int(re.search(r"spi (0x\w+)", text)[1], 0)] = found[1] if found else ""
    host.clear_xfrm()
    fates, differences = {}, []
    for sa, output, status in zip(sas, outputs[::2], outputs[1::2], strict=False):
        wrong = _differences(sa, limits, int(status), output, modes.get(sa.spi))
        fate = "core" if sa.refused_by_the_stack() else "refused" if sa.refusals(limits) else "offloaded"
        fates[fate] = fates.get(fate, 0) + 1
        if wrong:
            differences.append(f"{wrong}: ip {sa.command()}: status {status}, {output.strip()!r}, is {modes.get(sa.spi)!r}")
    assert sum(fates.values()) == count
    return fates, differences
