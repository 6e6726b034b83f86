# SPDX-License-Identifier: BSD-3-Clause
"""Interrupts, moderation, events, sleeping and waking."""

import os
import time

import client
import pytest
import rings

OVERFLOW, QUEUE_ERROR, LINK = 2, 3, 1
FRAME = bytes(range(100))


def fired(card, vector, timeout=0.05):
    """How many interrupts came."""
    return client.read_eventfd(card.vectors[vector], timeout)


def drain(card):
    """Takes back what came before."""
    for vector in range(len(card.vectors)):
        fired(card, vector, 0)


def test_one_interrupt_for_each_arm(cable):
    drain(cable.right)
    cable.carry(FRAME)
    assert fired(cable.right, 1) == 0
    cable.rx.arm()
    assert fired(cable.right, 1) == 0
    cable.carry(FRAME)
    assert fired(cable.right, 1, 2) == 1
    cable.carry(FRAME)
    assert fired(cable.right, 1) == 0
    cable.rx.arm()
    cable.carry(FRAME)
    assert fired(cable.right, 1, 2) == 1


def test_entry_that_is_already_there(cable):
    """Armed with an entry behind the consumer index: the next round of the card raises it."""
    drain(cable.right)
    cable.tx.send(FRAME)
    client.wait_for(lambda: cable.right.stats()["rx_packets"] == 1)
    cable.right.arm(1, 0, 0)
    cable.right.execute(client.CMD_NOP)
    assert fired(cable.right, 1, 2) == 1


def test_tx_completion_interrupts(cable):
    drain(cable.left)
    cable.tx.arm()
    cable.tx.send(FRAME)
    assert fired(cable.left, 1, 2) == 1


def test_command_interrupts(cable):
    drain(cable.left)
    cable.left.admin_arm()
    cable.left.execute(client.CMD_NOP)
    assert fired(cable.left, 0, 2) == 1


def test_shared_vector(cable):
    pair = cable.right.queue_pair(1, vector=1)
    del pair
    drain(cable.right)
    cable.rx.arm()
    cable.carry(FRAME)
    assert fired(cable.right, 1, 2) == 1


def test_moderation_by_time(cable):
    cable.right.execute(client.CMD_QUEUE_PAIR_MODERATE, args=(0, 200000, 0, 0))
    drain(cable.right)
    cable.rx.arm()
    start = time.monotonic()
    cable.tx.send(FRAME)
    assert fired(cable.right, 1, client.PATIENCE) == 1
    assert time.monotonic() - start > 0.19
    assert fired(cable.right, 1) == 0


def test_moderation_by_frames(cable):
    cable.right.execute(client.CMD_QUEUE_PAIR_MODERATE, args=(0, 0, 5, 0))
    drain(cable.right)
    cable.rx.arm()
    for _ in range(4):
        cable.tx.send(FRAME)
    assert fired(cable.right, 1, 0.1) == 0
    cable.tx.send(FRAME)
    assert fired(cable.right, 1, 2) == 1


def test_moderation_of_tx(cable):
    """The RX side stays unmoderated."""
    cable.left.execute(client.CMD_QUEUE_PAIR_MODERATE, args=(0, 0, 0, 3 << 32 | 500000))
    drain(cable.left)
    cable.tx.arm()
    cable.tx.post([(cable.tx.place(FRAME), 100)])
    assert fired(cable.left, 1, 0.1) == 0
    for _ in range(2):
        cable.tx.post([(cable.tx.place(FRAME), 100)])
    assert fired(cable.left, 1, 0.3) == 1
    for _ in range(3):
        cable.tx.completion()
    cable.tx.arm()
    cable.rx.send(FRAME)
    cable.tx.receive()
    assert fired(cable.left, 1, 0.3) == 1


def test_vectors_that_come_late(start):
    """An interrupt that is due before its eventfd is there isn't lost (the board may raise one more)."""
    board = start()
    left = board.card("p0", enable=False)
    left.enable()
    left.admin_arm()
    left.execute(client.CMD_NOP)
    left.vectors_enable()
    assert fired(left, 0, 2)


def test_event_overflow(cable_of):
    """64 entries; queue errors fill them."""
    cable = cable_of()
    card = cable.right
    spare = [card.queue_pair(n, log2=6) for n in range(1, 16)]
    for turn in range(5):
        for pair in spare:
            card.ring(pair.line, 0, 1000 + turn)
            card.write32(client.REG_KICK, pair.line)
        client.wait_for(lambda: card.command(client.CMD_NOP)[0].status == 0)
        time.sleep(0.02)
        for pair in spare:
            pair.destroy()
        spare = [rings.QueueReuse(pair) for pair in spare]
    seen = []

    def take():
        event = card.event_take()
        if event:
            seen.append(event)
        return len(seen) >= 64 and seen[-1].type == OVERFLOW
    client.wait_for(take)
    assert [e.type for e in seen].count(QUEUE_ERROR) == len(seen) - 1
    assert seen.index(seen[-1]) >= 60
    link = card.event_wait()
    assert (link.type, link.value) == (LINK, 1)
    card.ring(2, 0, 5000)
    card.write32(client.REG_KICK, 2)
    assert card.event_wait().type == QUEUE_ERROR


def test_link_follows_the_other_end(start):
    board = start()
    left, right = board.card("p0"), board.card("p1")
    rings.link_wait(left)
    rings.link_wait(right)
    assert left.event_take() is None


def ticks(pid):
    """CPU time in seconds."""
    with open(f"/proc/{pid}/stat", encoding="ascii") as stat:
        fields = stat.read().rsplit(") ", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@pytest.mark.parametrize("wire", ["port", "none", "unix"])
def test_idle_costs_nothing(start, tmp_path, wire):
    ports = {"port": {"p0": "p1", "p1": "p0"}, "none": {"p0": "none"},
             "unix": {"p0": f"unix:{tmp_path}/u0:{tmp_path}/u1"}}[wire]
    board = start(ports=ports)
    for name in ports:
        card = board.card(name)
        card.port_set()
        card.queue_pair(0)
    time.sleep(0.2)
    pids = board.firmwares()
    before = sum(map(ticks, pids))
    time.sleep(3)
    assert sum(map(ticks, pids)) - before <= 0.03


def test_wakes_from_sleep(cable):
    """Each time after a pause, in both directions, without a lost wake-up."""
    for _ in range(50):
        time.sleep(0.003)
        assert cable.carry(FRAME).data == FRAME
        time.sleep(0.003)
        assert cable.rx.send(FRAME).result == 0
        assert cable.tx.receive().data == FRAME
