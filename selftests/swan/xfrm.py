# SPDX-License-Identifier: GPL-2.0-only
"""The kernel's SAs, read from what ip(8) prints."""

import re
from dataclasses import dataclass, field

HEAD = re.compile(r"^src (\S+) dst (\S+)\n\s+proto (\S+) spi (0x[0-9a-f]+)\S* reqid (\d+)\S* "
                  r"mode (\S+)")
CIPHER = re.compile(r"^\s+(?:aead|enc) (\S+) 0x([0-9a-f]+)", re.M)
CURRENT = re.compile(r"lifetime current:\s+(\d+)\(bytes\), (\d+)\(packets\)")
DIRECTION = re.compile(r"^\s+dir (in|out|fwd)$", re.M)
OFFLOAD = re.compile(r"crypto offload parameters: dev (\S+) dir (\S+) mode (\S+)")


@dataclass
class State:
    """One SA, with its encryption key; "" for an SPI that has no SA yet."""

    src: str
    dst: str
    proto: str
    spi: str
    reqid: int
    mode: str
    key: str = field(repr=False)
    bytes: int
    packets: int
    #: "crypto", "packet", or None for an SA of the software
    offload: str = None
    device: str = None
    direction: str = None


def parse_states(text):
    """Return the States in the output of `ip -s xfrm state`."""
    return [_parse(part) for part in re.split(r"^(?=src )", text, flags=re.M) if part.strip()]


def _parse(text):
    src, dst, proto, spi, reqid, mode = HEAD.search(text).groups()
    cipher, current, offload, way = (form.search(text)
                                     for form in (CIPHER, CURRENT, OFFLOAD, DIRECTION))
    state = State(src, dst, proto, spi, int(reqid), mode, cipher[2] if cipher else "",
                  int(current[1]) if current else 0, int(current[2]) if current else 0)
    if way:
        state.direction = way[1]
    if offload:
        state.device, state.direction, state.offload = offload.groups()
    return state


def states(guest):
    """Return the States of a guest; SPIs that have no SA yet are left out."""
    text = guest.run(["ip", "-s", "xfrm", "state"], check=True).stdout
    return [state for state in parse_states(text) if state.key]
