# SPDX-License-Identifier: GPL-2.0-only
"""Headers that the card makes, against those of the kernel's software: the same packets, byte by byte."""

import struct

import pytest
from scapy.layers.inet import ICMP, IP, UDP, IPOption
from scapy.layers.inet6 import ICMPv6PacketTooBig, IPv6, IPv6ExtHdrDestOpt
from scapy.layers.l2 import Ether
from scapy.packet import Raw

from kit import SUITES
from kit.flows import PORT, Flow, Flows, Receiver, seal, send, unseal
from kit.host import DEV

CASES = [("tunnel", 4), ("tunnel", 6), ("transport", 4), ("transport", 6)]
OUT_FLAGS = ("", "flag noecn", "flag nopmtudisc", "extra-flag dont-encap-dscp",
             "flag noecn flag nopmtudisc extra-flag dont-encap-dscp")
IN_FLAGS = ("", "flag noecn", "flag decap-dscp", "flag noecn flag decap-dscp")
OUT_TOS = (0x00, 0x01, 0x02, 0x03, 0xB8, 0xBB, 0xFD)
IN_TOS = (0x00, 0x02, 0x03, 0xB9)
OUTER_TOS = (0x00, 0x03, 0xBB, 0x2D)
LAST = "the-last-one"
SPORT = 4999
EMSGSIZE, EHOSTUNREACH = 90, 113


@pytest.fixture
def ends(pair):
    """Both ends have hosts behind them and know each other, so that nothing waits."""
    for host, other in zip(pair.hosts(), reversed(pair.hosts())):
        host.lan_up()
        neighbours(host, other)
    return pair


def neighbours(host, other):
    """The host knows the other end."""
    mac = other.mac()
    host.run(f"for a in {other.v4} {other.v6}; do ip neigh replace $a lladdr {mac} dev {DEV}; done")


def flows(pair, name, values, few=True):
    """Flows of each mode and family, one for each value of an argument of Flow; few: two are enough in transport mode."""
    some = [(case, value) for case in CASES
            for value in (values[::len(values) - 1] if few and case[0] == "transport" else values)]
    return [Flow(n, pair.left, pair.right, *case, **{name: value}) for n, (case, value) in enumerate(some)]


def local_packets(flow):
    """Datagrams of the end itself."""
    common = {"src": flow.here, "dst": flow.there, "sport": SPORT, "dport": PORT, "size": 64}
    if flow.family == 6:
        for tos in OUT_TOS:
            yield common | {"options": [(41, 67, tos), (41, 16, 1 + tos)]}
        return
    for tos in OUT_TOS:
        for discover in (0, 1, 2):
            yield common | {"options": [(0, 1, tos), (0, 2, 1 + tos), (0, 10, discover)]}


def forwarded_packets(pair, flow):
    """Packets of the host behind the end."""
    for n, tos in enumerate(OUT_TOS):
        if flow.family == 6:
            yield datagram(flow, pair.left.lan(6), 112 + n, tc=tos, fl=0x10000 * n + 0x7321, hlim=2 + 9 * n)
        else:
            for df in ("", "DF"):
                yield datagram(flow, pair.left.lan(4), 92 + n, tos=tos, ttl=2 + 9 * n, flags=df, id=0x1234 + n)


def lan_frames(pair, packets):
    """Packets as the host behind the end sends them."""
    ether = Ether(dst=pair.left.run("cat /sys/class/net/lan0/address").stdout.strip(), src="02:00:00:00:aa:01")
    return [{"dev": "eth0", "frame": bytes(ether / packet)} for packet in packets]


def datagram(flow, src, size, **fields):
    """A packet of that length for the far end; an IPv4 one must not be fragmented."""
    ip = IP(src=src, dst=flow.there, flags="DF") if flow.family == 4 else IPv6(src=src, dst=flow.there)
    for name, value in fields.items():
        ip.setfieldval(name, value)
    return ip / UDP(sport=SPORT, dport=PORT) / Raw(bytes(size - len(ip) - 8))


def without_id(packet):
    """An IPv4 packet without ID and checksum, which has to be right; and its ID, None where it says that it has none."""
    if packet[0] >> 4 != 4:
        return packet, None
    total = sum(struct.unpack("!10H", packet[:20]))
    assert (total & 0xFFFF) + (total >> 16) == 0xFFFF
    number = None if packet[6] & 0x40 else struct.unpack_from("!H", packet, 4)[0]
    return packet[:4] + b"id" + packet[6:10] + b"ok" + packet[12:], number


def made(frames, flow):
    """What a flow's packets became on the wire: all of it but IDs and ICV; and the IDs that matter.

    Sorted, for packets of several sockets take several queues.
    """
    headers, numbers, found = [], [], []
    size = 20 if flow.family == 4 else 40
    for frame in frames:
        if not frame.out or not frame.esp or frame.esp[0] != flow.out.spi:
            continue
        outer, number = without_id(frame.data[14:14 + size])
        seq, payload, padding, after = unseal(flow.out, frame.data[14 + size:])
        inner = without_id(payload)[0] if flow.mode == "tunnel" else payload
        headers.append((inner.hex(), frame.data[:14].hex(), outer.hex(), padding.hex(), after))
        numbers.append(seq)
        if number is not None:
            found.append(number)
    assert sorted(numbers) == list(range(1, len(numbers) + 1))
    return sorted(headers), found


def sent(pair, offload):
    """What the card or the stack makes of all packets, for each flow."""
    some = flows(pair, "extra", OUT_FLAGS)
    mark = pair.wire.mark()
    with Flows(some, offload):
        send(pair.left, [p for flow in some for p in local_packets(flow)])
        send(pair.left, lan_frames(pair, (p for flow in some if flow.mode == "tunnel" for p in forwarded_packets(pair, flow))),
             netns="lan")
        frames = pair.wire.since(mark)
    assert not [f for f in frames if f.out and f.is_clear()]
    return some, [made(frames, flow) for flow in some]


@pytest.mark.core
@pytest.mark.limit(180)
def test_sent(ends):
    """Frame by frame what software makes; IDs of packets that may be fragmented don't come again."""
    _, want = sent(ends, None)
    some, got = sent(ends, "packet")
    tunnels = []
    for flow, (headers, numbers), (wanted, others) in zip(some, got, want):
        assert headers == wanted, (flow.mode, flow.family, flow.extra)
        assert len(headers) == len(OUT_TOS) * {("tunnel", 4): 5, ("tunnel", 6): 2, ("transport", 4): 3, ("transport", 6): 1}[
            flow.mode, flow.family]
        assert len(numbers) == len(others)
        if flow.mode == "tunnel":
            tunnels += numbers
    assert len(set(tunnels)) == len(tunnels) > 100


def esp_frames(pair, flow, final):
    """ESP by another gateway, outer and inner header with each DSCP and ECN, for the end and for the host behind it."""
    ether = Ether(dst=pair.left.mac(), src=pair.right.mac())
    kind, name = (IP, "tos") if flow.family == 4 else (IPv6, "tc")
    targets = [flow.here] if flow.mode == "transport" else [flow.here, pair.left.lan(flow.family)]
    cases = [(target, inner, outer) for target in targets for inner in IN_TOS for outer in OUTER_TOS]
    for n, (target, inner, outer) in enumerate(cases, 1):
        data = LAST if final and n == len(cases) else f"{flow.number}-{inner:x}-{outer:x}"
        head = kind(src=flow.back.src, dst=flow.back.dst, **{name: outer})
        packet = bytes(kind(src=flow.there, dst=target, **{name: inner}) / UDP(sport=SPORT, dport=PORT) / Raw(data.encode()))
        payload, after = (packet, 4 if flow.family == 4 else 41) if flow.mode == "tunnel" else (packet[len(head):], 17)
        head.setfieldval("proto" if flow.family == 4 else "nh", 50)
        yield {"dev": DEV, "frame": bytes(ether / head / Raw(seal(flow.back, n, payload, after)))}


def datagrams(frames, tunnels):
    """What came out of tunnels, from the IP header on. What comes in transport mode software doesn't show a second time."""
    sources = {flow.there for flow in tunnels}
    for frame in frames:
        ether = Ether(frame)
        if UDP in ether and ether[UDP].dport == PORT and ether[1].src in sources:
            yield frame[14:]


def received(pair, offload):
    """What sockets and tcpdump see of these frames: at the end and at the host behind it."""
    # The last one is for the host behind, and the end sees it pass.
    some = sorted(flows(pair, "extra_in", IN_FLAGS), key=lambda flow: flow.mode == "tunnel")
    frames = [frame for flow in some for frame in esp_frames(pair, flow, flow is some[-1])]
    with Flows(some, offload), Receiver(pair.left, DEV, LAST) as here, Receiver(pair.left, "eth0", LAST, netns="lan") as behind:
        send(pair.right, frames)
    tunnels = [flow for flow in some if flow.mode == "tunnel"]
    return [(sorted(datagrams(r.frames, tunnels)), sorted(r.udp)) for r in (here, behind)]


@pytest.mark.core
@pytest.mark.limit(180)
def test_received(ends):
    """DSCP and congestion, as a socket is told, and as the frames say."""
    want, got = received(ends, None), received(ends, "packet")
    each, tunnels, transports = len(IN_TOS) * len(OUTER_TOS), 2 * len(IN_FLAGS), 4
    # A device shows what comes to it, for the end and for others; a socket what is for the end.
    assert [(len(frames), len(udp)) for frames, udp in got] == [
        (each * 2 * tunnels, each * (tunnels + transports)), (each * tunnels,) * 2]
    for mine, others in zip(got, want):
        for some, same in zip(mine, others):
            assert [x for x in some if x not in same] == [x for x in same if x not in some] == []


#: blocks, IVs and ICVs of each length
MTU_SUITES = ("gcm128-128", "ccm256-64", "cbc128-sha512-256", "null-sha1-96")
PATH_MTU = 1333


def errors_for_lan(pair, packets):
    """The ICMP errors that the host behind the end gets for packets."""
    last = {"dev": "lan0", "frame": bytes(Ether(dst="ff:ff:ff:ff:ff:ff", type=0x88B5) / Raw(LAST.encode()))}
    with Receiver(pair.left, "eth0", LAST, netns="lan") as lan:
        send(pair.left, lan_frames(pair, packets), netns="lan")
        send(pair.left, [last])
    # Their own header has an ID.
    return [without_id(f[14:])[0] for f in lan.frames if ICMP in Ether(f) or ICMPv6PacketTooBig in Ether(f)]


def too_big(pair, flow):
    """A router on the way says so."""
    size, kind = (20, IP) if flow.family == 4 else (40, IPv6)
    outer = kind(src=flow.out.src, dst=flow.out.dst, **{"proto" if flow.family == 4 else "nh": 50})
    quoted = bytes(outer / Raw(struct.pack("!II", flow.out.spi, 1) + bytes(1200)))[:size + 1208]
    error = ICMP(type=3, code=4, nexthopmtu=PATH_MTU) if flow.family == 4 else ICMPv6PacketTooBig(mtu=PATH_MTU)
    ether = Ether(dst=pair.left.mac(), src=pair.right.mac())
    return bytes(ether / kind(src=pair.right.address(flow.family), dst=flow.out.src) / error / Raw(quoted[:576]))


def probed(pair, offload):
    """MTUs, errors and lengths on the wire around each MTU: of local packets, forwarded ones, and after an ICMP error."""
    some = flows(pair, "suite", [SUITES[name] for name in MTU_SUITES], few=False)
    probes = [{"src": flow.here, "dst": flow.there, "sport": SPORT, "dport": PORT, "connect": True,
               "size": more - (28 if flow.family == 4 else 48), "options": [(0, 10, 2) if flow.family == 4 else (41, 23, 2)]}
              for flow in some for more in (0, 1)]
    mark = pair.wire.mark()
    with Flows(some, offload):
        found = {"local": send(pair.left, probes)}
        mtus = [mtu for _, mtu in found["local"][::2]]
        found["forwarded"] = errors_for_lan(pair, (datagram(flow, pair.left.lan(flow.family), mtu + more)
                                                   for flow, mtu in zip(some, mtus) if flow.mode == "tunnel" for more in (0, 1)))
        send(pair.right, [{"dev": DEV, "frame": too_big(pair, flow)} for flow in some])
        found["learned"] = send(pair.left, probes)
        frames = pair.wire.since(mark)
        pair.left.run("ip route flush cache; ip -6 route flush cache")
    # Software may encrypt in another order, and takes numbers for what it doesn't send then.
    found["wire"] = sorted((f.esp[0], f.data[16:18] if f.ethertype == 0x0800 else f.data[18:20])
                           for f in frames if f.out and f.esp)
    assert not [f for f in frames if f.is_clear() and f.out and f.protocol == 17]
    return some, found


@pytest.mark.core
@pytest.mark.limit(180)
def test_mtu(ends):
    """What the kernel computes, tells and sends: one byte more than the MTU is an error, and so is it for who is behind."""
    _, want = probed(ends, None)
    some, got = probed(ends, "packet")
    assert [mtu for _, mtu in got["local"]] == [mtu for _, mtu in want["local"]]
    assert [mtu for _, mtu in got["learned"]] == [mtu for _, mtu in want["learned"]]
    assert all(now < before for (_, now), (_, before) in zip(got["learned"], got["local"]))
    assert got["forwarded"] == want["forwarded"] and len(got["forwarded"]) == 2 * len(MTU_SUITES)
    # What just fits, now and after the ICMP error; in a tunnel from the host behind, too.
    assert got["wire"] == want["wire"] and len(got["wire"]) == (3 + 3 + 2 + 2) * len(MTU_SUITES)
    # Software finds out after encryption in IPv6's transport mode; the core asks before, and is less kind.
    errors = [error for flow in some for error in (0, EHOSTUNREACH if (flow.mode, flow.family) == ("transport", 6) else EMSGSIZE)]
    assert [error for error, _ in got["local"]] == [error for error, _ in got["learned"]] == errors
    assert {error for error, _ in want["local"]} == {0, EMSGSIZE}


@pytest.mark.limit(120)
def test_core_drops(ends):
    """What the core gives to no card in packet mode: an error, one count each, and nothing on the wire."""
    left = ends.left
    some = [Flow(n, left, ends.right, mode, family) for n, (mode, family) in enumerate(CASES)]
    local, forwarded = [], []
    for flow in some:
        common = {"src": flow.here, "dst": flow.there, "sport": SPORT, "dport": PORT, "size": 100}
        if flow.family == 4:
            local += [common | {"options": [(0, 4, b"\1\1\1\0")]}, common | {"options": [(0, 10, 0)], "size": 2000}]
        else:
            local += [common | {"options": [(41, 59, b"\0\0\1\4\0\0\0\0")]}]
        if flow.mode == "tunnel" and flow.family == 4:
            forwarded += [datagram(flow, left.lan(4), 200, options=[IPOption(b"\x01\x01\x01\x00")]),
                          datagram(flow, left.lan(4), 1490, flags="")]
        elif flow.mode == "tunnel":
            ip = IPv6(src=left.lan(6), dst=flow.there)
            forwarded += [ip / IPv6ExtHdrDestOpt(options=[]) / UDP(sport=SPORT, dport=PORT) / Raw(bytes(50))]
    mark = ends.wire.mark()
    with Flows(some, "packet"):
        dropped = left.xfrm_stat().get("XfrmOutError", 0) + len(local)
        assert [error for error, _ in send(left, local)] == [EHOSTUNREACH] * len(local)
        assert left.xfrm_stat()["XfrmOutError"] == dropped
        send(left, lan_frames(ends, forwarded), netns="lan")
        assert left.xfrm_stat()["XfrmOutError"] == dropped + len(forwarded)
        # The way leads through an upper device: not that of the SA.
        left.run(f"""set -e
            ip link add link {DEV} name {DEV}.7 type vlan id 7
            ip link set {DEV}.7 up
            ip neigh replace 10.77.0.2 lladdr {ends.right.mac()} dev {DEV}.7
            ip addr add 10.77.0.1/24 dev {DEV}.7
            ip route add {some[0].there}/32 via 10.77.0.2 src {some[0].here}
            ip route add {some[0].out.dst}/32 via 10.77.0.2""")
        try:
            upper = {"src": some[0].here, "dst": some[0].there, "sport": SPORT, "dport": PORT, "size": 100}
            assert [error for error, _ in send(left, [upper])] == [EHOSTUNREACH]
            assert left.xfrm_stat()["XfrmOutError"] == dropped + len(forwarded) + 1
        finally:
            left.run(f"ip link del {DEV}.7")
    frames = [f for f in ends.wire.since(mark) if f.out]
    # On the upper device there may be ARP, and IPv6's own.
    assert not [f for f in frames if f.esp or f.is_clear() or f.ethertype == 0x8100 and f.data[16:18] == b"\x08\0"]


def sent_once(pair, some):
    """Destination and hop limit of frames: for each flow one of the end and one of the host behind it."""
    mark = pair.wire.mark()
    send(pair.left, [{"src": flow.here, "dst": flow.there, "sport": SPORT, "dport": PORT, "size": 64} for flow in some])
    send(pair.left, lan_frames(pair, [datagram(flow, pair.left.lan(flow.family), 200) for flow in some]), netns="lan")
    frames = [f.data for f in pair.wire.since(mark) if f.out and f.esp]
    return sorted((":".join(f"{b:02x}" for b in f[:6]), f[22] if f[12:14] == b"\x08\0" else f[21]) for f in frames)


@pytest.mark.core
@pytest.mark.limit(120)
def test_next_hop_is_followed(ends):
    """A neighbour that gets another address, and the hop limit of a route."""
    left, right = ends.hosts()
    some = [Flow(n, left, right, "tunnel", family) for n, family in enumerate((4, 6))]
    with Flows(some, "packet"):
        assert sent_once(ends, some) == [(right.mac(), 64)] * 4
        try:
            for number in range(2):
                mac = f"02:00:00:00:bb:{number:02x}"
                left.run(f"for a in {right.v4} {right.v6}; do ip neigh replace $a lladdr {mac} dev {DEV}; done")
                assert sent_once(ends, some) == [(mac, 64)] * 4
            for there in (f"{right.v4}/32", f"{right.v6}/128"):
                left.run(f"ip route replace {there} dev {DEV} hoplimit 33")
            # Routes are looked at each second.
            seen = sent_once(ends, some), sent_once(ends, some)
            assert seen[1] == [(mac, 33)] * 4, seen
        finally:
            left.run(f"ip route del {right.v4}/32 dev {DEV}; ip -6 route del {right.v6}/128 dev {DEV}", check=False)
            neighbours(left, right)
