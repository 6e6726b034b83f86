# SPDX-License-Identifier: BSD-3-Clause
"""The host's end of the line to a guest's agent; any thread may call."""

import itertools
import json
import socket
import threading
import time

from .errors import GuestFailed, LabError, LabTimeout


class Channel:
    """Requests and replies, matched by number.

    alive() is asked while waiting; it raises when the guest can't answer any more.
    """

    def __init__(self, path, name, alive):
        self.name = name
        self._alive = alive
        self._numbers = itertools.count(1)
        self._waiting = {}
        self._guard = threading.Lock()
        self._hello = threading.Event()
        self._sock = self._connect(path)
        threading.Thread(target=self._receive, name=f"lab-{name}", daemon=True).start()

    def _connect(self, path, timeout=20):
        end = time.monotonic() + timeout
        while True:
            self._alive()
            sock = socket.socket(socket.AF_UNIX)
            try:
                sock.connect(str(path))
                return sock
            except (FileNotFoundError, ConnectionRefusedError):
                sock.close()
                if time.monotonic() > end:
                    raise LabTimeout(f"{self.name}: QEMU opened no agent socket") from None
                time.sleep(0.02)

    def wait_hello(self, timeout):
        """Wait until the agent has come up, for the first time or after expect_hello()."""
        self._wait(self._hello, timeout, "the agent to come up")

    def expect_hello(self):
        self._hello.clear()

    def _wait(self, event, timeout, what):
        end = None if timeout is None else time.monotonic() + timeout
        while not event.wait(0.25):
            self._alive()
            if end is not None and time.monotonic() > end:
                raise LabTimeout(f"{self.name}: waited {timeout:g} s for {what}")

    def call(self, op, limit, what, **fields):
        """Send one request, return the reply's fields."""
        number = next(self._numbers)
        slot = {"event": threading.Event(), "reply": None}
        line = json.dumps({"id": number, "op": op, **fields}).encode() + b"\n"
        with self._guard:
            self._waiting[number] = slot
            try:
                self._sock.sendall(line)
            except OSError as err:
                self._alive()
                raise GuestFailed(f"{self.name}: the agent's line broke: {err}") from None
        try:
            self._wait(slot["event"], limit, what)
        finally:
            with self._guard:
                del self._waiting[number]
        reply = slot["reply"]
        if "error" in reply:
            raise LabError(f"{self.name}: {what}: {reply['error']}")
        return reply

    def _receive(self):
        pending = b""
        while True:
            try:
                data = self._sock.recv(1 << 20)
            except OSError:
                return
            if not data:
                return
            if b"\n" not in data:
                pending += data
                continue
            *lines, pending = (pending + data).split(b"\n")
            for line in lines:
                self._deliver(line)

    def _deliver(self, line):
        try:
            message = json.loads(line)
        except ValueError:
            return
        if "hello" in message:
            self._hello.set()
            return
        with self._guard:
            slot = self._waiting.get(message.get("id"))
            if slot:
                slot["reply"] = message
                slot["event"].set()

    def close(self):
        self._sock.close()
