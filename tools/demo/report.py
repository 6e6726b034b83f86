# SPDX-License-Identifier: BSD-3-Clause
"""What the demo prints: progress with the time gone by, blocks of text, verdicts."""

import sys
import time
from concurrent.futures import ThreadPoolExecutor


class Report:
    """Writes to stdout, and counts what was not as it should be."""

    def __init__(self):
        self.started = time.monotonic()
        self.wrong = []

    def elapsed(self):
        """Seconds since the start."""
        return time.monotonic() - self.started

    def say(self, *words):
        """A line of progress."""
        print(f"[{self.elapsed():5.1f} s]", *words, flush=True)

    def show(self, title, text):
        """A block of text under its title."""
        print(f"\n--- {title}")
        print(text.strip("\n"), flush=True)

    def check(self, good, text):
        """A verdict. The demo goes on either way, and fails at its end."""
        if not good:
            self.wrong.append(text)
        print(f"          {'ok' if good else 'WRONG'}: {text}", flush=True)
        return bool(good)

    def close(self, logs):
        """The last lines; return the exit status."""
        print()
        self.say("logs and captures:", logs)
        for text in self.wrong:
            print(f"demo: WRONG: {text}", file=sys.stderr)
        self.say("not as it should be" if self.wrong else "all is as it should be")
        return 1 if self.wrong else 0


def at_once(function, *items):
    """Call a function with every item, all at the same time; return the results in order."""
    with ThreadPoolExecutor(len(items)) as pool:
        return list(pool.map(function, items))
