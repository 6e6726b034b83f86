# SPDX-License-Identifier: GPL-2.0-only
"""The card as a plain NIC."""

import pytest

from kit.host import DEV

FAMILIES = (4, 6)


@pytest.mark.core
@pytest.mark.limit(400)
@pytest.mark.parametrize("family", FAMILIES)
def test_ping(pair, family):
    assert pair.left.ping_sizes(pair.right.address(family), (0, 1, 2, 3, 17, 18, 56, 1000, 1452, 1472)) == []


@pytest.mark.limit(300)
@pytest.mark.parametrize("family", FAMILIES)
def test_every_frame_length(pair, family):
    """One datagram of each length up to the MTU, echoed byte by byte."""
    host = pair.right.address(family)
    header = 28 if family == 4 else 48
    server = pair.right.vm.start(["python3", "-c", UDP_ECHO, host], timeout=250)
    server.wait_output("ready")
    try:
        out = pair.left.run(["python3", "-c", UDP_CLIENT, host, "0", str(1500 - header)], timeout=250)
        assert out.stdout.split() == [str(1501 - header), "0"]
    finally:
        server.stop()


UDP_ECHO = """
import socket, sys
s = socket.socket(socket.AF_INET6 if ":" in sys.argv[1] else socket.AF_INET, socket.SOCK_DGRAM)
s.bind((sys.argv[1], 7000))
print("ready", flush=True)
while True:
    data, peer = s.recvfrom(70000)
    s.sendto(data, peer)
"""

UDP_CLIENT = """
import os, socket, sys
s = socket.socket(socket.AF_INET6 if ":" in sys.argv[1] else socket.AF_INET, socket.SOCK_DGRAM)
s.connect((sys.argv[1], 7000))
s.settimeout(3)
sizes = range(int(sys.argv[2]), int(sys.argv[3]) + 1)
bad = 0
for size in sizes:
    data = os.urandom(size)
    s.send(data)
    try:
        bad += s.recv(70000) != data
    except TimeoutError:
        bad += 1
print(len(sizes), bad)
"""


@pytest.mark.core
@pytest.mark.parametrize("family", FAMILIES)
def test_tcp(pair, family):
    before = pair.left.stats()
    pair.left.tcp(pair.right, pair.right.address(family))
    pair.right.tcp(pair.left, pair.left.address(family))
    assert pair.left.stats()["port_tx_segmented"] > before["port_tx_segmented"]


@pytest.mark.parametrize("family", FAMILIES)
def test_ip_fragments(pair, family):
    assert pair.left.ping_sizes(pair.right.address(family), (1500, 2960, 8000, 20000, 60000)) == []


def test_tcp_without_offloads(pair):
    """What the stack does itself comes through as well."""
    pair.left.run(f"ethtool -K {DEV} tx off sg off tso off rx off gro off")
    try:
        pair.left.tcp(pair.right, pair.right.v4)
        pair.right.tcp(pair.left, pair.left.v4)
    finally:
        pair.left.run(f"ethtool -K {DEV} tx on sg on tso on rx on gro on")


@pytest.mark.core
def test_jumbo(pair):
    for host in pair.hosts():
        host.run(f"ip link set {DEV} mtu 9600")
    try:
        assert pair.left.ping_sizes(pair.right.v4, (1473, 4000, 8972, 9572), "-M do") == []
        pair.left.tcp(pair.right, pair.right.v6)
    finally:
        for host in pair.hosts():
            host.run(f"ip link set {DEV} mtu 1500")
    assert pair.left.ping(pair.right.v4, 1472)


@pytest.mark.parametrize("strip", ("on", "off"))
def test_vlan(pair, strip):
    for host in pair.hosts():
        host.run(f"""set -e
            ethtool -K {DEV} rxvlan {strip} txvlan {strip}
            ip link add link {DEV} name {DEV}.10 type vlan id 10
            ip addr add 10.9.10.{host.number}/24 dev {DEV}.10
            ip link set {DEV}.10 up""")
    try:
        assert pair.left.ping_sizes("10.9.10.2", (0, 56, 1472)) == []
        pair.left.tcp(pair.right, "10.9.10.2")
    finally:
        for host in pair.hosts():
            host.run(f"ip link del {DEV}.10; ethtool -K {DEV} rxvlan on txvlan on")


def test_vlan_filter(pair):
    """A tagged frame of a VLAN that nobody asked for is counted and dropped."""
    before = pair.right.stats()["rx_drop_filtered"]
    pair.left.run(f"""set -e
        ip link add link {DEV} name {DEV}.77 type vlan id 77
        ip addr add 10.9.77.1/24 dev {DEV}.77
        ip link set {DEV}.77 up""")
    try:
        assert pair.left.ping("10.9.77.2", check=False) == 0
        assert pair.right.stats()["rx_drop_filtered"] > before
    finally:
        pair.left.run(f"ip link del {DEV}.77")


def test_address_filter(pair):
    """Unicast to another address is dropped, except in promiscuous mode."""
    pair.left.run(f"ip neigh replace 10.9.0.99 lladdr 02:00:00:00:00:99 dev {DEV}")
    before = pair.right.stats()["rx_drop_filtered"]
    pair.left.ping("10.9.0.99", check=False)
    assert pair.right.stats()["rx_drop_filtered"] > before
    pair.right.run(f"ip link set {DEV} promisc on")
    try:
        pair.right.run("sleep 0.5")
        middle = pair.right.stats()["rx_drop_filtered"]
        pair.left.ping("10.9.0.99", check=False)
        assert pair.right.stats()["rx_drop_filtered"] == middle
    finally:
        pair.right.run(f"ip link set {DEV} promisc off")
        pair.left.run(f"ip neigh del 10.9.0.99 dev {DEV}")


def test_mac_address(pair):
    old = pair.right.mac()
    pair.right.run(f"ip link set {DEV} address 02:12:34:56:78:9a")
    try:
        pair.left.run("ip neigh flush all")
        pair.left.ping(pair.right.v4, count=2)
    finally:
        pair.right.run(f"ip link set {DEV} address {old}")
        pair.left.run("ip neigh flush all")


def test_channels_and_rings(pair):
    """Queues and rings are remade under traffic; the link isn't touched."""
    flood = pair.left.vm.start(f"ping -n -q -i 0.01 -c 400 {pair.right.v4}", timeout=100)
    for words in ("-L {} combined 2", "-G {} rx 128 tx 128", "-L {} combined 1", "-G {} rx 1024 tx 1024"):
        pair.left.run("ethtool " + words.format(DEV))
    assert "4.0% packet loss" not in flood.wait(timeout=100).stdout
    pair.left.ping(pair.right.v4, count=3)


def rss_queues(host):
    """The queues that the indirection table names."""
    table = host.run(f"ethtool -x {DEV}").stdout.split("RSS hash key")[0]
    return {queue for line in table.splitlines() if line.strip()[:1].isdigit() for queue in line.split(":")[1].split()}


def test_rss(pair):
    """Flows go to the queues that the table names."""
    pair.right.run(f"ethtool -L {DEV} combined 2")
    try:
        for queues in (1, 2):
            pair.right.run(f"ethtool -X {DEV} equal {queues}")
            assert rss_queues(pair.right) == {str(n) for n in range(queues)}
            before = pair.right.stats()
            pair.left.run(f"for p in $(seq 5000 5031); do echo x > /dev/udp/{pair.right.v4}/$p; done")
            now = pair.right.stats()
            used = [n for n in range(2) if now[f"rx{n}_packets"] > before[f"rx{n}_packets"] + 3]
            assert used == list(range(queues))
    finally:
        pair.right.run(f"ethtool -X {DEV} default; ethtool -L {DEV} combined 1")


@pytest.mark.core
def test_ethtool_queries(pair):
    for option in ("-i", "-k", "-l", "-g", "-S", "-x", "-c", ""):
        pair.left.run(f"ethtool {option} {DEV}")
    assert "driver: cordon" in pair.left.run(f"ethtool -i {DEV}").stdout
    assert "esp-hw-offload: on" in pair.left.run(f"ethtool -k {DEV}").stdout


def test_ethtool_self_test(pair):
    assert "PASS" in pair.left.run(f"ethtool -t {DEV} online").stdout


def test_coalesce(pair):
    pair.left.run(f"ethtool -C {DEV} rx-usecs 200 rx-frames 16 tx-usecs 200")
    out = pair.left.run(f"ethtool -c {DEV}").stdout
    assert "rx-usecs:\t200" in out and "rx-frames:\t16" in out
    pair.left.ping(pair.right.v4, count=3)


@pytest.mark.core
@pytest.mark.limit(600)
def test_unload_and_reload_under_traffic(pair):
    """50 times; nothing leaks."""
    flood = pair.right.vm.start(f"ping -n -q -f -w 300 {pair.left.v4}", timeout=400)
    before = pair.left.run("awk '/^Slab|^SUnreclaim/ {s += $2} END {print s}' /proc/meminfo").stdout
    for _ in range(50):
        pair.left.unload()
        pair.left.load()
    flood.stop()
    pair.left.ping(pair.right.v4, count=2)
    after = pair.left.run("awk '/^Slab|^SUnreclaim/ {s += $2} END {print s}' /proc/meminfo").stdout
    assert int(after) - int(before) < 8192, f"slab grew from {before} to {after} kB"
