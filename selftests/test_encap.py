# SPDX-License-Identifier: GPL-2.0-only
"""ESP in UDP (RFC 3948): against the kernel's software, and beside all else that uses these ports."""

import contextlib
import struct
from pathlib import Path

import pytest

from kit import Sa, Tunnel
from kit.fragments import MTU, echoes, narrow
from kit.wire import IPPROTO_UDP, PORT_NATT

NATT = Path(__file__).parent / "kit" / "natt.py"
ENCAP = "encap espinudp {} {} 0.0.0.0"
SIZES = (0, 1, 2, 3, 64, 500, 1300)
SPIS = (0x1000, 0x1001)
#: offload, mode, family, ESN. In crypto mode the stack has no way for IPv6.
CASES = [("packet", "tunnel", 4, False), ("packet", "transport", 4, True), ("packet", "tunnel", 6, True),
         ("packet", "transport", 6, False), ("crypto", "tunnel", 4, True), ("crypto", "transport", 4, False)]


def ids(cases):
    """A name for each."""
    return ["-".join(str(word) for word in case if not isinstance(word, bool)) for case in cases]


@contextlib.contextmanager
def listening(host, family, port=PORT_NATT, kind="encap"):
    """A socket of a key manager."""
    host.vm.write("/tmp/natt.py", NATT.read_text(encoding="utf-8"))
    job = host.vm.start(f"exec python3 /tmp/natt.py listen {family} {port} {kind}", timeout=300)
    try:
        job.wait_output("ready")
        yield job
    finally:
        job.stop()


@contextlib.contextmanager
def behind_nat(pair, offload, mode="tunnel", family=4, esn=False, ports=(PORT_NATT, PORT_NATT)):
    """A tunnel in UDP, its left end offloaded; both hosts have the socket that software needs."""
    sa = {"extra": ENCAP.format(*ports), "esn": esn, "window": 64 if esn else 32}
    with listening(pair.left, family), listening(pair.right, family), \
            Tunnel(pair.left, pair.right, mode, family, family, left_offload=offload, sa=sa) as tunnel:
        yield tunnel


def checksum_ok(frame):
    """Is the UDP checksum right, or left out where it may be (RFC 768, RFC 8200 8.1)?"""
    src, dst = (frame.data[26:30], frame.data[30:34]) if frame.ethertype == 0x0800 else (frame.data[22:38], frame.data[38:54])
    length, given = struct.unpack_from("!HH", frame.l4, 4)
    if not given:
        return frame.ethertype == 0x0800
    data = src + dst + struct.pack("!II", length, IPPROTO_UDP) + frame.l4[:length]
    total = sum(struct.unpack(f"!{(len(data) + 1) // 2}H", data + bytes(len(data) % 2)))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total == 0xFFFF


def check_wire(frames, family):
    """Nothing but ESP in UDP between the hosts, each number once, headers as software makes them."""
    tunnel = [f for f in frames if f.protocol == IPPROTO_UDP]
    assert not [f for f in frames if f.is_clear() or f.esp]
    numbers = []
    for frame in tunnel:
        source, target, length, check = struct.unpack_from("!HHHH", frame.l4)
        assert (source, target) == (PORT_NATT, PORT_NATT) and length == len(frame.l4), frame
        assert checksum_ok(frame) and (check == 0) == (family == 4), frame
        numbers.append(struct.unpack_from("!II", frame.l4, 8))
        assert numbers[-1][0] in SPIS, frame
    assert len(set(numbers)) == len(numbers) > 2 * len(SIZES)


def retransmitted(host):
    """Segments of TCP that a host had to send again."""
    names, values = host.run("grep ^Tcp: /proc/net/snmp").stdout.splitlines()
    return int(values.split()[names.split().index("RetransSegs")])


@pytest.mark.core
@pytest.mark.limit(120)
@pytest.mark.parametrize("case", CASES, ids=ids(CASES))
def test_against_software(pair, case):
    """The card does all of it, the peer's software understands each packet and is understood."""
    offload, mode, family, esn = case
    before, errors, resent = pair.left.stats(), [host.xfrm_stat() for host in pair.hosts()], retransmitted(pair.left)
    mark = pair.wire.mark()
    with behind_nat(pair, offload, mode, family, esn) as tunnel:
        assert pair.left.ping_sizes(tunnel.target(pair.right), SIZES) == []
        pair.left.tcp(pair.right, tunnel.target(pair.right), 1 << 20)
        states = pair.left.run("ip xfrm state").stdout
    after = pair.left.stats()
    # The stack can't receive such tunnels in crypto mode.
    both = (offload, mode) != ("crypto", "tunnel")
    assert states.count(f"mode {offload}") == 1 + both
    for name in ("port_tx_sa_packets", "port_rx_sa_packets")[:1 + both]:
        assert after[name] >= before[name] + len(SIZES), name
    assert after["ipsec_rx_software"] == before["ipsec_rx_software"]
    assert retransmitted(pair.left) - resent < 10
    assert [host.xfrm_stat() for host in pair.hosts()] == errors
    check_wire(pair.wire.since(mark), family)


@pytest.mark.limit(120)
@pytest.mark.parametrize("family", (4, 6))
def test_both_ends_in_packet_mode(pair, family):
    sa = {"extra": ENCAP.format(PORT_NATT, PORT_NATT)}
    mark = pair.wire.mark()
    with Tunnel(pair.left, pair.right, "tunnel", family, family, left_offload="packet", right_offload="packet", sa=sa) as tunnel:
        # Nobody listens: the card needs no socket.
        assert pair.left.ping_sizes(tunnel.target(pair.right), SIZES) == []
        pair.left.tcp(pair.right, tunnel.target(pair.right), 1 << 17)
    check_wire(pair.wire.since(mark), family)


def send(host, family, address, port, *payloads):
    """Datagrams from port 4500."""
    host.vm.write("/tmp/natt.py", NATT.read_text(encoding="utf-8"))
    host.run(f"python3 /tmp/natt.py send {family} {address} {port} {' '.join(payload.hex() for payload in payloads)}")


IKE, KEEPALIVE = bytes(4) + b"IKE", b"\xff"
FOREIGN = struct.pack("!II", 0x77777777, 1) + bytes(64)


@pytest.mark.core
@pytest.mark.parametrize("family", (4, 6))
@pytest.mark.parametrize("offload", ("packet", "crypto"))
def test_others_get_theirs(pair, offload, family):
    """IKE, keepalives, ESP of an SPI that nobody has, and other ports: as if there were no card's SA."""
    sa = {"extra": ENCAP.format(PORT_NATT, PORT_NATT)} if (offload, family) != ("crypto", 6) else {}
    address = pair.left.address(family)
    with Tunnel(pair.left, pair.right, "tunnel", family, family, left_offload=offload, sa=sa):
        with listening(pair.left, family, kind="plain") as plain, listening(pair.left, family, 5555, "plain") as other:
            send(pair.right, family, address, PORT_NATT, IKE, KEEPALIVE, FOREIGN)
            send(pair.right, family, address, 5555, IKE, b"hello")
            for job, wanted in ((plain, (IKE, KEEPALIVE, FOREIGN)), (other, (IKE, b"hello"))):
                pair.left.wait(lambda job=job, wanted=wanted: wanted[-1].hex() in job.output, "the last datagram")
                assert [line.split()[1:] for line in job.output.splitlines()[1:]] == [["4500", data.hex()] for data in wanted]
        errors = pair.left.xfrm_stat().get("XfrmInNoStates", 0)
        with listening(pair.left, family) as daemon:
            send(pair.right, family, address, PORT_NATT, KEEPALIVE, FOREIGN, IKE)
            pair.left.wait(lambda: IKE.hex() in daemon.output, "IKE")
            assert len(daemon.output.splitlines()) == 2
        assert pair.left.xfrm_stat()["XfrmInNoStates"] == errors + 1


@pytest.mark.core
@pytest.mark.parametrize("offload", (None, "packet", "crypto"))
def test_source_port_changed_on_the_way(pair, offload):
    """A NAT on the way chose another port: the packets are the SA's all the same."""
    with behind_nat(pair, offload) as tunnel:
        tunnel.back.extra = ENCAP.format(40001, PORT_NATT)
        tunnel.back.add(pair.right, "out", verb="update")
        mark = pair.wire.mark()
        pair.left.ping(tunnel.target(pair.right), count=5, options="-i 0.05")
        sources = {struct.unpack_from("!H", f.l4)[0] for f in pair.wire.since(mark) if not f.out and f.protocol == IPPROTO_UDP}
    assert sources == {40001}


def mismatch(pair, offload, sender, receiver):
    """What a host counts when one end encapsulates and the other doesn't expect it."""
    with listening(pair.left, 4), listening(pair.right, 4), \
            Tunnel(pair.left, pair.right, "tunnel", left_offload=offload) as tunnel:
        tunnel.back.delete(pair.left)
        Sa(tunnel.back.src, tunnel.back.dst, tunnel.back.spi, "tunnel", extra=receiver).add(pair.left, "in", offload)
        tunnel.back.delete(pair.right)
        Sa(tunnel.back.src, tunnel.back.dst, tunnel.back.spi, "tunnel", extra=sender).add(pair.right, "out")
        before = pair.left.xfrm_stat()
        pair.right.ping(tunnel.target(pair.left), count=5, options="-i 0.02 -W 0.2", check=False)
        after = pair.left.xfrm_stat()
    return {name: count - before.get(name, 0) for name, count in after.items() if count != before.get(name, 0)}


@pytest.mark.parametrize("sender, receiver", [("", ENCAP.format(4500, 4500)), (ENCAP.format(4500, 4500), "")],
                         ids=["plain-esp", "esp-in-udp"])
def test_mismatch_counts_as_in_software(pair, sender, receiver):
    software = mismatch(pair, None, sender, receiver)
    assert sum(software.values()) == 5
    for offload in ("crypto", "packet"):
        assert mismatch(pair, offload, sender, receiver) == software, offload


@pytest.mark.limit(120)
@pytest.mark.parametrize("family", (4, 6))
def test_fragmented(pair, family):
    """The peer's software fragments the UDP packets, the card puts them together."""
    before, arrived = pair.left.stats(), echoes(pair.left, family)
    narrow(pair.right, family, MTU[family])
    try:
        with behind_nat(pair, "packet", "transport", family) as tunnel:
            pair.right.ping(tunnel.target(pair.left), 2000, count=10, options="-i 0.05 -W 0.2", check=False)
    finally:
        narrow(pair.right, family, None)
    assert echoes(pair.left, family) - arrived == 10
    assert pair.left.stats()["port_rx_reassembled"] == before["port_rx_reassembled"] + 10
