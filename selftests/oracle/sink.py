# SPDX-License-Identifier: GPL-2.0-only
"""Runs in a guest: notes each datagram that arrives, as number and checksum, until it's told to end."""

import signal
import socket
import struct
import sys
import zlib

SO_RCVBUFFORCE = 33


def main():
    """Arguments: address, port, file to write."""
    address, port, path = sys.argv[1:4]
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sock.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 64 << 20)
    sock.bind((address, int(port)))
    with open(path, "wb", buffering=1 << 16) as out:
        def end(*_):
            out.close()
            sys.exit(0)
        signal.signal(signal.SIGTERM, end)
        print("ready", flush=True)
        while True:
            data = sock.recv(65536)
            if data == b"flush":
                out.flush()
                continue
            out.write(struct.pack("!II", struct.unpack_from("!I", data.ljust(4, b"\xff"))[0], zlib.crc32(data)))


main()
