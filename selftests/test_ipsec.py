# SPDX-License-Identifier: GPL-2.0-only
"""IPsec offload against the kernel's software at the other end."""

import itertools

import pytest

from kit import Policy, Sa, Tunnel
from kit.host import DEV
from kit.xfrm import make_key

OFFLOADS = ("crypto", "packet")
MATRIX = [("transport", 4, 4), ("transport", 6, 6), ("tunnel", 4, 4), ("tunnel", 6, 6)]
CORE = [("transport", 4, 4), ("tunnel", 6, 6)]
SMALL = (0, 1, 2, 3, 4, 5, 6, 7, 8, 11, 12, 16, 33, 80)


def ids(values):
    """Readable names of cases."""
    return ["-".join(map(str, value)) for value in values]


def check_traffic(pair, tunnel, both=True):
    """Traffic of all kinds through the tunnel, all of it ESP on the wire, numbers used once."""
    mark = pair.wire.mark()
    errors = [host.xfrm_stat() for host in pair.hosts()]
    there = tunnel.target(pair.right)
    assert pair.left.ping_sizes(there, SMALL + (1000, 1300)) == []
    pair.left.tcp(pair.right, there, 1 << 18)
    if both:
        pair.right.tcp(pair.left, tunnel.target(pair.left), 1 << 18)
    frames = pair.wire.since(mark)
    clear = [f for f in frames if f.is_clear()]
    assert not clear, f"{len(clear)} frames in clear, first: {clear[0].data.hex()}"
    numbers = [f.esp[:2] + f.esp[2:] for f in frames if f.esp]
    assert len(numbers) > 100
    assert len(set(numbers)) == len(numbers), "a sequence number or IV was used twice"
    assert [host.xfrm_stat() for host in pair.hosts()] == errors


def device_did_it(host, before):
    """The card's counters say that it encrypted and decrypted."""
    now = host.stats()
    return now["port_tx_sa_packets"] > before["port_tx_sa_packets"] and now["port_rx_sa_packets"] > before["port_rx_sa_packets"]


@pytest.mark.limit(240)
@pytest.mark.parametrize("case", MATRIX, ids=ids(MATRIX))
@pytest.mark.parametrize("offload", OFFLOADS)
def test_matrix(pair, offload, case):
    mode, outer, inner = case
    before = pair.left.stats()
    with Tunnel(pair.left, pair.right, mode, outer, inner, left_offload=offload) as tunnel:
        check_traffic(pair, tunnel)
        out = pair.left.run("ip -s xfrm state").stdout
        assert out.count(f"mode {offload}") == 2, out
    assert device_did_it(pair.left, before)


FORWARDED = [("crypto", 4, 4), ("crypto", 6, 6), ("crypto", 4, 6), ("crypto", 6, 4), ("packet", 4, 4), ("packet", 6, 6)]


def forwarded(pair, offload, outer, inner):
    """A tunnel for the hosts behind the gateways."""
    for host in pair.hosts():
        host.lan_up()
    flags = {"extra": "flag af-unspec"} if outer != inner else {}
    return Tunnel(pair.left, pair.right, "tunnel", outer, inner, left_offload=offload, lan=True, sa=flags)


@pytest.mark.limit(240)
@pytest.mark.parametrize("case", FORWARDED, ids=ids(FORWARDED))
def test_forwarded(pair, case):
    """Hosts behind the gateways, families mixed."""
    offload, outer, inner = case
    mark = pair.wire.mark()
    with forwarded(pair, offload, outer, inner):
        for size in (0, 56, 1300):
            pair.left.ping(pair.right.lan(inner), size, netns="lan")
        pair.right.ping(pair.left.lan(inner), count=3, options="-i 0.05", netns="lan")
        pair.left.tcp(pair.right, pair.right.lan(inner), 1 << 18, netns="lan")
    frames = pair.wire.since(mark)
    assert not [f for f in frames if f.is_clear()]
    assert len([f for f in frames if f.esp]) > 100


@pytest.mark.parametrize("families", [(4, 6), (6, 4)], ids=("6in4", "4in6"))
def test_core_drops_mixed_families_in_packet_mode(pair, families):
    """The core looks the outer address up in the inner family; nothing leaves, and it counts."""
    before = pair.left.xfrm_stat().get("XfrmOutBundleGenError", 0)
    mark = pair.wire.mark()
    with forwarded(pair, "packet", *families):
        assert pair.left.ping(pair.right.lan(families[1]), netns="lan", check=False) == 0
    assert pair.left.xfrm_stat().get("XfrmOutBundleGenError", 0) > before
    assert not [f for f in pair.wire.since(mark) if f.out and (f.esp or f.is_clear())]


@pytest.mark.core
@pytest.mark.limit(240)
@pytest.mark.parametrize("case", CORE, ids=ids(CORE))
@pytest.mark.parametrize("offload", OFFLOADS)
def test_both_ends(pair, offload, case):
    mode, outer, inner = case
    before = [host.stats() for host in pair.hosts()]
    with Tunnel(pair.left, pair.right, mode, outer, inner, left_offload=offload, right_offload=offload) as tunnel:
        check_traffic(pair, tunnel)
    assert all(itertools.starmap(device_did_it, zip(pair.hosts(), before)))


@pytest.mark.limit(240)
@pytest.mark.parametrize("bits", (128, 256))
@pytest.mark.parametrize("esn", (False, True), ids=("seq32", "esn"))
@pytest.mark.parametrize("offload", OFFLOADS)
def test_keys_and_esn(pair, offload, esn, bits):
    sa = {"bits": bits, "esn": esn, "window": 64 if esn else 32}
    with Tunnel(pair.left, pair.right, "tunnel", left_offload=offload, sa=sa) as tunnel:
        check_traffic(pair, tunnel)


@pytest.mark.parametrize("window", (1, 32, 33, 128, 1024, 4096))
def test_replay_windows(pair, window):
    """A window that the software would take is taken in packet mode, and protects."""
    sa = {"esn": True, "window": window}
    with Tunnel(pair.left, pair.right, left_offload="packet", sa=sa) as tunnel:
        pair.left.ping(tunnel.target(pair.right), count=5, options="-i 0.02")


@pytest.mark.core
@pytest.mark.parametrize("offload", OFFLOADS)
@pytest.mark.parametrize("esn", (False, True), ids=("seq32", "esn"))
def test_first_number_is_one(pair, offload, esn):
    mark = pair.wire.mark()
    with Tunnel(pair.left, pair.right, left_offload=offload, sa={"esn": esn}) as tunnel:
        pair.left.ping(tunnel.target(pair.right))
        first = [f.esp for f in pair.wire.since(mark) if f.esp and f.out][0]
    assert first[1] == 1


@pytest.mark.parametrize("offload", OFFLOADS)
def test_esn_crosses_the_wrap(pair, offload):
    """Both directions cross 2^32."""
    tunnel = Tunnel(pair.left, pair.right, left_offload=offload, sa={"esn": True, "window": 64})
    start = "flag esn {} replay-{}-hi 0 replay-{} 0xfffffff0"
    into = start.format("replay-window 64", "seq", "seq")
    try:
        for host, mode, sent, received in ((pair.left, offload, tunnel.out, tunnel.back),
                                           (pair.right, None, tunnel.back, tunnel.out)):
            sent.add(host, "out", mode, replay=start.format("" if mode else "replay-window 64", "oseq", "oseq"))
            received.add(host, "in", mode, replay=into)
        policies(pair, tunnel, offload)
        pair.left.ping(tunnel.target(pair.right), count=64, options="-i 0.01")
        state = pair.left.run("ip -s xfrm state").stdout
        assert "seq-hi 0x1" in state or "seq_hi 0x1" in state or "0x00000001" in state, state
    finally:
        tunnel.down()


def policies(pair, tunnel, offload):
    """The policies of a tunnel whose SAs were added by hand."""
    for host, mode, sent, received in ((pair.left, offload, tunnel.out, tunnel.back),
                                       (pair.right, None, tunnel.back, tunnel.out)):
        other = pair.right if host is pair.left else pair.left
        here, there = tunnel.target(host), tunnel.target(other)
        Policy(here, there, "out", sent).add(host, mode)
        Policy(there, here, "in", received).add(host, mode)


@pytest.mark.core
@pytest.mark.parametrize("offload", OFFLOADS)
def test_exhaustion_stops(pair, offload):
    """32-bit numbers: 0xffffffff is the last one on the wire, nothing leaves in clear."""
    tunnel = Tunnel(pair.left, pair.right, left_offload=offload)
    mark = pair.wire.mark()
    try:
        tunnel.out.add(pair.left, "out", offload, replay="replay-oseq 0xfffffff0")
        tunnel.back.add(pair.left, "in", offload)
        tunnel.out.add(pair.right, "in", None, replay="replay-window 32 replay-seq 0xfffffff0")
        tunnel.back.add(pair.right, "out", None)
        policies(pair, tunnel, offload)
        assert pair.left.ping(tunnel.target(pair.right), count=30, options="-i 0.02", check=False) == 15
        frames = [f for f in pair.wire.since(mark) if f.out]
        assert max(f.esp[1] for f in frames if f.esp) == 0xFFFFFFFF
        assert not [f for f in frames if f.is_clear()]
    finally:
        tunnel.down()


@pytest.mark.core
def test_packet_counters(pair):
    """Packets and bytes are those that the software counts at the other end."""
    with Tunnel(pair.left, pair.right, left_offload="packet") as tunnel:
        pair.left.ping(tunnel.target(pair.right), count=20, size=100, options="-i 0.02")
        left, right = (counters(host, tunnel.out) for host in pair.hosts())
        assert left == right and left[1] == 20


def counters(host, sa):
    """(bytes, packets) of an SA."""
    words = host.run(f"ip -s xfrm state get src {sa.src} dst {sa.dst} proto esp spi {sa.spi:#x}").stdout
    current = words.split("lifetime current:")[1].split()
    return int(current[0].split("(")[0]), int(current[1].split("(")[0])


@pytest.mark.core
def test_hard_packet_limit(pair):
    """Packet number 10 is the last one; one soft and one hard event; nothing in clear afterwards."""
    monitor = pair.left.vm.start("timeout 60 ip xfrm monitor expire", timeout=90)
    mark = pair.wire.mark()
    try:
        with Tunnel(pair.left, pair.right, left_offload="packet",
                    sa={"extra": "limit packet-soft 5 limit packet-hard 10"}) as tunnel:
            received = pair.left.ping(tunnel.target(pair.right), count=20, options="-i 0.1", check=False)
            frames = [f for f in pair.wire.since(mark) if f.out]
            assert sum(1 for f in frames if f.esp) == 10
            assert not [f for f in frames if f.is_clear()]
            assert received <= 10
    finally:
        monitor.stop()
    assert "hard 0" in monitor.output and "hard 1" in monitor.output


@pytest.mark.core
def test_state_update_keeps_the_numbers(pair):
    """`state update` under traffic loses nothing and repeats no number."""
    mark = pair.wire.mark()
    with Tunnel(pair.left, pair.right, left_offload="packet") as tunnel:
        traffic = pair.left.vm.start(f"ping -n -q -i 0.02 -c 100 {tunnel.target(pair.right)}", timeout=60)
        for limit in range(100000, 100040):
            sa = tunnel.out
            sa.extra = f"limit packet-hard {limit}"
            sa.add(pair.left, "out", "packet", verb="update")
        assert "100 received" in traffic.wait(60).stdout
    numbers = [f.esp[:2] for f in pair.wire.since(mark) if f.esp and f.out]
    assert len(numbers) == len(set(numbers))


@pytest.mark.core
def test_deleted_sa_never_leaks(pair):
    """With the policy in place and the SA gone nothing leaves in clear."""
    with Tunnel(pair.left, pair.right, left_offload="packet", right_offload="packet") as tunnel:
        flood = pair.left.vm.start(f"ping -n -q -i 0.005 -w 8 {tunnel.target(pair.right)}", timeout=30)
        mark = pair.wire.mark()
        for _ in range(20):
            tunnel.out.delete(pair.left)
            pair.left.run("ip xfrm state deleteall src 10.9.0.1 dst 10.9.0.2 || true")
            tunnel.out.add(pair.left, "out", "packet", replay="replay-oseq 0x100000")
        flood.wait(30)
        clear = [f for f in pair.wire.since(mark) if f.is_clear()]
        assert not clear, clear[0].data.hex()


@pytest.mark.core
@pytest.mark.parametrize("mode", ("transport", "tunnel"))
def test_clear_text_is_dropped(pair, mode):
    """Clear packets that match a protect policy never reach the host."""
    with Tunnel(pair.left, pair.right, mode, left_offload="packet", right_offload="packet") as tunnel:
        pair.left.ping(tunnel.target(pair.right))
        before = pair.right.stats()["rx_drop_policy_template"]
        source, target = tunnel.target(pair.left), tunnel.target(pair.right)
        # The left host forgets the tunnel: its packets leave in clear.
        pair.left.clear_xfrm()
        assert pair.left.ping(target, count=3, options=f"-I {source} -i 0.1", check=False) == 0
        assert pair.right.stats()["rx_drop_policy_template"] >= before + 3


@pytest.mark.core
def test_esp_hw_offload_off_keeps_packet_sas(pair):
    """Packet SAs go on when esp-hw-offload is switched off and on."""
    with Tunnel(pair.left, pair.right, left_offload="packet") as tunnel:
        for state in ("off", "on"):
            pair.left.run(f"ethtool -K {DEV} esp-hw-offload {state}")
            pair.left.ping(tunnel.target(pair.right), count=3, options="-i 0.02")


@pytest.mark.core
def test_esp_hw_offload_off_in_crypto_mode(pair):
    """Crypto SAs fall back to software, both ways."""
    with Tunnel(pair.left, pair.right, left_offload="crypto") as tunnel:
        for state in ("off", "on"):
            pair.left.run(f"ethtool -K {DEV} esp-hw-offload {state}")
            pair.left.ping(tunnel.target(pair.right), count=3, options="-i 0.02")


def test_socket_bypass_goes_clear(pair):
    """A socket policy (as IKE daemons set it) beats the packet policy: the stack's verdict rules."""
    with Tunnel(pair.left, pair.right, left_offload="packet", right_offload=None) as tunnel:
        mark = pair.wire.mark()
        pair.left.run(["python3", "-c", BYPASS, tunnel.target(pair.right)])
        frames = [f for f in pair.wire.since(mark) if f.out]
        assert [f for f in frames if f.is_clear()], "the socket's bypass was ignored"


BYPASS = """
import socket, struct, sys
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
IP_XFRM_POLICY = 17
# struct xfrm_userpolicy_info: selector, lifetimes, priority, index, dir, action, flags, share
sel = bytes(16) * 2 + struct.pack("=HHHHHBBBxxxiI", 0, 0, 0, 0, socket.AF_INET, 0, 0, 0, 0, 0)
body = sel + bytes(64) + bytes(32) + struct.pack("=IIBBBBxxxx", 0, 0, 1, 0, 0, 0)
s.setsockopt(socket.IPPROTO_IP, IP_XFRM_POLICY, body)
s.sendto(b"clear", (sys.argv[1], 9999))
"""


@pytest.mark.limit(240)
def test_churn_under_traffic(pair):
    """SAs and policies of other traffic come and go; this tunnel loses nothing."""
    with Tunnel(pair.left, pair.right, left_offload="packet", right_offload="packet") as tunnel:
        traffic = pair.left.vm.start(f"ping -n -q -i 0.02 -c 300 {tunnel.target(pair.right)}", timeout=120)
        script = []
        for n in range(40):
            sa = Sa(pair.left.v4, f"10.9.1.{n}", 0x5000 + n, reqid=77)
            script.append("state add " + sa.words("out", "packet"))
            script.append(f"policy add src 10.11.0.{n} dst 10.12.0.{n} dir in offload packet dev {DEV}")
        for n in range(40):
            script.append(f"state delete src {pair.left.v4} dst 10.9.1.{n} proto esp spi {0x5000 + n:#x}")
            script.append(f"policy delete src 10.11.0.{n} dst 10.12.0.{n} dir in")
        pair.left.vm.write("/tmp/churn", "\n".join(script * 3) + "\n")
        pair.left.run("ip -force -batch <(sed 's/^/xfrm /' /tmp/churn)", timeout=120)
        assert "300 received" in traffic.wait(120).stdout


@pytest.mark.core
def test_unload_with_live_sas(pair):
    """The driver unloads with SAs and policies in place, and comes back empty."""
    with Tunnel(pair.left, pair.right, left_offload="packet"):
        pair.left.unload()
        assert "offload" not in pair.left.run("ip xfrm state; ip xfrm policy").stdout
        pair.left.load()
    pair.left.ping(pair.right.v4)


@pytest.mark.core
def test_interface_down_flushes(pair):
    """The core flushes offloaded SAs when the interface goes down; afterwards all works anew."""
    with Tunnel(pair.left, pair.right, left_offload="packet"):
        pair.left.run(f"ip link set {DEV} down")
        assert "offload" not in pair.left.run("ip xfrm state").stdout
        pair.left.up()
    with Tunnel(pair.left, pair.right, left_offload="packet") as tunnel:
        pair.left.ping(tunnel.target(pair.right), count=2)


def test_key_is_never_shown(pair):
    """No key in the log, debugfs or statistics."""
    with Tunnel(pair.left, pair.right, left_offload="packet"):
        key = make_key(128, 0x1000)[2:]
        out = pair.left.run(f"dmesg; ethtool -S {DEV}; grep -r . /sys/kernel/debug/cordon 2>/dev/null || true").stdout
        assert key not in out.replace(" ", "")
