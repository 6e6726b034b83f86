# SPDX-License-Identifier: GPL-2.0-only
"""What the tests in virtual machines share: hosts, SAs and policies, the wire."""

from .host import Host
from .pair import Pair
from .suite import SUITES, Suite
from .wire import Wire
from .xfrm import Policy, Sa, Tunnel

__all__ = ["SUITES", "Host", "Pair", "Policy", "Sa", "Suite", "Tunnel", "Wire"]
