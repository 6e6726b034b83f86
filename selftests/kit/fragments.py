# SPDX-License-Identifier: GPL-2.0-only
"""Packets that leave in fragments, and what arrived of them."""

from .host import DEV

#: of a path on which outer packets are fragmented, by family
MTU = {4: 600, 6: 1280}


def narrow(host, family, mtu):
    """A path of that MTU from a host to the other end (or any, without one): what is longer leaves in fragments."""
    other = 3 - host.number
    target = f"10.9.0.{other}/32" if family == 4 else f"fd09::{other}/128"
    if mtu:
        host.run(f"ip -{family} route replace {target} dev {DEV} mtu lock {mtu}")
    else:
        host.run(f"ip -{family} route del {target} dev {DEV}", check=False)


def echoes(host, family):
    """Echo requests that reached the host's stack, their checksum right."""
    if family == 6:
        return int(host.run("awk '$1 == \"Icmp6InEchos\" { print $2 }' /proc/net/snmp6").stdout)
    names, values = host.run("grep ^Icmp: /proc/net/snmp").stdout.splitlines()
    return int(values.split()[names.split().index("InEchos")])
