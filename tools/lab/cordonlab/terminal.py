# SPDX-License-Identifier: BSD-3-Clause
"""This terminal joined to the shell of a guest."""

import os
import select
import shutil
import socket
import sys
import termios
import tty

from .errors import LabError

ESCAPE = b"\x1d"  # Ctrl-]


def attach(path):
    """Join the terminal to a guest's shell until Ctrl-] or the guest's end."""
    if not sys.stdin.isatty():
        raise LabError("a shell needs a terminal; use `run` for a command")
    with socket.socket(socket.AF_UNIX) as sock:
        sock.connect(str(path))
        size = shutil.get_terminal_size()
        print("lab: Ctrl-] leaves the shell", file=sys.stderr)
        sock.sendall(f"{size.lines} {size.columns}\n".encode())
        before = termios.tcgetattr(0)
        try:
            tty.setraw(0)
            _relay(sock)
        finally:
            termios.tcsetattr(0, termios.TCSADRAIN, before)
            print()


def _relay(sock):
    """Copy both ways."""
    while True:
        ready, _, _ = select.select([sock, 0], [], [])
        if sock in ready:
            data = sock.recv(65536)
            if not data:
                return
            os.write(1, data)
        if 0 in ready:
            data = os.read(0, 4096)
            if not data or ESCAPE in data:
                return
            sock.sendall(data)
