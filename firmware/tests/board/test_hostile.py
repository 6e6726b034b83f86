# SPDX-License-Identifier: BSD-3-Clause
"""Messages that no hypervisor sends: each gets an error or the end of the connection, and the next
client finds all in order.
"""

import array
import errno
import fcntl
import os
import random
import resource
import select
import signal
import socket
import struct
import subprocess
import time

import client as c
import pytest
from client import refused
from board import CORDOND, FAKE_FW


@pytest.fixture
def card(board):
    device = c.Card(board.socket())
    yield device
    device.close()


@pytest.fixture(autouse=True)
def board_is_unharmed(board):
    """After the test a new client works, and the board holds no more descriptors than before."""
    other = c.Card(board.socket())
    other.close()
    board.wait_log("DMA_CLEAR")
    time.sleep(0.05)
    before = board.fds()
    cleared = len(board.log("DMA_CLEAR"))
    yield
    assert board.is_alive()
    other = c.Card(board.socket())
    other.enable()
    other.close()
    c.wait_for(lambda: len(board.log("DMA_CLEAR")) >= cleared + 1)
    end = time.monotonic() + 5
    while board.fds() != before and time.monotonic() < end:
        time.sleep(0.01)
    assert board.fds() == before


def closed(conn):
    """Was the connection closed by the board?"""
    try:
        return conn.sock.recv(1) == b""
    except ConnectionResetError:
        return True


def drain(conn):
    """Throws away what has arrived."""
    while select.select([conn.sock], [], [], 0)[0] and conn.sock.recv(65536):
        pass


ACCESSES = [
    (2**64 - 4, 8),
    (2**64 - 1, 1),
    (2**63, 4),
    (0xFFF, 4),
    (0x1000, 1),
    (0, 0),
    (0, 0x1001),
    (0, 0xFFFFFFFF),
    (4, 65537),
]


@pytest.mark.parametrize("region", [0, 4, 7])
@pytest.mark.parametrize("offset, count", ACCESSES)
def test_access_outside(card, region, offset, count):
    with refused(errno.EINVAL):
        card.request(c.REGION_READ, struct.pack("=QII", offset, region, count))
    with refused(errno.EINVAL):
        card.request(
            c.REGION_WRITE, struct.pack("=QII", offset, region, count) + bytes(min(count, 60000))
        )


@pytest.mark.parametrize(
    "region, offset",
    [(2, 0x1FFD), (2, 0x2000), (1, 0), (3, 0), (5, 0), (6, 0), (8, 0), (9, 0), (0xFFFFFFFF, 0)],
)
def test_access_of_other_regions(card, region, offset):
    with refused(errno.EINVAL):
        card.region_read(region, offset, 4)
    with refused(errno.EINVAL):
        card.region_write(region, offset, bytes(4))


def test_write_length(card):
    for count, data in ((4, 3), (4, 5), (4, 0), (0, 0), (8, 4)):
        with refused(errno.EINVAL):
            card.request(c.REGION_WRITE, struct.pack("=QII", 0x20, 0, count) + bytes(data))


def test_short_and_long_bodies(card):
    whole = {
        c.VERSION: 4,
        c.DMA_MAP: 32,
        c.DMA_UNMAP: 24,
        c.GET_INFO: 16,
        c.GET_REGION_INFO: 32,
        c.GET_IRQ_INFO: 16,
        c.SET_IRQS: 20,
        c.REGION_READ: 16,
        c.REGION_WRITE: 16,
    }
    for command, size in whole.items():
        for short in range(size):
            with refused(errno.EINVAL):
                card.request(command, b"\xff" * short)
    for command in (c.DMA_MAP, c.DMA_UNMAP, c.SET_IRQS, c.REGION_READ, c.DEVICE_RESET):
        with refused(errno.EINVAL):
            card.request(command, bytes(whole.get(command, 0) + 1))


def test_argsz(card):
    assert card.region_info(2, 0xFFFFFFFF).argsz == 64
    for argsz in (0, 31):
        with refused(errno.EINVAL):
            card.region_info(0, argsz)
    for command in (c.GET_INFO, c.GET_IRQ_INFO):
        with refused(errno.EINVAL):
            card.request(command, struct.pack("=IIII", 15, 0, 0, 0))
        card.request(command, struct.pack("=IIII", 0xFFFFFFFF, 0, 0, 0))
    with refused(errno.EINVAL):
        card.request(c.DMA_MAP, struct.pack("=IIQQQ", 31, 3, 0, 0x1000, 0x1000))
    with refused(errno.EINVAL):
        card.request(c.DMA_UNMAP, struct.pack("=IIQQ", 23, 0, 0x1000, 0x1000))
    with refused(errno.EINVAL):
        card.request(c.SET_IRQS, struct.pack("=IIIII", 19, 33, 2, 0, 0))
    with refused(errno.EINVAL):
        card.request(c.DMA_UNMAP, struct.pack("=IIQQQQ", 0xFFFFFFFF, 1, 0, 0x1000, 4096, 2**63))


@pytest.mark.parametrize(
    "addr, size",
    [
        (0, 0),
        (2**64 - 4096, 8192),
        (8192, 2**64 - 4096),
        (1, 4096),
        (4096, 4095),
        (2**63, 2**63 + 4096),
    ],
)
def test_map_ranges(card, addr, size):
    for fd in (-1, card.memory.fd):
        with refused(errno.EINVAL):
            card.dma_map(addr, size, fd)


@pytest.mark.parametrize("offset", [1, 2**64 - 4096, 2**63, 64 << 20])
def test_map_offsets(card, offset):
    with refused(errno.EINVAL):
        card.dma_map(0x1000, 0x1000, card.memory.fd, offset)


@pytest.mark.parametrize("flags", [0, 2, 4, 7, 0x80000003])
def test_map_flags(card, flags):
    with refused(errno.EINVAL):
        card.dma_map(0x1000, 0x1000, card.memory.fd, flags=flags)


def test_map_wrong_fds(card):
    read_end, write_end = os.pipe()
    eventfd = os.eventfd(0)
    small = os.memfd_create("small")
    os.ftruncate(small, 0x1000)
    folder = os.open("/", os.O_RDONLY)
    for fd, size in (
        (read_end, 0x1000),
        (write_end, 0x1000),
        (eventfd, 0x1000),
        (card.sock.fileno(), 0x1000),
        (small, 0x2000),
        (folder, 0x1000),
    ):
        with refused(errno.EINVAL):
            card.dma_map(0x1000, size, fd)
    read_only = os.open(f"/proc/self/fd/{small}", os.O_RDONLY)
    with refused(errno.EACCES):
        card.dma_map(0x1000, 0x1000, read_only)
    card.dma_map(0x1000, 0x1000, read_only, flags=c.MAP_READ)
    with refused(errno.EINVAL):
        card.request(c.DMA_MAP, struct.pack("=IIQQQ", 32, 3, 0, 0x100000, 0x1000), [small, small])
    for fd in (read_end, write_end, eventfd, small, folder, read_only):
        os.close(fd)


def test_maps_are_bounded(card):
    for page in range(65534):
        card.send(
            c.DMA_MAP, struct.pack("=IIQQQ", 32, 3, 0, 0x1000 * page, 0x1000), (), c.FLAG_NO_REPLY
        )
    with refused(errno.ENOSPC):
        card.dma_map(0x80000000, 0x1000)
    card.dma_unmap(0, 0, c.UNMAP_ALL)


SETS = [
    (2, 36, 0xFFFFFFFF, 1),
    (2, 36, 1, 0xFFFFFFFF),
    (2, 36, 17, 1),
    (2, 36, 0, 18),
    (2, 36, 16, 2),
    (1, 36, 0, 1),
    (0, 36, 0, 1),
    (3, 36, 1, 1),
    (3, 36, 0, 2),
    (5, 36, 0, 1),
    (0xFFFFFFFF, 36, 0, 1),
    (2, 33, 1, 0),
    (2, 36, 0, 0),
    (2, 4, 0, 1),
    (2, 32, 0, 1),
    (2, 37, 0, 1),
    (2, 34, 0, 1),
    (2, 9, 0, 1),
    (2, 17, 0, 1),
    (2, 57, 0, 1),
    (2, 0xFFFFFFFF, 0, 1),
    (2, 0, 0, 0),
]


@pytest.mark.parametrize("index, flags, first, count", SETS)
def test_set_irqs(card, index, flags, first, count):
    with refused(errno.EINVAL):
        card.set_irqs(index, flags, first, count)


def test_set_irqs_wrong_fds(card):
    eventfd = os.eventfd(0)
    read_end, write_end = os.pipe()
    for count, fds in (
        (2, [eventfd]),
        (1, [eventfd] * 2),
        (1, [write_end]),
        (1, [card.memory.fd]),
        (1, [card.sock.fileno()]),
        (2, [eventfd, read_end]),
    ):
        with refused(errno.EINVAL):
            card.set_irqs(c.IRQ_MSIX, c.IRQ_EVENTFD | c.IRQ_TRIGGER, 0, count, fds)
    with refused(errno.EINVAL):
        card.set_irqs(c.IRQ_MSIX, c.IRQ_NONE | c.IRQ_TRIGGER, 0, 0, [eventfd])
    for fd in (eventfd, read_end, write_end):
        os.close(fd)


def test_fds_where_none_belong(card):
    for command, size in (
        (c.GET_INFO, 16),
        (c.REGION_READ, 16),
        (c.DEVICE_RESET, 0),
        (c.DMA_UNMAP, 24),
        (99, 8),
    ):
        with refused(errno.EINVAL):
            card.request(command, bytes(size), [card.memory.fd] * 3)


def test_too_many_fds(card):
    with refused(errno.EINVAL):
        card.set_irqs(
            c.IRQ_MSIX, c.IRQ_EVENTFD | c.IRQ_TRIGGER, 0, 17, [os.eventfd(0) for _ in range(17)]
        )
    with refused(errno.EINVAL):
        card.request(
            c.DMA_MAP, struct.pack("=IIQQQ", 32, 3, 0, 0x1000, 0x1000), [card.memory.fd] * 250
        )
    assert card.read32(c.REG_MAGIC) == c.MAGIC


@pytest.mark.parametrize("command", [0, c.DMA_READ, c.DMA_WRITE, 14, 19, 100, 0xFFFF])
def test_unknown_commands(card, command):
    for size in (0, 16, 64):
        with refused(errno.EINVAL):
            card.request(command, bytes(size))


def test_unknown_flags(card):
    for flags in (0x20, 0x40, 0x80000000):
        with refused(errno.EINVAL):
            card.reply_to(card.send(c.GET_INFO, bytes(16), flags=flags), c.GET_INFO)


@pytest.mark.parametrize("flags", [0x1, 0x2, 0xF, 0x21])
def test_not_a_request(card, flags):
    card.send(c.GET_INFO, bytes(16), flags=flags)
    assert closed(card)


@pytest.mark.parametrize("size", [0, 1, 15, 65569, 2**31, 2**32 - 1])
def test_size_of_the_message(card, size):
    card.send_raw(c.HEADER.pack(1, c.GET_INFO, size, 0, 0) + bytes(16))
    assert closed(card)


def test_truncated_message(board, card):
    card.send_raw(c.HEADER.pack(1, c.REGION_WRITE, 16 + 16 + 4, 0, 0) + bytes(10), [card.memory.fd])
    card.sock.shutdown(socket.SHUT_WR)
    assert closed(card)


def test_bytes_one_by_one(card):
    message = c.HEADER.pack(7, c.REGION_READ, 32, 0, 0) + struct.pack("=QII", 0, 0, 4)
    for byte in message:
        card.send_raw(bytes([byte]))
    assert card.reply_to(7, c.REGION_READ)[0][16:] == struct.pack("<I", c.MAGIC)


def test_fds_with_every_byte(card):
    message = c.HEADER.pack(7, c.GET_INFO, 32, 0, 0) + struct.pack("=IIII", 16, 0, 0, 0)
    for byte in message:
        card.send_raw(bytes([byte]), [card.memory.fd] * 4)
    with refused(errno.EINVAL):
        card.reply_to(7, c.GET_INFO)


def test_doubled_messages(card):
    message = c.HEADER.pack(9, c.REGION_READ, 32, 0, 0) + struct.pack("=QII", 0, 0, 4)
    card.send_raw(message * 2 + message[:20])
    for _ in range(2):
        assert card.reply_to(9, c.REGION_READ)[0][16:] == struct.pack("<I", c.MAGIC)
    card.send_raw(message[20:])
    card.reply_to(9, c.REGION_READ)


def test_client_that_reads_nothing(board, card):
    """Replies pile up until the sockets are full; then the board reads no more."""
    card.sock.setblocking(False)
    message = c.HEADER.pack(9, c.REGION_READ, 32, 0, 0) + struct.pack("=QII", 0, 7, 4096)
    end = time.monotonic() + 5
    try:
        while time.monotonic() < end:
            card.sock.send(message * 100)
    except BlockingIOError:
        pass
    with open(f"/proc/{board.process.pid}/stat", encoding="ascii") as file:
        before = sum(map(int, file.read().split()[13:15]))
    time.sleep(0.5)
    with open(f"/proc/{board.process.pid}/stat", encoding="ascii") as file:
        assert sum(map(int, file.read().split()[13:15])) - before < 20


def test_flood_of_irqs_while_firmware_is_stopped(board, card):
    """The firmware doesn't read: registers are answered, and the board keeps nothing for it."""
    os.kill(board.firmware_pid(), signal.SIGSTOP)
    fds = [os.eventfd(0) for _ in range(16)]
    for _ in range(3000):
        card.set_irqs(c.IRQ_MSIX, c.IRQ_EVENTFD | c.IRQ_TRIGGER, 0, 16, fds)
    for fd in fds:
        os.close(fd)
    assert len(board.fds()) < 100
    card.reset()
    assert card.read32(c.REG_ERROR) == c.ERROR_FIRMWARE_HUNG
    card.reset()
    card.wait_status(0xF, c.STATUS_READY)


def test_irqs_reach_a_slow_firmware(board, card):
    """What it had no room for comes later, as a whole."""
    os.kill(board.firmware_pid(), signal.SIGSTOP)
    junk = [os.eventfd(0) for _ in range(16)]
    for _ in range(1000):
        card.set_irqs(c.IRQ_MSIX, c.IRQ_EVENTFD | c.IRQ_TRIGGER, 0, 16, junk)
    card.vectors_enable()
    os.kill(board.firmware_pid(), signal.SIGCONT)
    card.enable()
    card.write32(c.REG_KICK, 0)
    for fd in card.vectors:
        assert c.read_eventfd(fd, c.PATIENCE)
    for fd in junk:
        os.close(fd)


def test_random_messages(board):
    """Headers that are right, and anything behind them."""
    chance = random.Random(1)
    fd = os.memfd_create("random")
    os.ftruncate(fd, 0x10000)
    eventfd = os.eventfd(0, os.EFD_NONBLOCK)
    numbers = [0, 1, 2, 3, 4, 7, 8, 16, 32, 33, 36, 4096, 8192, 0xFFFF, 2**31, 2**32 - 1]
    conn = c.Connection(board.socket())
    for _ in range(4000):
        command = chance.choice([2, 3, 4, 5, 7, 8, 9, 10, 13, chance.randrange(20)])
        body = b"".join(
            struct.pack("=I", chance.choice(numbers)) for _ in range(chance.randrange(10))
        )
        fds = [chance.choice([fd, eventfd]) for _ in range(chance.choice([0, 0, 0, 1, 2, 16]))]
        conn.send(command, body, fds, chance.choice([0, 0, 0, c.FLAG_NO_REPLY]))
        drain(conn)
        if chance.random() < 0.01:
            conn.close()
            conn = c.Connection(board.socket())
    conn.close()
    os.close(fd)
    os.close(eventfd)


def test_second_client_waits(board, card):
    second = c.Connection(board.socket(), version=False)
    second.send(c.VERSION, struct.pack("=HH", 0, 0))
    second.sock.settimeout(0.3)
    with pytest.raises(TimeoutError):
        second.receive()
    assert card.read32(c.REG_MAGIC) == c.MAGIC
    card.sock.shutdown(socket.SHUT_RDWR)
    second.sock.settimeout(5)
    assert second.receive()[1] == c.VERSION
    second.close()


def test_unix_rights_without_data(board):
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    sock.connect(board.socket())
    eventfd = os.eventfd(0)
    sock.sendmsg(
        [b"\0"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [eventfd] * 200))]
    )
    sock.close()
    os.close(eventfd)


def cpu_ticks(board):
    """Processor time that the board has used, in ticks."""
    with open(f"/proc/{board.process.pid}/stat", encoding="ascii") as file:
        return sum(map(int, file.read().split()[13:15]))


def test_out_of_file_descriptors(board):
    """A client that can't be accepted waits, and the board sleeps."""
    pid = board.process.pid
    _, hard = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    before = resource.prlimit(pid, resource.RLIMIT_NOFILE, (3, hard))
    conn = c.Connection(board.socket(), version=False)
    conn.send(c.VERSION, struct.pack("=HH", 0, 0))
    used = cpu_ticks(board)
    time.sleep(0.5)
    assert cpu_ticks(board) - used < 10
    resource.prlimit(pid, resource.RLIMIT_NOFILE, before)
    assert conn.receive()[1] == c.VERSION
    conn.close()


def test_guest_fills_no_log(board, card):
    """What a guest does gives ten warnings in a second at most."""
    for _ in range(200):
        card.write32(c.REG_CONTROL, c.CONTROL_ENABLE)
        card.write32(c.REG_CONTROL, c.CONTROL_RESET)
        card.wait_status(c.STATUS_RESETTING, 0)
    time.sleep(1)
    card.write32(c.REG_CONTROL, c.CONTROL_ENABLE)
    text = board.err.read_text()
    assert 0 < text.count("failed, error") < 100
    assert "messages are missing here" in text


def test_log_that_nobody_reads(tmp_path):
    """Standard error is a full pipe."""
    read_end, write_end = os.pipe()
    fcntl.fcntl(write_end, fcntl.F_SETPIPE_SZ, 4096)
    line = [
        CORDOND,
        "--log-level=debug",
        f"--port=name=p0,socket={tmp_path}/p0.sock,wire=none",
        f"--firmware={FAKE_FW}",
    ]
    with subprocess.Popen(
        line,
        stdout=subprocess.PIPE,
        stderr=write_end,
        env=dict(os.environ, FAKE_FW_DIR=str(tmp_path)),
    ) as process:
        os.close(write_end)
        assert process.stdout.readline() == b"ready\n"
        conn = c.Connection(f"{tmp_path}/p0.sock")
        for _ in range(500):
            with refused(errno.ENOTSUP):
                conn.request(c.DEVICE_FEATURE, bytes(64))
        assert len(os.read(read_end, 65536)) <= 4096
        with refused(errno.ENOTSUP):
            conn.request(c.DEVICE_FEATURE, bytes(64))
        assert b"messages are missing here" in os.read(read_end, 65536)
        conn.close()
        process.terminate()
        assert process.wait(10) == 0
    os.close(read_end)
