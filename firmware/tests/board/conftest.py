# SPDX-License-Identifier: BSD-3-Clause
"""Fixtures: cordond with the fake firmware. A test that hangs is ended by an alarm."""

import pathlib
import signal
import sys

import pytest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
from board import FAKE_FW, Board  # noqa: E402  pylint: disable=wrong-import-position

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
    """Function that starts a board; all are ended, and must not have crashed."""
    boards = []

    def make(*args, ports=("p0",), options="", firmware=FAKE_FW):
        directory = tmp_path / f"board{len(boards)}"
        directory.mkdir()
        line = [
            f"--port=name={port},socket={directory / port}.sock,wire=none{options}"
            for port in ports
        ]
        board = Board(directory, [*line, f"--firmware={firmware}", *args])
        boards.append(board)
        return board

    yield make
    for board in boards:
        running = board.is_alive()
        status = board.stop()
        text = board.err.read_text(encoding="utf-8", errors="replace")
        assert "Sanitizer" not in text and "runtime error" not in text, text
        assert not running or status == 0, (status, text)


@pytest.fixture
def board(start):
    """A board with one port."""
    made = start()
    assert made.ready
    return made
