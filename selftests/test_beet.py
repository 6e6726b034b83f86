# SPDX-License-Identifier: GPL-2.0-only
"""BEET mode against the kernel's software at the other end."""

from collections import Counter

import pytest

from kit import SUITES
from kit.flows import Flow, Flows, echo
from kit.host import DEV

SMALL = (0, 1, 2, 3, 4, 16, 80, 1000, 1300)
CASES = [("crypto", 4, 4), ("crypto", 6, 6), ("crypto", 4, 6), ("crypto", 6, 4), ("packet", 4, 4), ("packet", 6, 6)]
TCP_SIZE = 1 << 18


@pytest.fixture(autouse=True)
def no_gso_in_software(pair):
    """The kernel's own BEET loses GSO packets, see docs/cordon.rst; the right end sends by software."""
    pair.right.run(f"ip link set {DEV} gso_max_segs 1")
    yield
    pair.right.run(f"ip link set {DEV} gso_max_segs 65535")


def lost(host):
    """Packets that the core dropped on their way to the port."""
    return int(host.run(f"cat /sys/class/net/{DEV}/statistics/tx_dropped").stdout)


@pytest.mark.core
@pytest.mark.limit(180)
def test_beet(pair):
    """Traffic of all kinds through SAs side by side, all of it ESP, each SA's by the card."""
    left, right = pair.hosts()
    some = [Flow(n, left, right, "beet", outer, suite=SUITES["gcm128-128"], inner=inner, offload=offload)
            for n, (offload, outer, inner) in enumerate(CASES)]
    before, errors, dropped = left.stats(), [host.xfrm_stat() for host in pair.hosts()], lost(left)
    mark = pair.wire.mark()
    with Flows(some, None, answering=True):
        words = " ".join(flow.there for flow in some)
        out = left.run(f"for t in {words}; do for s in {' '.join(map(str, SMALL))}; do "
                       "ping -n -q -c 1 -s $s -W 2 $t >/dev/null || echo $t $s; done & done; wait", timeout=120)
        assert out.stdout == ""
        echo(left, right, [flow.there for flow in some], TCP_SIZE)
        states = [host.run("ip -s xfrm state").stdout for host in pair.hosts()]
        after = left.stats()
    assert [text.count("failed 0") for text in states] == [2 * len(CASES)] * 2
    assert (states[0].count("mode crypto"), states[0].count("mode packet")) == (8, 4), states[0]
    frames = pair.wire.since(mark)
    assert not [f for f in frames if f.is_clear()]
    through = Counter(f.esp[0] for f in frames if f.esp)
    least = len(SMALL) + TCP_SIZE // 1500
    assert all(through[flow.out.spi] > least and through[flow.back.spi] > least for flow in some), through
    assert after["port_tx_sa_packets"] - before["port_tx_sa_packets"] == sum(through[flow.out.spi] for flow in some)
    assert after["port_rx_sa_packets"] - before["port_rx_sa_packets"] == sum(through[flow.back.spi] for flow in some)
    assert [host.xfrm_stat() for host in pair.hosts()] == errors
    assert lost(left) == dropped


def lifetimes(host):
    """(SPI, bytes, packets) of each SA, as the stack shows them."""
    out, found, spi = host.run("ip -s xfrm state").stdout.split("\n"), [], None
    for n, line in enumerate(out):
        words = line.split()
        if "spi" in words:
            spi = int(words[words.index("spi") + 1].split("(")[0], 16)
        if line.strip() == "lifetime current:":
            count = out[n + 1].replace("(bytes),", "").replace("(packets)", "").split()
            found.append((spi, int(count[0]), int(count[1])))
    return sorted(found)


def test_counted_as_software(pair):
    """Both ends have the same bytes and packets."""
    some = [Flow(n, *pair.hosts(), "beet", family, suite=SUITES["gcm128-128"]) for n, family in enumerate((4, 6))]
    with Flows(some, "packet", answering=True):
        for flow in some:
            assert pair.left.ping_sizes(flow.there, SMALL) == []
        pair.left.wait(lambda: lifetimes(pair.left) == lifetimes(pair.right), "equal counts")
        assert len(lifetimes(pair.left)) == 4 and all(count > 0 for _, _, count in lifetimes(pair.left))
