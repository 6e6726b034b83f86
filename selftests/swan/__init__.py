# SPDX-License-Identifier: GPL-2.0-only
"""strongSwan between two guests: configuration, daemon, sites, and what the kernel made of it."""

from .charon import Charon
from .config import Child, Connection
from .site import Site
from .xfrm import State, parse_states, states

__all__ = ["Charon", "Child", "Connection", "Site", "State", "parse_states", "states"]
