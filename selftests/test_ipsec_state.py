# SPDX-License-Identifier: GPL-2.0-only
"""What the stack sees of an SA's life: numbers and windows, lifetimes, counters."""

import re
import time
from dataclasses import replace

import pytest

from kit import SUITES, Policy, Tunnel
from kit.flows import Flow, Flows
from kit.host import DEV
from kit.netlink import xfrm, xfrm_each

OFFLOADS = ("crypto", "packet")
ALL = (None, *OFFLOADS)
#: what the driver does at the latest a second after it became possible is waited for so long
SOON = 1.5


def dump(host, sa):
    """What `ip -s xfrm state` says of an SA."""
    return host.run(f"ip -s xfrm state get src {sa.src} dst {sa.dst} proto esp spi {sa.spi:#x}").stdout


def replay(host, sa):
    """(oseq, seq, bitmap) of a dump, with upper halves."""
    text = dump(host, sa)
    bitmap = re.findall(r"^\s+((?:[0-9a-f]{8} ?)+)\s*$", text, re.M)
    number = {name: int(value, 16) for name, value in re.findall(r"(o?seq(?:-hi)?) (0x[0-9a-f]+)", text)}
    if "oseq-hi" in number or "seq-hi" in number:
        return (number.get("oseq-hi", 0) << 32 | number["oseq"], number.get("seq-hi", 0) << 32 | number["seq"],
                " ".join(bitmap).split())
    return number["oseq"], number["seq"], re.findall(r"bitmap (0x[0-9a-f]+)", text)


def counters(host, sa):
    """(bytes, packets) of an SA."""
    found = re.search(r"lifetime current:\s+(\d+)\(bytes\), (\d+)\(packets\)", dump(host, sa))
    return int(found[1]), int(found[2])


def numbers(pair, mark, spi=0x1000):
    """Lower halves of the numbers that the left port sent since a mark."""
    return [f.esp[1] for f in pair.wire.since(mark) if f.esp and f.out and f.esp[0] == spi]


def ping(pair, tunnel, count, check=True, **more):
    """Some pings through the tunnel; return the number of answers."""
    return pair.left.ping(tunnel.target(pair.right), count=count, options="-i 0.02", check=check, **more)


@pytest.mark.core
@pytest.mark.parametrize("esn", (False, True), ids=("seq32", "esn"))
@pytest.mark.parametrize("offload", OFFLOADS)
def test_numbers_are_the_cards(pair, offload, esn):
    """Dump and GETAE say what was on the wire, and of the window what the software at the other end says."""
    mark = pair.wire.mark()
    with Tunnel(pair.left, pair.right, left_offload=offload, sa={"esn": esn, "window": 64 if esn else 32}) as tunnel:
        ping(pair, tunnel, 40)
        out, back = replay(pair.left, tunnel.out), replay(pair.left, tunnel.back)
        assert out[0] == max(numbers(pair, mark)) == 40
        assert back[1:] == replay(pair.right, tunnel.out)[1:]
        assert back[1] == 40 and back[2]
        time.sleep(SOON)
        assert xfrm(pair.left, "get", tunnel.out)["oseq"] == 40
        event = xfrm(pair.left, "get", tunnel.back)
        assert (event["seq"], event["bitmap"]) == (40, xfrm(pair.right, "get", tunnel.out)["bitmap"])
        assert event["packets"] == 40


def jump(pair, tunnel, high, low, window=64):
    """Give both SAs greater numbers at both ends by NEWAE; the software takes them at once."""
    words = (window + 31) // 32
    sent = {"same_window": True, "oseq": low, "oseq_hi": high}
    received = {"words": words, "window": window, "seq": low, "seq_hi": high, "bitmap": [0xFFFFFFFF] * words}
    xfrm_each(pair.left, "new", [(tunnel.out, sent), (tunnel.back, received)])
    xfrm_each(pair.right, "new", [(tunnel.back, sent), (tunnel.out, received)])
    time.sleep(SOON)


@pytest.mark.core
@pytest.mark.parametrize("offload", OFFLOADS)
def test_new_numbers_by_newae(pair, offload):
    """Both halves get to the card, and come back."""
    with Tunnel(pair.left, pair.right, left_offload=offload, sa={"esn": True, "window": 64}) as tunnel:
        ping(pair, tunnel, 3)
        jump(pair, tunnel, 0x11223344, 0x55667788)
        mark = pair.wire.mark()
        ping(pair, tunnel, 10)
        assert numbers(pair, mark) == [0x55667788 + n for n in range(1, 11)]
        for host, sa, which in ((pair.left, tunnel.out, 0), (pair.left, tunnel.back, 1), (pair.right, tunnel.out, 1)):
            assert replay(host, sa)[which] == 0x1122334455667788 + 10
        assert replay(pair.left, tunnel.back)[1:] == replay(pair.right, tunnel.out)[1:]


@pytest.mark.parametrize("how", ("add", "update"))
@pytest.mark.parametrize("offload", OFFLOADS)
def test_numbers_by_add_and_update(pair, offload, how):
    """An SA begins where `state add` says; `state update` changes no numbers, as in software."""
    start = "flag esn {} replay-{}-hi 0x11223344 replay-{} 0x55667788"
    first = 0x1122334455667788
    tunnel = Tunnel(pair.left, pair.right, left_offload=offload, sa={"esn": True, "window": 64})
    try:
        for host, mode, sent, received in ((pair.left, offload, tunnel.out, tunnel.back),
                                           (pair.right, None, tunnel.back, tunnel.out)):
            sent.add(host, "out", mode, replay=start.format("" if mode else "replay-window 64", "oseq", "oseq"))
            received.add(host, "in", mode, replay=start.format("replay-window 64", "seq", "seq"))
            other = pair.right if host is pair.left else pair.left
            Policy(tunnel.target(host), tunnel.target(other), "out", sent).add(host, mode)
            Policy(tunnel.target(other), tunnel.target(host), "in", received).add(host, mode)
        ping(pair, tunnel, 3)
        if how == "update":
            tunnel.out.add(pair.left, "out", offload, verb="update")
            tunnel.back.add(pair.left, "in", offload, verb="update")
        mark = pair.wire.mark()
        ping(pair, tunnel, 7)
        assert numbers(pair, mark)[-1] == (first + 10) & 0xFFFFFFFF
        assert replay(pair.left, tunnel.out)[0] == replay(pair.left, tunnel.back)[1] == first + 10
    finally:
        tunnel.down()


@pytest.mark.parametrize("offload", ("packet", "crypto"))
def test_update_without_a_window(pair, offload):
    """What an update leaves out, or says otherwise, the SA keeps: no packet is lost, none comes in again."""
    with Tunnel(pair.left, pair.right, left_offload=offload, sa={"window": 64, "esn": True}) as tunnel:
        before = pair.left.stats()
        traffic = pair.right.vm.start(f"ping -n -q -i 0.02 -c 150 {tunnel.target(pair.left)}", timeout=90)
        other = replace(tunnel.back, window=0, esn=False, bits=256)
        pair.left.run(f"for n in $(seq 20); do ip xfrm state update {other.words('in', offload)}; done")
        assert "150 received" in traffic.wait(90).stdout
        after = pair.left.stats()
        assert "replay_window 64" in dump(pair.left, tunnel.back)
    assert not {name for name in after if name.startswith("rx_drop_") and after[name] != before[name]} - {"rx_drop_filtered"}


def test_numbers_never_go_back(pair):
    """Smaller numbers would come twice: NEWAE can't bring them to the card."""
    with Tunnel(pair.left, pair.right, left_offload="packet") as tunnel:
        mark = pair.wire.mark()
        ping(pair, tunnel, 20)
        xfrm(pair.left, "new", tunnel.out, oseq=5)
        xfrm(pair.left, "new", tunnel.back, seq=5)
        ping(pair, tunnel, 20)
        time.sleep(SOON)
        ping(pair, tunnel, 20)
        assert numbers(pair, mark) == list(range(1, 61))
        assert replay(pair.left, tunnel.out)[0] == replay(pair.left, tunnel.back)[1] == 60


@pytest.mark.limit(120)
@pytest.mark.parametrize("offload", OFFLOADS)
def test_esn_wraps_three_times(pair, offload):
    with Tunnel(pair.left, pair.right, left_offload=offload, sa={"esn": True, "window": 64}) as tunnel:
        for high in range(3):
            jump(pair, tunnel, high, 0xFFFFFFF0)
            ping(pair, tunnel, 32)
            assert replay(pair.left, tunnel.out)[0] == replay(pair.left, tunnel.back)[1] == (high + 1 << 32) + 0x10


@pytest.mark.core
def test_exhaustion_is_told(pair):
    """The card says that no numbers are left: by a soft expiry, and by the counter that the software has for it."""
    with Tunnel(pair.left, pair.right, left_offload="packet") as tunnel:
        ping(pair, tunnel, 1)
        xfrm(pair.left, "new", tunnel.out, oseq=0xFFFFFFFA)
        xfrm(pair.right, "new", tunnel.out, seq=0xFFFFFFFA)
        time.sleep(SOON)
        before = pair.left.xfrm_stat().get("XfrmOutStateSeqError", 0)
        with Expiries(pair.left) as events:
            assert ping(pair, tunnel, 12, check=False) == 5
            time.sleep(SOON)
        assert events.found == ["soft"]
        assert pair.left.xfrm_stat()["XfrmOutStateSeqError"] == before + 7


@pytest.mark.parametrize("offload", ALL)
def test_oseq_may_wrap(pair, offload):
    """A manually keyed SA may go on after 2^32, as in software."""
    tunnel = Tunnel(pair.left, pair.right, left_offload=offload, sa={"window": 0})
    with tunnel:
        tunnel.out.delete(pair.left)
        tunnel.out.extra = "extra-flag oseq-may-wrap"
        tunnel.out.add(pair.left, "out", offload, replay="replay-oseq 0xfffffffa")
        mark = pair.wire.mark()
        ping(pair, tunnel, 12)
        assert [n & 0xFFFFFFFF for n in range(0xFFFFFFFB, 0x100000007)] == numbers(pair, mark)


class Expiries:
    """Listens for expiries while it's entered; found: "soft" and "hard", in order; of(): those of an SA."""

    def __init__(self, host):
        self.host = host
        self.found, self._events = [], []
        self._monitor = None

    def __enter__(self):
        self._monitor = self.host.vm.start("stdbuf -oL timeout 60 ip xfrm monitor expire", timeout=90)
        # It listens once its netlink socket has joined the group.
        self.host.wait(lambda: self.host.run("grep -c ' 6 .* 00000002 ' /proc/net/netlink", check=False).stdout.strip() != "0",
                       "a listener")
        return self

    def __exit__(self, *_):
        self._monitor.stop()
        self._events = [(int(spi, 16), "hard" if hard == "1" else "soft")
                        for spi, hard in re.findall(r"spi (0x[0-9a-f]+).*?hard ([01])", self._monitor.output, re.S)]
        self.found = [kind for _, kind in self._events]

    def wait(self, count):
        """Wait for that many hard ones."""
        self.host.wait(lambda: self._monitor.output.count("hard 1") >= count, f"{count} hard expiries")

    def of(self, sa):
        """Those of one SA."""
        return [kind for spi, kind in self._events if spi == sa.spi]


LIMITS = {
    "packets": "limit packet-soft 5 limit packet-hard 9",
    "bytes": "limit byte-soft 500 limit byte-hard 1000",
    "bytes-even": "limit byte-soft 500 limit byte-hard 1056",
    "hard-only": "limit packet-hard 4",
    "soft-only": "limit packet-soft 4",
    "one": "limit packet-soft 1 limit packet-hard 2",
}


LIMITED = (*((name, "out") for name in LIMITS), ("packets", "in"), ("bytes", "in"))


def expire(pair, offload):
    """What happens to SAs with each limit, side by side: answers, events, what was sent, what the other end counts."""
    flows = [Flow(n, pair.left, pair.right, "transport", 4, suite=SUITES["gcm128-128"]) for n in range(len(LIMITED))]
    for flow, (name, direction) in zip(flows, LIMITED):
        (flow.out if direction == "out" else flow.back).extra = LIMITS[name]
    with Expiries(pair.left) as events, Flows(flows, offload, answering=True):
        mark = pair.wire.mark()
        pings = "".join(f"ping -n -q -c 15 -i 0.1 -W 0.5 {flow.there} > /tmp/answers-{flow.number} & " for flow in flows)
        pair.left.run(f"{pings} wait")
        time.sleep(SOON)
        frames = [f for f in pair.wire.since(mark) if f.out]
        assert not [f for f in frames if f.is_clear()]
        found = {}
        received = pair.left.run("".join(f"cat /tmp/answers-{flow.number}; " for flow in flows)).stdout
        for case, flow, answers in zip(LIMITED, flows, re.findall(r"(\d+) received", received), strict=True):
            left = "" if "hard" in LIMITS[case[0]] else dump(pair.left, flow.out)
            found[case] = {"answers": answers, "esp": sum(1 for f in frames if f.esp and f.esp[0] == flow.out.spi),
                           "right": counters(pair.right, flow.out), "left": re.findall(r"\d+\(\w+\)", left)[4:6]}
    for case, flow in zip(LIMITED, flows):
        found[case]["events"] = events.of(flow.out) + events.of(flow.back)
    return found


@pytest.mark.limit(120)
def test_limits_are_exact(pair):
    """Exact to the packet, and the same events as in software."""
    want, got = expire(pair, None), expire(pair, "packet")
    for case in LIMITED:
        assert got[case] == want[case], case
        assert want[case]["events"] and len(set(got[case]["events"])) == len(got[case]["events"]), case


@pytest.mark.core
def test_changed_limit_is_in_force(pair):
    """A limit that `state update` brings stops the SA where it says, and its event comes once."""
    with Tunnel(pair.left, pair.right, left_offload="packet") as tunnel:
        tunnel.out.extra = "limit packet-hard 1000000"
        tunnel.out.add(pair.left, "out", "packet", verb="update")
        ping(pair, tunnel, 10)
        tunnel.out.extra = "limit packet-soft 15 limit packet-hard 20"
        tunnel.out.add(pair.left, "out", "packet", verb="update")
        time.sleep(SOON)
        mark = pair.wire.mark()
        with Expiries(pair.left) as events:
            assert ping(pair, tunnel, 20, check=False) <= 10
            time.sleep(SOON)
        assert len(numbers(pair, mark)) == 10
        assert not [f for f in pair.wire.since(mark) if f.is_clear()]
        assert events.found == ["soft", "hard"]


def test_use_is_told(pair):
    """First and last use of an SA; time limits begin with the first."""
    left = pair.left
    flows = [Flow(n, left, pair.right, "transport", 4, offload=offload or "") for n, offload in enumerate(ALL)]
    sas = [sa for flow in flows for sa in (flow.out, flow.back)]
    with Flows(flows, None, answering=True):
        for text in (dump(left, sa) for sa in sas):
            assert re.search(r" use -", text) and "lastused" not in text, text
        for flow in flows:
            left.ping(flow.there, count=2, options="-i 0.02")
        time.sleep(SOON)
        for text in (dump(left, sa) for sa in sas):
            assert re.search(r" use \d{4}-", text) and "lastused" in text, text
        with Expiries(left) as events:
            for flow in flows:
                flow.out.extra = "limit time-use-hard 1"
                flow.out.add(left, "out", flow.offload, verb="update")
            events.wait(len(flows))
        for flow in flows:
            assert events.of(flow.out) == ["hard"]


@pytest.mark.core
def test_changed_port_is_in_force(pair):
    """UDP ports that `state update` brings are on the wire within a second."""
    with Tunnel(pair.left, pair.right, left_offload="packet", sa={"extra": "encap espinudp 4500 4500 0.0.0.0"}) as tunnel:
        mark = pair.wire.mark()
        pair.left.ping(tunnel.target(pair.right), count=3, options="-i 0.02 -W 0.2", check=False)
        tunnel.out.extra = "encap espinudp 4500 40001 0.0.0.0"
        tunnel.out.add(pair.left, "out", "packet", verb="update")
        time.sleep(SOON)
        pair.left.ping(tunnel.target(pair.right), count=3, options="-i 0.02 -W 0.2", check=False)
        ports = [int.from_bytes(f.l4[2:4], "big") for f in pair.wire.since(mark) if f.out and f.protocol == 17]
        assert ports == [4500] * 3 + [40001] * 3
        # The numbers went on.
        assert replay(pair.left, tunnel.out)[0] == 6


CLEAR_OFFLOAD = 1


@pytest.mark.parametrize("esn", (False, True), ids=("seq32", "esn"))
@pytest.mark.parametrize("offload", OFFLOADS)
def test_migrated_state_goes_on(pair, offload, esn):
    """XFRM_MSG_MIGRATE_STATE: this kernel can't take the offload along, and says so; without it the numbers go on."""
    other = "10.9.0.11"
    pair.left.run(f"ip addr add {other}/24 dev {DEV}")
    try:
        sa = {"esn": esn, "window": 64 if esn else 32}
        with Tunnel(pair.left, pair.right, "tunnel", left_offload=offload, sa=sa) as tunnel:
            mark = pair.wire.mark()
            ping(pair, tunnel, 20)
            to = {"new_src": other, "new_dst": tunnel.out.dst}
            assert "offload" in xfrm(pair.left, "migrate_state", tunnel.out, check=False, **to)
            ping(pair, tunnel, 5)
            time.sleep(SOON)
            xfrm(pair.left, "migrate_state", tunnel.out, flags=CLEAR_OFFLOAD, **to)
            here, there = tunnel.target(pair.left), tunnel.target(pair.right)
            tunnel.out.src = other
            pair.left.run(f"ip xfrm policy delete src {here} dst {there} dir out")
            Policy(here, there, "out", tunnel.out).add(pair.left)
            ping(pair, tunnel, 5)
            assert numbers(pair, mark) == list(range(1, 31))
            assert counters(pair.left, tunnel.out)[1] == 30
    finally:
        pair.left.run(f"ip addr del {other}/24 dev {DEV}")


# What is sent to the left end again, made of a genuine frame.
SENT = {
    "replayed": lambda frame: frame,
    "bad-icv": lambda frame: frame[:38] + b"\0\0\0\x30" + frame[42:-1] + bytes([frame[-1] ^ 1]),
    "behind-window": lambda frame: frame[:38] + b"\0\0\0\1" + frame[42:],
    "unknown-spi": lambda frame: frame[:34] + b"\0\0\x77\x77" + frame[38:],
    "short": lambda frame: header(frame, 36) + frame[34:38] + b"\0\0\0\x31" + frame[42:50],
    "clear": lambda frame: header(frame, 28, 17) + bytes.fromhex("1f90 1f90 0008 0000"),
}

SEND = """
import socket, sys
s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
s.bind((sys.argv[1], 0))
for word in sys.argv[2:]:
    s.send(bytes.fromhex(word))
"""


def header(frame, length, protocol=50):
    """Ethernet and IPv4 header of a frame, with another length and protocol."""
    head = frame[14:16] + length.to_bytes(2, "big") + frame[18:23] + bytes([protocol, 0, 0]) + frame[26:34]
    total = sum(int.from_bytes(head[at:at + 2], "big") for at in range(0, 20, 2))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return frame[:14] + head[:10] + (~total & 0xFFFF).to_bytes(2, "big") + head[12:]


def judged(pair, offload):
    """Counters of the stack, and of the SA, for each of SENT; and what debugfs says of the SA."""
    found = {}
    with Tunnel(pair.left, pair.right, left_offload=offload) as tunnel:
        mark = pair.wire.mark()
        ping(pair, tunnel, 40)
        frame = [f.data for f in pair.wire.since(mark) if f.esp and not f.out][-1]
        now = pair.left.xfrm_stat()
        for name, change in SENT.items():
            before = now
            pair.right.run(["python3", "-I", "-S", "-c", SEND, DEV, *[change(frame).hex()] * 3])
            pair.left.ping(tunnel.target(pair.right))
            if name == "clear":
                time.sleep(SOON)
            now = pair.left.xfrm_stat()
            found[name] = {key: now[key] - before.get(key, 0) for key in now if now[key] != before.get(key, 0)}
        found["sa"] = re.findall(r"replay-window (\d+) replay (\d+) failed (\d+)", dump(pair.left, tunnel.back))
        pair.left.run("mountpoint -q /sys/kernel/debug || mount -t debugfs none /sys/kernel/debug")
        shown = pair.left.run("cat /sys/kernel/debug/cordon/*/ipsec_sas").stdout
    return found, shown


@pytest.mark.core
@pytest.mark.limit(120)
def test_counters_are_those_of_software(pair):
    """The same bad packets move the same counters; the SA tells what it dropped, and never a key."""
    want, shown = judged(pair, None)
    assert shown == "" and want["replayed"] and want["bad-icv"]
    for offload in OFFLOADS:
        got, shown = judged(pair, offload)
        assert got == want, offload
        lines = [line for line in shown.splitlines() if " spi 0x00001001 " in line and f" in transport {offload} " in line]
        assert len(lines) == 1, shown
        if offload == "packet":
            assert "packets 46 " in lines[0] and "auth_failed 3" in lines[0] and " replay 3" in lines[0], shown
