# SPDX-License-Identifier: GPL-2.0-only
"""Fixtures of the tests in virtual machines.

A test that takes `pair` gets two guests whose ports are wired together. It runs on KERNELS[0]; one with
the mark `core` on all of them.
The guests live as long as tests of their kernel run; each test begins with no SA, no policy, and both links up.
"""

import pytest

from kit import Pair

KERNELS = ("7.3", "6.12")


def pytest_configure(config):
    """Declares the marks."""
    config.addinivalue_line("markers", "core: runs on every kernel, not only the newest")


def pytest_generate_tests(metafunc):
    """One run for each kernel."""
    if "guests" in metafunc.fixturenames:
        core = metafunc.definition.get_closest_marker("core")
        metafunc.parametrize("guests", KERNELS if core else KERNELS[:1], indirect=True, scope="session")


@pytest.fixture(scope="session")
def guests(request):
    """The guests, shared by all tests of a kernel."""
    with Pair(request.param) as pair:
        yield pair


@pytest.fixture
def pair(guests):
    """The guests, clean; what a kernel says on its console fails the test."""
    for host in guests.hosts():
        host.clear_xfrm()
    yield guests
    for host in guests.hosts():
        host.clear_xfrm()
    guests.lab.check()
