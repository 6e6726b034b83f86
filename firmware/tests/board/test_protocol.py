# SPDX-License-Identifier: BSD-3-Clause
"""The protocol as QEMU speaks it: version, registers, doorbells, DMA maps, interrupts."""

import errno
import json
import mmap
import os
import pathlib
import struct
import time

import client as c
import pytest
from client import refused


@pytest.fixture
def card(board):
    device = c.Card(board.socket())
    yield device
    device.close()


def test_version(board):
    conn = c.Connection(board.socket())
    major, minor, text = conn.version
    assert (major, minor) == (0, 0) and text.endswith(b"\0")
    capabilities = json.loads(text[:-1])["capabilities"]
    assert capabilities == {
        "max_msg_fds": 16,
        "max_data_xfer_size": 65536,
        "max_dma_maps": 65535,
        "pgsizes": 4096,
    }
    with refused(errno.EINVAL):
        conn.negotiate()
    assert conn.device_info()[2:] == (9, 5)


def test_version_without_capabilities(board):
    conn = c.Connection(board.socket(), version=False)
    assert conn.negotiate(minor=7, capabilities=b"")[:2] == (0, 0)


@pytest.mark.parametrize(
    "major, text, number", [(1, c.CAPABILITIES, errno.EPROTONOSUPPORT), (0, b"{}", errno.EINVAL)]
)
def test_version_refused(board, major, text, number):
    conn = c.Connection(board.socket(), version=False)
    with refused(number):
        conn.negotiate(major=major, capabilities=text)
    assert conn.sock.recv(1) == b""
    c.Connection(board.socket()).device_info()


def test_version_comes_first(board):
    conn = c.Connection(board.socket(), version=False)
    with refused(errno.EINVAL):
        conn.device_info()
    assert conn.sock.recv(1) == b""


def test_device_info(card):
    assert card.device_info() == (16, 3, 9, 5)


def test_region_info(card):
    sizes = {0: 0x1000, 2: 0x2000, 4: 0x1000, 7: 0x1000}
    for index in range(9):
        region = card.region_info(index, 32)
        assert region.index == index and region.size == sizes.get(index, 0) and region.fd == -1
        assert region.flags & 3 == (3 if region.size else 0)
    with refused(errno.EINVAL):
        card.region_info(9)


def test_region_info_sparse(card):
    """QEMU asks with room for 32 bytes, checks cap_offset, and asks again."""
    short = card.region_info(c.BAR2, 32)
    assert (short.argsz, short.flags, short.cap_offset, short.caps, short.fd) == (
        64,
        0xF,
        32,
        b"",
        -1,
    )
    whole = card.region_info(c.BAR2, short.argsz)
    assert whole[:6] == short[:6] and whole.fd >= 0
    assert struct.unpack("=HHIIIQQ", whole.caps) == (1, 1, 0, 1, 0, 0, 0x2000)
    assert os.fstat(whole.fd).st_size == 0x2000
    with pytest.raises(PermissionError):
        os.ftruncate(whole.fd, 0)
    os.close(whole.fd)


def test_irq_info(card):
    assert [card.irq_info(index)[3] for index in range(5)] == [0, 0, 17, 1, 1]
    with refused(errno.EINVAL):
        card.irq_info(5)


def test_irq_info_msi(start):
    board = start("--irq=msi")
    device = c.Device(board.socket())
    assert [device.irq_info(index)[3] for index in range(5)] == [0, 16, 0, 1, 1]
    assert device.read32(c.REG_VECTORS) == 16
    device.vectors_enable(index=c.IRQ_MSI)
    board.wait_log("IRQ_SET")
    device.close()


def test_registers(card):
    assert card.read32(c.REG_MAGIC) == c.MAGIC
    assert card.read32(c.REG_ABI) == 0x10000
    assert card.read32(c.REG_FW_VERSION) != 0
    assert card.status() == 1 << 16 | c.STATUS_READY
    assert card.read32(c.REG_VECTORS) == 17
    assert card.mac()[0] & 3 == 2
    for offset in (c.REG_CMD_SQ, c.REG_CMD_CQ, c.REG_EVENT_RING):
        card.write64(offset, 0x1122334455667788)
        assert card.read64(offset) == 0x1122334455667788
        card.write32(offset, 0xAAAAAAAA)
        card.write32(offset + 4, 0xBBBBBBBB)
        assert card.read64(offset) == 0xBBBBBBBBAAAAAAAA
        assert card.read32(offset + 4) == 0xBBBBBBBB
    for offset in (c.REG_MAGIC, c.REG_STATUS, c.REG_VECTORS, c.REG_MAC_LO, 0x3C, 0x48, 0xFFC):
        before = card.read32(offset)
        card.write32(offset, before ^ 0xFFFFFFFF)
        assert card.read32(offset) == before


def test_registers_other_accesses(card):
    """regs.h: any other access reads zero, and a write by it is ignored."""
    card.write32(c.REG_RING_SIZES, 0x12345678)
    for offset in range(0x80):
        for size in (1, 2, 3, 4, 8, 16):
            defined = (size == 4 and offset % 4 == 0) or (
                size == 8 and offset in (0x20, 0x28, 0x30)
            )
            if defined:
                continue
            assert card.region_read(c.BAR0, offset, size) == bytes(size), (offset, size)
            card.region_write(c.BAR0, offset, b"\xff" * size)
    assert card.read32(c.REG_RING_SIZES) == 0x12345678
    assert card.read64(c.REG_CMD_SQ) == 0 and card.read32(c.REG_CONTROL) == 0
    assert card.region_read(c.BAR0, 0, 0x1000) == bytes(0x1000)


def test_enable(board, card):
    card.enable()
    assert card.status() & 0xF == c.STATUS_READY | c.STATUS_ENABLED
    assert card.read32(c.REG_CONTROL) == c.CONTROL_ENABLE
    rings = [card.cmd_ring.addr, card.cmd_cq.buffer.addr, card.event_ring.buffer.addr, 6 | 6 << 8]
    assert board.log("ENABLE")[0]["rings"] == rings
    card.write64(c.REG_CMD_SQ, 0)
    assert card.read64(c.REG_CMD_SQ) == rings[0]
    card.write32(c.REG_CONTROL, c.CONTROL_ENABLE)
    assert len(board.log("ENABLE")) == 1
    card.write32(c.REG_CONTROL, 0)
    card.wait_status(0xF, c.STATUS_READY)
    assert card.read64(c.REG_CMD_SQ) == 0 and card.read32(c.REG_CONTROL) == 0


def test_enable_refused(board, card):
    board.control(error={"ENABLE": errno.EINVAL})
    with pytest.raises(RuntimeError):
        card.enable()
    assert card.status() & 0xF == c.STATUS_FAILED and card.read32(c.REG_ERROR) == c.ERROR_BAD_RINGS
    board.control()
    card.enable()
    assert card.read32(c.REG_ERROR) == 0


def test_enable_without_master(board, card):
    card.write32(c.REG_CONTROL, c.CONTROL_ENABLE)
    assert card.status() & 0xF == c.STATUS_FAILED and card.read32(c.REG_ERROR) == c.ERROR_DMA
    card.enable()


def test_master_lost(board, card):
    card.enable()
    card.set_master(False)
    card.wait_status(0xF, c.STATUS_READY)
    assert len(board.log("DISABLE")) == 2


def test_firmware_reports_failure(board, card):
    card.vectors_enable()
    board.control(failed=["ENABLE"])
    with pytest.raises(RuntimeError):
        card.enable()
    assert card.read32(c.REG_ERROR) == c.ERROR_DMA
    assert c.read_eventfd(card.vectors[0], 2)
    board.control()
    card.enable()


def test_doorbells(card):
    card.ring(3, 1, 0x12345678)
    assert card.region_read(c.BAR2, 3 * 64 + 4, 4) == struct.pack("<I", 0x12345678)
    card.region_write(c.BAR2, 0x1FFE, b"\x11\x22")
    assert card.words[0x1FFC // 4] == 0x22110000
    card.region_write(c.BAR2, 0, bytes(range(256)) * 32)
    assert card.region_read(c.BAR2, 1, 0x1FFE) == (bytes(range(256)) * 32)[1:-1]
    card.write32(c.REG_CONTROL, c.CONTROL_RESET)
    card.wait_status(c.STATUS_RESETTING, 0)
    assert card.region_read(c.BAR2, 0, 0x2000) == bytes(0x2000)


def test_kick_and_vectors(board, card):
    card.vectors_enable()
    assert len(card.vectors) == 17
    card.write32(c.REG_KICK, 1)
    card.enable()
    card.write32(c.REG_KICK, 64)
    assert not board.log("KICK")
    card.write32(c.REG_KICK, 63)
    for fd in card.vectors:
        assert c.read_eventfd(fd, c.PATIENCE) == 1


def test_msix_table(card):
    assert card.region_read(c.BAR4, 12, 4) == b"\1\0\0\0"
    card.region_write(c.BAR4, 16, bytes(range(16)))
    assert card.region_read(c.BAR4, 16, 16) == bytes(range(16))
    card.region_write(c.BAR4, 17 * 16 - 4, b"\xff" * 8)
    assert card.region_read(c.BAR4, 17 * 16 - 4, 8) == b"\xff" * 4 + bytes(4)
    card.region_write(c.BAR4, 0x800, b"\xff" * 8)
    assert card.region_read(c.BAR4, 0x800, 8) == bytes(8)


def test_dma_map(board, card):
    fd = card.memory.fd
    card.dma_map(0x10000, 0x2000, fd, 0x1000)
    card.dma_map(0xC000, 0x4000, fd, flags=c.MAP_READ)
    card.dma_map(0xFFFFFFFFFFFFF000, 0x1000, fd)
    for addr, size in (
        (0x10000, 0x2000),
        (0x11000, 0x1000),
        (0xF000, 0x2000),
        (0x8000, 0x10000),
        (0xFFFFFFFFFFFFF000, 0x1000),
    ):
        with refused(errno.EEXIST):
            card.dma_map(addr, size, fd)
    card.dma_map(0x12000, 0x1000)
    maps = board.wait_log("DMA_MAP", 4)
    assert [(m["addr"], m["size"], m["offset"], m["writable"], m["fds"]) for m in maps[1:]] == [
        (0x10000, 0x2000, 0x1000, 1, 1),
        (0xC000, 0x4000, 0, 0, 1),
        (0xFFFFFFFFFFFFF000, 0x1000, 0, 1, 1),
    ]
    assert card.dma_unmap(0x10000, 0x2000) == (24, 0, 0x10000, 0x2000)
    unmap = board.log("DMA_UNMAP")[0]
    assert (unmap["addr"], unmap["size"], unmap["known"]) == (0x10000, 0x2000, True)
    card.dma_unmap(0x12000, 0x1000)
    assert len(board.log("DMA_UNMAP")) == 1
    card.dma_unmap(0xFFFFFFFFFFFFF000, 0x1000)
    card.dma_unmap(0xC000, 0x4000)


def test_dma_unmap_refused(card):
    card.dma_map(0x10000, 0x2000, card.memory.fd)
    for addr, size, number in (
        (0x10000, 0x1000, errno.EINVAL),
        (0x11000, 0x1000, errno.EINVAL),
        (0xF000, 0x2000, errno.EINVAL),
        (0x20000, 0x1000, errno.ENOENT),
        (0x10000, 0, errno.EINVAL),
        (0x10001, 0x2000, errno.EINVAL),
        (0xFFFFFFFFFFFFF000, 0x2000, errno.EINVAL),
    ):
        with refused(number):
            card.dma_unmap(addr, size)
    for flags in (1, 3, 4, 0x80000000):
        with refused(errno.EINVAL):
            card.dma_unmap(0x10000, 0x2000, flags)
    card.dma_unmap(0x10000, 0x2000)


def test_dma_unmap_range(board, card):
    """A virtual IOMMU gives back many pages at once."""
    for page in range(16):
        card.dma_map(0x10000 + 0x1000 * page, 0x1000, card.memory.fd, 0x1000 * page)
    card.dma_unmap(0x10000, 0x8000)
    card.dma_unmap(0, 0x100000)
    assert [u["addr"] for u in board.log("DMA_UNMAP")] == [
        0x10000 + 0x1000 * page for page in range(16)
    ]
    with refused(errno.ENOENT):
        card.dma_unmap(0, 0x100000)


def test_dma_map_waits_for_the_firmware(board, card):
    """Behind a virtual IOMMU the guest uses a page as soon as the map is answered."""
    board.control(slow={"DMA_MAP": 0.3})
    begin = time.monotonic()
    card.dma_map(0x10000, 0x1000, card.memory.fd)
    assert time.monotonic() - begin >= 0.3


def test_dma_map_refused_by_the_firmware(board, card):
    fd = os.memfd_create("other")
    os.ftruncate(fd, 0x1000)
    board.control(error={"DMA_MAP": errno.ENOMEM})
    with refused(errno.ENOMEM):
        card.dma_map(0x10000, 0x1000, fd)
    assert not [name for name in board.fds() if "other" in name]
    with refused(errno.ENOENT):
        card.dma_unmap(0x10000, 0x1000)
    board.control()
    card.dma_map(0x10000, 0x1000, fd)
    card.dma_unmap(0x10000, 0x1000)
    assert not card.status() & c.STATUS_FAILED
    os.close(fd)


def test_dma_map_of_a_hung_firmware(board, card):
    """The map is answered when the firmware is gone; the next one is told it."""
    board.control(mute=["DMA_MAP"])
    card.dma_map(0x10000, 0x1000, card.memory.fd)
    assert card.read32(c.REG_ERROR) == c.ERROR_FIRMWARE_HUNG
    board.control()
    card.reset()
    card.wait_status(0xF, c.STATUS_READY)
    pid = board.firmware_pid()
    c.wait_for(lambda: 0x10000 in [m["addr"] for m in board.log("DMA_MAP") if m["pid"] == pid])


def test_dma_maps_are_limited(board, card):
    """Below what the kernel allows the firmware: the map in the fixture and 59999 others."""
    for page in range(59999):
        card.send(
            c.DMA_MAP,
            struct.pack("=IIQQQ", 32, 3, 0, 0x1000 * page, 0x1000),
            flags=c.FLAG_NO_REPLY,
        )
    with refused(errno.ENOSPC):
        card.dma_map(0x800000000, 0x1000)
    card.dma_unmap(0, 0x1000)
    card.dma_map(0x800000000, 0x1000)


def test_dma_files_are_limited(board, card):
    fds = [os.memfd_create(f"other{number}") for number in range(256)]
    for number, fd in enumerate(fds):
        os.ftruncate(fd, 0x1000)
        if number < 255:
            card.dma_map(0x1000 * number, 0x1000, fd)
    with refused(errno.ENOSPC):
        card.dma_map(0x800000, 0x1000, fds[255])
    card.dma_unmap(0, 0x1000)
    card.dma_map(0x800000, 0x1000, fds[255])
    for fd in fds:
        os.close(fd)


def test_slow_unmap_of_a_range(board, card):
    """Each step has a second of its own."""
    for page in range(6):
        card.dma_map(0x10000 + 0x1000 * page, 0x1000, card.memory.fd)
    board.control(slow={"DMA_UNMAP": 0.3})
    card.dma_unmap(0x10000, 0x6000)
    assert not card.status() & c.STATUS_FAILED


def test_slow_unmap_is_bounded(board, card):
    """The hypervisor gives up after 5 s."""
    for page in range(20):
        card.dma_map(0x10000 + 0x1000 * page, 0x1000, card.memory.fd)
    board.control(slow={"DMA_UNMAP": 0.5})
    card.dma_unmap(0x10000, 20 * 0x1000)
    assert card.read32(c.REG_ERROR) == c.ERROR_FIRMWARE_HUNG


def test_dma_unmap_all(board, card):
    card.dma_map(0x10000, 0x2000)
    with refused(errno.EINVAL):
        card.dma_unmap(0x10000, 0x2000, c.UNMAP_ALL)
    card.dma_unmap(0, 0, c.UNMAP_ALL)
    assert len(board.log("DMA_CLEAR")) == 1
    card.dma_map(0x10000, 0x2000)
    assert not [name for name in board.fds() if "guest" in name]


def test_dma_maps_of_one_file_share_it(board, card):
    fd = os.memfd_create("other")
    os.ftruncate(fd, 1 << 20)
    for page in range(200):
        card.dma_map(0x1000 * page, 0x1000, fd, 0x1000 * (page % 256))
    assert len([name for name in board.fds() if "other" in name]) == 1
    for page in range(200):
        card.dma_unmap(0x1000 * page, 0x1000)
    assert not [name for name in board.fds() if "other" in name]
    os.close(fd)


def test_pipelined_maps_without_replies(card):
    """QEMU sends many and waits for the last one."""
    for page in range(50):
        card.send(
            c.DMA_MAP,
            struct.pack("=IIQQQ", 32, 3, 0, 0x1000 * page, 0x1000),
            (card.memory.fd,),
            c.FLAG_NO_REPLY,
        )
        card.send(
            c.DMA_UNMAP, struct.pack("=IIQQ", 24, 0, 0x1000 * page, 0x1000), (), c.FLAG_NO_REPLY
        )
    assert card.device_info()[2] == 9


def test_pipelined_with_replies(card):
    sent = [
        card.send(
            c.DMA_MAP, struct.pack("=IIQQQ", 32, 3, 0, 0x1000 * page, 0x1000), (card.memory.fd,)
        )
        for page in range(40)
    ]
    sent += [
        card.send(c.DMA_UNMAP, struct.pack("=IIQQ", 24, 0, 0x1000 * page, 0x1000))
        for page in range(40)
    ]
    for number in sent:
        got, _, flags, error, _, _ = card.receive()
        assert (got, flags, error) == (number, c.FLAG_REPLY, 0)


def test_irqs_quadratic(board, card):
    """QEMU disables everything and sets vectors 0 to n again for each n; others have none yet."""
    fds = [os.eventfd(0, os.EFD_NONBLOCK) for _ in range(17)]
    for count in range(1, 18):
        card.set_irqs(c.IRQ_MSIX, c.IRQ_NONE | c.IRQ_TRIGGER, 0, 0)
        for first in range(0, count, 16):
            card.set_irqs(
                c.IRQ_MSIX,
                c.IRQ_EVENTFD | c.IRQ_TRIGGER,
                first,
                min(16, count - first),
                fds[first : min(first + 16, count)],
            )
    card.enable()
    card.write32(c.REG_KICK, 0)
    for fd in fds:
        assert c.read_eventfd(fd, c.PATIENCE) == 1
    card.set_irqs(c.IRQ_MSIX, c.IRQ_EVENTFD | c.IRQ_TRIGGER, 3, 2)
    card.write32(c.REG_KICK, 0)
    for vector, fd in enumerate(fds):
        assert c.read_eventfd(fd, 0.3) == (0 if vector in (3, 4) else 1)
    eventfds = len([name for name in board.fds() if name == "anon_inode"])
    card.set_irqs(c.IRQ_MSIX, c.IRQ_NONE | c.IRQ_TRIGGER, 0, 0)
    assert len([name for name in board.fds() if name == "anon_inode"]) == eventfds - 15
    for fd in fds:
        os.close(fd)


def test_irqs_set_while_enabled_are_raised(board, card):
    """An interrupt between "all gone" and the new eventfds must not be lost."""
    card.vectors_enable()
    card.enable()
    for fd in card.vectors:
        c.read_eventfd(fd, 0)
    card.set_irqs(c.IRQ_MSIX, c.IRQ_EVENTFD | c.IRQ_TRIGGER, 0, 16, card.vectors[:16])
    for fd in card.vectors[:16]:
        assert c.read_eventfd(fd, c.PATIENCE) == 1


def test_irqs_trigger_by_client(card):
    card.vectors_enable()
    card.set_irqs(c.IRQ_MSIX, c.IRQ_NONE | c.IRQ_TRIGGER, 2, 3)
    assert [c.read_eventfd(fd, 0.1) for fd in card.vectors[:6]] == [0, 0, 1, 1, 1, 0]


def test_irqs_error_and_request(card):
    fd = os.eventfd(0, os.EFD_NONBLOCK)
    for index in (c.IRQ_ERR, c.IRQ_REQ):
        card.set_irqs(index, c.IRQ_EVENTFD | c.IRQ_TRIGGER, 0, 1, [fd])
        card.set_irqs(index, c.IRQ_EVENTFD | c.IRQ_TRIGGER, 0, 1)
        card.set_irqs(index, c.IRQ_NONE | c.IRQ_TRIGGER, 0, 0)
    card.set_irqs(c.IRQ_INTX, c.IRQ_NONE | c.IRQ_TRIGGER, 0, 0)
    assert c.read_eventfd(fd, 0) == 0
    os.close(fd)


def test_full_eventfd_doesnt_block(board, card):
    """A client that fills its eventfd and makes it blocking stops nobody."""
    fd = os.eventfd(0)
    os.eventfd_write(fd, 0xFFFFFFFFFFFFFFFE)
    card.set_irqs(c.IRQ_MSIX, c.IRQ_EVENTFD | c.IRQ_TRIGGER, 0, 1, [fd])
    for _ in range(100):
        card.set_irqs(c.IRQ_MSIX, c.IRQ_NONE | c.IRQ_TRIGGER, 0, 1)
    assert card.read32(c.REG_MAGIC) == c.MAGIC
    os.close(fd)


def eventfds_of(pid):
    """Identities of the eventfds that a process holds."""
    found = set()
    for entry in pathlib.Path(f"/proc/{pid}/fdinfo").iterdir():
        found |= {line for line in entry.read_text().splitlines() if "eventfd-id" in line}
    return found


def test_ports_share_no_eventfd(start):
    board = start(ports=("p0", "p1"))
    cards = [c.Card(board.socket(name)) for name in ("p0", "p1")]
    for device in cards:
        fd = os.eventfd(0)
        device.set_irqs(c.IRQ_MSIX, c.IRQ_EVENTFD | c.IRQ_TRIGGER, 2, 1, [fd])
        device.set_irqs(c.IRQ_MSIX, c.IRQ_EVENTFD | c.IRQ_TRIGGER, 0, 2)
        os.close(fd)
    board.wait_log("IRQ_SET", 6)
    first, second = (eventfds_of(entry["pid"]) for entry in board.log("BORN"))
    assert len(first) >= 3 and len(second) >= 3 and not first & second
    for device in cards:
        device.close()


@pytest.mark.parametrize(
    "command",
    [
        c.GET_REGION_IO_FDS,
        c.REGION_WRITE_MULTI,
        c.DEVICE_FEATURE,
        c.MIG_DATA_READ,
        c.MIG_DATA_WRITE,
    ],
)
def test_refused_commands(card, command):
    with refused(errno.ENOTSUP):
        card.request(command, bytes(64))


def test_one_function_waits_others_go_on(start):
    board = start(ports=("p0", "p1"))
    first, second = c.Card(board.socket("p0")), c.Card(board.socket("p1"))
    first.dma_map(0x1000, 0x1000, first.memory.fd)
    board.control(mute=["DMA_UNMAP"])
    number = first.send(c.DMA_UNMAP, struct.pack("=IIQQ", 24, 0, 0x1000, 0x1000))
    for _ in range(50):
        assert second.read32(c.REG_MAGIC) == c.MAGIC
    first.reply_to(number, c.DMA_UNMAP)
    assert (
        first.status() & 0xF == c.STATUS_FAILED
        and first.read32(c.REG_ERROR) == c.ERROR_FIRMWARE_HUNG
    )
    assert second.status() & 0xF == c.STATUS_READY
    first.close()
    second.close()


def test_slow_firmware_delays_no_register(board, card):
    board.control(mute=["ENABLE", "DISABLE"])
    card.write32(c.REG_CONTROL, c.CONTROL_RESET)
    for _ in range(20):
        assert card.status() & c.STATUS_RESETTING
        assert not card.status() & c.STATUS_READY
        card.write32(c.REG_CONTROL, c.CONTROL_RESET)
    assert len(board.wait_log("DISABLE")) == 1


def test_mapping_survives_the_client(board):
    device = c.Device(board.socket())
    region = device.region_info(c.BAR2)
    view = mmap.mmap(region.fd, region.size)
    device.close()
    view[0] = 1
    other = c.Device(board.socket())
    assert other.read32(c.REG_MAGIC) == c.MAGIC
    other.close()
    os.close(region.fd)
