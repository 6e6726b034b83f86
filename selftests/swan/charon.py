# SPDX-License-Identifier: GPL-2.0-only
"""The IKE daemon of a guest, started by hand."""

import time

from . import config

DIRECTORY = "/run/swan"
LOG = f"{DIRECTORY}/charon.log"
SOCKET = "/run/charon.vici"


class Charon:
    """charon-systemd in a guest, with some Connections. A context manager."""

    def __init__(self, guest, connections):
        self.guest = guest
        self.connections = connections
        self._process = None

    def __enter__(self):
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_):
        self.stop()

    def start(self, timeout=30):
        """Start the daemon and load the connection."""
        self.guest.write(f"{DIRECTORY}/strongswan.conf", config.daemon(LOG))
        self.guest.write(f"{DIRECTORY}/swanctl.conf", config.swanctl(self.connections), 0o600)
        self.guest.run(["rm", "-f", SOCKET, LOG], check=True)
        self._process = self.guest.start(["charon-systemd"], env=self._environment())
        end = time.monotonic() + timeout
        while not self.guest.run(["test", "-S", SOCKET]).ok:
            if self._process.poll() is not None or time.monotonic() > end:
                raise AssertionError(f"{self.guest.name}: charon doesn't start\n"
                                     f"{self._process.output}{self.log()[-2000:]}")
            time.sleep(0.2)
        self.swanctl("--load-all", "--noprompt", "--file", f"{DIRECTORY}/swanctl.conf")

    def stop(self):
        """End the daemon; it takes its SAs and policies along."""
        if self._process is not None:
            self._process.stop()
            self._process = None

    @staticmethod
    def _environment():
        return {"STRONGSWAN_CONF": f"{DIRECTORY}/strongswan.conf"}

    def swanctl(self, command, *words, timeout=60, check=True):
        """Run a swanctl command and return its Result."""
        return self.guest.run(["swanctl", command, *words], timeout, check,
                              env=self._environment())

    def initiate(self, child):
        """Bring a child up."""
        return self.swanctl("--initiate", "--child", child, "--timeout", "40")

    def rekey(self, child):
        """Replace the SAs of a child by new ones."""
        return self.swanctl("--rekey", "--child", child)

    def rekey_ike(self, connection):
        """Replace an IKE_SA."""
        return self.swanctl("--rekey", "--ike", connection)

    def terminate(self):
        """Take all IKE_SAs down, and their children with them."""
        for connection in self.connections:
            self.swanctl("--terminate", "--ike", connection.name, check=False)

    def log(self):
        """Return the daemon's log so far."""
        return self.guest.run(["cat", LOG]).stdout
