# SPDX-License-Identifier: BSD-3-Clause
"""Two virtual machines as security gateways, joined by their Cordon ports."""

from contextlib import contextmanager

from cordonlab import Lab
from report import at_once
from swan import Site

KERNEL = "7.3"
#: first port: the tunnels, captured. Second port: what is measured, not captured.
TUNNEL, MEASURED = "cordon0", "cordon1"
CAPTURED = "p0"


class Gateway:
    """One of the two: its guest, its ports, and the host behind it."""

    def __init__(self, guest, name, number):
        self.guest = guest
        self.name = name
        self.number = number
        self.other = 3 - number
        self.site = Site(guest, number)
        self.address, self.peer = (f"10.9.0.{n}" for n in (self.number, self.other))
        self.address6, self.peer6 = (f"fd09::{n}" for n in (self.number, self.other))
        self.measured, self.measured_peer = (f"10.8.0.{n}" for n in (self.number, self.other))

    def run(self, command, **options):
        """Run a command on the gateway that has to succeed; return what it printed."""
        return self.guest.run(command, check=True, **options).stdout

    def set_up(self, module):
        """Load the driver, name the ports, give them addresses, make the host."""
        self.run(f"""hostname {self.name}
            for needed in $(modinfo -F depends {module} | tr , ' '); do modprobe $needed; done
            insmod {module}""")
        for index, name in enumerate((TUNNEL, MEASURED)):
            self.run(["ip", "link", "set", self.guest.netdev(index), "name", name])
        self.run(f"""set -e
            ip addr add {self.address}/24 dev {TUNNEL}
            ip addr add {self.address6}/64 dev {TUNNEL} nodad
            ip addr add {self.measured}/24 dev {MEASURED}
            ip link set {TUNNEL} up
            ip link set {MEASURED} up""")
        self.site.create(Site(None, self.other), self.peer, self.peer6)

    def wait_carrier(self):
        """Wait until both ports have a link."""
        self.run(f"""for dev in {TUNNEL} {MEASURED}; do
            timeout 20 sh -c "until grep -q 1 /sys/class/net/$dev/carrier; do sleep 0.1; done"
            done""")

    def about(self):
        """Return what the system says about the port that carries the tunnels."""
        return self.run(f"""ethtool -i {TUNNEL} | head -n 3
            ethtool -k {TUNNEL} | grep esp
            ip -br link show dev {TUNNEL}
            ip -br addr show dev {TUNNEL}
            ip -br addr show dev site0
            ip -n host -br addr show dev eth0""")

    def counters(self):
        """Return the card's counters of the first port that are not zero."""
        lines = self.run(["ethtool", "-S", TUNNEL]).splitlines()[1:]
        return "\n".join(line for line in lines if not line.endswith(": 0"))


@contextmanager
def boot():
    """Boot both; yield the lab and the gateways left and right."""
    with Lab(kernel=KERNEL, vms=2, ports=2, wiring="back2back", capture=[CAPTURED],
             keep_logs=True, name="demo") as lab:
        yield lab, Gateway(lab.vms[0], "left", 1), Gateway(lab.vms[1], "right", 2)


def set_up(lab, *gateways):
    """Load the driver on all gateways, and wait for the link."""
    module = lab.module_in_guest(KERNEL)
    at_once(lambda gateway: gateway.set_up(module), *gateways)
    at_once(Gateway.wait_carrier, *gateways)
