# SPDX-License-Identifier: BSD-3-Clause
"""Plain frames from ring to wire to ring."""

import os
import random
import signal
import time

import client
import pytest
import rings

MAC = b"\x02\x00\x00\x00\x00\x01"


def frame_of(size, seed=0):
    """A frame that isn't IP."""
    return MAC + b"\x02\x00\x00\x00\x00\x02\x88\xb5" + random.Random(size + seed).randbytes(size - 14)


def test_all_sizes(cable):
    for size in range(14, 1515, 7):
        frame = frame_of(size)
        packet = cable.carry(frame)
        assert packet.data == frame and packet.result == 0


def test_layouts(cable):
    """Cut into any number of segments, at any place."""
    choose = random.Random(7)
    for count in range(1, 21):
        frame = frame_of(choose.randrange(60, 1500), count)
        split = sorted(choose.sample(range(1, len(frame)), count - 1))
        assert cable.carry(frame, split=split).data == frame


def test_jumbo_in_small_buffers(cable_of):
    cable = cable_of(mtu=9600, buffer_size=512)
    for size in (511, 512, 513, 1024, 5000, 9614):
        frame = frame_of(size)
        assert cable.carry(frame).data == frame


@pytest.mark.parametrize("mtu", [68, 1500, 9600])
def test_mtu(cable_of, mtu):
    cable = cable_of(mtu=mtu, buffer_size=16384)
    cable.carry(frame_of(mtu + 14))
    assert cable.tx.send(frame_of(mtu + 15)).result == 3
    tagged = MAC + MAC + b"\x81\x00\x00\x05\x88\xb5" + bytes(mtu)
    assert cable.carry(tagged).data == tagged
    assert cable.tx.send(tagged + b"x").result == 3
    assert cable.left.stats()["tx_drops"][3] == 2


def test_receiver_mtu(cable):
    cable.right.port_set(mtu=1000, flags=client.PORT_RX_ENABLE | client.PORT_PROMISCUOUS)
    cable.tx.send(frame_of(1015))
    frame = frame_of(1014)
    assert cable.carry(frame).data == frame
    assert cable.right.stats()["rx_drops"][12] == 1


def test_many_frames_stay_in_order(cable):
    """A ring of 256 many times over."""
    sent, received = 0, 0
    frames = [frame_of(100 + n % 1400, n) for n in range(3000)]
    while received < len(frames):
        while sent < min(len(frames), received + 128) and sent - completed(cable.tx) < 128:
            base = cable.tx.place(frames[sent])
            cable.tx.post([(base, len(frames[sent]))])
            sent += 1
        assert cable.rx.receive().data == frames[received]
        received += 1
    assert cable.right.stats()["rx_packets"] == len(frames)


def completed(pair):
    """Takes completions; returns how many there were altogether."""
    while True:
        fields = pair.tx_cq.take()
        if not fields:
            return pair.tx_cq.cons
        assert fields[1] == 0
        pair.card.ring(pair.line, 2, pair.tx_cq.cons)


def held(start):
    """A cable whose right firmware process is stopped, so that the wire fills up."""
    cable = rings.Cable(start(), mtu=9600, log2=8, buffer_size=16384)
    before = set(cable.board.firmwares())
    right = next(pid for pid in before if is_of(pid, cable.right))
    return cable, right


def is_of(pid, card):
    """Does this firmware serve the card? It has the card's guest memory mapped."""
    memory = os.fstat(card.memory.fd).st_ino
    return any(line.split()[4] == str(memory) for line in open(f"/proc/{pid}/maps", encoding="ascii"))


def test_full_wire_holds_the_ring(start):
    """Frames that the wire doesn't take wait in the card; none is lost."""
    cable, right = held(start)
    frames = [frame_of(9000, n) for n in range(80)]
    os.kill(right, signal.SIGSTOP)
    try:
        for frame in frames:
            cable.tx.post([(cable.tx.place(frame), len(frame))])
        time.sleep(0.03)
        assert completed(cable.tx) < 70
    finally:
        os.kill(right, signal.SIGCONT)
    for frame in frames:
        assert cable.rx.receive().data == frame
    client.wait_for(lambda: completed(cable.tx) == 80)


def test_dead_wire_loses_frames(start):
    """A wire that takes nothing for long must not stop the stack."""
    cable, right = held(start)
    frames = [frame_of(9000, n) for n in range(80)]
    results = []

    def take():
        fields = cable.tx.tx_cq.take()
        if fields:
            results.append(fields[1])
        return len(results) == 80

    os.kill(right, signal.SIGSTOP)
    try:
        for frame in frames:
            cable.tx.post([(cable.tx.place(frame), len(frame))])
        client.wait_for(take)
    finally:
        os.kill(right, signal.SIGCONT)
    lost = results.count(8)
    assert results == [0] * (80 - lost) + [8] * lost and lost > 10
    for frame in frames[:80 - lost]:
        assert cable.rx.receive().data == frame
    assert cable.left.stats()["tx_drops"][8] == lost
    assert cable.carry(frames[0]).data == frames[0]


def test_destroy_while_held(start):
    """A pair that goes takes its frames along; the next one works."""
    cable, right = held(start)
    frame = frame_of(9000)
    os.kill(right, signal.SIGSTOP)
    try:
        for _ in range(80):
            cable.tx.post([(cable.tx.place(frame), len(frame))])
        time.sleep(0.03)
        cable.tx.destroy()
    finally:
        os.kill(right, signal.SIGCONT)
    stats = cable.left.stats()
    assert stats["tx_drops"][34] > 0 and stats["tx_packets"] > 10
    for _ in range(stats["tx_packets"]):
        assert cable.rx.receive().data == frame
    cable.tx = cable.left.queue_pair(0)
    assert cable.carry(frame).data == frame


def test_no_buffer_is_counted(cable):
    for n in range(300):
        assert cable.tx.send(frame_of(64, n)).result == 0
    client.wait_for(lambda: cable.right.stats()["rx_wire_packets"] == 300)
    stats = cable.right.stats()
    assert stats["rx_packets"] == 256 and stats["rx_drops"][9] == 44
    for n in range(256):
        assert cable.rx.receive().data == frame_of(64, n)


def test_stats_sums(cable):
    for size in (60, 100, 1514):
        cable.carry(frame_of(size))
    cable.tx.send(frame_of(1515))
    left, right = cable.left.stats(), cable.right.stats()
    assert left["tx_packets"] == 3 and left["tx_bytes"] == 1674 and sum(left["tx_drops"]) == 1
    assert right["rx_packets"] == 3 and right["rx_bytes"] == 1674
    assert right["rx_wire_packets"] == right["rx_packets"] + sum(right["rx_drops"])


def test_rx_disabled(cable):
    cable.right.port_set(flags=0)
    cable.tx.send(frame_of(100))
    client.wait_for(lambda: cable.right.stats()["rx_drops"][11] == 1)


def test_no_wire(start):
    board = start(ports={"p0": "none"})
    card = board.card("p0")
    card.port_set()
    assert card.event_wait(1).value == 0
    pair = card.queue_pair(0)
    assert pair.send(frame_of(100))[1:] == (7, 0)
    assert card.stats()["tx_drops"][7] == 1
