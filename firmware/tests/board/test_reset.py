# SPDX-License-Identifier: BSD-3-Clause
"""Resets, loss of the client, death of the firmware, new clients."""

import os
import pathlib
import signal
import struct
import time

import client as c
import pytest
from board import FAKE_FW, Board


@pytest.fixture
def card(board):
    device = c.Card(board.socket())
    yield device
    device.close()


def kill(board, signo=signal.SIGKILL):
    os.kill(board.firmware_pid(), signo)


def test_control_reset(board, card):
    card.enable()
    card.ring(0, 0, 5)
    card.write32(c.REG_CONTROL, c.CONTROL_RESET)
    card.wait_status(0xF, c.STATUS_READY)
    assert card.read32(c.REG_CONTROL) == 0 and card.doorbell(0, 0) == 0
    assert card.generation() == 1
    card.enable()


def test_reset_bit_wins(card):
    card.enable()
    card.write32(c.REG_CONTROL, c.CONTROL_RESET | c.CONTROL_ENABLE)
    card.wait_status(0xF, c.STATUS_READY)
    assert card.read32(c.REG_CONTROL) == 0


def test_device_reset_waits_for_the_firmware(board, card):
    card.enable()
    card.config_write(0x10, 4, 0xFE000000)
    disabled = len(board.log("DISABLE"))
    card.reset()
    assert len(board.log("DISABLE")) == disabled + 1
    assert card.status() & 0xF == c.STATUS_READY and card.config_read(0x10, 4) == 4
    card.enable()


@pytest.mark.parametrize(
    "let_go",
    [
        lambda card: card.flr(),
        lambda card: card.set_master(False),
        lambda card: card.config_write(card.capability(0x01) + 4, 2, 3),
    ],
    ids=["flr", "master", "d3hot"],
)
def test_config_write_waits_for_the_firmware(board, card, let_go):
    """When the write is done the guest may give its memory to others; also when a reset was under way already."""
    board.control(slow={"DISABLE": 0.3})
    for under_way in (False, True):
        card.enable()
        disabled = len(board.log("DISABLE"))
        if under_way:
            card.write32(c.REG_CONTROL, c.CONTROL_RESET)
        let_go(card)
        assert len(board.log("DISABLE")) == disabled + 1
        assert card.status() & 0xF == c.STATUS_READY
        card.config_write(card.capability(0x01) + 4, 2, 0)


def test_config_write_of_a_hung_firmware(board, card):
    card.enable()
    board.control(mute=["DISABLE"])
    card.flr()
    assert not pathlib.Path(f"/proc/{board.firmware_pid()}").exists()
    assert card.read32(c.REG_ERROR) == c.ERROR_FIRMWARE_HUNG


def test_reset_keeps_maps_and_vectors(board, card):
    card.vectors_enable()
    for reset in (card.reset, card.flr, lambda: card.write32(c.REG_CONTROL, c.CONTROL_RESET)):
        reset()
        card.wait_status(0xF, c.STATUS_READY)
        card.enable()
        for fd in card.vectors:
            c.read_eventfd(fd, 0)
        card.write32(c.REG_KICK, 0)
        for fd in card.vectors:
            assert c.read_eventfd(fd, c.PATIENCE) == 1
    assert len(board.log("DMA_MAP")) == 1 and not board.log("DMA_CLEAR")


def test_reboot(board, card):
    """A guest reboot, ten times: no interrupts, no bus mastering, and DEVICE_RESET twice."""
    for _ in range(10):
        card.vectors_enable()
        card.enable()
        card.set_irqs(c.IRQ_MSIX, c.IRQ_NONE | c.IRQ_TRIGGER, 0, 0)
        card.set_master(False)
        card.reset()
        card.reset()
        card.dma_unmap(card.memory.addr, card.memory.size)
        card.dma_map(card.memory.addr, card.memory.size, card.memory.fd)
    assert card.generation() == 1


def test_hung_reset(board, card):
    card.enable()
    board.control(mute=["DISABLE"])
    card.reset()
    assert (
        card.status() & 0xF == c.STATUS_FAILED and card.read32(c.REG_ERROR) == c.ERROR_FIRMWARE_HUNG
    )
    board.control()
    card.reset()
    card.wait_status(0xF, c.STATUS_READY)
    assert card.generation() == 2
    card.enable()


def test_stopped_firmware_lets_go(board, card):
    """SIGSTOP: memory is taken away by killing."""
    kill(board, signal.SIGSTOP)
    card.dma_unmap(card.memory.addr, card.memory.size)
    assert not pathlib.Path(f"/proc/{board.firmware_pid()}").exists()
    assert card.read32(c.REG_ERROR) == c.ERROR_FIRMWARE_HUNG


@pytest.mark.parametrize("reset", ["control", "flr", "device", "client"])
def test_firmware_dies(board, card, reset):
    card.vectors_enable()
    card.enable()
    for fd in card.vectors:
        c.read_eventfd(fd, 0)
    kill(board)
    assert c.read_eventfd(card.vectors[0], c.PATIENCE)
    assert (
        card.status() & 0xF == c.STATUS_FAILED and card.read32(c.REG_ERROR) == c.ERROR_FIRMWARE_DIED
    )
    assert card.generation() == 1 and card.read32(c.REG_FW_VERSION) == 0
    card.write32(c.REG_KICK, 0)
    card.write32(c.REG_CONTROL, c.CONTROL_ENABLE)
    assert not card.status() & c.STATUS_ENABLED
    if reset == "control":
        card.write32(c.REG_CONTROL, c.CONTROL_RESET)
    elif reset == "flr":
        card.flr()
    elif reset == "device":
        card.reset()
    else:
        card.close()
        card.__init__(board.socket())  # pylint: disable=unnecessary-dunder-call
        card.vectors_enable()
    card.wait_status(0xF, c.STATUS_READY)
    assert card.generation() == 2
    card.enable()
    card.write32(c.REG_KICK, 0)
    for fd in card.vectors:
        assert c.read_eventfd(fd, c.PATIENCE)
    pid = board.firmware_pid()
    assert [m["addr"] for m in board.log("DMA_MAP") if m["pid"] == pid] == [card.memory.addr]


def test_unmap_of_a_dead_firmware(board, card):
    card.vectors_enable()
    kill(board)
    assert c.read_eventfd(card.vectors[0], c.PATIENCE)
    card.dma_map(0x1000, 0x1000, card.memory.fd)
    card.dma_unmap(card.memory.addr, card.memory.size)
    card.reset()
    card.wait_status(0xF, c.STATUS_READY)
    pid = board.firmware_pid()
    c.wait_for(lambda: [m["addr"] for m in board.log("DMA_MAP") if m["pid"] == pid] == [0x1000])


@pytest.mark.parametrize("kind", ["ENABLE", "DISABLE", "DMA_UNMAP", "DMA_CLEAR", "IRQ_SET"])
@pytest.mark.parametrize("how", ["die", "garbage"])
def test_firmware_dies_in_the_middle(board, card, kind, how):
    board.control(**{how: [kind]})
    try:
        card.vectors_enable()
        card.enable(timeout=2)
        card.reset()
    except (RuntimeError, c.Timeout):
        pass
    card.dma_map(0x1000, 0x1000, card.memory.fd)
    card.dma_unmap(0x1000, 0x1000)
    card.dma_unmap(0, 0, c.UNMAP_ALL)
    assert card.read32(c.REG_MAGIC) == c.MAGIC
    board.control()
    c.wait_for(lambda: card.status() & (c.STATUS_FAILED | c.STATUS_READY))
    card.dma_map(card.memory.addr, card.memory.size, card.memory.fd)
    card.enable()


def test_firmware_that_dies_at_every_start(board, card):
    """It is started once for each reset, not again and again."""
    kill(board)
    card.wait_status(0xF, c.STATUS_FAILED)
    board.control(die=["START"])
    for count in range(2, 5):
        card.write32(c.REG_CONTROL, c.CONTROL_RESET)
        card.wait_status(0xF, c.STATUS_FAILED)
        assert card.generation() == count
    time.sleep(0.3)
    assert len(board.log("BORN")) == 4
    board.control()
    card.enable()


def test_client_loss(board):
    """Everything of the old client is gone before the new one is served."""
    eventfds = [name for name in board.fds() if name == "anon_inode"]
    card = c.Card(board.socket())
    card.vectors_enable()
    card.enable()
    card.ring(1, 0, 7)
    card.config_write(0x10, 4, 0xFE000000)
    card.close()
    begin = len(board.log())
    other = c.Card(board.socket(), memory_addr=0)
    assert [entry["type"] for entry in board.log()[begin - len(board.log()) or None :]][-1] in (
        "DMA_MAP",
        "DMA_CLEAR",
    )
    order = [entry["type"] for entry in board.log("DISABLE", "IRQ_SET", "DMA_CLEAR")]
    assert order[-3:] == ["DISABLE", "IRQ_SET", "DMA_CLEAR"]
    assert board.log("IRQ_SET")[-1]["count"] == 0
    assert other.status() & 0xF == c.STATUS_READY and other.read32(c.REG_CONTROL) == 0
    assert (
        other.doorbell(1, 0) == 0
        and other.config_read(4, 2) == 0
        and other.config_read(0x10, 4) == 4
    )
    assert [name for name in board.fds() if name == "anon_inode"] == eventfds
    assert len([name for name in board.fds() if "memfd:guest" in name]) == 1
    other.enable()
    other.close()


def test_clients_come_and_go(board):
    before = None
    for _ in range(50):
        card = c.Card(board.socket(), memory_size=1 << 20)
        card.vectors_enable()
        card.enable()
        card.close()
        c.Connection(board.socket(), version=False).close()
        c.Connection(board.socket()).close()
        card = c.Device(board.socket(), memory_size=1 << 20)
        before = before or board.fds()
        assert board.fds() == before
        card.close()
    assert len(board.log("BORN")) == 1


def test_client_loss_with_hung_firmware(board):
    card = c.Card(board.socket())
    card.enable()
    board.control(mute=["DISABLE", "DMA_CLEAR"])
    card.close()
    board.wait_log("DISABLE", 2)
    board.control()
    other = c.Card(board.socket())
    other.enable()
    assert other.generation() == 2
    other.close()


def test_client_loss_while_reply_waits(board):
    card = c.Card(board.socket())
    board.control(mute=["DMA_UNMAP"])
    card.send(c.DMA_UNMAP, struct.pack("=IIQQ", 24, 0, card.memory.addr, card.memory.size))
    card.close()
    board.wait_log("DMA_CLEAR")
    board.control()
    other = c.Card(board.socket())
    other.enable()
    other.close()


def test_group_shares_a_firmware(start):
    board = start(ports=("p0", "p1"), options=",group=g")
    assert len(board.log("BORN")) == 1
    assert [(m["name"], m["port"]) for m in board.log("PORT_ADD")] == [("p0", 0), ("p1", 1)]
    first, second = c.Card(board.socket("p0")), c.Card(board.socket("p1"))
    for card in (first, second):
        card.vectors_enable()
        card.enable()
        c.read_eventfd(card.vectors[0], 0)
    kill(board)
    for card in (first, second):
        assert c.read_eventfd(card.vectors[0], c.PATIENCE)
        assert card.status() & 0xF == c.STATUS_FAILED
    first.write32(c.REG_CONTROL, c.CONTROL_RESET)
    first.wait_status(0xF, c.STATUS_READY)
    assert second.status() & 0xF == c.STATUS_FAILED and second.generation() == 2
    second.write32(c.REG_CONTROL, c.CONTROL_RESET)
    second.wait_status(0xF, c.STATUS_READY)
    assert len(board.log("BORN")) == 2
    for card in (first, second):
        card.enable()
        card.close()


def test_ports_have_firmware_of_their_own(start):
    board = start(ports=("p0", "p1"))
    assert len(board.log("BORN")) == 2
    first, second = c.Card(board.socket("p0")), c.Card(board.socket("p1"))
    second.enable()
    os.kill(next(m["pid"] for m in board.log("PORT_ADD") if m["name"] == "p0"), signal.SIGKILL)
    first.wait_status(0xF, c.STATUS_FAILED)
    assert second.status() & 0xF == c.STATUS_READY | c.STATUS_ENABLED
    first.enable()
    first.close()
    second.close()


def test_choked_wire_doesnt_block(tmp_path):
    """A firmware that makes the wire's eventfds block and fills them stops nobody when it dies."""
    board = Board(
        tmp_path,
        [
            f"--port=name=p0,socket={tmp_path}/p0.sock,wire=p1",
            f"--port=name=p1,socket={tmp_path}/p1.sock,wire=p0",
            f"--firmware={FAKE_FW}",
        ],
    )
    assert board.ready
    first, second = c.Card(board.socket("p0")), c.Card(board.socket("p1"))
    board.control(choke=["ENABLE"], die=["ENABLE"])
    first.set_master()
    first.write32(c.REG_CONTROL, c.CONTROL_ENABLE)
    first.wait_status(0xF, c.STATUS_FAILED, 2)
    assert second.read32(c.REG_MAGIC) == c.MAGIC
    first.close()
    second.close()
    assert board.stop() == 0
