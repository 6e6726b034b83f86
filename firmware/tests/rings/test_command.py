# SPDX-License-Identifier: BSD-3-Clause
"""The command queue: capabilities, refusals, batches, hostile entries."""

import struct

import client
import pytest

OK, UNKNOWN, INVALID, UNSUPPORTED, FULL, EXISTS, NOT_FOUND, BUSY, DMA = range(9)
P_NONE, P_LENGTH, P_RESERVED, P_HANDLE, P_VECTOR, P_RING, P_MTU, P_FLAGS, P_ADDRESS = range(9)
P_RSS = 23
FILTER = struct.Struct("<II64Q")
RSS = struct.Struct("<II40s128s")


@pytest.fixture
def card(start):
    return start(ports={"p0": "none"}).card("p0")


def port_cap(card):
    return struct.unpack("<HHIIHHIHH", card.capabilities()[1])


def ipsec_cap(card):
    """Fields, and what the card takes by cipher and by authentication: (mask of key bytes, mask of ICV bytes, salt)."""
    data = card.capabilities()[2]
    algorithms = [(keys, icvs, salt) if present else None
                  for keys, icvs, present, salt in struct.iter_unpack("<QIBBxx", data[40:])]
    return struct.unpack("<HHI8I", data[:40]), algorithms[:16], algorithms[16:]


AEADS = (4, 5, 6, 7)
AES = 1 << 15 | 1 << 23 | 1 << 31
ANY = (1 << 64) - 1
CIPHERS = [None, (0, 0, 0), (AES, 0, 0), (AES, 0, 4), (AES, 1 << 7 | 1 << 11 | 1 << 15, 4), (AES, 1 << 15, 4),
           (AES, 1 << 7 | 1 << 11 | 1 << 15, 3), (1 << 31, 1 << 15, 4)] + [None] * 8
AUTHS = [None, (ANY, 1 << 11, 0), (ANY, 1 << 11 | 1 << 15, 0), (ANY, 1 << 23, 0), (ANY, 1 << 31, 0), (1 << 15, 1 << 11, 0),
         (1 << 15, 1 << 11, 0)] + [None] * 9


def test_capabilities(card):
    assert port_cap(card)[3:] == (0xf00ff, 16, 14, 9600, 256, 0)
    cap, ciphers, auths = ipsec_cap(card)
    assert cap[3:] == (65536, 16384, 0b1110, 0b110, 0x7f, 4096, 1 << 4 | 1 << 6, 0)
    assert ciphers == CIPHERS and auths == AUTHS


def test_limits_are_published_and_real(start):
    board = start("--limit=p0:sa-max=8,policy-max=4,replay-window-max=64,no-feature=tso,no-feature=rss,no-key-bits=256,"
                  "no-cipher=aes-ccm,no-cipher=null,no-auth=aes-xcbc,no-icv=16,no-offload=packet,no-family=inet6",
                  ports={"p0": "none"}, options=",queues=2")
    card = board.card("p0")
    cap = port_cap(card)
    assert cap[3] == 0xf00ff & ~0x20040 and cap[4] == 2
    cap, ciphers, auths = ipsec_cap(card)
    assert cap[3:] == (8, 4, 0b1110, 0b010, 0x7f, 64, 1 << 4, 0)
    less = AES & ~(1 << 31)
    assert ciphers[:8] == [None, None, (less, 0, 0), (less, 0, 4), (less, 1 << 7 | 1 << 11, 4), None, None, None]
    assert auths[:7] == [None, (ANY, 1 << 11, 0), (ANY, 1 << 11, 0), (ANY, 1 << 23, 0), (ANY, 1 << 31, 0), None,
                         (1 << 15, 1 << 11, 0)]
    done, _ = card.command(client.CMD_PORT_SET, client.PORT_CFG.pack(1500, client.PORT_RSS, card.mac(), 0))
    assert (done.status, done.param, done.min) == (UNSUPPORTED, P_FLAGS, 0xbf)
    done, _ = card.command(client.CMD_RSS_SET, RSS.pack(0, 0, bytes(40), bytes(128)))
    assert (done.status, done.param) == (UNSUPPORTED, P_RSS)
    done, _ = card.command(client.CMD_POLICY_ADD, struct.pack("<I", 4) + bytes(116))
    assert (done.status, done.param, done.max) == (INVALID, P_HANDLE, 3)
    pair = client.QUEUE_PAIR_CFG.pack(2, 0, 6, 6, 0, 0, 0, 0, 0)
    done, _ = card.command(client.CMD_QUEUE_PAIR_CREATE, pair)
    assert (done.status, done.param, done.max) == (INVALID, P_HANDLE, 1)


@pytest.mark.parametrize("limits, ciphers, auths", [
    ("no-auth=all", AEADS, ()),
    ("no-cipher=null,no-cipher=aes-cbc,no-cipher=aes-ctr", AEADS, ()),
    ("no-cipher=aes-cbc", (1, 3, *AEADS), range(1, 7)),
])
def test_no_algorithm_without_a_suite(start, limits, ciphers, auths):
    """A cipher or an authentication that no SA could use isn't published."""
    _, *left = ipsec_cap(start("--limit=p0:" + limits, ports={"p0": "none"}).card("p0"))
    assert left == [[full if n in kept else None for n, full in enumerate(table)]
                    for kept, table in ((ciphers, CIPHERS), (auths, AUTHS))]


def test_no_ipsec_left(start):
    card = start("--limit=p0:no-cipher=all", ports={"p0": "none"}).card("p0")
    assert set(card.capabilities()) == {1} and not port_cap(card)[3] & client.PORT_ESP
    assert card.command(client.CMD_SA_ADD, bytes(280))[0].status == UNSUPPORTED
    assert card.command(client.CMD_POLICY_ADD, bytes(120))[0].status == UNSUPPORTED
    card.execute(client.CMD_SA_FLUSH)


def test_selftest(card):
    card.execute(client.CMD_SELFTEST, timeout=20)


def test_unknown_opcode(card):
    for opcode in (0, 5, 0x100, 0x300, 0x400, 0x500, 0xffff):
        assert card.command(opcode)[0].status == UNKNOWN


@pytest.mark.parametrize("opcode, size", [
    (client.CMD_NOP, 0), (client.CMD_QUERY_CAPS, 0), (client.CMD_QUEUE_PAIR_CREATE, 40), (client.CMD_PORT_SET, 16),
    (client.CMD_RSS_SET, 176), (client.CMD_SA_ADD, 280), (client.CMD_SA_UPDATE, 24), (client.CMD_POLICY_ADD, 120),
    (client.CMD_FILTER_SET, 520)])
def test_input_length(card, opcode, size):
    wrong = [size + 1] if opcode != client.CMD_FILTER_SET else [65537]
    for length in wrong + ([size - 1, 0] if size else []):
        card.command_post(opcode, 7, card.scratch.addr, length)
        done = card.command_wait(7)
        assert (done.status, done.param, done.min) == (INVALID, P_LENGTH, size)


def test_reserved_fields(card):
    raw = client.CMD.pack(client.CMD_NOP, 9, 0, 0, 1, 0, 0, 0, 0, 0, 0)
    for entry in (raw, client.CMD.pack(client.CMD_NOP, 9, 0, 0, 0, 0, 0, 0, 0, 0, 1)):
        card.cmd_ring.write(entry, card.cmd_prod % 64 * 64)
        card.cmd_prod += 1
        card.submit(0, card.cmd_prod - 1, card.cmd_prod)
        done = card.command_wait(9)
        assert (done.status, done.param) == (INVALID, P_RESERVED)


def test_memory_that_is_not_there(card):
    card.command_post(client.CMD_PORT_SET, 3, 0x10, 16)
    assert card.command_wait(3).status == DMA
    card.command_post(client.CMD_QUERY_STATS, 4, 0, 0, (1 << 64) - 8, 4096)
    assert card.command_wait(4).status == DMA
    end = card.memory.addr + card.memory.size
    card.command_post(client.CMD_PORT_SET, 5, end - 15, 16)
    assert card.command_wait(5).status == DMA


def test_short_output(card):
    done, _ = card.command(client.CMD_QUERY_CAPS, out_len=575)
    assert (done.status, done.param, done.min, done.out_len) == (INVALID, P_LENGTH, 576, 0)


def test_batch(card):
    """A full ring at once, and again."""
    for turn in range(3):
        for n in range(64):
            opcode = client.CMD_NOP if n % 2 else 0x5555
            at = card.cmd_prod % 64 * 64
            card.cmd_ring.write(client.CMD.pack(opcode, turn * 64 + n, 0, 0, 0, 0, 0, 0, 0, 0, 0), at)
            card.cmd_prod += 1
        card.submit(0, card.cmd_prod - 64, card.cmd_prod)
        for n in range(64):
            assert card.command_wait(turn * 64 + n).status == (OK if n % 2 else UNKNOWN)


def test_port_set_refusals(card):
    mac = card.mac()
    for cfg, want in [
            (client.PORT_CFG.pack(67, 1, mac, 0), (INVALID, P_MTU, 68, 9600)),
            (client.PORT_CFG.pack(9601, 1, mac, 0), (INVALID, P_MTU, 68, 9600)),
            (client.PORT_CFG.pack(1500, 0x100, mac, 0), (UNSUPPORTED, P_FLAGS, 0xff, 0)),
            (client.PORT_CFG.pack(1500, 1, mac, 1), (INVALID, P_RESERVED, 0, 0)),
            (client.PORT_CFG.pack(1500, 1, bytes(6), 0), (INVALID, P_ADDRESS, 0, 0)),
            (client.PORT_CFG.pack(1500, 1, b"\x01" + mac[1:], 0), (INVALID, P_ADDRESS, 0, 0))]:
        done, _ = card.command(client.CMD_PORT_SET, cfg)
        assert (done.status, done.param, done.min, done.max) == want


def test_filter_refusals(card):
    vlans = [0] * 64
    for cfg, want in [
            (FILTER.pack(0, 1, *vlans), (INVALID, P_RESERVED)),
            (FILTER.pack(257, 0, *vlans) + bytes(8 * 257), (FULL, P_ADDRESS)),
            (FILTER.pack(1, 0, *vlans), (INVALID, P_LENGTH)),
            (FILTER.pack(0, 0, *vlans) + bytes(8), (INVALID, P_LENGTH)),
            (FILTER.pack(1, 0, *vlans) + b"\2\0\0\0\0\1\0\1", (INVALID, P_ADDRESS)),
            (FILTER.pack(1, 0, *vlans) + bytes(8), (INVALID, P_ADDRESS))]:
        done, _ = card.command(client.CMD_FILTER_SET, cfg)
        assert (done.status, done.param) == want
    card.execute(client.CMD_FILTER_SET, FILTER.pack(256, 0, *vlans) + b"\2\0\0\0\0\1\0\0" * 256)


def test_rss_refusals(card):
    for cfg, want in [(RSS.pack(0x40, 0, bytes(40), bytes(128)), (INVALID, P_FLAGS)),
                      (RSS.pack(0, 1, bytes(40), bytes(128)), (INVALID, P_RESERVED)),
                      (RSS.pack(0, 0, bytes(40), bytes(127) + b"\x10"), (INVALID, P_RSS))]:
        done, _ = card.command(client.CMD_RSS_SET, cfg)
        assert (done.status, done.param) == want


def test_queue_pair_refusals(card):
    ring = card.memory.alloc(65536, 4096).addr
    gone = card.memory.addr + card.memory.size

    def cfg(index=0, vector=1, tx=6, rx=6, reserved=0, rings=(ring,) * 4):
        return client.QUEUE_PAIR_CFG.pack(index, vector, tx, rx, reserved, *rings)

    for data, want in [(cfg(index=16), (INVALID, P_HANDLE)), (cfg(vector=17), (INVALID, P_VECTOR)),
                       (cfg(tx=5), (INVALID, P_RING)), (cfg(rx=15), (INVALID, P_RING)),
                       (cfg(tx=255), (INVALID, P_RING)), (cfg(reserved=1), (INVALID, P_RESERVED)),
                       (cfg(rings=(ring + 32,) + (ring,) * 3), (INVALID, P_RING)),
                       (cfg(rings=(ring,) * 3 + (gone - 1024,)), (DMA, P_RING)),
                       (cfg(rings=(gone,) + (ring,) * 3), (DMA, P_RING)),
                       (cfg(rings=((1 << 64) - 64,) + (ring,) * 3), (INVALID, P_RING))]:
        done, _ = card.command(client.CMD_QUEUE_PAIR_CREATE, data)
        assert (done.status, done.param) == want
    pair = card.queue_pair(0)
    assert card.command(client.CMD_QUEUE_PAIR_CREATE, cfg())[0].status == EXISTS
    pair.destroy()
    assert card.command(client.CMD_QUEUE_PAIR_DESTROY, args=(0,))[0].status == NOT_FOUND
    assert card.command(client.CMD_QUEUE_PAIR_DESTROY, args=(1 << 32,))[0].status == NOT_FOUND
    assert card.command(client.CMD_QUEUE_PAIR_MODERATE, args=(0, 1, 1, 1))[0].status == NOT_FOUND
    card.queue_pair(0)
    assert card.command(client.CMD_QUEUE_PAIR_MODERATE, args=(0, 1000001, 0, 0))[0].status == INVALID
    assert card.command(client.CMD_QUEUE_PAIR_MODERATE, args=(0, 0, 65536, 0))[0].status == INVALID


def test_sixteen_queue_pairs(card):
    for index in range(16):
        card.queue_pair(index, log2=6)
    for index in range(16):
        card.execute(client.CMD_QUEUE_PAIR_DESTROY, args=(index,))


def test_bad_command_index_fails_the_function(card):
    card.ring(0, 0, card.cmd_prod + 65)
    card.write32(client.REG_KICK, 0)
    card.wait_status(client.STATUS_FAILED, client.STATUS_FAILED)
    card.enable()
    card.execute(client.CMD_NOP)


def test_rings_that_cannot_be(start):
    card = start(ports={"p0": "none"}).card("p0")
    for register, value in ((client.REG_CMD_SQ, 0x1000), (client.REG_CMD_CQ, card.memory.addr + 32),
                            (client.REG_EVENT_RING, card.memory.addr + card.memory.size - 64)):
        card.write32(client.REG_CONTROL, client.CONTROL_RESET)
        card.wait_status(client.STATUS_RESETTING | client.STATUS_READY, client.STATUS_READY)
        for good in (client.REG_CMD_SQ, client.REG_CMD_CQ, client.REG_EVENT_RING):
            card.write64(good, card.memory.addr)
        card.write64(register, value)
        card.write32(client.REG_RING_SIZES, 6 | 6 << 8)
        card.write32(client.REG_CONTROL, client.CONTROL_ENABLE)
        card.wait_status(client.STATUS_FAILED, client.STATUS_FAILED)
        assert card.read32(client.REG_ERROR) == client.ERROR_BAD_RINGS
    card.enable()
    card.execute(client.CMD_NOP)


def test_reset_forgets_all(card):
    card.port_set(mtu=9000)
    for _ in range(20):
        pair = card.queue_pair(0, log2=6)
        assert pair.send(bytes(100)).result == 7
        assert sum(card.stats()["tx_drops"]) == 1
        card.enable()
        assert sum(card.stats()["tx_drops"]) == 0
