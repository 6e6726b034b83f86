# SPDX-License-Identifier: BSD-3-Clause
"""cordond with the real firmware, and two cards with a wire between them."""

import os
import pathlib
import select
import signal
import subprocess

import client

HERE = pathlib.Path(__file__).resolve().parent
BUILD = pathlib.Path(os.environ.get("BUILD", HERE.parent.parent.parent / "build"))
CORDOND = pathlib.Path(os.environ.get("CORDOND", BUILD / "firmware" / "cordond"))
FIRMWARE = pathlib.Path(os.environ.get("CORDON_FW", CORDOND.parent / "cordon-fw"))


class Board:
    """A running cordond and the cards that were opened on it."""

    def __init__(self, directory, args):
        self.directory = directory
        self.err = directory / "stderr"
        self.cards = []
        with open(self.err, "wb") as err:
            self.process = subprocess.Popen([CORDOND, f"--firmware={FIRMWARE}", "--log-level=info", *args],
                                            stdout=subprocess.PIPE, stderr=err)
        out = self.process.stdout
        assert select.select([out], [], [], 20)[0] and out.readline() == b"ready\n", self.text()

    def text(self):
        """What it said."""
        return self.err.read_text(encoding="utf-8", errors="replace")

    def card(self, name, enable=True, **options):
        """Opens a port, as its guest."""
        card = client.Card(str(self.directory / f"{name}.sock"), **options)
        self.cards.append(card)
        if enable:
            card.vectors_enable()
            card.enable()
        return card

    def firmwares(self):
        """Process numbers of the firmware."""
        path = pathlib.Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        return [int(pid) for pid in path.read_text(encoding="ascii").split()]

    def stop(self):
        """Ends it; it must not have crashed, nor its firmware."""
        for card in self.cards:
            card.close()
        crashed = self.process.poll() is not None
        if not crashed:
            self.process.send_signal(signal.SIGTERM)
        status = self.process.wait(10)
        self.process.stdout.close()
        assert not crashed and status == 0, (status, self.text())
        assert "Sanitizer" not in self.text() and "runtime error" not in self.text(), self.text()


class Cable:
    """Two cards and the wire between them, one queue pair each."""

    def __init__(self, board, flags=client.PORT_RX_ENABLE | client.PORT_PROMISCUOUS, mtu=1500, **options):
        self.board = board
        self.left = board.card("p0")
        self.right = board.card("p1")
        for card in (self.left, self.right):
            card.port_set(mtu=mtu, flags=flags)
            card.pairs = [card.queue_pair(0, **options)]
        self.tx = self.left.pairs[0]
        self.rx = self.right.pairs[0]
        link_wait(self.left)
        link_wait(self.right)

    def carry(self, frame, **options):
        """Sends a frame from left to right; returns what arrives."""
        done = self.tx.send(frame, **options)
        assert done.result == 0, done
        return self.rx.receive()


def link_wait(card, value=1):
    """Waits until the link is up (or down)."""
    while card.event_wait(1).value != value:
        pass


class QueueReuse(client.QueuePair):
    """A pair in the memory of an earlier one."""

    def __init__(self, old):  # pylint: disable=super-init-not-called
        self.__dict__.update(old.__dict__)
        for ring in (self.tx_cq, self.rx_cq):
            ring.buffer.write(bytes(ring.buffer.size))
            ring.cons = 0
        self.tx_prod = 0
        for field in range(5):
            self.card.ring(self.line, field, 0)
        log2 = self.entries.bit_length() - 1
        self.card.execute(client.CMD_QUEUE_PAIR_CREATE, client.QUEUE_PAIR_CFG.pack(
            self.index, 1, log2, log2, 0, self.tx_ring.addr, self.tx_cq.buffer.addr, self.rx_ring.addr,
            self.rx_cq.buffer.addr))
