# SPDX-License-Identifier: BSD-3-Clause
"""PCI configuration space."""

import client as c
import pytest

MAC = "52:54:00:12:34:56"


@pytest.fixture
def card(start):
    device = c.Card(start(options=f",mac={MAC},queues=4").socket())
    yield device
    device.close()


def test_header(card):
    assert card.config_read(0, 4) == 0x0001C0D0
    assert card.config_read(8, 4) >> 8 == 0x020000
    assert card.config_read(0x2C, 4) == 0x0001C0D0
    assert card.config_read(0x0E, 1) == 0
    assert card.config_read(0x3D, 1) == 0
    assert card.config_read(6, 2) & 0x10


def test_any_length(card):
    whole = card.region_read(c.CONFIG, 0, 4096)
    for size in (1, 2, 3, 4, 7, 8, 256):
        for offset in (0, 1, 0x3C, 0x70, 4096 - size):
            assert card.region_read(c.CONFIG, offset, size) == whole[offset : offset + size]
    card.region_write(c.CONFIG, 0, bytes(4096))
    assert card.region_read(c.CONFIG, 0, 4) == whole[:4]


def test_bar_sizes(card):
    for bar, size in ((0, 0x1000), (2, 0x2000), (4, 0x1000)):
        at = 0x10 + 4 * bar
        assert card.config_read(at, 4) == 4
        card.config_write(at, 4, 0xFFFFFFFF)
        card.config_write(at + 4, 4, 0xFFFFFFFF)
        assert card.config_read(at, 8) == (1 << 64) - size | 4
        card.config_write(at, 4, 0xFE000000)
        card.config_write(at + 4, 4, 0x80)
        assert card.config_read(at, 8) == 0x80FE000004
    for at in (0x28, 0x30):
        card.config_write(at, 4, 0xFFFFFFFF)
        assert card.config_read(at, 4) == 0


def test_write_masks(card):
    card.config_write(4, 2, 0xFFFF)
    assert card.config_read(4, 2) == 0x0546
    card.config_write(6, 2, 0xFFFF)
    assert card.config_read(6, 2) == 0x0010
    card.config_write(0x3C, 1, 11)
    assert card.config_read(0x3C, 1) == 11


def test_capabilities(card):
    seen, at = [], card.config_read(0x34, 1)
    while at:
        assert at % 4 == 0 and at not in seen and at >= 0x40
        seen.append(at)
        at = card.config_read(at + 1, 1)
    assert [card.config_read(at, 1) for at in seen] == [0x01, 0x11, 0x10]


def test_msix(card):
    at = card.capability(0x11)
    assert card.config_read(at + 2, 2) == 4
    assert card.config_read(at + 4, 4) == 4 and card.config_read(at + 8, 4) == 0x804
    card.config_write(at + 2, 2, 0xFFFF)
    assert card.config_read(at + 2, 2) == 0xC004


@pytest.mark.parametrize("queues, log2", [(1, 1), (2, 1), (4, 2), (15, 4), (16, 4)])
def test_msi(start, queues, log2):
    device = c.Device(start("--irq=msi", options=f",queues={queues}").socket())
    assert device.capability(0x11) == 0
    at = device.capability(0x05)
    assert device.config_read(at + 2, 2) == 0x80 | log2 << 1
    assert device.read32(c.REG_VECTORS) == device.irq_info(c.IRQ_MSI)[3] == 1 << log2
    device.config_write(at + 4, 8, 0xFFFFFFFFFFFFFFFF)
    assert device.config_read(at + 4, 8) == 0xFFFFFFFFFFFFFFFC
    device.close()


def test_express(card):
    at = card.capability(0x10)
    assert card.config_read(at + 2, 2) == 2
    assert card.config_read(at + 4, 4) & 1 << 28
    assert card.config_read(at + 8, 2) == 0x2810


def test_serial_number(card):
    assert card.config_read(0x100, 4) == 0x00010003
    assert card.region_read(c.CONFIG, 0x104, 8) == bytes.fromhex("563412ffff005452")


def test_flr(card):
    card.enable()
    card.config_write(0x10, 4, 0xFE000000)
    card.flr()
    card.wait_status(0xF, c.STATUS_READY)
    assert card.config_read(4, 2) == 0 and card.config_read(0x10, 4) == 4
    assert not card.config_read(card.capability(0x10) + 8, 2) & 0x8000
    assert card.read32(c.REG_CONTROL) == 0
    card.enable()


@pytest.mark.parametrize("size, value", [(1, 0x80), (2, 0x8000), (4, 0x8000)])
def test_flr_by_any_access(card, size, value):
    card.enable()
    card.config_write(card.capability(0x10) + (9 if size == 1 else 8), size, value)
    card.wait_status(0xF, c.STATUS_READY)


def test_power_states(card):
    at = card.capability(0x01) + 4
    card.enable()
    card.config_write(at, 2, 1)
    assert card.config_read(at, 2) == 0
    card.config_write(at, 2, 3)
    card.wait_status(0xF, c.STATUS_READY)
    assert card.config_read(at, 2) == 3
    card.write32(c.REG_CONTROL, c.CONTROL_ENABLE)
    assert card.read32(c.REG_ERROR) == c.ERROR_DMA
    card.config_write(0x10, 4, 0xFE000000)
    card.config_write(at, 2, 0)
    card.wait_status(0xF, c.STATUS_READY)
    assert card.config_read(0x10, 4) == 4
    card.enable()
