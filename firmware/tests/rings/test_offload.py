# SPDX-License-Identifier: BSD-3-Clause
"""Checksums, segmentation, tags, filters and spreading; scapy is the judge."""

import random
import struct

import client
import pytest
from scapy.layers.inet import ICMP, IP, TCP, UDP
from scapy.layers.inet6 import IPv6, IPv6ExtHdrDestOpt, PseudoIPv6
from scapy.layers.l2 import Dot1Q, Ether
from scapy.packet import Raw

BAD_TSO, TOO_LONG = 6, 3
FILTERED = 10
FILTER = struct.Struct("<II64Q")
RSS = struct.Struct("<II40s128s")
RX = client.PORT_RX_ENABLE | client.PORT_PROMISCUOUS
L3 = {4: IP(src="10.0.0.1", dst="10.0.0.2", id=0xfffe), 6: IPv6(src="fd00::1", dst="fd00::2")}
ETHER = Ether(src="02:00:00:00:00:02", dst="02:00:00:00:00:01")


def whole(packet):
    """With all lengths and checksums."""
    return bytes(packet)


def partial(packet, layer):
    """As the stack leaves it: the field holds the pseudo header's sum. Returns (frame, start, offset)."""
    frame = bytearray(whole(packet))
    parsed = Ether(bytes(frame))
    start = len(frame) - len(bytes(parsed[layer]))
    offset = 16 if layer is TCP else 6
    ip = parsed[IP] if IP in parsed else parsed[IPv6]
    if IP in parsed:
        pseudo = bytes(map(int, ip.src.split("."))) + bytes(map(int, ip.dst.split(".")))
        pseudo += struct.pack("!HH", ip.proto, len(frame) - start)
    else:
        pseudo = bytes(PseudoIPv6(src=ip.src, dst=ip.dst, uplen=len(frame) - start, nh=6 if layer is TCP else 17))
    total = sum(struct.unpack(f"!{len(pseudo) // 2}H", pseudo))
    while total >> 16:
        total = (total & 0xffff) + (total >> 16)
    frame[start + offset:start + offset + 2] = struct.pack("!H", total)
    return bytes(frame), start, offset


@pytest.mark.parametrize("family", [4, 6])
@pytest.mark.parametrize("layer", [TCP, UDP])
@pytest.mark.parametrize("tags", [0, 1, 2])
def test_checksum(cable_of, family, layer, tags):
    cable = cable_of(flags=RX | client.PORT_RX_CSUM)
    for size in (0, 1, 2, 99, 1400):
        packet = ETHER
        for tag in range(tags):
            packet = packet / Dot1Q(vlan=5 + tag)
        packet = packet / L3[family] / layer(sport=1, dport=2) / Raw(random.Random(size).randbytes(size))
        frame, start, offset = partial(packet, layer)
        got = cable.carry(frame, flags=client.TX_CSUM, csum_start=start, csum_offset=offset)
        assert got.data == whole(packet)
        assert got.flags == client.RX_CSUM_GOOD
        bad = bytearray(got.data)
        bad[-1] ^= 1
        assert cable.carry(bytes(bad)).flags == 0


def test_udp_sum_of_zero(cable_of):
    """Is sent as all ones."""
    cable = cable_of(flags=RX | client.PORT_RX_CSUM)
    base = ETHER / L3[4] / UDP(sport=1, dport=2)
    for value in range(65536):
        if Ether(whole(base / Raw(struct.pack("!H", value))))[UDP].chksum == 0xffff:
            break
        if value == 0:
            total = Ether(whole(base / Raw(b"\0\0")))[UDP].chksum
            value = total
            break
    frame, start, offset = partial(base / Raw(struct.pack("!H", value)), UDP)
    got = cable.carry(frame, flags=client.TX_CSUM, csum_start=start, csum_offset=offset)
    assert got.data[start + 6:start + 8] == b"\xff\xff" and got.flags == client.RX_CSUM_GOOD


def segments_of(packet, layer, mss, fixed_id):
    """What a correct card makes of the packet."""
    payload = bytes(packet[layer].payload)
    out = []
    for n, at in enumerate(range(0, len(payload), mss)):
        part = payload[at:at + mss]
        one = packet.copy()
        one[layer].remove_payload()
        one = one / Raw(part)
        if layer is TCP:
            one[TCP].seq = (packet[TCP].seq + at) & 0xffffffff
            if at + mss < len(payload):
                one[TCP].flags = str(one[TCP].flags).replace("F", "").replace("P", "")
            if n:
                one[TCP].flags = str(one[TCP].flags).replace("C", "")
        if IP in one and not fixed_id:
            one[IP].id = (packet[IP].id + n) & 0xffff
        out.append(whole(one))
    return out


@pytest.mark.parametrize("family", [4, 6])
@pytest.mark.parametrize("layer", [TCP, UDP])
@pytest.mark.parametrize("size, mss", [(1, 1), (1400, 1400), (1401, 1400), (10000, 1000), (64000, 1440), (64000, 1000),
                                       (500, 7)])
def test_segmentation(cable_of, family, layer, size, mss):
    cable = cable_of(mtu=1500, flags=RX | client.PORT_RX_CSUM)
    options = {"flags": "FPACE", "seq": 0xfffff000, "options": [("NOP", None), ("NOP", None), ("Timestamp", (1, 2))]}
    l4 = TCP(sport=1, dport=2, **options) if layer is TCP else UDP(sport=1, dport=2)
    if layer is TCP and mss > 1428:
        mss = 1428
    packet = ETHER / L3[family] / l4 / Raw(random.Random(size).randbytes(size))
    frame, start, offset = partial(packet, layer)
    header = len(frame) - size
    fixed = size % 2 == 0
    done = cable.tx.send(frame, flags=client.TX_CSUM | client.TX_SEGMENT | (client.TX_FIXED_ID if fixed else 0),
                         csum_start=start, csum_offset=offset, mss=mss, header_len=header,
                         split=sorted({header, *range(header + 1, len(frame), 16000)}))
    want = segments_of(packet, layer, mss, fixed)
    assert done == (0, 0, len(want))
    for frame in want:
        got = cable.rx.receive()
        assert got.data == frame
        assert got.flags == client.RX_CSUM_GOOD
    stats = cable.left.stats()
    assert stats["tx_segmented"] == 1 and stats["tx_packets"] == len(want)


@pytest.mark.parametrize("desc, change, result", [
    ("header too short", {"header_len": 53}, BAD_TSO), ("header too long", {"header_len": 55}, BAD_TSO),
    ("no payload", {"header_len": 2054}, BAD_TSO), ("mss over the MTU", {"mss": 1461}, TOO_LONG),
    ("no mss", {"mss": 0}, BAD_TSO)])
def test_segmentation_refused(cable_of, desc, change, result):
    del desc
    cable = cable_of()
    frame, start, offset = partial(ETHER / L3[4] / TCP() / Raw(bytes(2000)), TCP)
    fields = dict({"csum_start": start, "csum_offset": offset, "mss": 1000, "header_len": 54}, **change)
    assert cable.tx.send(frame, flags=3, **fields).result == result
    assert cable.left.stats()["tx_packets"] == 0


def test_limits_refuse(cable_of):
    cable = cable_of("--limit=p0:no-feature=tso,no-feature=tx-vlan,no-feature=tx-csum")
    frame, start, offset = partial(ETHER / L3[4] / TCP() / Raw(bytes(1200)), TCP)
    assert cable.tx.send(frame, flags=2, mss=1000, header_len=54).result == BAD_TSO
    assert cable.tx.send(frame, flags=4, vlan_tci=5).result == 1
    assert cable.tx.send(frame, flags=1, csum_start=start, csum_offset=offset).result == 1
    udp = ETHER / L3[4] / UDP() / Raw(bytes(1200))
    assert cable.tx.send(whole(udp), flags=2, mss=1000, header_len=42).segments == 2


def test_vlan_insert_and_strip(cable_of):
    cable = cable_of(flags=RX | client.PORT_RX_CSUM)
    packet = ETHER / L3[4] / UDP(sport=1, dport=2) / Raw(b"x" * 30)
    frame, start, offset = partial(packet, UDP)
    tagged = ETHER / Dot1Q(vlan=0xabc, prio=5) / L3[4] / UDP(sport=1, dport=2) / Raw(b"x" * 30)
    options = {"flags": client.TX_CSUM | client.TX_VLAN, "csum_start": start, "csum_offset": offset, "vlan_tci": 0xaabc}
    got = cable.carry(frame, **options)
    assert got.data == whole(tagged) and got.flags == client.RX_CSUM_GOOD
    cable.right.port_set(flags=RX | client.PORT_RX_CSUM | client.PORT_VLAN_STRIP)
    got = cable.carry(frame, **options)
    assert got.data == whole(packet) and got.flags == client.RX_CSUM_GOOD | client.RX_VLAN and got.vlan_tci == 0xaabc
    inner = whole(ETHER / Dot1Q(vlan=7) / L3[4] / UDP())
    got = cable.carry(inner, flags=client.TX_VLAN, vlan_tci=9)
    assert got.data == inner and got.vlan_tci == 9
    big = ETHER / L3[4] / TCP() / Raw(bytes(4000))
    assert cable.tx.send(partial(big, TCP)[0], flags=client.TX_SEGMENT | client.TX_CSUM | client.TX_VLAN, vlan_tci=3,
                         mss=1460, header_len=54, csum_start=34, csum_offset=16).segments == 3
    for _ in range(3):
        assert cable.rx.receive().vlan_tci == 3
    qinq = whole(Ether(src="02:00:00:00:00:02", dst="02:00:00:00:00:01", type=0x88a8) / Raw(b"\0\x05\x08\0" + bytes(60)))
    got = cable.carry(qinq)
    assert got.data == qinq and not got.flags & client.RX_VLAN


def to(mac, vlan=None):
    """A frame to an address."""
    ether = Ether(src="02:00:00:00:00:09", dst=mac)
    return whole((ether / Dot1Q(vlan=vlan) if vlan is not None else ether) / IP() / UDP() / Raw(bytes(30)))


def filter_set(card, addresses=(), vlans=()):
    """CORDON_CMD_FILTER_SET."""
    words = [0] * 64
    for vlan in vlans:
        words[vlan // 64] |= 1 << vlan % 64
    data = b"".join(bytes.fromhex(a.replace(":", "")) + b"\0\0" for a in addresses)
    card.execute(client.CMD_FILTER_SET, FILTER.pack(len(addresses), 0, *words) + data)


def passes(cable, frame):
    """Does the right card take it?"""
    before = cable.right.stats()
    assert cable.tx.send(frame).result == 0
    client.wait_for(lambda: cable.right.stats()["rx_wire_packets"] > before["rx_wire_packets"])
    after = cable.right.stats()
    if after["rx_packets"] > before["rx_packets"]:
        assert cable.rx.receive().data == frame
        return True
    assert after["rx_drops"][FILTERED] == before["rx_drops"][FILTERED] + 1
    return False


def test_address_filter(cable_of):
    cable = cable_of(flags=client.PORT_RX_ENABLE)
    own = ":".join(f"{b:02x}" for b in cable.right.mac())
    assert passes(cable, to(own)) and passes(cable, to("ff:ff:ff:ff:ff:ff"))
    assert not passes(cable, to("02:00:00:00:00:77")) and not passes(cable, to("33:33:00:00:00:01"))
    many = [f"33:33:00:00:01:{n:02x}" for n in range(255)]
    filter_set(cable.right, [*many, "02:00:00:00:00:77"])
    assert passes(cable, to("02:00:00:00:00:77")) and passes(cable, to(many[0])) and passes(cable, to(many[254]))
    assert not passes(cable, to("33:33:00:00:01:ff"))
    assert cable.right.stats()["rx_multicast"] == 2
    cable.right.port_set(flags=client.PORT_RX_ENABLE | client.PORT_ALL_MULTICAST)
    assert passes(cable, to("33:33:00:00:01:ff")) and not passes(cable, to("02:00:00:00:00:78"))
    filter_set(cable.right)
    assert not passes(cable, to("02:00:00:00:00:77"))
    cable.right.port_set(flags=client.PORT_RX_ENABLE, mac=b"\x02\0\0\0\0\x78")
    assert passes(cable, to("02:00:00:00:00:78")) and not passes(cable, to(own))
    cable.right.port_set(flags=RX)
    assert passes(cable, to("02:00:00:00:00:99"))


def test_vlan_filter(cable_of):
    cable = cable_of(flags=client.PORT_RX_ENABLE | client.PORT_VLAN_FILTER)
    mac = "ff:ff:ff:ff:ff:ff"
    assert passes(cable, to(mac)) and passes(cable, to(mac, 0)) and not passes(cable, to(mac, 5))
    filter_set(cable.right, vlans=[5, 64, 4095])
    for vlan in (5, 64, 4095):
        assert passes(cable, to(mac, vlan))
    for vlan in (4, 6, 63, 65, 4094):
        assert not passes(cable, to(mac, vlan))
    cable.right.port_set(flags=RX | client.PORT_VLAN_FILTER)
    assert passes(cable, to(mac, 6))


def test_runt_and_strange_frames(cable):
    for frame in (bytes(14), b"\xff" * 14, bytes(12) + b"\x81\x00", bytes(12) + b"\x81\x00\x00", bytes(12) + b"\x08\x00",
                  bytes(12) + b"\x08\x00\x45", bytes(12) + b"\x86\xdd\x60", bytes(12) + b"\x81\x00" * 30):
        assert cable.carry(frame).data == frame


# The verification suite's key, as in Microsoft's specification.
KEY = bytes.fromhex("6d5a56da255b0ec24167253d43a38fb0d0ca2bcbae7b30b477cb2da38030f20c6a42b73bbeac01fa")
VECTORS = [
    (IP(src="66.9.149.187", dst="161.142.100.80"), 2794, 1766, 0x51ccc178, 0x323e8fc2),
    (IP(src="199.92.111.2", dst="65.69.140.83"), 14230, 4739, 0xc626b0ea, 0xd718262a),
    (IPv6(src="3ffe:2501:200:1fff::7", dst="3ffe:2501:200:3::1"), 2794, 1766, 0x40207d3d, 0x2cc18cd5),
]


def test_rss_vectors_and_spread(cable_of):
    cable = cable_of(flags=RX | client.PORT_RSS)
    right = cable.right
    pairs = [cable.rx] + [right.queue_pair(n, log2=6) for n in range(1, 8)]
    table = bytes(n % 8 for n in range(128))
    right.execute(client.CMD_RSS_SET, RSS.pack(0x3f, 0, KEY, table))
    for ip, sport, dport, with_ports, alone in VECTORS:
        cable.tx.send(whole(ETHER / ip / TCP(sport=sport, dport=dport)))
        got = pairs[table[with_ports & 127]].receive()
        assert (got.hash, got.hash_type) == (with_ports, 2)
        cable.tx.send(whole(ETHER / ip / ICMP()) if IP in ip else whole(ETHER / ip / IPv6ExtHdrDestOpt(nh=59)))
        got = pairs[table[alone & 127]].receive()
        assert (got.hash, got.hash_type) == (alone, 1)
    right.execute(client.CMD_RSS_SET, RSS.pack(0, 0, KEY, table))
    cable.tx.send(whole(ETHER / VECTORS[0][0] / TCP(sport=2794, dport=1766)))
    assert pairs[table[0x323e8fc2 & 127]].receive().hash_type == 1
    pairs[7].destroy()
    right.execute(client.CMD_RSS_SET, RSS.pack(0, 0, KEY, bytes([7] * 128)))
    cable.tx.send(whole(ETHER / L3[4] / TCP()))
    client.wait_for(lambda: right.stats()["rx_drops"][9] == 1)


def test_rss_on_esp(cable_of):
    cable = cable_of(flags=RX | client.PORT_RSS)
    cable.right.execute(client.CMD_RSS_SET, RSS.pack(0x3f, 0, KEY, bytes(128)))
    one, two = (cable.carry(whole(ETHER / IP(src="10.0.0.1", dst="10.0.0.2", proto=50) /
                                  Raw(struct.pack("!II", spi, 1) + bytes(40)))) for spi in (1, 2))
    assert one.hash_type == two.hash_type == 3 and one.hash != two.hash
    assert cable.right.stats()["rx_drops"][22] == 2 and cable.right.stats()["rx_packets"] == 2
    cable.right.port_set(flags=RX | client.PORT_RSS | client.PORT_VLAN_STRIP)
    for seq in (1, 2):
        tagged = cable.carry(whole(ETHER / IP(src="10.0.0.1", dst="10.0.0.2", proto=50) /
                                   Raw(struct.pack("!II", 1, seq) + bytes(40))), flags=client.TX_VLAN, vlan_tci=5)
        assert tagged.flags & client.RX_VLAN and (tagged.hash, tagged.hash_type) == (one.hash, 3)
