# SPDX-License-Identifier: BSD-3-Clause
"""pytest plugin: a time limit for each test, and the closing line."""

import signal

import pytest

# Seconds for a test without a mark of its own: @pytest.mark.limit(seconds).
DEFAULT_LIMIT = 120

_COUNTS = {"passed": 0, "failed": 0, "skipped": 0}


def pytest_configure(config):
    """Declares the marks."""
    config.addinivalue_line("markers", "limit(seconds): time limit of the test")


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_protocol(item):
    """Ends a test that hangs, its fixtures included (these may boot virtual machines)."""
    mark = item.get_closest_marker("limit")
    seconds = mark.args[0] if mark else DEFAULT_LIMIT

    def expired(_signum, _frame):
        pytest.fail(f"no end after {seconds} s", pytrace=True)

    old = signal.signal(signal.SIGALRM, expired)
    signal.alarm(seconds)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, old)


def pytest_runtest_logreport(report):
    """Counts each test once."""
    if report.when == "call" or report.outcome in ("failed", "skipped"):
        _COUNTS[report.outcome] += 1


def pytest_collectreport(report):
    """A file that can't be read is a failure too."""
    if report.failed:
        _COUNTS["failed"] += 1


def pytest_unconfigure():
    """The last line."""
    print(f"{_COUNTS['passed']} passed, {_COUNTS['failed']} failed, {_COUNTS['skipped']} skipped")
