# SPDX-License-Identifier: GPL-2.0-only
"""BEET mode against the kernel's software at the other end."""

import pytest

from kit import Tunnel
from kit.host import DEV

SMALL = (0, 1, 2, 3, 4, 16, 80, 1000, 1300)
CASES = [("crypto", 4, 4), ("crypto", 6, 6), ("crypto", 4, 6), ("crypto", 6, 4), ("packet", 4, 4), ("packet", 6, 6)]


@pytest.fixture(autouse=True)
def no_gso_in_software(pair):
    """The kernel's own BEET loses GSO packets, see docs/cordon.rst; the right end sends by software."""
    pair.right.run(f"ip link set {DEV} gso_max_segs 1")
    yield
    pair.right.run(f"ip link set {DEV} gso_max_segs 65535")


@pytest.mark.core
@pytest.mark.limit(240)
@pytest.mark.parametrize("case", CASES, ids=["-".join(map(str, case)) for case in CASES])
def test_beet(pair, case):
    """Traffic of all kinds, all of it ESP, counted by the card."""
    offload, outer, inner = case
    before, errors = pair.left.stats(), [host.xfrm_stat() for host in pair.hosts()]
    mark = pair.wire.mark()
    with Tunnel(pair.left, pair.right, "beet", outer, inner, left_offload=offload) as tunnel:
        there = tunnel.target(pair.right)
        assert pair.left.ping_sizes(there, SMALL) == []
        pair.left.tcp(pair.right, there, 1 << 18)
        pair.right.tcp(pair.left, tunnel.target(pair.left), 1 << 18)
        out = pair.left.run("ip -s xfrm state").stdout
        assert out.count(f"mode {offload}") == 2, out
        after = pair.left.stats()
        counts = [host.run("ip -s xfrm state").stdout.count("failed 0") for host in pair.hosts()]
    for name in ("port_tx_sa_packets", "port_rx_sa_packets"):
        assert after[name] > before[name] + 100
    frames = pair.wire.since(mark)
    assert not [f for f in frames if f.is_clear()]
    assert [host.xfrm_stat() for host in pair.hosts()] == errors
    assert counts == [2, 2]


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


@pytest.mark.parametrize("family", (4, 6), ids=("ipv4", "ipv6"))
def test_counted_as_software(pair, family):
    """Both ends have the same bytes and packets."""
    with Tunnel(pair.left, pair.right, "beet", family, family, left_offload="packet") as tunnel:
        assert pair.left.ping_sizes(tunnel.target(pair.right), SMALL) == []
        pair.left.wait(lambda: lifetimes(pair.left) == lifetimes(pair.right), "equal counts")
        assert len(lifetimes(pair.left)) == 2 and all(count > 0 for _, _, count in lifetimes(pair.left))
