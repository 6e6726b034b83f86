# SPDX-License-Identifier: BSD-3-Clause
"""What can go wrong in the lab; every message says what to do or where to look."""


class LabError(Exception):
    """The lab can't do what was asked."""


class LabTimeout(LabError):
    """Something took longer than it was allowed to."""


class GuestFailed(LabError):
    """A guest died, or its kernel complained on the console."""


class CommandFailed(LabError):
    """A command that had to succeed did not."""

    def __init__(self, where, result):
        self.result = result
        tail = "\n".join(text.strip()[-2000:] for text in (result.stdout, result.stderr)
                         if text.strip())
        how = "timed out" if result.timed_out else f"exit status {result.status}"
        super().__init__(f"{where}: {how}: {result.command}\n{tail}".rstrip())
