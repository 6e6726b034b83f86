# SPDX-License-Identifier: GPL-2.0-only
"""XFRM messages that ip(8) doesn't send."""

import json

SCRIPT = r"""
import json, socket, struct, sys

NEWAE, GETAE, MIGRATE_STATE = 0x1e, 0x1f, 0x29
LTIME_VAL, REPLAY_VAL, REPLAY_ESN_VAL = 9, 10, 23
REQUEST, ACK, REPLACE = 1, 4, 0x100
ESP = 50

def packed(address):
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    return family, socket.inet_pton(family, address).ljust(16, b"\0")

def attr(kind, data):
    return struct.pack("=HH", len(data) + 4, kind) + data + bytes(-len(data) % 4)

def attrs(data):
    at, out = 0, {}
    while at + 4 <= len(data):
        length, kind = struct.unpack_from("=HH", data, at)
        out[kind] = data[at + 4:at + length]
        at += (length + 3) & ~3
    return out

def talk(kind, body, flags=0):
    s = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 6)
    s.bind((0, 0))
    s.setsockopt(270, 11, 1)
    s.send(struct.pack("=IHHII", 16 + len(body), kind, REQUEST | flags, 1, 0) + body)
    answer = s.recv(65536)
    if struct.unpack_from("=H", answer, 4)[0] == 2 and struct.unpack_from("=i", answer, 16)[0]:
        sys.exit("error %d %r" % (struct.unpack_from("=i", answer, 16)[0], answer[20:]))
    return answer

def sa_id(dst, spi):
    family, daddr = packed(dst)
    return daddr + struct.pack("!I", spi) + struct.pack("=HBx", family, ESP)

def numbers(a):
    answer = talk(GETAE, sa_id(a["dst"], a["spi"]) + bytes(16) + struct.pack("=II", 0, 0))
    found = attrs(answer[16 + 48:])
    out = dict(zip(("bytes", "packets", "add_time", "use_time"), struct.unpack("=4Q", found[LTIME_VAL])))
    if REPLAY_ESN_VAL in found:
        data = found[REPLAY_ESN_VAL]
        out.update(zip(("words", "oseq", "seq", "oseq_hi", "seq_hi", "window"), struct.unpack_from("=6I", data)))
        out["bitmap"] = list(struct.unpack_from("=%dI" % out["words"], data, 24))
    else:
        out.update(zip(("oseq", "seq", "bitmap"), struct.unpack("=3I", found[REPLAY_VAL])))
    return out

def get(a):
    print(json.dumps(numbers(a)))

def new(a):
    if a.get("same_window"):
        now = numbers(a)
        a.update(words=now["words"], window=now["window"])
    if "words" in a:
        bitmap = a.get("bitmap") or [0] * a["words"]
        data = struct.pack("=6I", a["words"], a.get("oseq", 0), a.get("seq", 0), a.get("oseq_hi", 0), a.get("seq_hi", 0),
                           a["window"]) + struct.pack("=%dI" % a["words"], *bitmap)
        data = attr(REPLAY_ESN_VAL, data)
    else:
        data = attr(REPLAY_VAL, struct.pack("=3I", a.get("oseq", 0), a.get("seq", 0), a.get("bitmap", 0)))
    talk(NEWAE, sa_id(a["dst"], a["spi"]) + bytes(16) + struct.pack("=II", 0, 0) + data, ACK | REPLACE)

def migrate_state(a):
    family, daddr = packed(a["new_dst"])
    saddr = packed(a["new_src"])[1]
    sel = bytes(40) + struct.pack("=HBBBxxxiI", family, 0, 0, 0, 0, 0)
    talk(MIGRATE_STATE, sa_id(a["dst"], a["spi"]) + daddr + saddr + bytes(8) + sel +
         struct.pack("=IIHH", a["reqid"], a.get("flags", 0), family, 0), ACK)

for values in json.loads(sys.argv[2]):
    globals()[sys.argv[1]](values)
"""


def xfrm(host, name, sa, check=True, **values):
    """Send a message about an SA: get (GETAE), new (NEWAE) or migrate_state; return what `get` gets, or an error's text."""
    return xfrm_each(host, name, [(sa, values)], check)


def xfrm_each(host, name, some, check=True):
    """The same message about several SAs, each with its values; of `get`, what the last one gets."""
    values = [{"dst": sa.dst, "src": sa.src, "spi": sa.spi, "reqid": sa.reqid, **more} for sa, more in some]
    out = host.run(["python3", "-I", "-S", "-c", SCRIPT, name, json.dumps(values)], check=check)
    return json.loads(out.stdout.splitlines()[-1]) if out.stdout.strip() else out.stderr
