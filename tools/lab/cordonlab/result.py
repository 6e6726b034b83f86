# SPDX-License-Identifier: BSD-3-Clause
"""What a finished command left behind."""

import shlex

from .errors import CommandFailed


def _text(data):
    if data is None:
        return ""
    return data.decode("utf-8", "replace") if isinstance(data, bytes) else data


class Result:
    """Exit status and output of a command. A status below 0 is a signal's number."""

    def __init__(self, command, status, stdout=b"", stderr=b"", timed_out=False):
        self.command = command if isinstance(command, str) else shlex.join(map(str, command))
        self.status = status
        self.stdout = _text(stdout)
        self.stderr = _text(stderr)
        self.timed_out = timed_out

    @property
    def ok(self):
        return self.status == 0 and not self.timed_out

    @property
    def output(self):
        """Both streams."""
        return self.stdout + self.stderr

    def checked(self, where):
        """Return self, or raise CommandFailed."""
        if not self.ok:
            raise CommandFailed(where, self)
        return self

    def __bool__(self):
        return self.ok

    def __repr__(self):
        return f"<Result {self.status} of {self.command!r}>"
