# SPDX-License-Identifier: GPL-2.0-only
"""A differential oracle: the same frames go to an SA in the card and to one in the kernel's software."""

from .bench import Bench, Verdict, seed
from .stream import KINDS, Config, Stream

__all__ = ["KINDS", "Bench", "Config", "Stream", "Verdict", "seed"]
