# SPDX-License-Identifier: GPL-2.0-only
"""The kernel's own selftests: built from Debian's kernel source, run unmodified in guests."""

from .build import Kselftest
from .run import Case, Failed, run

__all__ = ["Case", "Failed", "Kselftest", "run"]
