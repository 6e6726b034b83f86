# SPDX-License-Identifier: GPL-2.0-only
"""The UDP sockets of key managers behind NAT.

`natt.py listen 4|6 PORT encap|plain` prints what it receives. With encap the kernel takes ESP and keepalives out of it
(RFC 3948), as a key manager has it, and no policy is for this socket. `natt.py send 4|6 ADDRESS PORT HEX...` sends
datagrams from port 4500.
"""

import socket
import struct
import sys

IP_XFRM_POLICY, IPV6_XFRM_POLICY = 17, 35
UDP_ENCAP, UDP_ENCAP_ESPINUDP = 100, 2
PORT_NATT = 4500


def bound(family, port):
    """A socket at a port."""
    sock = socket.socket(socket.AF_INET6 if family == "6" else socket.AF_INET, socket.SOCK_DGRAM)
    if family == "6":
        sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
    sock.bind(("", port))
    return sock


def bypass(sock, family):
    """Let everything in and out in clear text: struct xfrm_userpolicy_info."""
    for direction in (0, 1):
        selector = bytes(40) + struct.pack("=H14x", socket.AF_INET6 if family == "6" else socket.AF_INET)
        policy = selector + bytes(64 + 32) + struct.pack("=IIBBBB4x", 0, 0, direction, 0, 0, 0)
        if family == "6":
            sock.setsockopt(socket.IPPROTO_IPV6, IPV6_XFRM_POLICY, policy)
        else:
            sock.setsockopt(socket.IPPROTO_IP, IP_XFRM_POLICY, policy)


def listen(family, port, kind):
    """Listen until killed."""
    with bound(family, int(port)) as sock:
        if kind == "encap":
            bypass(sock, family)
            sock.setsockopt(socket.IPPROTO_UDP, UDP_ENCAP, UDP_ENCAP_ESPINUDP)
        print("ready", flush=True)
        while True:
            data, sender = sock.recvfrom(65536)
            print(sender[0], sender[1], data.hex(), flush=True)


def send(family, address, port, *payloads):
    """Send and end."""
    with bound(family, PORT_NATT) as sock:
        for payload in payloads:
            sock.sendto(bytes.fromhex(payload), (address, int(port)))


if __name__ == "__main__":
    {"listen": listen, "send": send}[sys.argv[1]](*sys.argv[2:])
