# SPDX-License-Identifier: GPL-2.0-only
"""The card's judgement of received ESP is the kernel's: same packets let through, in the same order, same counters."""

import os
import sys
from dataclasses import replace

import pytest

from kit.suite import SUITES
from oracle import Bench, Config, Stream, seed

FRAMES = int(os.environ.get("ORACLE_FRAMES", "100000"))
CONFIGS = {
    "transport": Config(),
    "transport, window 0": Config(window=0),
    "tunnel, window 32": Config(mode="tunnel", window=32),
    "tunnel, ESN over a wrap": Config(mode="tunnel", esn=True, window=128, first=(1 << 32) - FRAMES // 40),
    "transport, ESN, great window": Config(esn=True, window=4096, first=(7 << 32) - FRAMES // 40),
    **{name: Config(suite=SUITES[name], mode=mode, esn=esn, first=5) for name, mode, esn in (
        ("gcm256-64", "transport", True), ("gmac192-128", "tunnel", False), ("ccm128-96", "transport", True),
        ("chacha20", "tunnel", True), ("cbc128-sha256-128", "tunnel", True), ("cbc256-xcbc-96", "transport", False),
        ("ctr192-sha384-192", "transport", True), ("null-sha512-256", "tunnel", False))},
}


@pytest.fixture(scope="module", name="bench")
def fixture_bench():
    """The guest with both SAs."""
    with Bench() as bench:
        yield bench


@pytest.mark.limit(120 + FRAMES // 100)
@pytest.mark.parametrize("name", CONFIGS)
def test_same_verdict(bench, name):
    number = seed()
    verdict = bench.run(Stream(CONFIGS[name], number), FRAMES // len(CONFIGS))
    sys.stdout.write(f"SEED={number}\n{verdict}\n")
    assert not verdict.differences, f"SEED={number}: {verdict}"


@pytest.mark.parametrize("other", [{"window": 32}, {"key_seed": 2}, {"first": 300}, {"esn": True}], ids=str)
def test_a_difference_shows(bench, other):
    """Were one side wrong, it would be seen: here it's told something else."""
    config = Config()
    verdict = bench.run(Stream(config, 1), 1500, software=replace(config, **other))
    assert any("lacks" in line for line in verdict.differences), verdict
    assert any(line.startswith("counters differ") for line in verdict.differences), verdict
