# SPDX-License-Identifier: GPL-2.0-only
"""ESP that was fragmented on its way."""

import pytest

from kit import Tunnel
from kit.fragments import MTU, echoes, narrow

SIZES = (2000, 8000, 60000)
COUNT = 5
# In IPv6 tunnels the software fragments the inner packet, so none of ESP comes in fragments.
CASES = [("transport", 4), ("transport", 6), ("tunnel", 4)]


@pytest.mark.core
@pytest.mark.limit(240)
@pytest.mark.parametrize("case", CASES, ids=[f"{mode}-ipv{family}" for mode, family in CASES])
@pytest.mark.parametrize("offload", ("packet", "crypto"))
def test_fragmented(pair, offload, case):
    """The peer's software fragments outer packets; none is lost, no number is seen twice."""
    mode, family = case
    left = pair.left
    before, errors, arrived = left.stats(), left.xfrm_stat(), echoes(left, family)
    mark = pair.wire.mark()
    narrow(pair.right, family, MTU[family])
    try:
        with Tunnel(left, pair.right, mode, family, family, left_offload=offload) as tunnel:
            for size in SIZES:
                # In packet mode the answers are too long for the core; the requests are what this is about.
                pair.right.ping(tunnel.target(left), size, count=COUNT, options="-i 0.05 -W 0.2", check=False)
        after = left.stats()
    finally:
        narrow(pair.right, family, None)
    assert echoes(left, family) - arrived == COUNT * len(SIZES)
    for name in ("rx_drop_replay", "rx_drop_replay_window", "rx_drop_fragment", "rx_drop_auth_failed", "rx_drop_no_buffer"):
        assert after[name] == before[name], name
    received = {k: v for k, v in left.xfrm_stat().items() if k.startswith("XfrmIn")}
    assert received == {k: v for k, v in errors.items() if k.startswith("XfrmIn")}
    assert after["port_rx_reassembled"] - before["port_rx_reassembled"] == (COUNT * len(SIZES) if offload == "packet" else 0)
    fragments = [f for f in pair.wire.since(mark) if not f.out and (f.protocol == 44 or f.data[20] & 0x3F or f.data[21])]
    assert len(fragments) > COUNT * 60000 / MTU[family]
