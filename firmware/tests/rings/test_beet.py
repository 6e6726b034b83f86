# SPDX-License-Identifier: BSD-3-Clause
"""BEET mode, traffic flow padding and dummies, from ring to wire to ring."""

import client
import pytest
from ipsec import BEET, ENCAP, HOP_DST, HOP_SRC, IN, OUT, TRANSPORT, TUNNEL, Sa, policy_add, selector
from scapy.layers.inet import IP, UDP, IPOption
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Ether
from scapy.packet import Raw

MISMATCH, BAD_INNER, DUMMY, SELECTOR = 21, 26, 27, 28
RX = client.PORT_RX_ENABLE | client.PORT_PROMISCUOUS | client.PORT_RX_CSUM
ETHER = Ether(src="02:00:00:00:00:02", dst="02:00:00:00:00:01")
OUTER = {4: {"src": "192.0.2.1", "dst": "192.0.2.2"}, 6: {"src": "fd01::1", "dst": "fd01::2"}}
INNER = {4: ("10.1.0.1", "10.2.0.1"), 6: ("fd00:1::1", "fd00:2::1")}
SEL = {4: selector("10.1.0.1/32", "10.2.0.1/32"), 6: selector("fd00:1::1/128", "fd00:2::1/128")}


def inner_of(family, size, tos=0xb9):
    """A plain packet with something in each field that is carried."""
    src, dst = INNER[family]
    if family == 4:
        ip = IP(src=src, dst=dst, tos=tos, id=0x4321, flags="DF", ttl=33)
    else:
        ip = IPv6(src=src, dst=dst, tc=tos, fl=0x54321, hlim=33)
    return Ether(bytes(ETHER / ip / UDP(sport=1000, dport=2000) / Raw((bytes(range(256)) * 6)[:28 + size])))


def allowed(card, outer, mode=BEET):
    """Policies that want what comes through."""
    policy_add(card, 1, "0.0.0.0/0", "0.0.0.0/0", mode=mode, outer=outer)
    policy_add(card, 2, "::/0", "::/0", mode=mode, outer=outer)


def translated(ip, family):
    """Fields of a header that are seen in one of a family: what Linux carries in BEET mode."""
    four = isinstance(ip, IP)
    fields = {"tos": ip.tos if four else ip.tc, "ttl": ip.ttl if four else ip.hlim}
    if family == 4:
        fields |= {"id": ip.id if four else 0, "df": bool(ip.flags.DF) if four else True}
    else:
        fields |= {"fl": 0 if four else ip.fl}
    return fields


@pytest.mark.parametrize("flags", [0, ENCAP])
@pytest.mark.parametrize("inner, outer", [(4, 4), (6, 4), (4, 6), (6, 6)])
def test_beet(cable_of, inner, outer, flags):
    cable = cable_of(flags=RX)
    ports = (4500, 4500) if flags else (0, 0)
    options = dict(mode=BEET, sel=SEL[inner], flags=flags, ports=ports, **OUTER[outer])
    out = Sa(cable.left, OUT, **options).add()
    back = None
    kind = {4: IP, 6: IPv6}
    for n, size in enumerate([0, 1, 2, 3, 100, 1300, 0, 1, 100, 1300], 1):
        if n == 7:
            back = Sa(cable.right, IN, seq=n - 1, **options).add()
            allowed(cable.right, outer)
        packet = inner_of(inner, size)
        done = cable.tx.send(bytes(packet), flags=client.TX_SA_PACKET, sa=out.handle, l3_offset=14)
        assert done.result == 0
        got = cable.rx.receive()
        frame = Ether(got.data)
        if not back:
            assert got.data[:12] == HOP_DST + HOP_SRC
            assert out.open(got.data, n) == (bytes(packet[kind[inner]].payload), 17)
            ip = frame[kind[outer]]
            assert (ip.src, ip.dst) == tuple(OUTER[outer].values())
            assert translated(ip, outer) == translated(packet[kind[inner]], outer)
            if outer == 4:
                again = ip.copy()
                del again.chksum
                assert IP(bytes(again)).chksum == ip.chksum and ip.len == len(ip)
            continue
        assert got.flags == client.RX_SA_PACKET | client.RX_CSUM_GOOD and got.sa == back.handle
        ip = frame[kind[inner]]
        assert (ip.src, ip.dst) == INNER[inner] and bytes(ip.payload) == bytes(packet[kind[inner]].payload)
        if inner == outer:
            assert got.data[14:] == bytes(packet.payload)
        assert translated(ip, outer) == translated(packet[kind[inner]], outer)
    assert out.counters()[2] == sum(36 + size for size in [0, 1, 2, 3, 100, 1300, 0, 1, 100, 1300])
    assert back.counters()[1:3] == (4, 4 * 36 + 1401)


def test_what_beet_does_not_carry(cable_of):
    """Options and fragments of IPv4, and the other family, take no number."""
    cable = cable_of(flags=RX)
    out = Sa(cable.left, OUT, mode=BEET, sel=SEL[4]).add()
    src, dst = INNER[4]
    for ip in (IP(src=src, dst=dst, options=[IPOption(b"\x01" * 4)]), IP(src=src, dst=dst, flags="MF"),
               IP(src=src, dst=dst, frag=9), IPv6(src=INNER[6][0], dst=INNER[6][1])):
        frame = bytes(ETHER / ip / UDP() / Raw(bytes(16)))
        assert cable.tx.send(frame, flags=client.TX_SA_PACKET, sa=out.handle, l3_offset=14).result == MISMATCH
    assert out.counters()[0] == 0


def pseudo(options, padding, after=17):
    """BEET's pseudo header before IPv4 options."""
    return bytes([after, (len(options) + 4 + padding - 8) // 8 & 0xff, padding, 0]) + b"\x01" * padding + options


def esp_frame(sa, payload, next_header, seq, **ip):
    """A whole ESP frame made by Python."""
    return bytes(ETHER / IP(**dict(OUTER[4], **ip), proto=50) / Raw(sa.seal(payload, next_header, seq)))


def test_options_received(cable_of):
    """Another host sends options of IPv4 before the payload."""
    cable = cable_of(flags=RX)
    sa = Sa(cable.right, IN, mode=BEET, sel=SEL[4]).add()
    allowed(cable.right, 4)
    udp = bytes(IP(src=INNER[4][0], dst=INNER[4][1]) / UDP(sport=1, dport=2) / Raw(bytes(30)))[20:]
    seq = 0
    for options, padding in ((b"\x01" * 4, 0), (b"\x01" * 8, 4), (b"\x01" * 12, 0), (b"\x44" + bytes(39), 4)):
        seq += 1
        assert cable.tx.send(esp_frame(sa, pseudo(options, padding) + udp, 94, seq)).result == 0
        got = cable.rx.receive()
        ip = Ether(got.data)[IP]
        assert got.flags == client.RX_SA_PACKET | client.RX_CSUM_GOOD
        assert got.data[34:] == options + udp and ip.ihl == 5 + len(options) // 4 and ip.len == len(ip) and ip.proto == 17
    wrong = [b"\x11\0\0", b"\x11\0\5\0" + udp, b"\x11\x06\0\0" + bytes(200), b"\x11\x04\0\0" + bytes(8), b"\x11\0\1\0" + udp]
    for payload in wrong:
        seq += 1
        cable.tx.send(esp_frame(sa, payload, 94, seq))
    client.wait_for(lambda: sa.drops(BAD_INNER) == len(wrong))


@pytest.mark.parametrize("mode", [TRANSPORT, TUNNEL, BEET])
def test_dummies_and_padding(cable_of, mode):
    """RFC 4303 2.6, 2.7: dummies go, and what follows an inner packet. In transport mode nobody knows where it ends."""
    cable = cable_of(flags=RX)
    sa = Sa(cable.right, IN, mode=mode, sel=SEL[4] if mode == BEET else bytes(48)).add()
    allowed(cable.right, 4, mode)
    addresses = dict(zip(("src", "dst"), INNER[4])) if mode != TRANSPORT else OUTER[4]
    inner = bytes(IP(**addresses) / UDP(sport=1000, dport=2000) / Raw(b"\x55" * 50))
    payload, next_header = (inner, 4) if mode == TUNNEL else (inner[20:], 17)
    seq = 0
    for padding in (0, 1, 3, 100, 1000):
        for dummy in (b"", b"\0", bytes(padding), payload):
            seq += 1
            cable.tx.send(esp_frame(sa, dummy, 59, seq))
        seq += 1
        cable.tx.send(esp_frame(sa, payload + b"\xaa" * padding, next_header, seq))
        got = cable.rx.receive()
        assert got.flags & client.RX_SA_PACKET
        kept = b"" if mode == TUNNEL else b"\xaa" * padding
        assert got.data[34:] == inner[20:] + kept
        assert Ether(got.data)[IP].len == len(inner) + len(kept)
    assert sa.drops(DUMMY) == 20 and sa.counters()[1] == 5
    # Dummies have moved the window.
    cable.tx.send(esp_frame(sa, b"", 59, 1))
    client.wait_for(lambda: cable.right.stats()["rx_drops"][24] == 1)


def test_beet_refusals(cable_of):
    """In packet mode the selector has to be two hosts of a family."""
    card = cable_of().left
    for sel in (bytes(48), selector("10.1.0.1/32", "10.2.0.0/24"), selector("10.1.0.0/31", "10.2.0.1/32"),
                selector("fd00:1::1/128", "fd00:2::/127")):
        done, _ = card.command(client.CMD_SA_ADD, Sa(card, IN, mode=BEET, sel=sel).cfg)
        assert done.status and done.param
    Sa(card, IN, offload=1, mode=BEET).add()
