#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""A firmware that does nothing but speak firmware/board/ipc.h, for tests of the board.

It writes each message as a JSON line to $FAKE_FW_DIR/log, and looks into $FAKE_FW_DIR/control for
what to do wrong: {"mute": [types from which on nothing is acknowledged], "error": {type: errno}, "die": [types],
"garbage": [types], "failed": [types],
"slow": {type: seconds before it is acknowledged}, "choke": [types]: the eventfds of the wire block
whoever writes to them}. A kick raises all vectors.
"""

import array
import json
import mmap
import os
import select
import socket
import struct
import time

HEAD = struct.Struct("=IIQiI")
SIZE = 240
TYPES = [
    "",
    "ACK",
    "PORT_ADD",
    "START",
    "DMA_MAP",
    "DMA_UNMAP",
    "DMA_CLEAR",
    "IRQ_SET",
    "ENABLE",
    "DISABLE",
    "FAILED",
]


class Port:
    """What is known of a port."""

    def __init__(self, fds):
        self.doorbell = mmap.mmap(fds[0], 0x2000)
        self.kick = fds[1]
        self.wire = fds[3:5]
        self.vectors = {}
        self.maps = {}


class Firmware:
    """The process."""

    def __init__(self, directory):
        self.directory = directory
        self.sock = socket.socket(fileno=3)
        self.ports = {}
        self.hung = False
        self.log_file = open(os.path.join(directory, "log"), "a", encoding="ascii")

    def orders(self, name):
        """What to do wrong with a message: a function that looks up a key."""
        try:
            with open(os.path.join(self.directory, "control"), encoding="ascii") as file:
                control = json.load(file)
        except (OSError, ValueError):
            control = {}

        def look_up(key):
            value = control.get(key, [])
            return value.get(name) if isinstance(value, dict) else name in value

        return look_up

    def log(self, **fields):
        """Writes a line."""
        self.log_file.write(json.dumps(dict(fields, pid=os.getpid())) + "\n")
        self.log_file.flush()

    def send(self, kind, port, seq, error):
        """Sends a message."""
        self.sock.send(HEAD.pack(kind, port, seq, error, 0).ljust(SIZE, b"\0"))

    def port_add(self, number, body, fds):
        """PORT_ADD."""
        vectors, wire, end, capture = struct.unpack_from("=IIII", body)
        self.ports[number] = Port(fds)
        return dict(
            vectors=vectors,
            wire=wire,
            end=end,
            capture=capture,
            mac=body[16:22].hex(),
            name=body[22:54].split(b"\0")[0].decode(),
            path=body[54:162].split(b"\0")[0].decode(),
            limits=struct.unpack_from("=13I", body, 164),
            fds=[os.readlink(f"/proc/self/fd/{fd}") for fd in fds],
        )

    def dma_map(self, number, body, fds):
        """DMA_MAP."""
        addr, size, offset, writable = struct.unpack_from("=QQQI", body)
        self.ports[number].maps[addr] = (size, offset, fds)
        return dict(addr=addr, size=size, offset=offset, writable=writable, fds=len(fds))

    def dma_unmap(self, number, body):
        """DMA_UNMAP."""
        addr, size = struct.unpack_from("=QQ", body)
        known = self.ports[number].maps.pop(addr, None)
        for fd in known[2] if known else ():
            os.close(fd)
        return dict(addr=addr, size=size, known=bool(known and known[0] == size))

    def dma_clear(self, number):
        """DMA_CLEAR."""
        for _, _, fds in self.ports[number].maps.values():
            for fd in fds:
                os.close(fd)
        self.ports[number].maps.clear()
        return {}

    def irq_set(self, number, body, fds):
        """IRQ_SET."""
        first, count = struct.unpack_from("=II", body)
        vectors = self.ports[number].vectors
        for vector in range(first, first + count) if count else list(vectors):
            if vector in vectors:
                os.close(vectors.pop(vector))
        vectors.update(zip(range(first, first + count), fds))
        return dict(first=first, count=count, fds=len(fds))

    def enable(self, body):
        """ENABLE."""
        return dict(rings=struct.unpack_from("=QQQI", body))

    def handle(self, data, fds):
        """Serves one message."""
        kind, number, seq, _, _ = HEAD.unpack_from(data)
        name, body = TYPES[kind], data[24:]
        more = {
            "PORT_ADD": lambda: self.port_add(number, body, fds),
            "DMA_MAP": lambda: self.dma_map(number, body, fds),
            "DMA_UNMAP": lambda: self.dma_unmap(number, body),
            "DMA_CLEAR": lambda: self.dma_clear(number),
            "IRQ_SET": lambda: self.irq_set(number, body, fds),
            "ENABLE": lambda: self.enable(body),
        }.get(name, dict)()
        # Before it is logged: who waits for the log may give other orders for what comes next.
        order = self.orders(name)
        self.log(type=name, port=number, seq=seq, **more)
        if order("choke"):
            for fd in self.ports[number].wire:
                os.set_blocking(fd, True)
                os.eventfd_write(fd, 0xFFFFFFFFFFFFFFFE)
        time.sleep(order("slow") or 0)
        if order("die"):
            os.abort()
        if order("garbage"):
            self.sock.send(b"garbage")
        if order("failed"):
            self.send(10, number, 0, 4)
        self.hung = self.hung or bool(order("mute"))
        if seq and not self.hung:
            self.send(1, number, seq, -(order("error") or 0))

    def receive(self):
        """Receives a message; False at the end."""
        data, ancillary, _, _ = self.sock.recvmsg(
            4096, socket.CMSG_SPACE(16 * 4), socket.MSG_CMSG_CLOEXEC
        )
        if not data:
            return False
        fds = array.array("i")
        for _, _, raw in ancillary:
            fds.frombytes(raw)
        assert len(data) == SIZE, len(data)
        self.handle(data, list(fds))
        return True

    def run(self):
        """Serves until the board is gone."""
        while True:
            kicks = {port.kick: port for port in self.ports.values()}
            ready, _, _ = select.select([self.sock, *kicks], [], [])
            for fd in ready:
                if fd is self.sock:
                    if not self.receive():
                        return
                    continue
                count = struct.unpack("=Q", os.read(fd, 8))[0]
                self.log(type="KICK", count=count)
                for vector in kicks[fd].vectors.values():
                    os.write(vector, struct.pack("=Q", 1))


def inherited():
    """What the open file descriptors are; the one that lists them is the last."""
    numbers = sorted(map(int, os.listdir("/proc/self/fd")))[:-1]
    return [os.readlink(f"/proc/self/fd/{number}") for number in numbers]


if __name__ == "__main__":
    files = inherited()
    firmware = Firmware(os.environ["FAKE_FW_DIR"])
    firmware.log(type="BORN", open=files)
    firmware.run()
    firmware.log(type="END")
