# SPDX-License-Identifier: BSD-3-Clause
"""A cordond with the fake firmware."""

import json
import os
import pathlib
import select
import signal
import subprocess
import time

import client

HERE = pathlib.Path(__file__).resolve().parent
BUILD = pathlib.Path(os.environ.get("BUILD", HERE.parent.parent.parent / "build"))
CORDOND = pathlib.Path(os.environ.get("CORDOND", BUILD / "firmware" / "cordond"))
FAKE_FW = HERE / "fake_fw.py"


class Board:
    """A running cordond."""

    def __init__(self, directory, args, env=None):
        self.directory = directory
        self.err = directory / "stderr"
        self.process = None
        with open(self.err, "ab") as err:
            self.process = subprocess.Popen(
                [CORDOND, "--log-level=debug", *args],
                stdout=subprocess.PIPE,
                stderr=err,
                env=dict(os.environ, FAKE_FW_DIR=str(directory), **(env or {})),
            )
        self.ready = self._wait_ready()

    def _wait_ready(self):
        out = self.process.stdout
        return bool(select.select([out], [], [], 20)[0]) and out.readline() == b"ready\n"

    def socket(self, name="p0"):
        """Path of a port's socket."""
        return str(self.directory / f"{name}.sock")

    def control(self, **what):
        """Tells the fake firmware what to do wrong."""
        temporary = self.directory / "control.new"
        temporary.write_text(json.dumps(what), encoding="ascii")
        temporary.rename(self.directory / "control")

    def log(self, *types):
        """What the fake firmware was told (of these types)."""
        try:
            lines = (self.directory / "log").read_text(encoding="ascii").splitlines()
        except FileNotFoundError:
            return []
        return [entry for entry in map(json.loads, lines) if not types or entry["type"] in types]

    def wait_log(self, kind, count=1, timeout=client.PATIENCE):
        """Waits until so many messages of a type were logged, returns them."""
        end = time.monotonic() + timeout
        while len(self.log(kind)) < count:
            assert time.monotonic() < end, (kind, self.log())
            time.sleep(0.01)
        return self.log(kind)

    def firmware_pid(self):
        """Process that was started last."""
        return self.log("BORN")[-1]["pid"]

    def fds(self):
        """Kinds of open file descriptors of the board."""
        names = []
        for entry in pathlib.Path(f"/proc/{self.process.pid}/fd").iterdir():
            try:
                names.append(os.readlink(entry).split(":[")[0])
            except FileNotFoundError:
                pass
        return sorted(names)

    def is_alive(self):
        """Does it run?"""
        return self.process.poll() is None

    def stop(self, signo=signal.SIGTERM):
        """Ends it, returns its status."""
        if self.is_alive():
            self.process.send_signal(signo)
        try:
            return self.process.wait(10)
        finally:
            self.process.stdout.close()
