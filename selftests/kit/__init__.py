# SPDX-License-Identifier: GPL-2.0-only
"""What the tests in virtual machines share: hosts, SAs and policies, the wire."""

from .host import Host
from .pair import Pair
from .wire import Wire
from .xfrm import Policy, Sa, Tunnel

__all__ = ["Host", "Pair", "Policy", "Sa", "Tunnel", "Wire"]
