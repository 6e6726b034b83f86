# SPDX-License-Identifier: GPL-2.0-only
"""SAs with attributes in any combination: the limits that a card publishes are what happens."""

import os
import sys

import pytest

from kit import Pair
from kit.limits import Limits
from oracle import seed
from oracle.attributes import compare

COUNT = int(os.environ.get("ORACLE_ATTRIBUTES", "300"))
#: a card that lacks something of each kind
LESSER = ("no-cipher=aes-ccm,no-auth=hmac-sha1,no-icv=8,no-key-bits=192,no-family=inet6,no-mode=beet,no-sa-flag=esn,"
          "replay-window-max=64")


@pytest.mark.core
@pytest.mark.limit(120 + COUNT)
def test_published_limits_are_what_happens(pair):
    number = seed()
    fates, differences = compare(pair.left, Limits.read(pair.left), number, COUNT)
    sys.stdout.write(f"SEED={number}: {fates}\n")
    assert not differences, f"SEED={number}: " + "\n".join(differences)
    assert min(fates.values()) > COUNT // 50 and len(fates) == 3


@pytest.mark.limit(300)
def test_lesser_card(guests):
    """It publishes what it has; were its limits those of another card, it would be seen."""
    number = seed()
    full = Limits.read(guests.left)
    with Pair("7.3", cordond_args=["--limit=p0:" + LESSER]) as pair:
        fates, differences = compare(pair.left, Limits.read(pair.left), number, 200)
        sys.stdout.write(f"SEED={number}: {fates}\n")
        assert not differences, f"SEED={number}: " + "\n".join(differences)
        _, differences = compare(pair.left, full, number, 200)
        assert len(differences) > 20
