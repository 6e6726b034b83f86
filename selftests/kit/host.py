# SPDX-License-Identifier: GPL-2.0-only
"""A guest as a test sees it: its port, its addresses, its counters."""

import re
import time

DEV = "cd0"


class Host:
    """One end of the wire.

    vm: the lab's guest. number: 1 for the left end, 2 for the right one.
    module: path of cordon.ko inside the guest.
    """

    def __init__(self, vm, number, module):
        self.vm = vm
        self.number = number
        self.module = module
        self.v4 = f"10.9.0.{number}"
        self.v6 = f"fd09::{number}"
        # Networks behind this end, for tunnels; the address is on a dummy interface.
        self.inner_v4 = f"10.10.{number}.1"
        self.inner_v6 = f"fd10:{number}::1"

    def run(self, command, timeout=60, check=True):
        """Run a command; it has to succeed unless check is False."""
        return self.vm.run(command, timeout=timeout, check=check)

    def load(self):
        """Load the driver and set the port up."""
        self.run(f"insmod {self.module}")
        self.wait(lambda: self.vm.netdev(0), "a network device")
        name = self.vm.netdev(0)
        self.run(f"ip link set {name} down; ip link set {name} name {DEV}")
        self.up()

    def up(self):
        """Addresses, and the route to the networks behind the other end."""
        other = 3 - self.number
        self.run(f"""set -e
            echo 0 > /proc/sys/net/ipv6/conf/{DEV}/accept_dad
            ip link set {DEV} up
            ip addr replace {self.v4}/24 dev {DEV}
            ip -6 addr replace {self.v6}/64 dev {DEV} nodad
            ip link show dum0 >/dev/null 2>&1 || ip link add dum0 type dummy
            ip link set dum0 up
            ip addr replace {self.inner_v4}/32 dev dum0
            ip -6 addr replace {self.inner_v6}/128 dev dum0 nodad
            ip route replace 10.10.{other}.0/24 via 10.9.0.{other} dev {DEV} src {self.inner_v4}
            ip -6 route replace fd10:{other}::/64 via fd09::{other} dev {DEV} src {self.inner_v6}""")
        self.wait_carrier()

    def lan_up(self):
        """A host behind this end: a network namespace on a veth, addresses .2 and ::2 of the inner networks."""
        n = self.number
        self.run(f"""set -e
            [ -e /run/netns/lan ] && exit
            ip netns add lan
            ip link add lan0 type veth peer name eth0 netns lan
            ip addr add 10.10.{n}.3/24 dev lan0
            ip -6 addr add fd10:{n}::3/64 dev lan0 nodad
            ip link set lan0 up
            ip -n lan link set lo up
            ip -n lan addr add {self.lan(4)}/24 dev eth0
            ip -n lan -6 addr add {self.lan(6)}/64 dev eth0 nodad
            ip -n lan link set eth0 up
            ip -n lan route add default via 10.10.{n}.3
            ip -n lan -6 route add default via fd10:{n}::3
            echo 1 > /proc/sys/net/ipv4/ip_forward
            echo 1 > /proc/sys/net/ipv6/conf/all/forwarding""")

    def lan(self, family):
        """Address of the host behind this end."""
        return f"10.10.{self.number}.2" if family == 4 else f"fd10:{self.number}::2"

    def wait_carrier(self, up=True):
        """Wait for the state of the link."""
        want = "1" if up else "0"
        self.wait(lambda: self.run(f"cat /sys/class/net/{DEV}/carrier", check=False).stdout.strip() == want,
                  f"carrier {want}")

    def unload(self):
        """Unload the driver."""
        self.run("rmmod cordon")

    def address(self, family):
        """Address on the wire."""
        return self.v4 if family == 4 else self.v6

    def mac(self):
        """Address of the port."""
        return self.run(f"cat /sys/class/net/{DEV}/address").stdout.strip()

    def inner(self, family):
        """Address behind this end."""
        return self.inner_v4 if family == 4 else self.inner_v6

    def clear_xfrm(self):
        """No SA, no policy."""
        self.run("ip xfrm state flush; ip xfrm policy flush")

    def stats(self):
        """Counters of ethtool -S."""
        out = self.run(f"ethtool -S {DEV}").stdout
        return {k.strip(): int(v) for k, v in re.findall(r"^\s*([^:\n]+): (\d+)$", out, re.M)}

    def xfrm_stat(self):
        """Counters of /proc/net/xfrm_stat that aren't zero."""
        out = self.run("cat /proc/net/xfrm_stat").stdout
        return {k: int(v) for k, v in (line.split() for line in out.splitlines()) if int(v)}

    def ping(self, target, size=56, count=1, options="", check=True, netns=""):
        """Return the number of answers. netns: a namespace to do it in."""
        prefix = f"ip netns exec {netns} " if netns else ""
        out = self.run(f"{prefix}ping -n -q -c {count} -s {size} -W 2 {options} {target}", check=False, timeout=30 + 2 * count)
        found = re.search(r"(\d+) received", out.stdout)
        received = int(found.group(1)) if found else 0
        if check and received != count:
            raise AssertionError(f"{received} of {count} pings of {size} bytes to {target} answered\n{out.output}")
        return received

    def ping_sizes(self, target, sizes, options=""):
        """One ping for each size in one go; return the sizes that got no answer."""
        words = " ".join(map(str, sizes))
        out = self.run(f"for s in {words}; do ping -n -q -c 1 -s $s -W 2 {options} {target} >/dev/null || echo $s; done",
                       timeout=60 + 3 * len(sizes))
        return [int(word) for word in out.stdout.split()]

    def tcp(self, other, target, size=1 << 20, netns=""):
        """Send bytes to the other host over TCP; it must get exactly these."""
        prefix = f"ip netns exec {netns} " if netns else ""
        family = "TCP6-LISTEN" if ":" in target else "TCP4-LISTEN"
        name = f"[{target}]" if ":" in target else target
        self.run(f"[ -s /tmp/data-{size} ] || head -c {size} /dev/urandom > /tmp/data-{size}")
        want = self.run(f"sha256sum < /tmp/data-{size}").stdout
        sink = other.vm.start(f"{prefix}socat -u {family}:7777,reuseaddr - | sha256sum", timeout=90)
        other.wait(lambda: ":7777 " in other.run(f"{prefix}ss -Hltn").stdout, "a listener")
        self.run(f"{prefix}socat -u -T 30 OPEN:/tmp/data-{size} TCP:{name}:7777", timeout=90)
        got = sink.wait(timeout=60).stdout
        assert got == want, "TCP delivered other bytes than were sent"
        # The last segments are under way still: what comes behind the test must not send them again in clear text.
        for host in (self, other):
            host.wait(lambda host=host: not host.run(f"{prefix}ss -Htn state connected exclude time-wait "
                                                     "'( sport = :7777 or dport = :7777 )'").stdout, "closed connections")

    @staticmethod
    def wait(condition, what, timeout=20):
        """Wait until something holds."""
        end = time.monotonic() + timeout
        while not condition():
            if time.monotonic() > end:
                raise AssertionError(f"{timeout} s without {what}")
            time.sleep(0.1)
