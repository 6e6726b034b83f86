# SPDX-License-Identifier: BSD-3-Clause
"""Wires of other kinds, hostile peers on the shared-memory wire, captures."""

import ctypes
import fcntl
import mmap
import os
import pathlib
import random
import signal
import socket
import struct
import subprocess
import time

import client
import pytest
import rings
from ipsec import IN, OUT, Sa
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether
from scapy.packet import Raw

FRAME = bytes(range(100))
LINK_DOWN, WIRE_FULL = 7, 8
RX = client.PORT_RX_ENABLE | client.PORT_PROMISCUOUS
#: of fcntl.h, unknown to Python
F_SEAL_FUTURE_WRITE = 0x10


class Peer:
    """The other end of a UNIX wire."""

    def __init__(self, directory):
        self.path, self.card_path = f"{directory}/peer", f"{directory}/card"
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
        self.sock.bind(self.path)
        self.sock.settimeout(5)

    def send(self, frame):
        """To the card."""
        self.sock.sendto(frame, self.card_path)

    def close(self):
        """Goes away."""
        self.sock.close()
        os.unlink(self.path)


def unix_card(start, directory, **options):
    """A card on a UNIX wire."""
    board = start(ports={"p0": f"unix:{directory}/card:{directory}/peer"}, **options)
    card = board.card("p0")
    card.port_set(mtu=9600, flags=RX)
    return card, card.queue_pair(0, buffer_size=16384)


def test_unix(start, tmp_path):
    peer = Peer(tmp_path)
    card, pair = unix_card(start, tmp_path)
    rings.link_wait(card)
    for size in (14, 60, 1514, 9614):
        frame = random.Random(size).randbytes(size)
        assert pair.send(frame).result == 0
        assert peer.sock.recv(20000) == frame
        peer.send(frame)
        assert pair.receive().data == frame
    peer.send(bytes(9623))
    peer.send(bytes(13))
    client.wait_for(lambda: card.stats()["rx_drops"][12] == 2)
    stranger = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    with pytest.raises(OSError):
        stranger.sendto(FRAME, peer.card_path)
    stranger.close()
    peer.close()


def test_unix_peer_comes_and_goes(start, tmp_path):
    card, pair = unix_card(start, tmp_path)
    assert card.event_wait(1).value == 0
    assert pair.send(FRAME).result == LINK_DOWN
    for _ in range(2):
        peer = Peer(tmp_path)
        assert card.event_wait(1).value == 1
        assert pair.send(FRAME).result == 0 and peer.sock.recv(2000) == FRAME
        peer.close()
        assert card.event_wait(1).value == 0
        assert pair.send(FRAME).result == LINK_DOWN


def test_unix_peer_that_reads_slowly(start, tmp_path):
    """The socket fills up; no frame is lost."""
    peer = Peer(tmp_path)
    card, pair = unix_card(start, tmp_path)
    rings.link_wait(card)
    frames = [random.Random(n).randbytes(3000) for n in range(200)]
    for frame in frames:
        pair.post([(pair.place(frame), len(frame))])
    for frame in frames:
        assert peer.sock.recv(20000) == frame
    for _ in frames:
        assert pair.completion().result == 0
    peer.close()


def test_unix_peer_that_never_reads(start, tmp_path):
    """Each burst is held for its own time before it is lost."""
    peer = Peer(tmp_path)
    card, pair = unix_card(start, tmp_path)
    rings.link_wait(card)
    began = time.monotonic()
    for n in range(250):
        pair.post([(pair.place(bytes([n]) * 9000), 9000)])
    results = [pair.completion().result for _ in range(250)]
    lost = results.count(WIRE_FULL)
    assert set(results) == {0, WIRE_FULL} and lost > 96
    assert time.monotonic() - began > 0.1 * (lost // 32) - 0.05
    peer.close()


def test_unix_error_does_not_deafen(start, tmp_path):
    """The peer lets go of the card with a frame unread: an error of the card's socket, but no end."""
    peer = Peer(tmp_path)
    card, pair = unix_card(start, tmp_path)
    rings.link_wait(card)
    disconnect = ctypes.CDLL(None, use_errno=True).connect
    waits = []
    for _ in range(4):
        peer.sock.connect(peer.card_path)
        assert pair.send(FRAME).result == 0
        time.sleep(0.02)
        assert disconnect(peer.sock.fileno(), bytes(2), 2) == 0, os.strerror(ctypes.get_errno())
        time.sleep(0.02)
        for _ in range(4):
            time.sleep(0.03)
            began = time.monotonic()
            peer.send(FRAME)
            assert pair.receive().data == FRAME
            waits.append(time.monotonic() - began)
    # Without a watch it would be found with the next look at the link, each 250 ms.
    assert sorted(waits)[len(waits) // 2] < 0.03
    peer.close()


@pytest.mark.skipif(os.geteuid() != 0 or not pathlib.Path("/dev/net/tun").exists(), reason="TAP needs root and /dev/net/tun")
def test_tap(start):
    name = f"cdn{os.getpid() % 100000}"
    probe = os.open("/dev/net/tun", os.O_RDWR)
    try:
        fcntl.ioctl(probe, 0x400454ca, struct.pack("16sH22x", name.encode(), 0x1002))
    except OSError as error:
        pytest.skip(f"no TAP here: {error}")
    finally:
        os.close(probe)
    board = start(ports={"p0": f"tap:{name}"})
    card = board.card("p0")
    card.port_set(flags=RX)
    pair = card.queue_pair(0)
    rings.link_wait(card)
    assert pair.send(FRAME).result == LINK_DOWN
    subprocess.run(["ip", "link", "set", name, "up"], check=True)
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0x88b5)) as raw:
        raw.bind((name, 0x88b5))
        raw.settimeout(5)
        frame = b"\xff" * 6 + bytes(6) + b"\x88\xb5" + FRAME
        assert pair.send(frame).result == 0
        assert raw.recv(2000) == frame
        raw.send(frame)
        while pair.receive().data != frame:
            pass


def read_pcapng(path):
    """[(block type, body)] of a file."""
    data, blocks = pathlib.Path(path).read_bytes(), []
    while data:
        kind, size = struct.unpack_from("<II", data)
        assert size % 4 == 0 and data[size - 4:size] == struct.pack("<I", size)
        blocks.append((kind, data[8:size - 4]))
        data = data[size:]
    return blocks


def test_capture(start, tmp_path):
    file = tmp_path / "wire.pcapng"
    board = start(f"--capture=p0={file}", options=",group=g")
    cable = rings.Cable(board)
    out = Sa(cable.left, OUT, key=b"K" * 16).add()
    plain = bytes(Ether() / IP(src="10.1.0.1", dst="10.2.0.1") / UDP() / Raw(b"secret"))
    cable.tx.send(plain, flags=client.TX_SA_PACKET, sa=1, l3_offset=14)
    cable.carry(FRAME)
    cable.rx.send(FRAME)
    cable.tx.receive()
    cable.tx.send(bytes(1515))
    client.wait_for(lambda: len(read_pcapng(file)) == 5)
    blocks = read_pcapng(file)
    assert [kind for kind, _ in blocks] == [0x0a0d0d0a, 1, 6, 6, 6]
    assert blocks[0][1].startswith(struct.pack("<IHHq", 0x1a2b3c4d, 1, 0, -1))
    assert blocks[1][1].startswith(struct.pack("<HHIHH", 1, 0, 0, 2, 2) + b"p0")
    frames = []
    for _, body in blocks[2:]:
        interface, high, low, size, original = struct.unpack_from("<5I", body)
        assert interface == 0 and size == original
        frames.append((body[20:20 + size], body[20 + (size + 3) // 4 * 4:], high << 32 | low))
    assert out.open(frames[0][0], 1)[0] == plain[14:]
    assert [frame[0] for frame in frames[1:]] == [FRAME, FRAME]
    assert [struct.unpack_from("<HHI", frame[1])[2] for frame in frames] == [2, 2, 1]
    assert frames[0][2] <= frames[1][2] <= frames[2][2] and frames[0][2] > 1600000000 * 10**9
    raw = file.read_bytes()
    assert b"secret" not in raw and b"KKKK" not in raw


def test_hostile_peer(start):
    """Garbage in the shared memory: this end goes on, and works again when the other one does."""
    board = start()
    cable = rings.Cable(board)
    wire = None
    for pid in board.firmwares():
        for line in pathlib.Path(f"/proc/{pid}/maps").read_text(encoding="ascii").splitlines():
            if "cordon-wire" in line:
                first, last = (int(part, 16) for part in line.split()[0].split("-"))
                wire = os.open(f"/proc/{pid}/map_files/{first:x}-{last:x}", os.O_RDWR)
        if wire:
            break
    choose = random.Random(5)
    with mmap.mmap(wire, 4 << 20) as shm:
        for _ in range(100):
            kind = choose.randrange(4)
            if kind == 0:
                at = 64 + choose.choice([0, 64, 128, 192, 256, 320, 384, 448])
                shm[at:at + 4] = choose.randbytes(4)
            elif kind == 1:
                at = 4096 + choose.randrange(2) * (512 << 10) + choose.randrange(1 << 14) * 16
                shm[at:at + 4] = struct.pack("<I", choose.choice([0, 1, 13, 9622, 9623, 0xffffffff, choose.randrange(1 << 32)]))
            elif kind == 2:
                at = 64 + choose.randrange(2) * 256
                shm[at:at + 4] = struct.pack("<I", struct.unpack("<I", shm[at:at + 4])[0] + 16 * choose.randrange(1 << 15))
            cable.tx.post([(cable.tx.place(FRAME), 100)])
            cable.rx.post([(cable.rx.place(FRAME), 100)])
            for pair in (cable.tx, cable.rx):
                pair.completion()
            assert cable.left.stats()["rx_wire_packets"] >= 0
        shm[64:64 + 512] = bytes(512)
    os.close(wire)
    client.wait_for(lambda: cable.tx.send(FRAME).result == 0 and cable.rx.rx_cq.take())


def kill_firmware(board, card):
    """Kill the process that serves a card."""
    memory = os.fstat(card.memory.fd).st_ino
    pid = next(pid for pid in board.firmwares() if any(line.split()[4] == str(memory) for line in
               pathlib.Path(f"/proc/{pid}/maps").read_text(encoding="ascii").splitlines()))
    os.kill(pid, signal.SIGKILL)
    card.wait_status(client.STATUS_FAILED, client.STATUS_FAILED)


def test_killed_firmware(start):
    """The function fails, the other one goes on; a reset brings a new firmware and the wire back."""
    board = start()
    cable = rings.Cable(board)
    kill_firmware(board, cable.left)
    assert cable.left.read32(client.REG_ERROR) == client.ERROR_FIRMWARE_DIED
    rings.link_wait(cable.right, 0)
    cable.right.execute(client.CMD_NOP)
    cable.left.enable()
    cable.left.port_set(flags=RX)
    cable.tx = cable.left.queue_pair(0)
    rings.link_wait(cable.left)
    for _ in range(300):
        assert cable.carry(FRAME).data == FRAME
        assert cable.rx.send(FRAME).result == 0
        assert cable.tx.receive().data == FRAME


def test_memory_lost_while_the_firmware_was_dead(start):
    """What the new firmware can't map any more fails the function; without that map it works again."""
    board = start()
    card = board.card("p0")
    fd = os.memfd_create("more", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    os.ftruncate(fd, 1 << 20)
    card.dma_map(0x300000000, 1 << 20, fd)
    kill_firmware(board, card)
    fcntl.fcntl(fd, fcntl.F_ADD_SEALS, F_SEAL_FUTURE_WRITE)
    card.write32(client.REG_CONTROL, client.CONTROL_RESET)
    card.wait_status(client.STATUS_FAILED, client.STATUS_FAILED)
    assert card.read32(client.REG_ERROR) == client.ERROR_FIRMWARE_DIED
    card.dma_unmap(0x300000000, 1 << 20)
    card.enable()
    os.close(fd)


def test_both_directions_of_an_sa(start):
    """Two guests with a tunnel between them, each side with its own card process."""
    cable = rings.Cable(start(), flags=client.PORT_RX_ENABLE | client.PORT_PROMISCUOUS)
    for card, spi_out, spi_in in ((cable.left, 0x11, 0x22), (cable.right, 0x22, 0x11)):
        Sa(card, OUT, handle=1, spi=spi_out, mode=1).add()
        Sa(card, IN, handle=2, spi=spi_in, mode=1).add()
    packet = bytes(Ether() / IP(src="192.0.2.1", dst="192.0.2.2") / UDP(sport=7, dport=7) / Raw(FRAME))
    for _ in range(20):
        for sender, receiver in ((cable.tx, cable.rx), (cable.rx, cable.tx)):
            assert sender.send(packet, flags=client.TX_SA_PACKET, sa=1, l3_offset=14).result == 0
            got = receiver.receive()
            assert got.data == packet and got.sa == 2
