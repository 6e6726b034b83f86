# SPDX-License-Identifier: GPL-2.0-only
"""What passed the wire, from the capture that the card writes (pcapng)."""

import struct
import time
from dataclasses import dataclass

BLOCK_EPB = 6
OPTION_EPB_FLAGS = 2
IPPROTO_HOPOPTS = 0
IPPROTO_UDP = 17
IPPROTO_ESP = 50
IPPROTO_ICMPV6 = 58
PORT_IKE = 500
PORT_NATT = 4500
# Neighbour discovery and its kin, never protected by default.
CLEAR_ICMPV6 = range(130, 138)
MLD = (130, 131, 132, 143)


@dataclass
class Frame:
    """A frame; out: sent by the port whose capture it is."""

    data: bytes
    out: bool

    @property
    def ethertype(self):
        """Type behind the addresses."""
        return struct.unpack_from("!H", self.data, 12)[0]

    @property
    def protocol(self):
        """IP protocol, None for others."""
        if self.ethertype == 0x0800:
            return self.data[23]
        if self.ethertype == 0x86DD:
            return self.data[20]
        return None

    @property
    def l4(self):
        """Bytes behind the IP header (without options)."""
        return self.data[14 + (20 if self.ethertype == 0x0800 else 40):]

    @property
    def esp(self):
        """(SPI, low sequence number, IV) of an ESP frame, else None."""
        if self.protocol != IPPROTO_ESP:
            return None
        spi, seq = struct.unpack_from("!II", self.l4)
        return spi, seq, self.l4[8:16]

    def is_clear(self):
        """IP that should have been protected: not ESP, IKE, neighbour discovery, nor multicast listener reports."""
        if self.protocol in (None, IPPROTO_ESP):
            return False
        if self.ethertype == 0x86DD and self.protocol == IPPROTO_HOPOPTS:
            return self.l4[0] != IPPROTO_ICMPV6 or self.l4[8] not in MLD
        if self.protocol == IPPROTO_UDP:
            return not {PORT_IKE, PORT_NATT} & set(struct.unpack_from("!HH", self.l4))
        return not (self.protocol == IPPROTO_ICMPV6 and self.l4[0] in CLEAR_ICMPV6)


class Wire:
    """A growing capture file."""

    def __init__(self, path):
        self.path = path

    def mark(self):
        """Where the capture ends now; what is under way is waited for."""
        size = -1
        while size != (now := self.path.stat().st_size):
            size = now
            time.sleep(0.3)
        return size

    def since(self, mark):
        """Frames after a mark."""
        end = self.mark()
        with open(self.path, "rb") as file:
            file.seek(mark)
            data = file.read(end - mark)
        return list(_frames(data))


def _frames(data):
    """Enhanced packet blocks of a little-endian pcapng, from a block's start on."""
    at = 0
    while at + 12 <= len(data):
        kind, length = struct.unpack_from("<II", data, at)
        if length < 12 or at + length > len(data):
            break
        if kind == BLOCK_EPB:
            captured = struct.unpack_from("<I", data, at + 20)[0]
            options = data[at + 28 + (captured + 3) // 4 * 4:at + length - 4]
            yield Frame(data[at + 28:at + 28 + captured], _is_outbound(options))
        at += length


def _is_outbound(options):
    at = 0
    while at + 4 <= len(options):
        code, length = struct.unpack_from("<HH", options, at)
        if code == OPTION_EPB_FLAGS:
            return struct.unpack_from("<I", options, at + 4)[0] & 3 == 2
        at += 4 + (length + 3) // 4 * 4
    return False
