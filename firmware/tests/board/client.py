# SPDX-License-Identifier: BSD-3-Clause
"""A vfio-user client with a small driver for Cordon cards: a hypervisor and its guest in one.

Three layers, each usable alone:

* Connection: messages of the protocol; an error reply becomes a VfioError with its errno.
* Device: one PCI function: configuration space, registers, doorbells, guest memory, interrupts.
* Card: the driver: command ring, event ring, queue pairs.

    card = Card("/run/p0.sock")
    card.enable()
    card.port_set(flags=PORT_RX_ENABLE | PORT_PROMISCUOUS)
    pair = card.queue_pair(0)
    pair.send(frame)
    packet = pair.receive(timeout=1)

Structures are those of include/cordon; every wait has a time-out.
"""

import array
import collections
import contextlib
import errno
import mmap
import os
import select
import socket
import struct
import threading
import time

# Seconds until what must come counts as lost; no measure of how fast it should.
PATIENCE = 20.0

VERSION = 1
DMA_MAP = 2
DMA_UNMAP = 3
GET_INFO = 4
GET_REGION_INFO = 5
GET_REGION_IO_FDS = 6
GET_IRQ_INFO = 7
SET_IRQS = 8
REGION_READ = 9
REGION_WRITE = 10
DMA_READ = 11
DMA_WRITE = 12
DEVICE_RESET = 13
REGION_WRITE_MULTI = 15
DEVICE_FEATURE = 16
MIG_DATA_READ = 17
MIG_DATA_WRITE = 18

FLAG_REPLY = 0x1
FLAG_NO_REPLY = 0x10
FLAG_ERROR = 0x20

HEADER = struct.Struct("=HHIII")
CAPABILITIES = (
    b'{"capabilities":{"pgsizes":4096,"max_msg_fds":16,"max_dma_maps":65535,'
    b'"max_data_xfer_size":1048576,"write_multiple":true}}\0'
)

BAR0, BAR2, BAR4, CONFIG = 0, 2, 4, 7
IRQ_INTX, IRQ_MSI, IRQ_MSIX, IRQ_ERR, IRQ_REQ = range(5)
IRQ_NONE, IRQ_EVENTFD, IRQ_MASK, IRQ_UNMASK, IRQ_TRIGGER = 1, 4, 8, 16, 32
MAP_READ, MAP_WRITE = 1, 2
UNMAP_ALL = 2

REG_MAGIC, REG_ABI, REG_FW_VERSION, REG_STATUS = 0x00, 0x04, 0x08, 0x0C
REG_CONTROL, REG_ERROR, REG_VECTORS, REG_KICK = 0x10, 0x14, 0x18, 0x1C
REG_CMD_SQ, REG_CMD_CQ, REG_EVENT_RING, REG_RING_SIZES = 0x20, 0x28, 0x30, 0x38
REG_MAC_LO, REG_MAC_HI = 0x40, 0x44
MAGIC = 0x4E445243
STATUS_READY, STATUS_ENABLED, STATUS_RESETTING, STATUS_FAILED = 1, 2, 4, 8
CONTROL_ENABLE, CONTROL_RESET = 1, 2
ERROR_NONE, ERROR_FIRMWARE_DIED, ERROR_FIRMWARE_HUNG, ERROR_BAD_RINGS, ERROR_DMA = range(5)

DOORBELL_SIZE = 0x2000
WAKE_PAGE = 0x1000
LINE_SIZE = 64
VALID = 0x80000000

CMD_NOP, CMD_QUERY_CAPS, CMD_QUERY_STATS, CMD_SELFTEST = 1, 2, 3, 4
CMD_QUEUE_PAIR_CREATE, CMD_QUEUE_PAIR_DESTROY, CMD_QUEUE_PAIR_MODERATE = 0x101, 0x102, 0x103
CMD_PORT_SET, CMD_FILTER_SET, CMD_RSS_SET = 0x110, 0x111, 0x112
CMD_SA_ADD, CMD_SA_DEL, CMD_SA_UPDATE, CMD_SA_FLUSH = 0x201, 0x202, 0x203, 0x204
CMD_POLICY_ADD, CMD_POLICY_DEL, CMD_POLICY_FLUSH = 0x211, 0x212, 0x213

PORT_RX_ENABLE, PORT_PROMISCUOUS, PORT_ALL_MULTICAST = 0x01, 0x02, 0x04
PORT_VLAN_STRIP, PORT_VLAN_FILTER, PORT_RX_CSUM, PORT_RSS, PORT_ESP = 0x08, 0x10, 0x20, 0x40, 0x80

TX_CSUM, TX_SEGMENT, TX_VLAN, TX_SA_CRYPTO, TX_SA_PACKET, TX_EXT, TX_FIXED_ID = (
    1,
    2,
    4,
    0x10,
    0x20,
    0x40,
    0x80,
)
RX_MORE, RX_VLAN, RX_CSUM_GOOD, RX_SA_CRYPTO, RX_SA_PACKET = 1, 2, 4, 0x10, 0x20

CMD = struct.Struct("<HHIIIQQ4Q")
CMD_COMPLETION = struct.Struct("<HHHHQQII")
EVENT = struct.Struct("<HHIQQII")
QUEUE_PAIR_CFG = struct.Struct("<HHBBHQQQQ")
PORT_CFG = struct.Struct("<II6sH")
TX_DESC = struct.Struct("<QIIHBBHHHHHH")
TX_EXT_DESC = struct.Struct("<QHHIQQ")
TX_SEGS = struct.Struct("<QQIIQ")
TX_COMPLETION = struct.Struct("<IHHII")
RX_DESC = struct.Struct("<QII")
RX_COMPLETION = struct.Struct("<IIIIHBBIII")
RESULT_CNT = 48

Completion = collections.namedtuple("Completion", "tag opcode status param min max out_len valid")
Event = collections.namedtuple("Event", "type handle value")
TxCompletion = collections.namedtuple("TxCompletion", "slot result segments")
Packet = collections.namedtuple("Packet", "data flags hash hash_type sa vlan_tci result")
Region = collections.namedtuple("Region", "argsz flags index cap_offset size offset caps fd")


class VfioError(OSError):
    """An error reply."""


class Timeout(Exception):
    """Something didn't happen in time."""


@contextlib.contextmanager
def refused(number):
    """Expects an error reply with this errno."""
    try:
        yield
    except VfioError as error:
        assert error.errno == number, error
    else:
        raise AssertionError(f"not refused, {errno.errorcode[number]} was expected")


def wait_for(what, timeout=PATIENCE, step=0.002):
    """Polls what() until it returns something true, and returns that."""
    end = time.monotonic() + timeout
    while True:
        result = what()
        if result:
            return result
        if time.monotonic() > end:
            raise Timeout(f"nothing after {timeout} s")
        time.sleep(step)


def read_eventfd(fd, timeout):
    """Waits for an eventfd and returns its count; 0 = time-out."""
    if not select.select([fd], [], [], timeout)[0]:
        return 0
    return struct.unpack("=Q", os.read(fd, 8))[0]


class Connection:
    """Messages over the socket."""

    def __init__(self, path, timeout=8.0, version=True):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(timeout)
        self.sock.connect(path)
        self.next_id = 1
        self.version = self.negotiate() if version else None

    def close(self):
        """Ends the connection."""
        self.sock.close()

    def send_raw(self, data, fds=()):
        """Sends bytes as they are."""
        ancillary = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else []
        sent = self.sock.sendmsg([data], ancillary)
        if sent < len(data):
            self.sock.sendall(data[sent:])

    def send(self, command, body=b"", fds=(), flags=0):
        """Sends a message, returns its number."""
        number = self.next_id
        self.next_id = self.next_id % 0xFFFF + 1
        self.send_raw(HEADER.pack(number, command, HEADER.size + len(body), flags, 0) + body, fds)
        return number

    def _receive_exactly(self, size, fds):
        data = b""
        while len(data) < size:
            part, ancillary, _, _ = self.sock.recvmsg(size - len(data), socket.CMSG_SPACE(16 * 4))
            for level, kind, raw in ancillary:
                if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                    got = array.array("i")
                    got.frombytes(raw[: len(raw) - len(raw) % got.itemsize])
                    fds.extend(got)
            if not part:
                raise ConnectionResetError(errno.ECONNRESET, "closed by the server")
            data += part
        return data

    def receive(self):
        """Receives a message: (id, command, flags, error, body, fds)."""
        fds = []
        number, command, size, flags, error = HEADER.unpack(self._receive_exactly(HEADER.size, fds))
        body = self._receive_exactly(size - HEADER.size, fds) if size > HEADER.size else b""
        return number, command, flags, error, body, fds

    def reply_to(self, number, command):
        """Receives the reply to a message: (body, fds)."""
        got, got_command, flags, error, body, fds = self.receive()
        assert (got, got_command) == (number, command), (got, got_command, number, command)
        assert flags & 0xF == FLAG_REPLY
        if flags & FLAG_ERROR:
            assert body == b"" and not fds
            raise VfioError(error, os.strerror(error))
        return body, fds

    def request(self, command, body=b"", fds=()):
        """Sends a message and returns its reply: (body, fds)."""
        return self.reply_to(self.send(command, body, fds), command)

    def negotiate(self, major=0, minor=0, capabilities=CAPABILITIES):
        """VERSION; returns (major, minor, capabilities)."""
        body, _ = self.request(VERSION, struct.pack("=HH", major, minor) + capabilities)
        return struct.unpack_from("=HH", body) + (body[4:],)

    def device_info(self):
        """DEVICE_GET_INFO: (argsz, flags, regions, irqs)."""
        return struct.unpack("=IIII", self.request(GET_INFO, struct.pack("=IIII", 16, 0, 0, 0))[0])

    def region_info(self, index, argsz=4096):
        """DEVICE_GET_REGION_INFO."""
        body, fds = self.request(GET_REGION_INFO, struct.pack("=IIIIQQ", argsz, 0, index, 0, 0, 0))
        return Region(*struct.unpack_from("=IIIIQQ", body), body[32:], fds[0] if fds else -1)

    def irq_info(self, index):
        """DEVICE_GET_IRQ_INFO: (argsz, flags, index, count)."""
        return struct.unpack(
            "=IIII", self.request(GET_IRQ_INFO, struct.pack("=IIII", 16, 0, index, 0))[0]
        )

    def set_irqs(self, index, flags, start, count, fds=()):
        """DEVICE_SET_IRQS."""
        self.request(SET_IRQS, struct.pack("=IIIII", 20, flags, index, start, count), fds)

    def region_read(self, region, offset, count):
        """REGION_READ."""
        body, _ = self.request(REGION_READ, struct.pack("=QII", offset, region, count))
        assert (
            struct.unpack_from("=QII", body) == (offset, region, count) and len(body) == 16 + count
        )
        return body[16:]

    def region_write(self, region, offset, data):
        """REGION_WRITE."""
        body, _ = self.request(REGION_WRITE, struct.pack("=QII", offset, region, len(data)) + data)
        assert struct.unpack("=QII", body) == (offset, region, len(data))

    def dma_map(self, addr, size, fd=-1, offset=0, flags=MAP_READ | MAP_WRITE):
        """DMA_MAP, with or without a file descriptor."""
        self.request(
            DMA_MAP, struct.pack("=IIQQQ", 32, flags, offset, addr, size), () if fd < 0 else (fd,)
        )

    def dma_unmap(self, addr, size, flags=0):
        """DMA_UNMAP; returns the reply's (argsz, flags, addr, size)."""
        return struct.unpack(
            "=IIQQ", self.request(DMA_UNMAP, struct.pack("=IIQQ", 24, flags, addr, size))[0]
        )

    def reset(self):
        """DEVICE_RESET."""
        self.request(DEVICE_RESET)


class Memory:
    """Guest memory: a memfd with an allocator that never frees."""

    def __init__(self, size, addr):
        self.size = size
        self.addr = addr
        self.fd = os.memfd_create("guest", os.MFD_CLOEXEC)
        os.ftruncate(self.fd, size)
        self.map = mmap.mmap(self.fd, size)
        self.used = 0

    def alloc(self, size, align=64):
        """Returns a Buffer of zeros."""
        at = (self.used + align - 1) // align * align
        if size > self.size - at:
            raise MemoryError("guest memory is used up")
        self.used = at + size
        return Buffer(self, at, size)


class Buffer:
    """Part of guest memory."""

    def __init__(self, memory, at, size):
        self.memory = memory
        self.at = at
        self.size = size
        self.addr = memory.addr + at

    def write(self, data, offset=0):
        """Copies data into the buffer."""
        assert offset + len(data) <= self.size
        self.memory.map[self.at + offset : self.at + offset + len(data)] = data

    def read(self, size=None, offset=0):
        """Returns bytes of the buffer."""
        size = self.size - offset if size is None else size
        return self.memory.map[self.at + offset : self.at + offset + size]

    def word(self, offset):
        """Reads 32 bits at once."""
        with memoryview(self.memory.map) as view, view[
            self.at + offset : self.at + offset + 4
        ] as part, part.cast("I") as words:
            return words[0]


class Device(Connection):
    """A PCI function as a guest sees it."""

    def __init__(self, path, memory_size=64 << 20, memory_addr=0x100000000, timeout=8.0):
        super().__init__(path, timeout)
        self.memory = Memory(memory_size, memory_addr)
        self.dma_map(memory_addr, memory_size, self.memory.fd)
        region = self.region_info(BAR2)
        self.doorbell_map = mmap.mmap(region.fd, region.size)
        os.close(region.fd)
        self.words = memoryview(self.doorbell_map).cast("I")
        self.fence = threading.Lock()
        self.vectors = []

    def close(self):
        """Ends the connection and frees everything."""
        super().close()
        self.words.release()
        self.doorbell_map.close()
        for fd in self.vectors:
            os.close(fd)
        self.vectors = []
        self.memory.map.close()
        os.close(self.memory.fd)

    def read32(self, offset):
        """Reads a register."""
        return struct.unpack("<I", self.region_read(BAR0, offset, 4))[0]

    def write32(self, offset, value):
        """Writes a register."""
        self.region_write(BAR0, offset, struct.pack("<I", value))

    def read64(self, offset):
        """Reads a 64-bit register."""
        return struct.unpack("<Q", self.region_read(BAR0, offset, 8))[0]

    def write64(self, offset, value):
        """Writes a 64-bit register."""
        self.region_write(BAR0, offset, struct.pack("<Q", value))

    def config_read(self, offset, size):
        """Reads configuration space as a number."""
        return int.from_bytes(self.region_read(CONFIG, offset, size), "little")

    def config_write(self, offset, size, value):
        """Writes configuration space."""
        self.region_write(CONFIG, offset, value.to_bytes(size, "little"))

    def capability(self, wanted):
        """Offset of a capability, 0 = there is none."""
        at = self.config_read(0x34, 1)
        while at:
            if self.config_read(at, 1) == wanted:
                return at
            at = self.config_read(at + 1, 1)
        return 0

    def set_master(self, on=True):
        """Memory space and bus mastering."""
        self.config_write(4, 2, 0x0006 if on else 0x0002)

    def flr(self):
        """Function level reset."""
        at = self.capability(0x10) + 8
        self.config_write(at, 2, self.config_read(at, 2) | 0x8000)

    def status(self):
        """Status register."""
        return self.read32(REG_STATUS)

    def generation(self):
        """Starts of the firmware."""
        return self.status() >> 16

    def wait_status(self, bits, value, timeout=PATIENCE):
        """Waits until the status register's bits have the value."""
        wait_for(lambda: self.status() & bits == value, timeout, 0.005)

    def mac(self):
        """Permanent address."""
        return struct.pack("<II", self.read32(REG_MAC_LO), self.read32(REG_MAC_HI))[:6]

    def vectors_enable(self, count=None, index=IRQ_MSIX):
        """Gives vectors eventfds: self.vectors."""
        count = self.irq_info(index)[3] if count is None else count
        self.vectors += [
            os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
            for _ in range(count - len(self.vectors))
        ]
        for first in range(0, count, 16):
            part = self.vectors[first : min(first + 16, count)]
            self.set_irqs(index, IRQ_EVENTFD | IRQ_TRIGGER, first, len(part), part)

    def doorbell(self, line, field):
        """Reads a word of a doorbell line: 0 sq_prod, 1 rx_prod, 2 sq_cons, 3 rx_cons, 4 arm."""
        return self.words[line * LINE_SIZE // 4 + field]

    def ring(self, line, field, value):
        """Writes a word of a doorbell line."""
        self.words[line * LINE_SIZE // 4 + field] = value & 0xFFFFFFFF

    def barrier(self):
        """A full barrier: a lock is taken and given back."""
        with self.fence:
            pass

    def submit(self, line, old, new):
        """Moves sq_prod, and wakes the firmware if it asks for it."""
        self.ring(line, 0, new)
        self.barrier()
        event = self.words[(WAKE_PAGE + line * LINE_SIZE) // 4]
        if (new - event - 1) & 0xFFFFFFFF < (new - old) & 0xFFFFFFFF:
            self.write32(REG_KICK, line)

    def arm(self, line, sq_cons, rx_cons):
        """Tells what was consumed and asks for one interrupt."""
        self.ring(line, 2, sq_cons)
        self.ring(line, 3, rx_cons)
        self.ring(line, 4, self.doorbell(line, 4) + 1)
        self.barrier()


class Ring:
    """A ring that the card writes."""

    def __init__(self, memory, layout, log2):
        self.layout = layout
        self.entries = 1 << log2
        self.buffer = memory.alloc(layout.size << log2)
        self.cons = 0

    def take(self):
        """Returns the next entry's fields, or None."""
        at = self.cons % self.entries * self.layout.size
        valid = bool(self.buffer.word(at + self.layout.size - 4) & VALID)
        if valid != ((self.cons // self.entries) % 2 == 0):
            return None
        self.cons += 1
        return self.layout.unpack(self.buffer.read(self.layout.size, at))


class Card(Device):
    """The driver."""

    def __init__(self, path, **options):
        super().__init__(path, **options)
        self.cmd_prod = 0
        self.cmd_log2 = 0
        self.cmd_ring = None
        self.cmd_cq = None
        self.event_ring = None
        self.cmd_done = {}
        self.scratch = None

    def enable(self, cmd_log2=6, event_log2=6, timeout=PATIENCE):
        """Resets the function, then gives it its command and event rings."""
        self.write32(REG_CONTROL, CONTROL_RESET)
        self.wait_status(STATUS_RESETTING | STATUS_READY, STATUS_READY, timeout)
        self.set_master()
        self.cmd_prod = 0
        self.cmd_log2 = cmd_log2
        self.cmd_ring = self.memory.alloc(CMD.size << cmd_log2)
        self.cmd_cq = Ring(self.memory, CMD_COMPLETION, cmd_log2)
        self.event_ring = Ring(self.memory, EVENT, event_log2)
        self.cmd_done = {}
        self.scratch = self.memory.alloc(65536, 4096)
        self.write64(REG_CMD_SQ, self.cmd_ring.addr)
        self.write64(REG_CMD_CQ, self.cmd_cq.buffer.addr)
        self.write64(REG_EVENT_RING, self.event_ring.buffer.addr)
        self.write32(REG_RING_SIZES, cmd_log2 | event_log2 << 8)
        self.write32(REG_CONTROL, CONTROL_ENABLE)
        wait_for(lambda: self.status() & (STATUS_ENABLED | STATUS_FAILED), timeout)
        if not self.status() & STATUS_ENABLED:
            raise RuntimeError(f"not enabled, error {self.read32(REG_ERROR)}")

    def command_post(
        self, opcode, tag, in_addr=0, in_len=0, out_addr=0, out_len=0, args=(0, 0, 0, 0)
    ):
        """Puts a command into the ring."""
        at = self.cmd_prod % (1 << self.cmd_log2) * CMD.size
        self.cmd_ring.write(CMD.pack(opcode, tag, in_len, out_len, 0, in_addr, out_addr, *args), at)
        self.cmd_prod += 1
        self.submit(0, self.cmd_prod - 1, self.cmd_prod)

    def command_poll(self):
        """Takes completions from the ring."""
        while True:
            fields = self.cmd_cq.take()
            if not fields:
                break
            self.ring(0, 2, self.cmd_cq.cons)
            self.cmd_done[fields[0]] = Completion(*fields)

    def command_wait(self, tag, timeout=PATIENCE):
        """Waits for the completion with a tag."""

        def look():
            self.command_poll()
            return self.cmd_done.get(tag)

        completion = wait_for(look, timeout, 0.0005)
        del self.cmd_done[tag]
        return completion

    def command(self, opcode, data=b"", out_len=0, args=(), timeout=PATIENCE):
        """Runs a command: (completion, output)."""
        args = tuple(args) + (0,) * (4 - len(args))
        out_at = (len(data) + 63) // 64 * 64
        if data:
            self.scratch.write(data)
        tag = self.cmd_prod & 0xFFFF
        self.command_post(
            opcode,
            tag,
            self.scratch.addr if data else 0,
            len(data),
            self.scratch.addr + out_at if out_len else 0,
            out_len,
            args,
        )
        completion = self.command_wait(tag, timeout)
        return completion, self.scratch.read(completion.out_len, out_at)

    def execute(self, opcode, data=b"", out_len=0, args=(), timeout=PATIENCE):
        """Runs a command that must succeed: its output."""
        completion, output = self.command(opcode, data, out_len, args, timeout)
        if completion.status:
            raise RuntimeError(f"command {opcode:#x}: {completion}")
        return output

    def capabilities(self):
        """CORDON_CMD_QUERY_CAPS: {type: record}."""
        data, records = self.execute(CMD_QUERY_CAPS, out_len=4096), {}
        while data:
            kind, size = struct.unpack_from("<HH", data)
            records[kind], data = data[:size], data[size:]
        return records

    def stats(self):
        """CORDON_CMD_QUERY_STATS as a dictionary; rx_drops and tx_drops are lists by result."""
        data = self.execute(CMD_QUERY_STATS, out_len=128 + 16 * RESULT_CNT)
        names = (
            "rx_packets rx_bytes rx_multicast tx_packets tx_bytes tx_segmented "
            "rx_wire_packets rx_wire_bytes "
            "rx_sa_packets tx_sa_packets rx_reassembled rx_merged"
        ).split()
        words = struct.unpack(f"<{16 + 2 * RESULT_CNT}Q", data)
        return dict(
            zip(names, words),
            rx_drops=list(words[16 : 16 + RESULT_CNT]),
            tx_drops=list(words[16 + RESULT_CNT :]),
        )

    def port_set(self, mtu=1500, flags=PORT_RX_ENABLE, mac=None):
        """CORDON_CMD_PORT_SET."""
        self.execute(CMD_PORT_SET, PORT_CFG.pack(mtu, flags, mac or self.mac(), 0))

    def event_take(self):
        """Next event or None."""
        fields = self.event_ring.take()
        if not fields:
            return None
        self.ring(0, 3, self.event_ring.cons)
        return Event(fields[0], fields[2], fields[3])

    def event_wait(self, wanted=None, timeout=PATIENCE):
        """Next event (of a type); others before it are dropped."""
        end = time.monotonic() + timeout
        while True:
            event = wait_for(self.event_take, max(end - time.monotonic(), 0))
            if wanted is None or event.type == wanted:
                return event

    def admin_arm(self):
        """Asks for one interrupt of the command and event rings."""
        self.arm(0, self.cmd_cq.cons, self.event_ring.cons)

    def queue_pair(self, index, log2=8, vector=None, buffer_size=2048):
        """Creates a queue pair and fills its RX ring."""
        return QueuePair(self, index, log2, 1 + index if vector is None else vector, buffer_size)


class QueuePair:
    """TX and RX rings."""

    def __init__(self, card, index, log2, vector, buffer_size):
        self.card = card
        self.index = index
        self.line = 1 + index
        self.entries = 1 << log2
        self.buffer_size = buffer_size
        memory = card.memory
        self.tx_ring = memory.alloc(TX_DESC.size << log2)
        self.tx_cq = Ring(memory, TX_COMPLETION, log2)
        self.rx_ring = memory.alloc(RX_DESC.size << log2)
        self.rx_cq = Ring(memory, RX_COMPLETION, log2)
        self.tx_room = memory.alloc(1 << 20, 4096)
        self.tx_at = 0
        self.tx_prod = 0
        self.rx_prod = 0
        self.rx_buffers = [memory.alloc(buffer_size) for _ in range(self.entries)]
        for field in range(5):
            card.ring(self.line, field, 0)
        card.execute(
            CMD_QUEUE_PAIR_CREATE,
            QUEUE_PAIR_CFG.pack(
                index,
                vector,
                log2,
                log2,
                0,
                self.tx_ring.addr,
                self.tx_cq.buffer.addr,
                self.rx_ring.addr,
                self.rx_cq.buffer.addr,
            ),
        )
        self.rx_fill()

    def destroy(self):
        """Destroys the pair."""
        self.card.execute(CMD_QUEUE_PAIR_DESTROY, args=(self.index,))

    def rx_fill(self):
        """Posts every buffer that isn't posted."""
        while self.rx_prod - self.rx_cq.cons < self.entries:
            buffer = self.rx_buffers[self.rx_prod % self.entries]
            self.rx_ring.write(
                RX_DESC.pack(buffer.addr, self.buffer_size, 0),
                self.rx_prod % self.entries * RX_DESC.size,
            )
            self.rx_prod += 1
        self.card.ring(self.line, 1, self.rx_prod)

    def _slots(self, segments, flags, ext, **fields):
        """The slots of a packet as bytes; segments are (address, length)."""
        follow, rest = [], segments[1:]
        if ext is not None:
            flags |= TX_EXT
            follow.append(TX_EXT_DESC.pack(ext.get("seq", 0), ext.get("esp_offset", 0), 0, 0, 0, 0))
        for i in range(0, len(rest), 2):
            two = rest[i : i + 2] + [(0, 0)]
            follow.append(TX_SEGS.pack(two[0][0], two[1][0], two[0][1], two[1][1], 0))
        first = TX_DESC.pack(
            segments[0][0],
            segments[0][1],
            fields.get("sa", 0),
            flags,
            1 + len(follow),
            len(segments),
            fields.get("mss", 0),
            fields.get("header_len", 0),
            fields.get("csum_start", 0),
            fields.get("csum_offset", 0),
            fields.get("vlan_tci", 0),
            fields.get("l3_offset", 0),
        )
        return [first] + follow

    def post(self, segments, flags=0, ext=None, **fields):
        """Puts a packet of (address, length) segments into the ring, returns its first slot."""
        first = self.tx_prod
        for slot in self._slots(segments, flags, ext, **fields):
            self.tx_ring.write(slot, self.tx_prod % self.entries * TX_DESC.size)
            self.tx_prod += 1
        self.card.submit(self.line, first, self.tx_prod)
        return first

    def completion(self, timeout=PATIENCE):
        """Waits for the next TX completion."""
        fields = wait_for(self.tx_cq.take, timeout, 0.0005)
        self.card.ring(self.line, 2, self.tx_cq.cons)
        return TxCompletion(*fields[:3])

    def place(self, data):
        """Copies data into guest memory that TX uses in turn, returns its address."""
        if self.tx_at + len(data) > self.tx_room.size:
            self.tx_at = 0
        at = self.tx_at
        self.tx_room.write(data, at)
        self.tx_at = (at + len(data) + 63) // 64 * 64
        return self.tx_room.addr + at

    def send(self, frame, flags=0, ext=None, timeout=PATIENCE, split=(), **fields):
        """Sends a frame (cut at the offsets in split) and waits for its completion."""
        cuts = [0, *split, len(frame)]
        base = self.place(frame)
        self.post([(base + a, b - a) for a, b in zip(cuts, cuts[1:])], flags, ext, **fields)
        return self.completion(timeout)

    def receive(self, timeout=PATIENCE):
        """Waits for a packet; its buffers are posted again."""
        data, first = b"", None
        while True:
            fields = wait_for(self.rx_cq.take, timeout, 0.0005)
            assert fields[7] == (self.rx_cq.cons - 1) & 0xFFFFFFFF, "buffers are filled in order"
            first = first or fields
            data += self.rx_buffers[fields[7] % self.entries].read(fields[2])
            if not fields[3] & RX_MORE:
                break
        self.card.ring(self.line, 3, self.rx_cq.cons)
        self.rx_fill()
        return Packet(data, first[3] & ~RX_MORE, first[0], first[6], first[1], first[4], first[5])

    def arm(self):
        """Asks for one interrupt."""
        self.card.arm(self.line, self.tx_cq.cons, self.rx_cq.cons)
