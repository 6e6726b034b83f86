# SPDX-License-Identifier: BSD-3-Clause
"""SAs and policies of a card, and ESP by Python's cryptography as the judge."""

import socket
import struct

import client
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from scapy.layers.inet import IP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Ether

OUT, IN, FORWARD = 1, 2, 3
CRYPTO, PACKET = 1, 2
TRANSPORT, TUNNEL, BEET = 1, 2, 3
ESN, ENCAP = 1, 2
HOP_SRC, HOP_DST = b"\x02\0\0\0\0\x0a", b"\x02\0\0\0\0\x0b"
SA_CFG = struct.Struct("<II4sIBBBBBBBBIHHQII16s16s6s6sBBH48s64s64s4sB3s")
SA_UPDATE = struct.Struct("<II6s6sBBH")
SELECTOR = struct.Struct("<16s16sHHHHBBBBI")
POLICY_CFG = struct.Struct("<IIQIBBBBI4sB7s16s16s48s")
STATE_HEAD = 384
DROP_FIRST = 16
NO_LIMIT = (1 << 64) - 1


def address(text):
    """(family, 16 bytes)."""
    if ":" in text:
        return 6, socket.inet_pton(socket.AF_INET6, text)
    return 4, socket.inet_pton(socket.AF_INET, text) + bytes(12)


def selector(src="0.0.0.0/0", dst="0.0.0.0/0", proto=0, dport=0):
    """struct cordon_selector."""
    (family, saddr), (_, daddr) = address(src.split("/")[0]), address(dst.split("/")[0])
    return SELECTOR.pack(saddr, daddr, 0, 0, socket.htons(dport), 0xffff if dport else 0, family, int(src.split("/")[1]),
                         int(dst.split("/")[1]), proto, 0)


class Sa:
    """An SA that a card was told."""

    def __init__(self, card, direction, offload=PACKET, mode=TUNNEL, handle=1, spi=0x1001, src="192.0.2.1", dst="192.0.2.2",
                 flags=0, window=64, key=bytes(range(16)), salt=b"salt", reqid=7, hop_valid=1, ports=(0, 0), sel=bytes(48),
                 seq=0, limits=(NO_LIMIT,) * 4, state_len=None):
        self.card, self.handle, self.spi, self.key, self.salt, self.flags = card, handle, spi, key, salt, flags
        self.family, self.saddr = address(src)
        self.daddr = address(dst)[1]
        size = STATE_HEAD + 8 * max(2, 1 << ((window + 64 + 63) // 64 - 1).bit_length())
        self.state = card.memory.alloc(size)
        self.state.write(struct.pack("<Q", seq))
        self.state.write(struct.pack("<4QHH", *limits, *map(socket.htons, ports)), 64)
        self.cfg = SA_CFG.pack(handle, flags, struct.pack("!I", spi), reqid, direction, offload, mode, self.family, 4, 16,
                               len(key), 0, window, *map(socket.htons, ports), self.state.addr,
                               size if state_len is None else state_len, 0, self.saddr, self.daddr, HOP_DST, HOP_SRC,
                               hop_valid, 64, 0, sel, key + bytes(64 - len(key)), bytes(64), salt, 0, bytes(3))

    def add(self):
        """CORDON_CMD_SA_ADD that must succeed."""
        self.card.execute(client.CMD_SA_ADD, self.cfg)
        return self

    def delete(self):
        """CORDON_CMD_SA_DEL."""
        self.card.execute(client.CMD_SA_DEL, args=(self.handle,))

    def update(self, valid=1, hop=HOP_DST):
        """CORDON_CMD_SA_UPDATE."""
        self.card.execute(client.CMD_SA_UPDATE, SA_UPDATE.pack(self.handle, 0, hop, HOP_SRC, valid, 64, 0))

    def counters(self):
        """(seq, packets, bytes, flags)."""
        return struct.unpack("<QQQI", self.state.read(28))

    def drops(self, result):
        """Drops of this SA by result."""
        return struct.unpack("<Q", self.state.read(8, 128 + 8 * (result - DROP_FIRST)))[0]

    def open(self, frame, seq):
        """Decrypts the ESP packet of a frame: (sequence number's low half, payload, next header)."""
        packet = Ether(frame)
        ip = packet[IP] if self.family == 4 else packet[IPv6]
        esp = bytes(ip.payload)[8 if self.flags & ENCAP else 0:]
        assert esp[:4] == struct.pack("!I", self.spi)
        assert struct.unpack("!I", esp[4:8])[0] == seq & 0xffffffff
        aad = esp[:4] + (struct.pack("!Q", seq) if self.flags & ESN else esp[4:8])
        plain = AESGCM(self.key).decrypt(self.salt + esp[8:16], esp[16:], aad)
        return plain[:len(plain) - 2 - plain[-2]], plain[-1]

    def seal(self, payload, next_header, seq):
        """Makes an ESP packet."""
        pad = -(len(payload) + 2) % 4
        plain = payload + bytes(range(1, pad + 1)) + bytes([pad, next_header])
        head = struct.pack("!II", self.spi, seq & 0xffffffff)
        aad = head[:4] + struct.pack("!Q", seq) if self.flags & ESN else head
        iv = struct.pack("!Q", seq ^ 0x5555)
        return head + iv + AESGCM(self.key).encrypt(self.salt + iv, plain, aad)


def policy_add(card, handle, src, dst, direction=IN, action=1, flags=1, priority=100, mode=TUNNEL, reqid=7, outer=4, **sel):
    """CORDON_CMD_POLICY_ADD; outer is the family of the template."""
    card.execute(client.CMD_POLICY_ADD, POLICY_CFG.pack(
        handle, priority, handle, 0, direction, action, flags, mode if flags & 1 else 0, reqid if flags & 1 else 0, bytes(4),
        outer if flags & 1 else 0, bytes(7), bytes(16), bytes(16), selector(src, dst, **sel)))
