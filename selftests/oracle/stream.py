# SPDX-License-Identifier: GPL-2.0-only
"""Frames of one SA, right ones and wrong ones, from a seed."""

import random
import struct
from collections import Counter
from dataclasses import dataclass

from kit.suite import SUITES, Suite

from .seal import sealer

SINK_PORT = 7777
UDP, NONE, IPIP, ESP = 17, 59, 4, 50
HERE, PEER = bytes((10, 9, 0, 1)), bytes((10, 9, 0, 2))
INNER_HERE, INNER_PEER = bytes((10, 10, 1, 1)), bytes((10, 10, 2, 1))
HERE_MAC, PEER_MAC = bytes.fromhex("02c0000000f1"), bytes.fromhex("02c0000000f2")
SIZE_MAX = 1300
#: numbers that are kept to be sent late or again
MEMORY = 256

#: how often each kind of frame comes
KINDS = {
    "next": 60, "jump": 4, "late": 8, "repeated": 6, "old": 3, "flipped bit": 6, "truncated": 3, "lengthened": 2,
    "bad padding": 2, "dummy": 2, "wrong next header": 2, "short inner": 2, "no payload": 1, "far ahead": 1,
}


def checksum(data):
    """RFC 1071, of an even number of bytes."""
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def ipv4(src, dst, proto, payload, ident=0):
    """An IPv4 packet."""
    head = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 20 + len(payload), ident, 0, 64, proto, 0, src, dst)
    return head[:10] + struct.pack("!H", checksum(head)) + head[12:] + payload


@dataclass
class Config:
    """An SA: what both sides are told."""

    mode: str = "transport"
    esn: bool = False
    window: int = 64
    spi: int = 0x1001
    suite: Suite = SUITES["gcm128-128"]
    key_seed: int = 1
    first: int = 0  # number that was received last


class Stream:
    """Frames of an SA. frame() returns one, and what kind it is of."""

    def __init__(self, config, seed):
        self.config = config
        self.random = random.Random(seed)
        self.sealer = sealer(config.suite, config.key_seed)
        self.greatest = config.first
        self.number = 0
        self.free = []  # numbers within reach that weren't sent
        self.spent = set()  # numbers (lower halves) that only the card counts as received
        self.apart = False  # the last of them still is the greatest: the windows' edges differ
        self.sent = []  # frames that were right, to be sent again
        self.kinds = Counter()
        self.kind_of = []

    def _payload(self, size):
        """A datagram for the sink, which carries the number of the frame."""
        data = struct.pack("!I", self.number) + self.random.randbytes(size)
        udp = struct.pack("!HHHH", SINK_PORT, SINK_PORT, 8 + len(data), 0) + data
        if self.config.mode == "tunnel":
            return ipv4(INNER_PEER, INNER_HERE, UDP, udp), IPIP
        return udp, UDP

    def _seal(self, seq, payload, next_header, pad_len=None):
        pad = -(len(payload) + 2) % self.sealer.block
        plain = payload + bytes(range(1, pad + 1)) + bytes((pad if pad_len is None else pad_len, next_header))
        head = struct.pack("!II", self.config.spi, seq & 0xFFFFFFFF)
        high = struct.pack("!I", seq >> 32) if self.config.esn else b""
        return head + self.sealer.seal(head, high, self.random.randbytes(self.sealer.iv_len), plain)

    @staticmethod
    def _frame(esp):
        return HERE_MAC + PEER_MAC + b"\x08\0" + ipv4(PEER, HERE, ESP, esp)

    def _ahead(self, by=1):
        """A number in front of all others."""
        for skipped in range(self.greatest + 1, self.greatest + by):
            self.free.append(skipped)
        self.free = self.free[-MEMORY:]
        self.greatest += by
        return self.greatest

    def _good(self, seq):
        payload, next_header = self._payload(self.random.randrange(SIZE_MAX) if self.random.random() < 0.3
                                             else self.random.randrange(100))
        frame = self._frame(self._seal(seq, payload, next_header))
        self.sent = [*self.sent[-MEMORY:], frame]
        return frame

    def frame(self):
        """The next frame."""
        kind = self.random.choices(list(KINDS), KINDS.values())[0]
        if kind in ("late", "old") and not self.free or kind == "repeated" and not self.sent:
            kind = "next"
        if self.apart and kind in ("late", "repeated", "old", "flipped bit"):
            kind = "next"
        frame = getattr(self, "_make_" + kind.replace(" ", "_"))()
        self.kinds[kind] += 1
        self.kind_of.append(kind)
        self.number += 1
        return frame

    def _foremost(self, by=1):
        self.apart = False
        return self._good(self._ahead(by))

    def _make_next(self):
        return self._foremost()

    def _make_jump(self):
        return self._foremost(self.random.randrange(2, 12))

    def _make_far_ahead(self):
        return self._foremost(self.random.randrange(1, 3 * self.config.window + 64))

    def _make_late(self):
        return self._good(self.free.pop(self.random.randrange(len(self.free))))

    def _make_old(self):
        return self._good(self.free.pop(0))

    def _make_repeated(self):
        return self.random.choice(self.sent)

    def _make_flipped_bit(self):
        frame = bytearray(self._good(self._ahead()))
        self.sent.pop()
        at, bit = 34 + self.random.randrange(len(frame) - 34), 1 << self.random.randrange(8)
        frame[at] ^= bit
        if int.from_bytes(frame[38:42], "big") in self.spent:
            frame[at] ^= bit
            frame[-1] ^= bit
        return bytes(frame)

    def _resized(self, change):
        payload, next_header = self._payload(self.random.randrange(100))
        return self._frame(change(self._seal(self._ahead(), payload, next_header)))

    def _make_truncated(self):
        return self._resized(lambda esp: esp[:self.random.randrange(len(esp))])

    def _make_lengthened(self):
        return self._resized(lambda esp: esp + self.random.randbytes(self.random.randrange(1, 40)))

    # These are genuine. Software doesn't count them as received, the card does (RFC 4303 3.4.3 asks that of it): so their
    # numbers aren't used again, and nothing that a window's edge decides comes before a frame that moves both windows on.

    def _genuine(self, payload, next_header, pad_len=None):
        seq = self._ahead()
        self.spent.add(seq & 0xFFFFFFFF)
        self.apart = True
        return self._frame(self._seal(seq, payload, next_header, pad_len))

    def _make_bad_padding(self):
        payload, next_header = self._payload(self.random.randrange(60))
        return self._genuine(payload, next_header, self.random.randrange(len(payload) + 15, 256))

    def _make_dummy(self):
        return self._genuine(self.random.randbytes(self.random.randrange(1, 80)), NONE)

    def _make_no_payload(self):
        return self._genuine(b"", self._payload(0)[1])

    def _make_wrong_next_header(self):
        return self._genuine(self._payload(10)[0], self.random.choice((41, 132, 200, 253)))

    def _make_short_inner(self):
        payload, next_header = self._payload(40)
        return self._genuine(payload[:self.random.randrange(1, len(payload))], next_header)
