# SPDX-License-Identifier: GPL-2.0-only
"""IPsec offload under an active-backup bond: of two ports, and of a port and a veth."""

import re
import time

import pytest
from cordonlab import Lab

from kit import Host, Wire
from kit.xfrm import make_key

LEFT, RIGHT = "10.9.0.1", "10.9.0.2"
SPIS = (0x1000, 0x1001)


class Bond:
    """A guest with a bond, and one with a bridge that both of its slaves lead to."""

    def __init__(self, kernel, second):
        self.kernel, self.second = kernel, second
        self.lab = Lab(kernel=kernel, vms=2, ports=2, capture=True, name=f"bond-{kernel}")
        self.left = self.right = None
        self.wires = []

    def __enter__(self):
        self.lab.__enter__()
        try:
            self.left, self.right = self.lab.vms[0], self.lab.vms[1]
            for vm in self.lab.vms:
                vm.run(f"insmod {self.lab.module_in_guest(self.kernel)}", check=True)
                for port in range(2):
                    Host.wait(lambda vm=vm, port=port: vm.netdev(port), "a network device")
                    name = vm.netdev(port)
                    vm.run(f"ip link set {name} down; ip link set {name} name cd{port}", check=True)
            self.right.run(f"""set -e
                ip link add br0 type bridge
                for dev in cd0 cd1; do ip link set $dev master br0 up; done
                ip link set br0 up
                ip addr add {RIGHT}/24 dev br0""", check=True)
            self.left.run(f"""set -e
                modprobe bonding max_bonds=0
                ip link add bond0 type bond mode active-backup miimon 50
                # In a namespace of its own: GRO at a bridge's port would decrypt what only passes through.
                [ {self.second} = cd1 ] || {{
                    ip netns add switch
                    ip link add veth0 type veth peer name veth1 netns switch
                    ip link set cd1 netns switch
                    ip -n switch link add br1 type bridge
                    for dev in veth1 cd1; do ip -n switch link set $dev master br1 up; done
                    ip -n switch link set br1 up
                }}
                for dev in cd0 {self.second}; do ip link set $dev down; ip link set $dev master bond0; done
                ip link set bond0 up
                ip addr add {LEFT}/24 dev bond0""", check=True)
            self.activate("cd0")
            Host.wait(lambda: self.left.run(f"ping -c 1 -W 1 {RIGHT}").ok, "a neighbour")
            self.wires = [Wire(self.lab.capture_file(f"p{port}")) for port in range(2)]
        except BaseException:
            self.lab.stop(keep=True)
            raise
        return self

    def __exit__(self, *error):
        return self.lab.__exit__(*error)

    def activate(self, slave):
        """Make a slave the active one."""
        self.left.run(f"ip link set bond0 type bond active_slave {slave}")
        Host.wait(lambda: self.active() == slave, f"{slave} as active slave")

    def active(self):
        """The active slave."""
        return self.left.run("cat /sys/class/net/bond0/bonding/active_slave").stdout.strip()

    def sas(self):
        """SAs on the cards of the two slaves."""
        out = [self.left.run(f"ethtool -S {slave}").stdout for slave in ("cd0", self.second)]
        return [int(found[1]) if (found := re.search(r"ipsec_sas: (\d+)", text)) else 0 for text in out]

    def tunnel(self):
        """SAs and policies of both ends; the left one's are offloaded."""
        for vm, here, there, offload in ((self.left, LEFT, RIGHT, "bond0"), (self.right, RIGHT, LEFT, "")):
            out, back = SPIS if vm is self.left else SPIS[::-1]
            script = "set -e\nip xfrm state flush; ip xfrm policy flush\n"
            for src, dst, spi, way in ((here, there, out, "out"), (there, here, back, "in")):
                words = f"offload crypto dev {offload} dir {way}" if offload else ""
                window = "replay-window 32" if way == "in" else ""
                script += (f"ip xfrm state add src {src} dst {dst} proto esp spi {spi:#x} reqid 1 mode transport {window} "
                           f"aead 'rfc4106(gcm(aes))' {make_key(128, spi)} 128 {words}\n"
                           f"ip xfrm policy add src {src} dst {dst} dir {way} tmpl proto esp reqid 1 mode transport\n")
            vm.run(script, check=True)


@pytest.fixture(scope="module", params=("cd1", "veth0"))
def bond(request):
    """The two guests."""
    with Bond("7.3", request.param) as guests:
        yield guests


@pytest.mark.limit(300)
def test_failover_under_traffic(bond):
    """The SAs are on the active slave only, go to the other with their numbers, and traffic goes on."""
    bond.tunnel()
    assert bond.sas() == [2, 0]
    marks = [wire.mark() for wire in bond.wires]
    stream = bond.left.start(f"ping -n -i 0.05 -c 200 -W 1 {RIGHT}", timeout=90)
    for slave in (bond.second, "cd0", bond.second, "cd0"):
        time.sleep(1)
        bond.activate(slave)
        want = [2 if slave == f"cd{port}" else 0 for port in range(2)]
        Host.wait(lambda want=want: bond.sas() == want, f"SAs {want}")
    result = stream.wait(90)
    received = int(re.search(r"(\d+) received", result.stdout)[1])
    assert received >= 190 and "duplicates" not in result.stdout, result.stdout
    sent = []
    for wire, mark in zip(bond.wires, marks, strict=True):
        frames = wire.since(mark)
        assert not [f for f in frames if f.is_clear()]
        sent += [f.esp[1] for f in frames if f.esp and f.out and f.esp[0] == SPIS[0]]
    assert len(sent) == len(set(sent)) and max(sent) >= 200


@pytest.mark.limit(300)
def test_slave_goes_and_comes(bond):
    """A slave that goes down, or leaves the bond, takes no SA along; the SAs of a bond don't expire with it."""
    bond.tunnel()
    monitor = bond.left.start("stdbuf -oL timeout 60 ip xfrm monitor expire", timeout=90)
    bond.left.run("ip link set cd0 down", check=True)
    Host.wait(lambda: bond.active() == bond.second, "failover")
    Host.wait(lambda: bond.left.run(f"ping -c 1 -W 1 {RIGHT}").ok, "traffic")
    assert bond.sas()[0] == 0
    bond.left.run("ip link set cd0 up", check=True)
    bond.activate("cd0")
    Host.wait(lambda: bond.sas() == [2, 0], "SAs")
    Host.wait(lambda: bond.left.run(f"ping -c 1 -W 1 {RIGHT}").ok, "traffic")
    monitor.stop()
    assert "hard" not in monitor.output
    bond.left.run("ip xfrm state flush", check=True)
    Host.wait(lambda: bond.sas() == [0, 0], "no SAs")
    bond.lab.check()
