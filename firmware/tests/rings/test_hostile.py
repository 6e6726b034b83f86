# SPDX-License-Identifier: BSD-3-Clause
"""A driver that breaks the contract: its packet is refused or its queue stops, and nothing else happens."""

import random
import struct

import client
import pytest
import rings

BAD_DESC, R_DMA, TOO_LONG, TOO_SHORT, BAD_CSUM, BAD_TSO = range(1, 7)
SA_GONE = 16
QUEUE_ERROR = 3

GOOD = {"len": 100, "sa": 0, "flags": 0, "slots": 1, "segments": 1, "mss": 0, "header_len": 0, "csum_start": 0,
        "csum_offset": 0, "vlan_tci": 0, "l3_offset": 0}


def put(pair, slots):
    """Writes slots as they are."""
    first = pair.tx_prod
    for slot in slots:
        pair.tx_ring.write(slot, pair.tx_prod % pair.entries * 32)
        pair.tx_prod += 1
    pair.card.submit(pair.line, first, pair.tx_prod)


def slot_of(pair, **fields):
    """A first slot, good but for the given fields."""
    d = dict(GOOD, addr=pair.place(bytes(range(200))))
    d.update(fields)
    return client.TX_DESC.pack(d["addr"], d["len"], d["sa"], d["flags"], d["slots"], d["segments"], d["mss"],
                               d["header_len"], d["csum_start"], d["csum_offset"], d["vlan_tci"], d["l3_offset"])


def check_alive(cable):
    """Both ends still work."""
    frame = bytes(range(100))
    assert cable.carry(frame).data == frame


BAD = [
    ("unknown flag 0x08", {"flags": 0x08}, BAD_DESC),
    ("unknown flag 0x8000", {"flags": 0x8000}, BAD_DESC),
    ("sa without flag", {"sa": 1}, BAD_DESC),
    ("both sa flags", {"flags": 0x30, "l3_offset": 14}, BAD_DESC),
    ("l3 without sa", {"l3_offset": 14}, BAD_DESC),
    ("mss without segment", {"mss": 100}, BAD_DESC),
    ("header without segment", {"header_len": 54}, BAD_DESC),
    ("fixed id without segment", {"flags": 0x80}, BAD_DESC),
    ("csum start without csum", {"csum_start": 34}, BAD_DESC),
    ("csum offset without csum", {"csum_offset": 6}, BAD_DESC),
    ("tci without vlan", {"vlan_tci": 1}, BAD_DESC),
    ("crypto without ext", {"flags": 0x10, "l3_offset": 14}, BAD_DESC),
    ("no segments", {"segments": 0}, BAD_DESC),
    ("too many segments", {"segments": 21}, BAD_DESC),
    ("more segments than slots", {"segments": 2}, BAD_DESC),
    ("empty segment", {"len": 0}, BAD_DESC),
    ("runt", {"len": 13}, TOO_SHORT),
    ("giant", {"len": 65551}, TOO_LONG),
    ("giant, 32 bits", {"len": 0xffffffff}, TOO_LONG),
    ("over the MTU", {"len": 1515}, TOO_LONG),
    ("nowhere", {"addr": 0x1000}, R_DMA),
    ("wraps", {"addr": (1 << 64) - 50}, R_DMA),
    ("csum start behind the end", {"flags": 1, "csum_start": 100, "csum_offset": 0}, BAD_CSUM),
    ("csum field across the end", {"flags": 1, "csum_start": 34, "csum_offset": 65}, BAD_CSUM),
    ("csum offset wraps", {"flags": 1, "csum_start": 65535, "csum_offset": 65535}, BAD_CSUM),
    ("not TCP", {"flags": 2, "mss": 10, "header_len": 54}, BAD_TSO),
    ("mss 0", {"flags": 2, "mss": 0, "header_len": 54}, BAD_TSO),
    ("packet sa that isn't there", {"flags": 0x20, "sa": 5, "l3_offset": 14}, SA_GONE),
    ("packet sa of a huge index", {"flags": 0x20, "sa": 0xffffffff, "l3_offset": 14}, SA_GONE),
]


@pytest.mark.parametrize("fields, result", [b[1:] for b in BAD], ids=[b[0] for b in BAD])
def test_bad_packet(cable_of, fields, result):
    cable = cable_of()
    put(cable.tx, [slot_of(cable.tx, **fields)])
    assert cable.tx.completion() == (0, result, 0)
    check_alive(cable)
    stats = cable.left.stats()
    assert stats["tx_drops"][result] == 1 and sum(stats["tx_drops"]) == 1


def test_bad_following_slots(cable_of):
    cable = cable_of()
    pair = cable.tx
    base = pair.place(bytes(200))
    cases = [
        (3, [client.TX_SEGS.pack(base, base, 20, 0, 0)], BAD_DESC),
        (2, [client.TX_SEGS.pack(base, 0, 20, 1, 0)], BAD_DESC),
        (2, [client.TX_SEGS.pack(base, base, 20, 0, 0)], BAD_DESC),
        (3, [client.TX_SEGS.pack(base, base, 20, 20, 1)], BAD_DESC),
        (3, [client.TX_SEGS.pack(base, 8, 20, 20, 0)], R_DMA),
        (2, [client.TX_SEGS.pack(base, 0, 0, 0, 0)], BAD_DESC),
        (3, [client.TX_SEGS.pack(base, base, 0xffffffff, 0xffffffff, 0)], TOO_LONG),
    ]
    for segments, rest, want in cases:
        put(pair, [slot_of(pair, slots=1 + len(rest), segments=segments), *rest])
        assert pair.completion().result == want
    ext = {"flags": 0x50, "sa": 1, "l3_offset": 14, "slots": 2}
    for bad in (client.TX_EXT_DESC.pack(1, 34, 1, 0, 0, 0), client.TX_EXT_DESC.pack(1, 34, 0, 1, 0, 0),
                client.TX_EXT_DESC.pack(1, 34, 0, 0, 0, 1)):
        put(pair, [slot_of(pair, **ext), bad])
        assert pair.completion().result == BAD_DESC
    put(pair, [slot_of(pair, **ext), client.TX_EXT_DESC.pack(1, 34, 0, 0, 0, 0)])
    assert pair.completion().result == SA_GONE
    check_alive(cable)


@pytest.mark.parametrize("slots", [0, 13, 255, 2])
def test_slots_that_cannot_be(cable_of, slots):
    """Nobody knows where the next packet begins."""
    cable = cable_of()
    put(cable.tx, [slot_of(cable.tx, slots=slots)])
    event = cable.left.event_wait(QUEUE_ERROR)
    assert (event.handle, event.value) == (0, BAD_DESC)
    recover(cable)


def recover(cable):
    """Only destroying the pair helps."""
    cable.tx.post([(cable.tx.place(bytes(100)), 100)])
    assert cable.left.stats()["tx_packets"] == 0
    cable.tx.destroy()
    cable.tx = cable.left.queue_pair(0)
    check_alive(cable)


@pytest.mark.parametrize("field, value", [(0, 257), (0, 0xffffffff), (0, 0x80000000), (2, 1), (2, 0xfffffe00), (3, 5),
                                          (1, 1000)])
def test_indices_that_cannot_be(cable_of, field, value):
    """0 sq_prod, 1 rx_prod, 2 sq_cons, 3 rx_cons."""
    cable = cable_of()
    if field == 1:
        cable.rx.card.ring(cable.rx.line, 1, value)
        cable.tx.send(bytes(100))
        card = cable.right
    else:
        card = cable.left
        card.ring(1, field, value)
        card.ring(1, 4, 1)
        card.write32(client.REG_KICK, 1)
    event = card.event_wait(QUEUE_ERROR)
    assert (event.handle, event.value) == (0, BAD_DESC)
    if card is cable.left:
        recover(cable)


@pytest.mark.parametrize("addr, length, reserved, value", [
    (None, 511, 0, BAD_DESC), (None, 65537, 0, BAD_DESC), (None, 2048, 1, BAD_DESC), (0x1000, 2048, 0, R_DMA),
    ((1 << 64) - 10, 2048, 0, R_DMA)])
def test_bad_rx_buffer(cable_of, addr, length, reserved, value):
    cable = cable_of()
    rx = cable.rx
    rx.rx_ring.write(client.RX_DESC.pack(rx.rx_buffers[0].addr if addr is None else addr, length, reserved))
    cable.tx.send(bytes(100))
    event = cable.right.event_wait(QUEUE_ERROR)
    assert (event.handle, event.value) == (0, value)
    stats = cable.right.stats()
    assert sum(stats["rx_drops"]) == 1 and stats["rx_packets"] == 0
    rx.destroy()
    cable.rx = cable.right.queue_pair(0)
    check_alive(cable)


def test_memory_taken_away(cable_of):
    """Unmapped under the rings: nothing crashes, the function fails or the queue stops, a reset helps."""
    cable = cable_of()
    card = cable.left
    memory = card.memory
    card.dma_unmap(memory.addr, memory.size)
    cable.tx.tx_prod += 1
    card.ring(1, 0, cable.tx.tx_prod)
    card.write32(client.REG_KICK, 1)
    card.wait_status(client.STATUS_FAILED, client.STATUS_FAILED)
    assert card.read32(client.REG_ERROR) == client.ERROR_DMA
    card.dma_map(memory.addr, memory.size, memory.fd)
    card.enable()
    card.port_set()
    cable.tx = card.queue_pair(0)
    check_alive(cable)


def test_memory_mapped_in_pieces(start):
    """As a virtual IOMMU does: buffers and rings lie across maps."""
    board = start()
    left, right = board.card("p0"), board.card("p1")
    memory = left.memory
    left.write32(client.REG_CONTROL, client.CONTROL_RESET)
    left.wait_status(client.STATUS_RESETTING | client.STATUS_READY, client.STATUS_READY)
    left.dma_unmap(memory.addr, memory.size)
    pages = list(range(0, 8 << 20, 4096))
    random.Random(3).shuffle(pages)
    for page in pages:
        left.dma_map(memory.addr + page, 4096, memory.fd, page)
    left.enable()
    right.port_set(mtu=9600, flags=3)
    left.port_set(mtu=9600)
    tx, rx = left.queue_pair(0), right.queue_pair(0, buffer_size=16384)
    left.event_wait(1)
    for size in (100, 4097, 9614):
        frame = random.Random(size).randbytes(size)
        assert tx.send(frame).result == 0
        assert rx.receive().data == frame
    hole = tx.place(bytes(9614)) & ~4095
    left.dma_unmap(hole + 4096, 4096)
    tx.post([(hole + 100, 9000)])
    assert tx.completion().result == R_DMA


def test_read_only_memory(start):
    """Buffers that the card may not write."""
    board = start(ports={"p0": "p1", "p1": "p0"})
    left, right = board.card("p0"), board.card("p1")
    extra = client.Memory(65536, 0x900000000)
    right.dma_map(extra.addr, extra.size, extra.fd, flags=client.MAP_READ)
    left.port_set()
    right.port_set(flags=3)
    tx, rx = left.queue_pair(0), right.queue_pair(0)
    rx.rx_ring.write(client.RX_DESC.pack(extra.addr, 2048, 0))
    left.event_wait(1)
    while tx.send(bytes(100)).result:
        pass
    event = right.event_wait(QUEUE_ERROR)
    assert event.value == R_DMA
    assert extra.map[:4096] == bytes(4096)


def test_noise(cable_of):
    """Random slots and indices; the board and the other function don't notice."""
    cable = cable_of()
    choose = random.Random(11)
    other = cable.right.stats
    for _ in range(60):
        pair = cable.tx
        for slot in range(pair.entries):
            raw = bytearray(choose.randbytes(32))
            if choose.random() < 0.7:
                raw[:14] = struct.pack("<QIH", pair.tx_room.addr + choose.randrange(1 << 16), choose.randrange(3000), 0)[:14]
                raw[16:20] = struct.pack("<HBB", choose.choice([0, 1, 2, 3, 4, 0x10, 0x20, 0x50]), choose.choice([1, 1, 1, 2, 3]),
                                         choose.choice([1, 1, 2, 3]))
            pair.tx_ring.write(bytes(raw), slot * 32)
        cable.left.ring(1, 0, pair.tx_prod + choose.choice([1, 7, 256, 257, choose.randrange(1 << 32)]))
        cable.left.write32(client.REG_KICK, 1)
        cable.left.execute(client.CMD_NOP)
        assert other()["rx_wire_packets"] >= 0
        pair.destroy()
        cable.tx = rings.QueueReuse(pair)
    cable.right.enable()
    cable.right.port_set(flags=3)
    cable.rx = cable.right.queue_pair(0)
    cable.left.enable()
    cable.left.port_set()
    cable.tx = cable.left.queue_pair(0)
    client.wait_for(lambda: cable.left.event_wait(1).value)
    check_alive(cable)
