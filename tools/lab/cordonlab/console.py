# SPDX-License-Identifier: BSD-3-Clause
"""A guest's kernel console, and what on it makes a run fail."""

import re
from pathlib import Path

from .errors import GuestFailed

TROUBLE = re.compile("|".join((
    r"\bOops\b", r"\bBUG:", r"\bWARNING:", r"\bCall Trace:", r"kernel BUG at",
    r"Kernel panic", r"general protection fault", r"Unable to handle kernel",
    r"INFO: task .* blocked for more than", r"soft lockup", r"hard LOCKUP",
    r"rcu: INFO:", r"\bINFO: rcu\w* .*stall", r"possible circular locking",
    r"possible recursive locking", r"inconsistent lock state", r"possible irq lock inversion",
    r"suspicious RCU usage", r"held lock freed", r"bad unlock balance",
    r"lock held when returning to user space", r"trying to register non-static key",
    r"Invalid wait context", r"\bKASAN:", r"\bUBSAN:", r"\bKCSAN:", r"\bKFENCE:",
    r"kmemleak: .*new suspected", r"refcount_t:", r"list_(add|del) corruption",
    r"Bad page state", r"Bad rss-counter", r"slab.*corruption", r"NETDEV WATCHDOG",
    r"unregister_netdevice: waiting for", r"scheduling while atomic",
    r"sleeping function called from invalid context", r"page_pool_release_retry",
    r"DMA-API: (?!preallocated|debugging)",
    r"Out of memory: Killed", r"LAB-INIT-FAILED")))
DEAD = re.compile(r"Kernel panic|LAB-INIT-FAILED")


class Console:
    """Reads the log file from where it last stopped."""

    def __init__(self, name, path):
        self.name = name
        self.path = Path(path)
        self.expected = []
        self._offset = 0
        self._tail = ""
        self._found = []

    def text(self):
        try:
            return self.path.read_text(encoding="utf-8", errors="replace")
        except FileNotFoundError:
            return ""

    def expect(self, pattern):
        """Lines that match this are meant to be there and fail nothing."""
        self.expected.append(re.compile(pattern))

    def _scan(self):
        try:
            with open(self.path, "rb") as file:
                file.seek(self._offset)
                data = file.read()
        except FileNotFoundError:
            return
        self._offset += len(data)
        *lines, self._tail = (self._tail + data.decode("utf-8", "replace")).split("\n")
        self._found += [line.strip() for line in lines if TROUBLE.search(line)]

    def trouble(self):
        """Return the lines so far that fail the run."""
        self._scan()
        return [line for line in self._found
                if not any(form.search(line) for form in self.expected)]

    def dead(self):
        """Return the line with which the guest's kernel gave up, or None."""
        return next((line for line in self.trouble() if DEAD.search(line)), None)

    def booted(self):
        """Has the kernel got beyond the set-up of its timers and processors?"""
        times = re.findall(r"^\[ *(\d+)\.\d+\]", self.text(), re.M)
        return bool(times) and int(times[-1]) >= 2

    def tail(self, count=12):
        return "\n".join(self.text().splitlines()[-count:])

    def check(self):
        """Raise GuestFailed if the console shows trouble."""
        found = self.trouble()
        if found:
            raise GuestFailed(f"{self.name}: the kernel complained ({len(found)} lines), "
                              f"console log: {self.path}\n  " + "\n  ".join(found[:5]))
