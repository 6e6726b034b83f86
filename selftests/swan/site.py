# SPDX-License-Identifier: GPL-2.0-only
"""A host behind a gateway: a namespace of the guest at the end of a veth."""

NAMESPACE = "host"


class Site:
    """The networks behind one gateway: the gateway's end has ...1, the host ...2."""

    def __init__(self, guest, number):
        self.guest = guest
        self.net, self.net6 = f"10.{number}.0.0/24", f"fd0a:{number}::/64"
        self.gateway, self.gateway6 = f"10.{number}.0.1", f"fd0a:{number}::1"
        self.host, self.host6 = f"10.{number}.0.2", f"fd0a:{number}::2"

    def create(self, peer, via, via6):
        """Make the host, and the way to the other site by the addresses of its gateway.

        The routes have a gateway on purpose: a packet of the gateway itself that goes
        into a tunnel in packet offload waits for the neighbour that the route names.
        """
        self.guest.run(f"""set -e
            ip netns add {NAMESPACE}
            ip link add site0 type veth peer name eth0 netns {NAMESPACE}
            ip addr add {self.gateway}/24 dev site0
            ip addr add {self.gateway6}/64 dev site0 nodad
            ip link set site0 up
            host="ip -n {NAMESPACE}"
            $host link set lo up
            $host addr add {self.host}/24 dev eth0
            $host addr add {self.host6}/64 dev eth0 nodad
            $host link set eth0 up
            $host route add default via {self.gateway}
            $host route add default via {self.gateway6}
            ip route add {peer.net} via {via}
            ip route add {peer.net6} via {via6}
            sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1""", check=True)

    def destroy(self, peer):
        """Undo create()."""
        self.guest.run(f"""ip route del {peer.net}
            ip route del {peer.net6}
            ip link del site0
            ip netns del {NAMESPACE}
            sysctl -qw net.ipv4.ip_forward=0 net.ipv6.conf.all.forwarding=0""")

    def run(self, command, timeout=60, check=False):
        """Run a command on the host and return its Result."""
        return self.guest.run(self.argv(command), timeout, check)

    def start(self, command, timeout=None):
        """Start a command on the host and return its Process."""
        return self.guest.start(self.argv(command), timeout)

    @staticmethod
    def argv(command):
        """The command line that runs a command, a list or a string for bash, on the host."""
        if isinstance(command, str):
            command = ["bash", "-c", command]
        return ["ip", "netns", "exec", NAMESPACE, *command]
