# SPDX-License-Identifier: BSD-3-Clause
"""Fixtures. A test that hangs is ended by an alarm."""

import pathlib
import signal
import sys

import pytest

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "board")]
import rings  # noqa: E402  pylint: disable=wrong-import-position

TEST_SECONDS = 60


@pytest.fixture(autouse=True)
def time_limit():
    """Ends a test that hangs."""
    def expired(_signo, _frame):
        raise TimeoutError(f"test took more than {TEST_SECONDS} s")
    before = signal.signal(signal.SIGALRM, expired)
    signal.alarm(TEST_SECONDS)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.fixture
def start(tmp_path):
    """Function that starts a board with the ports {name: wire}."""
    boards = []

    def make(*args, ports=None, options=""):
        directory = tmp_path / f"b{len(boards)}"
        directory.mkdir()
        ports = ports or {"p0": "p1", "p1": "p0"}
        line = [f"--port=name={name},socket={directory / name}.sock,wire={wire}{options}"
                for name, wire in ports.items()]
        board = rings.Board(directory, [*line, *args])
        boards.append(board)
        return board

    yield make
    for board in boards:
        board.stop()


@pytest.fixture(params=["one process", "two processes"])
def cable(start, request):
    """A cable within a firmware process and between two."""
    return rings.Cable(start(options=",group=g" if request.param == "one process" else ""))


@pytest.fixture
def cable_of(start):
    """Function that makes a cable: board arguments, then options of rings.Cable."""
    def make(*args, **options):
        return rings.Cable(start(*args, options=",group=g"), **options)
    return make
