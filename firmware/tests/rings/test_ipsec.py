# SPDX-License-Identifier: BSD-3-Clause
"""IPsec from ring to wire to ring."""

import os
import pathlib
import random
import re
import struct
import time

import client
import ipsec
import pytest
from ipsec import CRYPTO, ENCAP, ESN, FORWARD, IN, OUT, TRANSPORT, TUNNEL, Sa, policy_add, selector
from scapy.layers.inet import ICMP, IP, TCP, UDP
from scapy.layers.inet6 import ICMPv6ND_NS, IPv6
from scapy.layers.l2 import ARP, Dot1Q, Ether
from scapy.packet import Raw

GONE, EXPIRED, EXHAUSTED, NO_NEIGHBOUR, STATE, MISMATCH, MISS, AUTH_FAILED, REPLAY = range(16, 25)
BAD_MODE = 36
SELECTOR, POLICY_NONE, POLICY_TEMPLATE, POLICY_BLOCK, FRAGMENT = range(28, 33)
RX = client.PORT_RX_ENABLE | client.PORT_PROMISCUOUS | client.PORT_RX_CSUM
ETHER = Ether(src="02:00:00:00:00:02", dst="02:00:00:00:00:01")
OUTER = {4: {"src": "192.0.2.1", "dst": "192.0.2.2"}, 6: {"src": "fd01::1", "dst": "fd01::2"}}
INNER = {4: IP(src="10.1.0.1", dst="10.2.0.1"), 6: IPv6(src="fd00:1::1", dst="fd00:2::1")}


def inner_of(family, size, mode=TUNNEL, outer=4):
    """A plain packet and its IP header's family."""
    ip = INNER[family] if mode == TUNNEL else (IP if family == 4 else IPv6)(**OUTER[outer])
    return Ether(bytes(ETHER / ip / UDP(sport=1000, dport=2000) / Raw(random.Random(size).randbytes(size))))


def send(cable, frame, sa, **options):
    """Sends a frame through an SA in packet mode."""
    options.setdefault("l3_offset", 14)
    return cable.tx.send(frame, flags=options.pop("flags", 0) | client.TX_SA_PACKET, sa=sa.handle, **options)


def tunnels_allowed(card):
    """What comes through a tunnel needs a policy that wants it."""
    policy_add(card, 1001, "0.0.0.0/0", "0.0.0.0/0", priority=5000)
    policy_add(card, 1002, "::/0", "::/0", priority=5000)


@pytest.mark.parametrize("key", [16, 32])
@pytest.mark.parametrize("flags", [0, ESN, ENCAP, ENCAP | ESN])
@pytest.mark.parametrize("mode, inner, outer", [(TRANSPORT, 4, 4), (TRANSPORT, 6, 6), (TUNNEL, 4, 4), (TUNNEL, 6, 4),
                                                (TUNNEL, 4, 6), (TUNNEL, 6, 6)])
def test_packet_mode(cable_of, key, flags, mode, inner, outer):
    """Python opens what the card made; the other card opens it as well."""
    cable = cable_of(flags=RX)
    ports = (4500, 4500) if flags & ENCAP else (0, 0)
    options = dict(mode=mode, flags=flags, key=bytes(range(key)), ports=ports, **OUTER[outer])
    start = 0xfffffffe if flags & ESN else 0
    out = Sa(cable.left, OUT, seq=start, **options).add()
    sizes = [0, 1, 2, 3, 100, 1300]
    for n, size in enumerate(sizes):
        packet = inner_of(inner, size, mode, outer)
        assert send(cable, bytes(packet), out) == (cable.tx.tx_prod - 1, 0, 1)
        got = cable.rx.receive()
        assert got.flags & ~client.RX_CSUM_GOOD == 0
        payload, next_header = out.open(got.data, start + 1 + n)
        if mode == TUNNEL:
            assert payload == bytes(packet.payload) and next_header == {4: 4, 6: 41}[inner]
            assert got.data[:12] == ipsec.HOP_DST + ipsec.HOP_SRC
        else:
            assert payload == bytes(packet.payload.payload) and next_header == 17
    assert out.counters()[:2] == (start + len(sizes), len(sizes))

    back = Sa(cable.right, IN, seq=out.counters()[0], **options).add()
    policy_add(cable.right, 1, "0.0.0.0/0", "0.0.0.0/0", mode=mode, outer=outer)
    policy_add(cable.right, 2, "::/0", "::/0", mode=mode, outer=outer)
    for size in sizes:
        packet = inner_of(inner, size, mode, outer)
        send(cable, bytes(packet), out)
        got = cable.rx.receive()
        assert got.sa == back.handle and got.result == 0
        assert got.flags == client.RX_SA_PACKET | client.RX_CSUM_GOOD
        assert got.data[14:] == bytes(packet.payload) and got.data[12:14] == bytes(packet)[12:14]
    assert back.counters()[:3] == (start + 2 * len(sizes), len(sizes), out.counters()[2] // 2)
    assert cable.left.stats()["tx_sa_packets"] == 12 and cable.right.stats()["rx_sa_packets"] == 6


def test_segmented(cable_of):
    """TSO, then ESP for each segment."""
    cable = cable_of(flags=RX)
    out, back = Sa(cable.left, OUT).add(), Sa(cable.right, IN).add()
    tunnels_allowed(cable.right)
    packet = ETHER / INNER[4] / TCP(flags="PA", seq=77) / Raw(random.Random(1).randbytes(40000))
    frame = bytes(packet)
    done = send(cable, frame, out, flags=client.TX_SEGMENT | client.TX_CSUM, mss=1360, header_len=54, csum_start=34,
                csum_offset=16, split=[54])
    assert done.segments == 30 and done.result == 0
    data = b""
    for _ in range(30):
        got = cable.rx.receive()
        assert got.flags == client.RX_SA_PACKET | client.RX_CSUM_GOOD and got.sa == back.handle
        data += got.data[54:]
    assert data == frame[54:] and out.counters()[0] == 30


def test_headerless_tunnel(cable_of):
    """Forwarded packets come without an Ethernet header."""
    cable = cable_of(flags=RX)
    out = Sa(cable.left, OUT).add()
    Sa(cable.right, IN).add()
    tunnels_allowed(cable.right)
    packet = inner_of(4, 300)
    send(cable, bytes(packet.payload), out, l3_offset=0)
    assert cable.rx.receive().data[14:] == bytes(packet.payload)
    transport = Sa(cable.left, OUT, mode=TRANSPORT, handle=2).add()
    assert send(cable, bytes(packet.payload), transport, l3_offset=0).result == 1


def test_vlan_around_a_tunnel(cable_of):
    cable = cable_of(flags=RX | client.PORT_VLAN_STRIP)
    out = Sa(cable.left, OUT).add()
    Sa(cable.right, IN).add()
    tunnels_allowed(cable.right)
    packet = inner_of(4, 300)
    send(cable, bytes(packet), out, flags=client.TX_VLAN, vlan_tci=0x2005)
    got = cable.rx.receive()
    assert got.data[14:] == bytes(packet.payload) and got.vlan_tci == 0x2005
    assert got.flags == client.RX_SA_PACKET | client.RX_CSUM_GOOD | client.RX_VLAN
    cable.right.port_set(flags=RX)
    send(cable, bytes(packet), out, flags=client.TX_VLAN, vlan_tci=0x2005)
    got = Ether(cable.rx.receive().data)
    assert got[Dot1Q].vlan == 5 and bytes(got[IP]) == bytes(packet.payload)


def crypto_frame(sa, family, payload, seq, wrap=b""):
    """A frame as the stack gives it in crypto mode: plain, with trailer and room for IV and ICV."""
    pad = -(len(payload) + 2) % 4
    esp = struct.pack("!II", sa.spi, seq & 0xffffffff) + bytes(8) + payload + bytes(range(1, pad + 1))
    esp += bytes([pad, 17]) + bytes(16)
    ip = IP(**OUTER[4], proto=17 if wrap else 50) if family == 4 else IPv6(**OUTER[6], nh=50)
    frame = bytes(ETHER / ip / Raw(wrap + esp))
    return frame, len(frame) - len(esp)


@pytest.mark.parametrize("family", [4, 6])
@pytest.mark.parametrize("flags", [0, ESN])
def test_crypto_mode(cable_of, family, flags):
    cable = cable_of(flags=RX | client.PORT_ESP)
    options = dict(offload=CRYPTO, mode=TRANSPORT, flags=flags, **OUTER[family])
    out = Sa(cable.left, OUT, **options).add()
    seq = 5 | (3 << 32 if flags & ESN else 0)
    payload = bytes(UDP(sport=1, dport=2) / Raw(b"secret" * 20))
    frame, esp = crypto_frame(out, family, payload, seq)
    fields = {"flags": client.TX_SA_CRYPTO, "sa": 1, "l3_offset": 14, "ext": {"seq": seq, "esp_offset": esp}}
    got = cable.carry(frame, **fields)
    assert out.open(got.data, seq) == (payload, 17)
    assert got.data[esp + 8:esp + 16] == struct.pack("!Q", seq)

    Sa(cable.right, IN, seq=seq, **options).add()
    got = cable.carry(frame, **fields)
    assert got.flags == client.RX_SA_CRYPTO and got.result == 0 and got.sa == 1
    assert got.data[esp + 16:-16] == frame[esp + 16:-16]
    broken = bytearray(cable_frame := bytes(got.data))
    broken[-1] ^= 1
    broken = bytes(broken)
    got = cable.carry(broken)
    assert (got.flags, got.result, got.data) == (client.RX_SA_CRYPTO, AUTH_FAILED, broken)
    assert cable_frame != broken
    cable.right.port_set(flags=RX)
    got = cable.carry(frame, **fields)
    assert got.flags == 0 and out.open(got.data, seq) == (payload, 17)


def test_crypto_mode_checksum(cable_of):
    """The checksum ends before the ESP trailer."""
    cable = cable_of(flags=RX)
    out = Sa(cable.left, OUT, offload=CRYPTO, mode=TRANSPORT).add()
    for size in range(8):
        udp = bytes(IP(**OUTER[4]) / UDP(sport=1, dport=2) / Raw(b"\xaa" * size))[20:]
        pseudo = sum(struct.unpack("!6H", bytes([192, 0, 2, 1, 192, 0, 2, 2]) + struct.pack("!HH", 17, len(udp))))
        pseudo = (pseudo & 0xffff) + (pseudo >> 16)
        frame, esp = crypto_frame(out, 4, udp[:6] + struct.pack("!H", pseudo) + udp[8:], 1)
        got = cable.carry(frame, flags=client.TX_SA_CRYPTO | client.TX_CSUM, sa=1, l3_offset=14, csum_start=esp + 16,
                          csum_offset=6, ext={"seq": 1, "esp_offset": esp})
        assert out.open(got.data, 1) == (udp, 17)


def test_crypto_mode_refusals(cable_of):
    cable = cable_of(flags=RX)
    out = Sa(cable.left, OUT, offload=CRYPTO, mode=TRANSPORT).add()
    frame, esp = crypto_frame(out, 4, bytes(100), 5)
    base = {"flags": client.TX_SA_CRYPTO, "sa": 1, "l3_offset": 14}
    for change, result in [({"ext": {"seq": 6, "esp_offset": esp}}, MISMATCH),
                           ({"ext": {"seq": 5, "esp_offset": esp + 1}}, MISMATCH),
                           ({"ext": {"seq": 5, "esp_offset": len(frame)}}, 1), ({"ext": {"seq": 5, "esp_offset": 14}}, 1),
                           ({"ext": {"seq": 5, "esp_offset": esp}, "sa": 0x01000001}, GONE),
                           ({"ext": {"seq": 5, "esp_offset": esp}, "mss": 10, "header_len": 42, "flags": 0x12}, 6)]:
        assert cable.tx.send(frame, **dict(base, **change)).result == result
    assert send(cable, frame, out).result == MISMATCH
    assert cable.left.stats()["tx_packets"] == 0


def wire_silence(cable):
    """Nothing has left the left card."""
    return cable.left.stats()["tx_packets"] == 0 and cable.right.stats()["rx_wire_packets"] == 0


def test_never_in_clear(cable_of):
    """Every way in which an SA can't be used."""
    cable = cable_of(flags=RX)
    left = cable.left
    frame = bytes(inner_of(4, 100))
    gone = Sa(left, OUT, handle=1).add()
    gone.delete()
    cases = [
        (gone, GONE), (Sa(left, OUT, handle=0x01000001).add(), None),
        (Sa(left, IN, handle=2, spi=2).add(), MISMATCH), (Sa(left, OUT, CRYPTO, TRANSPORT, handle=3).add(), MISMATCH),
        (Sa(left, OUT, handle=4, hop_valid=0).add(), NO_NEIGHBOUR), (Sa(left, OUT, handle=5, seq=0xffffffff).add(), EXHAUSTED),
        (Sa(left, OUT, handle=6, limits=(9, 0, 9, 9)).add(), EXPIRED),
        (Sa(left, OUT, handle=7, limits=(9, 9, 9, 0)).add(), EXPIRED),
        (Sa(left, OUT, handle=8, mode=TRANSPORT, **OUTER[6]).add(), MISMATCH)]
    for sa, result in cases:
        if result:
            assert send(cable, frame, sa).result == result, sa.handle
    assert [sa.drops(MISMATCH) for sa, result in cases if result == MISMATCH] == [1] * 3
    assert send(cable, frame, gone).result == GONE
    assert send(cable, bytes(ETHER / ARP()), cases[1][0]).result == 4
    assert send(cable, frame[:30], cases[1][0]).result == 4
    left.execute(client.CMD_SA_FLUSH)
    assert send(cable, frame, cases[1][0]).result == GONE
    assert wire_silence(cable)
    assert send(cable, frame, Sa(left, OUT, handle=9).add()).result == 0


def test_state_block_out_of_reach(cable_of):
    cable = cable_of(flags=RX)
    card = cable.left
    extra = client.Memory(65536, 0x900000000)
    card.dma_map(extra.addr, extra.size, extra.fd)
    normal, card.memory = card.memory, extra
    sa = Sa(card, OUT)
    card.memory = normal
    sa.add()
    frame = bytes(inner_of(4, 100))
    assert send(cable, frame, sa).result == 0
    card.dma_unmap(extra.addr, extra.size)
    assert send(cable, frame, sa).result == STATE
    card.dma_map(extra.addr, extra.size, extra.fd)
    assert send(cable, frame, sa).result == 0
    assert sa.counters()[:2] == (2, 2)
    assert cable.left.stats()["tx_packets"] == 2


def test_events(cable_of):
    cable = cable_of(flags=RX)
    frame = bytes(inner_of(4, 100))
    out = Sa(cable.left, OUT, limits=(2, 4, ipsec.NO_LIMIT, ipsec.NO_LIMIT), hop_valid=0).add()
    for _ in range(3):
        assert send(cable, frame, out).result == NO_NEIGHBOUR
    assert cable.left.event_wait() == (20, 1, 0)
    out.update(valid=0)
    assert send(cable, frame, out).result == NO_NEIGHBOUR
    assert cable.left.event_wait() == (20, 1, 0)
    out.update(hop=b"\x02\0\0\0\0\x55")
    results = [send(cable, frame, out).result for _ in range(6)]
    assert results == [0] * 4 + [EXPIRED] * 2
    assert [cable.left.event_wait().type for _ in range(3)] == [16, 17, 18]
    assert cable.left.event_take() is None
    assert cable.rx.receive().data[:6] == b"\x02\0\0\0\0\x55"
    assert out.drops(EXPIRED) == 2 and out.drops(NO_NEIGHBOUR) == 4
    last = Sa(cable.left, OUT, handle=2, seq=0xfffffffe).add()
    assert [send(cable, frame, last).result for _ in range(2)] == [0, EXHAUSTED]
    assert [cable.left.event_wait().type for _ in range(2)] == [16, 19]


def receive_case(cable, frame):
    """Sends a frame as it is; returns (packet or None, the reason that was counted)."""
    before = cable.right.stats()
    assert cable.tx.send(frame).result == 0
    client.wait_for(lambda: cable.right.stats()["rx_wire_packets"] > before["rx_wire_packets"])
    after = cable.right.stats()
    reasons = [n for n in range(48) if after["rx_drops"][n] > before["rx_drops"][n]]
    if after["rx_packets"] > before["rx_packets"]:
        return cable.rx.receive(), reasons
    assert len(reasons) == 1
    return None, reasons


def esp_frame(sa, payload, next_header, seq, **ip):
    """A whole ESP frame made by Python."""
    return bytes(ETHER / IP(**dict(OUTER[4], **ip), proto=50) / Raw(sa.seal(payload, next_header, seq)))


def test_received_by_packet_sa(cable_of):
    """Every verdict on RX."""
    cable = cable_of(flags=RX)
    sel = selector("10.1.0.0/16", "10.2.0.0/16")
    sa = Sa(cable.right, IN, sel=sel).add()
    tunnels_allowed(cable.right)
    plain = bytes(inner_of(4, 100).payload)
    good = esp_frame(sa, plain, 4, 1)
    packet, reasons = receive_case(cable, good)
    assert packet.data[14:] == plain and packet.flags & client.RX_SA_PACKET and not reasons
    assert receive_case(cable, good) == (None, [REPLAY])
    assert receive_case(cable, esp_frame(sa, plain, 4, 2)[:-1] + b"x") == (None, [AUTH_FAILED])
    assert receive_case(cable, esp_frame(sa, plain, 4, 2))[0].data[14:] == plain
    assert receive_case(cable, esp_frame(sa, plain, 99, 3)) == (None, [BAD_MODE])
    assert receive_case(cable, esp_frame(sa, plain[:50], 4, 4)) == (None, [26])
    assert receive_case(cable, esp_frame(sa, plain, 59, 5)) == (None, [27])
    other = bytes(IP(src="10.9.0.1", dst="10.2.0.1") / UDP())
    assert receive_case(cable, esp_frame(sa, other, 4, 6)) == (None, [SELECTOR])
    assert receive_case(cable, esp_frame(sa, plain, 4, 7)[:60]) == (None, [MISMATCH])
    assert receive_case(cable, esp_frame(sa, plain, 4, 8, flags="MF")) == (None, [FRAGMENT])
    wrapped = bytes(ETHER / IP(**OUTER[4]) / UDP(sport=4500, dport=4500) / Raw(sa.seal(plain, 4, 9)))
    assert receive_case(cable, wrapped) == (None, [MISMATCH])
    assert sa.drops(FRAGMENT) == 1 and sa.drops(MISMATCH) == 2
    miss = esp_frame(Sa(cable.right, IN, handle=99, spi=0x9999), plain, 4, 1)
    packet, reasons = receive_case(cable, miss)
    assert packet.data == miss and packet.flags == 0 and reasons == [MISS]
    far = esp_frame(sa, plain, 4, 10, dst="192.0.2.3")
    packet, reasons = receive_case(cable, far)
    assert packet.data == far and reasons == [MISS]
    assert [sa.drops(n) for n in (REPLAY, AUTH_FAILED, BAD_MODE, 26, 27, SELECTOR)] == [1] * 6
    stats = cable.right.stats()
    drops = sum(stats["rx_drops"]) - stats["rx_drops"][MISS]
    assert stats["rx_wire_packets"] == stats["rx_packets"] + drops


def test_newest_of_two(cable_of):
    """An update of an SA adds its successor first."""
    cable = cable_of(flags=RX)
    plain = bytes(inner_of(4, 100).payload)
    old = Sa(cable.right, IN, handle=1).add()
    tunnels_allowed(cable.right)
    new = Sa(cable.right, IN, handle=2, key=bytes(16)).add()
    packet, _ = receive_case(cable, esp_frame(new, plain, 4, 1))
    assert packet.sa == 2
    assert receive_case(cable, esp_frame(old, plain, 4, 2)) == (None, [AUTH_FAILED])
    new.delete()
    packet, _ = receive_case(cable, esp_frame(old, plain, 4, 2))
    assert packet.sa == 1


def test_policies(cable_of):
    cable = cable_of(flags=RX)
    right = cable.right
    sa = Sa(right, IN).add()
    policy_add(right, 1, "10.1.0.0/16", "10.2.0.0/16")
    policy_add(right, 2, "10.3.0.0/16", "10.2.0.0/16", flags=0, action=2)
    policy_add(right, 3, "10.1.0.0/16", "10.2.0.0/16", flags=0, priority=50, proto=1)
    policy_add(right, 4, "10.4.0.0/16", "10.2.0.0/16", direction=FORWARD, reqid=8)
    plain = bytes(inner_of(4, 100))
    assert receive_case(cable, plain) == (None, [POLICY_TEMPLATE])
    assert receive_case(cable, plain[:14] + plain[14:])[1] == [POLICY_TEMPLATE]
    tagged = plain[:12] + b"\x81\0\0\5" + plain[12:]
    assert receive_case(cable, tagged) == (None, [POLICY_TEMPLATE])
    assert receive_case(cable, esp_frame(sa, plain[14:], 4, 1))[0].data[14:] == plain[14:]
    assert receive_case(cable, bytes(ETHER / IP(src="10.3.0.1", dst="10.2.0.1") / UDP())) == (None, [POLICY_BLOCK])
    assert receive_case(cable, bytes(ETHER / IP(src="10.1.0.1", dst="10.2.0.1") / ICMP()))[0]
    assert receive_case(cable, bytes(ETHER / IP(src="10.4.0.1", dst="10.2.0.1") / UDP())) == (None, [POLICY_TEMPLATE])
    wrong = bytes(IP(src="10.4.0.1", dst="10.2.0.1") / UDP())
    assert receive_case(cable, esp_frame(sa, wrong, 4, 2)) == (None, [POLICY_TEMPLATE])
    nobody = bytes(IP(src="10.7.0.1", dst="10.2.0.1") / UDP())
    assert receive_case(cable, esp_frame(sa, nobody, 4, 3)) == (None, [POLICY_NONE])
    blocked = bytes(IP(src="10.3.0.1", dst="10.2.0.1") / UDP())
    assert receive_case(cable, esp_frame(sa, blocked, 4, 4)) == (None, [POLICY_BLOCK])
    assert [sa.drops(n) for n in (POLICY_NONE, POLICY_TEMPLATE, POLICY_BLOCK)] == [1] * 3
    assert sa.counters()[1] == 4
    for sport, dport in ((500, 7), (4500, 7)):
        clear = bytes(ETHER / IP(src="10.1.0.1", dst="10.2.0.1") / UDP(sport=sport, dport=dport) / Raw(bytes(20)))
        assert receive_case(cable, clear) == (None, [POLICY_TEMPLATE])
    for exempt in (ETHER / ARP(), ETHER / IP(src="10.1.0.1", dst="10.2.0.1") / UDP(dport=500),
                   ETHER / IP(src="10.1.0.1", dst="10.2.0.1") / UDP(dport=4500) / Raw(bytes(20)),
                   ETHER / IPv6(src="fd00::1", dst="fd00::2") / ICMPv6ND_NS()):
        assert receive_case(cable, bytes(exempt))[0].data == bytes(exempt)
    right.execute(client.CMD_POLICY_DEL, args=(1,))
    assert receive_case(cable, plain)[0].data == plain
    right.execute(client.CMD_POLICY_FLUSH)
    assert right.command(client.CMD_POLICY_DEL, args=(2,))[0].status == 6


def test_esp_in_udp_that_the_card_cannot_take(cable_of):
    """As plain ESP it is the stack's to judge, whatever a policy says of the outer addresses."""
    cable = cable_of(flags=RX & ~client.PORT_RX_CSUM)
    right = cable.right
    policy_add(right, 1, "0.0.0.0/0", "0.0.0.0/0")
    crypto = Sa(right, IN, CRYPTO, TRANSPORT, flags=ENCAP, ports=(4500, 4500)).add()
    for spi, miss in ((crypto.spi, []), (0x9999, [MISS])):
        wrapped = bytes(ETHER / IP(**OUTER[4]) / UDP(sport=1024, dport=4500) / Raw(struct.pack("!II", spi, 1) + bytes(40)))
        packet, reasons = receive_case(cable, wrapped)
        assert packet.data == wrapped and packet.flags == 0 and reasons == miss
    wrapped = bytes(ETHER / IP(**OUTER[4]) / UDP(sport=4500, dport=4501) / Raw(struct.pack("!II", 0x9999, 1) + bytes(40)))
    assert receive_case(cable, wrapped) == (None, [POLICY_TEMPLATE])
    done, _ = right.command(client.CMD_SA_ADD, Sa(right, IN, handle=2, spi=2, flags=ENCAP, ports=(4500, 4501)).cfg)
    assert (done.param, done.min, done.max) == (20, 4500, 4500)


def test_too_long_takes_no_number(cable_of):
    """Fits the MTU as it is, but not in a tunnel."""
    cable = cable_of(flags=RX)
    out = Sa(cable.left, OUT).add()
    Sa(cable.right, IN).add()
    tunnels_allowed(cable.right)
    # 20 outer, 16 ESP and IV, 28 inner, 2 trailer, 16 ICV
    assert send(cable, bytes(inner_of(4, 1500 - 82)), out).result == 0
    assert cable.rx.receive().flags & client.RX_SA_PACKET
    for size in (1500 - 81, 1500 - 28):
        assert send(cable, bytes(inner_of(4, size)), out).result == 3
    assert out.counters()[:3] == (1, 1, 1500 - 54)
    assert cable.left.stats()["tx_sa_packets"] == 1 and cable.left.stats()["tx_drops"][3] == 2


def test_ids_of_ipv4(cable_of):
    """RFC 6864: between two gateways no ID of a packet that may be fragmented comes again, whichever SA it takes."""
    cable = cable_of(flags=RX)
    sas = [Sa(cable.left, OUT, handle=n, spi=0x1001 + n).add() for n in range(1, 4)]
    other = Sa(cable.left, OUT, handle=9, spi=0x1001, dst="192.0.2.9").add()
    numbers = {sa: [] for sa in (*sas, other)}
    for turn in range(60):
        sa = sas[turn % 3] if turn % 4 else other
        packet = inner_of(4, 20)
        packet[IP].flags = "DF" if turn % 5 == 0 else ""
        del packet[IP].chksum
        assert send(cable, bytes(packet), sa).result == 0
        outer = Ether(cable.rx.receive().data)[IP]
        assert bool(outer.flags.DF) == (turn % 5 == 0)
        if outer.flags.DF:
            assert outer.id == 0
        else:
            numbers[sa].append(outer.id)
    shared = sum((numbers[sa] for sa in sas), [])
    assert len(set(shared)) == len(shared) > 30 and len(set(numbers[other])) == len(numbers[other]) > 10


def test_refusals(cable_of):
    card = cable_of().left
    end = card.memory.addr + card.memory.size

    def add(sa, at=None, value=b""):
        cfg = bytearray(sa.cfg)
        if at is not None:
            cfg[at:at + len(value)] = value
        done, _ = card.command(client.CMD_SA_ADD, bytes(cfg))
        return done.status, done.param

    good = Sa(card, OUT)
    assert add(good, 0, struct.pack("<I", 65536)) == (2, 3)
    assert add(good, 32, struct.pack("<Q", good.state.addr + 8)) == (2, 19)
    assert add(good, 32, struct.pack("<Q", end - 64)) == (8, 19)
    assert add(good, 32, struct.pack("<Q", 0x1000)) == (8, 19)
    assert add(good, 40, struct.pack("<I", 100)) == (2, 19)
    assert add(good, 40, struct.pack("<I", 1 << 20)) == (2, 19)
    assert add(good, 276, b"\1") == (2, 24)
    assert add(good, 277, b"\1") == (2, 2)
    assert add(good, 19, b"\7")[1] == 12
    assert add(good, 20, b"\x09")[1] == 14
    assert add(good, 20, b"\2")[1] == 24
    assert add(good, 22, b"\x14")[1] == 15
    assert add(good, 64 + 5, b"\1") == (2, 12)
    assert add(good) == (0, 0)
    assert add(good) == (5, 3)
    assert card.command(client.CMD_SA_DEL, args=(0x01000001,))[0].status == 6
    assert card.command(client.CMD_SA_DEL, args=(1 << 32 | 1,))[0].status == 6
    assert card.command(client.CMD_SA_UPDATE, ipsec.SA_UPDATE.pack(2, 0, bytes(6), bytes(6), 0, 0, 0))[0].status == 6
    assert card.command(client.CMD_SA_UPDATE, ipsec.SA_UPDATE.pack(1, 1, bytes(6), bytes(6), 0, 0, 0))[0].status == 2
    assert card.command(client.CMD_SA_UPDATE, ipsec.SA_UPDATE.pack(1, 0, bytes(6), bytes(6), 1, 0, 0))[0].status == 2
    good.delete()
    assert add(good) == (0, 0)


def test_churn(cable_of):
    """Thousands of SAs, added and deleted in batches."""
    cable = cable_of(flags=RX)
    card = cable.right
    tunnels_allowed(card)
    start = time.monotonic()
    sas = [Sa(card, IN, handle=n, spi=0x2000 + n) for n in range(2000)]
    inputs = [card.memory.alloc(280) for _ in range(32)]
    for at in range(0, len(sas), 32):
        part = sas[at:at + 32]
        for n, sa in enumerate(part):
            inputs[n].write(sa.cfg)
            card.command_post(client.CMD_SA_ADD, n, inputs[n].addr, 280)
        assert all(card.command_wait(n).status == 0 for n in range(len(part)))
    plain = bytes(inner_of(4, 10).payload)
    for sa in random.Random(2).sample(sas, 50):
        assert receive_case(cable, esp_frame(sa, plain, 4, 1))[0].sa == sa.handle
    card.execute(client.CMD_SA_FLUSH)
    assert receive_case(cable, esp_frame(sas[7], plain, 4, 9))[1] == [MISS]
    assert time.monotonic() - start < 20


def test_order(cable_of):
    """Two rings, one SA: numbers on the wire rise without a gap."""
    cable = cable_of(flags=RX)
    out = Sa(cable.left, OUT).add()
    other = cable.left.queue_pair(1)
    frame = bytes(inner_of(4, 60))
    for pair in (cable.tx, other):
        base = pair.place(frame)
        for _ in range(100):
            pair.post([(base, len(frame))], client.TX_SA_PACKET, sa=1, l3_offset=14)
    for seq in range(1, 201):
        out.open(cable.rx.receive().data, seq)


def memory_of(pid):
    """Private memory of a process."""
    with open(f"/proc/{pid}/maps", encoding="ascii") as maps, open(f"/proc/{pid}/mem", "rb", 0) as memory:
        for line in maps:
            match = re.match(r"([0-9a-f]+)-([0-9a-f]+) rw", line)
            if match and "memfd" not in line:
                first, last = (int(part, 16) for part in match.groups())
                if last - first > 1 << 30:
                    continue  # shadow memory of a sanitizer
                memory.seek(first)
                yield memory.read(last - first)


@pytest.mark.skipif(os.geteuid() != 0, reason="reading another process's memory needs root")
@pytest.mark.parametrize("how", ["delete", "flush", "reset", "refused"])
def test_keys_are_wiped(cable_of, how):
    cable = cable_of(flags=RX)
    key, salt = random.Random(9).randbytes(32), b"\xf1\x07\xb2\x99"
    sa = Sa(cable.left, OUT, key=key, salt=salt)

    def traces():
        return sum(block.count(key[:16]) + block.count(key[16:]) for pid in cable.board.firmwares()
                   for block in memory_of(pid))

    if how == "refused":
        assert cable.left.command(client.CMD_SA_ADD, sa.cfg[:276] + b"\1\0\0\0")[0].status
    else:
        sa.add()
        assert send(cable, bytes(inner_of(4, 100)), sa).result == 0
        assert traces() > 0
        if how == "delete":
            sa.delete()
        elif how == "flush":
            cable.left.execute(client.CMD_SA_FLUSH)
        else:
            cable.left.enable()
    assert traces() == 0
    assert key.hex() not in cable.board.text()


def test_no_core_dump(cable_of):
    for pid in cable_of().board.firmwares():
        limits = pathlib.Path(f"/proc/{pid}/limits").read_text(encoding="ascii")
        assert re.search(r"Max core file size +0 +0 ", limits)
        assert pathlib.Path(f"/proc/{pid}/maps").stat().st_uid == 0
