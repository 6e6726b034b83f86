# SPDX-License-Identifier: BSD-3-Clause
"""Guests, cards and the Debian root that they are made of."""

from .card import Cordond, Port
from .errors import CommandFailed, GuestFailed, LabError, LabTimeout
from .guest import Guest, Process
from .lab import Lab
from .result import Result
from .root import Kernel, Root

__all__ = ["CommandFailed", "Cordond", "Guest", "GuestFailed", "Kernel", "Lab", "LabError",
           "LabTimeout", "Port", "Process", "Result", "Root"]
