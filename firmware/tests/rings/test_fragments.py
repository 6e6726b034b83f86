# SPDX-License-Identifier: BSD-3-Clause
"""Fragments of ESP packets from wire to ring."""

import random

import client
import pytest
from ipsec import CRYPTO, ENCAP, ESN, IN, TRANSPORT, TUNNEL, Sa, policy_add
from scapy.layers.inet import IP, UDP, fragment
from scapy.layers.inet6 import IPv6, IPv6ExtHdrFragment
from scapy.layers.inet6 import fragment6
from scapy.layers.l2 import Ether
from scapy.packet import Raw

REPLAY, FRAGMENT, MISS = 24, 32, 22
RX = client.PORT_RX_ENABLE | client.PORT_PROMISCUOUS | client.PORT_RX_CSUM
ETHER = Ether(src="02:00:00:00:00:02", dst="02:00:00:00:00:01")
OUTER = {4: {"src": "192.0.2.1", "dst": "192.0.2.2"}, 6: {"src": "fd01::1", "dst": "fd01::2"}}


def tunnels_allowed(card, outer=4):
    """What comes through a tunnel needs a policy that wants it."""
    policy_add(card, 1001, "0.0.0.0/0", "0.0.0.0/0", priority=5000, outer=outer)
    policy_add(card, 1002, "::/0", "::/0", priority=5000, outer=outer)


def plain_of(size, **ip):
    """An inner packet."""
    payload = Raw(random.Random(size).randbytes(size))
    return bytes(IP(src="10.1.0.1", dst="10.2.0.1", **ip) / UDP(sport=1000, dport=2000) / payload)


def fragments_of(sa, outer, number, plain, size=576, next_header=4):
    """Frames of an ESP packet in fragments, and of the whole one."""
    esp = sa.seal(plain, next_header, number)
    if sa.flags & ENCAP:
        esp = bytes(UDP(sport=4500, dport=4500, chksum=0, len=8 + len(esp))) + esp
    proto = 17 if sa.flags & ENCAP else 50
    if outer == 4:
        packet = IP(**OUTER[4], proto=proto, id=number & 0xffff) / Raw(esp)
        return [bytes(ETHER / part) for part in fragment(packet, size)]
    packet = IPv6(**OUTER[6]) / IPv6ExtHdrFragment(id=number, nh=proto) / Raw(esp)
    return [bytes(ETHER / part) for part in fragment6(packet, size + 48)]


def settled(card, frames):
    """All of these have come, and each is accounted for."""
    client.wait_for(lambda: card.stats()["rx_wire_packets"] >= frames)
    stats = card.stats()
    drops = sum(stats["rx_drops"]) - stats["rx_drops"][MISS]
    assert stats["rx_wire_packets"] == stats["rx_packets"] + stats["rx_merged"] + drops
    return stats


@pytest.mark.parametrize("flags", [0, ESN, ENCAP])
@pytest.mark.parametrize("outer", [4, 6])
def test_packet_mode(cable_of, outer, flags):
    """All sizes in all orders; the window sees each number once."""
    cable = cable_of(flags=RX)
    ports = (4500, 4500) if flags & ENCAP else (0, 0)
    sa = Sa(cable.right, IN, flags=flags, ports=ports, **OUTER[outer]).add()
    tunnels_allowed(cable.right, outer)
    dice = random.Random(1)
    sizes = [1, 560, 600, 1300, 2000, 9000, 30000, 65300]
    frames = packets = 0
    for number, size in enumerate(sizes * 3, 1):
        plain = plain_of(size)
        parts = fragments_of(sa, outer, number, plain)
        if number > 2 * len(sizes):
            dice.shuffle(parts)
        elif number > len(sizes):
            parts.reverse()
        for part in parts:
            assert cable.tx.send(part).result == 0
        got = cable.rx.receive()
        assert got.data[14:] == plain and got.sa == sa.handle
        assert got.flags == client.RX_SA_PACKET | client.RX_CSUM_GOOD and got.result == 0
        frames += len(parts)
        packets += len(parts) > 1
    stats = settled(cable.right, frames)
    assert stats["rx_packets"] == len(sizes) * 3 and sum(stats["rx_drops"]) == 0
    assert stats["rx_reassembled"] == packets and stats["rx_merged"] == frames - len(sizes) * 3
    assert sa.counters()[:2] == (len(sizes) * 3, len(sizes) * 3)
    for part in parts:
        assert cable.tx.send(part).result == 0
    client.wait_for(lambda: cable.right.stats()["rx_drops"][REPLAY] == 1)
    settled(cable.right, frames + len(parts))
    assert sa.drops(REPLAY) == 1


def test_small_buffers(cable_of):
    """The longest packet in the shortest buffers."""
    cable = cable_of(flags=RX, log2=8, buffer_size=512)
    sa = Sa(cable.right, IN).add()
    tunnels_allowed(cable.right)
    plain = plain_of(65535 - 20 - 32 - 5 - 28)
    for number in (1, 2):
        for part in fragments_of(sa, 4, number, plain, 1480):
            assert cable.tx.send(part).result == 0
        assert cable.rx.receive().data[14:] == plain


def test_transport_mode(cable_of):
    cable = cable_of(flags=RX)
    sa = Sa(cable.right, IN, mode=TRANSPORT).add()
    policy_add(cable.right, 1, "0.0.0.0/0", "0.0.0.0/0", mode=TRANSPORT)
    inner = IP(**OUTER[4]) / UDP(sport=1000, dport=2000) / Raw(bytes(5000))
    payload = bytes(inner)[20:]
    parts = fragments_of(sa, 4, 1, payload, next_header=17)
    for part in parts[1:] + parts[:1]:
        assert cable.tx.send(part).result == 0
    got = cable.rx.receive()
    assert got.data[34:] == payload and got.flags == client.RX_SA_PACKET | client.RX_CSUM_GOOD


@pytest.mark.parametrize("case", ["crypto", "nobody", "foreign UDP", "IKE", "no peer"])
def test_not_for_the_card(cable_of, case):
    """Fragments go up as they came, in order, though a packet SA is there between the same hosts."""
    cable = cable_of(flags=RX | client.PORT_ESP)
    right = cable.right
    flags = ENCAP if case in ("foreign UDP", "IKE") else 0
    ports = (4500, 4500) if flags else (0, 0)
    src = "192.0.2.9" if case == "no peer" else "192.0.2.1"
    Sa(right, IN, src=src, flags=flags, ports=ports, handle=2, spi=0x2002).add()
    other = Sa(right, IN, CRYPTO, TRANSPORT)
    if case == "crypto":
        other.add()
    if flags:
        body = bytes(4) + bytes(2000) if case == "IKE" else bytes(range(200)) * 10
        packet = IP(**OUTER[4], id=5) / UDP(sport=4500, dport=4500 if case == "IKE" else 53) / Raw(body)
        parts = [bytes(ETHER / part) for part in fragment(packet, 576)]
    else:
        parts = fragments_of(other, 4, 5, plain_of(2000))
    for order in (parts, parts[::-1], parts[2:] + parts[:2]):
        for part in order:
            assert cable.tx.send(part).result == 0
        for part in order:
            got = cable.rx.receive()
            assert got.data == part and got.flags == 0
    stats = settled(right, 3 * len(parts))
    assert stats["rx_reassembled"] == 0


def test_not_complete(cable_of):
    """What doesn't come in time, overlaps, or loses its SA is dropped fragment by fragment."""
    cable = cable_of(flags=RX)
    sa = Sa(cable.right, IN).add()
    tunnels_allowed(cable.right)
    plain = plain_of(2000)
    parts = fragments_of(sa, 4, 1, plain)
    for part in parts[:2]:
        cable.tx.send(part)
    # The card sleeps meanwhile, and wakes by itself.
    client.wait_for(lambda: sa.drops(FRAGMENT) == 2)
    settled(cable.right, 2)
    # One whose first fragment never comes is the stack's.
    lost = fragments_of(sa, 4, 2, plain)[1:]
    for part in lost:
        cable.tx.send(part)
    assert [cable.rx.receive().data for _ in lost] == lost
    settled(cable.right, 2 + len(lost))
    # RFC 5722
    parts = fragments_of(sa, 4, 3, plain)
    evil = Ether(parts[1])
    evil[IP].frag -= 1
    del evil[IP].chksum
    for part in (parts[0], bytes(evil), *parts[1:]):
        cable.tx.send(part)
    stats = settled(cable.right, 2 + len(lost) + 1 + len(parts))
    assert stats["rx_drops"][FRAGMENT] == 3 + len(parts) == sa.drops(FRAGMENT)
    # The SA goes.
    parts = fragments_of(sa, 4, 4, plain)
    cable.tx.send(parts[0])
    client.wait_for(lambda: cable.right.stats()["rx_wire_packets"] == 3 + len(lost) + len(parts) + 1)
    sa.delete()
    assert cable.right.stats()["rx_drops"][FRAGMENT] == 4 + len(parts)
    settled(cable.right, 4 + len(lost) + len(parts))


def test_disable(cable_of):
    """What is held when the function goes is forgotten."""
    cable = cable_of(flags=RX)
    sa = Sa(cable.right, IN).add()
    for part in fragments_of(sa, 4, 1, plain_of(2000))[1:]:
        cable.tx.send(part)
    client.wait_for(lambda: cable.right.stats()["rx_wire_packets"] >= 3)
    cable.right.flr()
    cable.right.vectors_enable()
    cable.right.enable()
    assert cable.right.stats()["rx_wire_packets"] == 0


def test_first_fragment_of_another_host(cable_of):
    """For a packet SA, but not from its peer: neither taken nor given to the stack."""
    cable = cable_of(flags=RX)
    sa = Sa(cable.right, IN, mode=TUNNEL, src="192.0.2.9").add()
    assert cable.tx.send(fragments_of(sa, 4, 1, plain_of(2000))[0]).result == 0
    client.wait_for(lambda: cable.right.stats()["rx_drops"][FRAGMENT] == 1)
    settled(cable.right, 1)
    sa.delete()
    sa = Sa(cable.right, IN, mode=TUNNEL, src="0.0.0.0").add()
    tunnels_allowed(cable.right)
    for part in fragments_of(sa, 4, 2, plain_of(2000)):
        assert cable.tx.send(part).result == 0
    assert cable.rx.receive().data[14:] == plain_of(2000)
