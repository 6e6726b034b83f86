# SPDX-License-Identifier: GPL-2.0-only
"""strongSwan between the two ends, each of its ways to use the offload."""

import secrets
import time

import pytest

from kit import Pair
from kit.host import DEV
from swan import Charon, Child, Connection, Site, states

#: hw_offload of strongSwan, and where the SAs are then
OFFLOADS = {"no": None, "crypto": "crypto", "packet": "packet", "auto": "packet"}
#: a suite that the card hasn't got
OTHER_SUITE = "3des-sha256-x25519"
PORT_IKE = 500


class Swan:
    """charon on both ends, a host behind each, and children that are started when asked for."""

    def __init__(self, pair, hw_offload):
        self.pair = pair
        self.hw_offload = hw_offload
        self.sites = self.left, self.right = [Site(host.vm, host.number) for host in pair.hosts()]
        self.daemons = [Charon(host.vm, connections) for host, connections
                        in zip(pair.hosts(), self._connections(), strict=True)]

    def _connections(self):
        """net, net6: between the hosts, by the gateways' IPv4 or IPv6. gw: between the gateways.
        other: a suite that isn't offloaded.
        """
        one, two = self.pair.hosts()
        children = [
            Child("net", self.left.net, self.right.net, "tunnel", self.hw_offload),
            Child("gw", "dynamic", "dynamic", "transport", self.hw_offload),
            Child("other", f"{self.left.host}/32", f"{self.right.host}/32", "tunnel",
                  self.hw_offload, OTHER_SUITE),
        ]
        child6 = Child("net6", self.left.net6, self.right.net6, "tunnel", self.hw_offload)
        psk = secrets.token_hex(32)
        left = [Connection("ip4", one.v4, two.v4, children, psk),
                Connection("ip6", one.v6, two.v6, [child6], psk)]
        return left, [connection.swapped() for connection in left]

    def __enter__(self):
        left, right = self.pair.hosts()
        self.left.create(self.right, right.v4, right.v6)
        self.right.create(self.left, left.v4, left.v6)
        for host, daemon in zip((left, right), self.daemons, strict=True):
            host.clear_xfrm()
            daemon.start()
        return self

    def __exit__(self, *_):
        for daemon in self.daemons:
            daemon.stop()
        self.left.destroy(self.right)
        self.right.destroy(self.left)
        self.pair.lab.check()

    def up(self, *children):
        """Bring up these children, and no other ones."""
        self.daemons[0].terminate()
        for child in children:
            self.daemons[0].initiate(child)

    def states(self):
        """The SAs of both ends."""
        return [sa for host in self.pair.hosts() for sa in states(host.vm)]

    def ping(self, target):
        """From the left host; nothing is lost."""
        lost_nothing(self.left.run(f"ping -c 4 -i 0.2 -W 2 {target}"))


@pytest.fixture(scope="module", params=OFFLOADS)
def swan(guests, request):
    """Two sites with the guests as their gateways."""
    with Swan(guests, request.param) as sites:
        yield sites


def lost_nothing(result):
    """A ping(8) that got all its answers, and each of them once."""
    assert " 0% packet loss" in result.stdout and "duplicates" not in result.stdout, result.output


def is_ike(frame):
    """IKE without encapsulation, as it is on the wire."""
    return frame.protocol == 17 and frame.l4[:4] == PORT_IKE.to_bytes(2, "big") * 2


@pytest.mark.limit(240)
def test_tunnel_and_transport(swan):
    mark = swan.pair.wire.mark()
    swan.up("net", "gw", "net6")
    swan.ping(swan.right.host)
    swan.ping(swan.right.host6)
    swan.pair.left.ping(swan.pair.right.v4, count=4, options="-i 0.2")
    found = swan.states()
    offload = OFFLOADS[swan.hw_offload]
    assert len(found) == 12
    assert {sa.offload for sa in found} == {offload}
    assert {sa.device for sa in found} == {DEV if offload else None}
    assert {sa.packets for sa in found} == {4}
    frames = swan.pair.wire.since(mark)
    assert not [frame for frame in frames if frame.is_clear()]
    assert sum(frame.esp is not None for frame in frames) >= 24
    assert sum(is_ike(frame) for frame in frames) >= 10


@pytest.mark.limit(240)
def test_tcp_through_the_tunnel(swan):
    swan.up("net")
    sink = swan.right.start("socat -u TCP4-LISTEN:7777 - | sha256sum", timeout=90)
    swan.pair.right.wait(lambda: ":7777 " in swan.right.run("ss -Hltn").stdout, "a listener")
    sent = swan.left.run("head -c 3000000 /dev/urandom > /tmp/swan-data; "
                         "sha256sum < /tmp/swan-data; "
                         f"socat -u OPEN:/tmp/swan-data TCP4:{swan.right.host}:7777", 90, True)
    assert sink.wait(60).stdout == sent.stdout


@pytest.mark.limit(240)
def test_rekey_loses_nothing(swan):
    swan.up("net")
    before = {sa.spi for sa in swan.states()}
    stream = swan.left.start(f"ping -i 0.2 -c 30 -W 2 {swan.right.host}")
    time.sleep(2)
    swan.daemons[0].rekey("net")
    lost_nothing(stream.wait(60))
    after = swan.states()
    assert len({sa.spi for sa in after if sa.packets} - before) == 2
    assert {sa.offload for sa in after} == {OFFLOADS[swan.hw_offload]}


@pytest.mark.limit(240)
def test_interface_down_and_up(swan):
    """The stack deletes offloaded SAs with the interface; charon hears of it and makes new ones."""
    swan.up("net")
    swan.ping(swan.right.host)
    before = {sa.spi for sa in swan.states()}
    left = swan.pair.left
    left.run(f"ip link set {DEV} down")
    time.sleep(1)
    left.up()
    left.run(f"""ip route replace {swan.right.net} via {swan.pair.right.v4}
        ip -6 route replace {swan.right.net6} via {swan.pair.right.v6}""")
    left.wait(lambda: " 0% packet loss" in swan.left.run(f"ping -c 1 -W 1 {swan.right.host}").stdout, "a tunnel", 60)
    if OFFLOADS[swan.hw_offload]:
        assert not before & {sa.spi for sa in states(left.vm)}


@pytest.mark.limit(240)
def test_ike_passes_beside_a_transport_sa(swan):
    """The SA is for all that the gateways say to each other; IKE has its own way."""
    swan.up("gw")
    swan.pair.left.ping(swan.pair.right.v4, count=2)
    before = sorted((sa.spi, sa.packets) for sa in swan.states())
    mark = swan.pair.wire.mark()
    swan.daemons[0].rekey_ike("ip4")
    frames = swan.pair.wire.since(mark)
    assert sum(is_ike(frame) for frame in frames) >= 4
    assert not [frame for frame in frames if frame.esp]
    assert sorted((sa.spi, sa.packets) for sa in swan.states()) == before


@pytest.mark.limit(240)
def test_suite_that_the_card_lacks(swan):
    """Packet offload is refused with the reason in charon's log; all others use software."""
    if swan.hw_offload == "packet":
        with pytest.raises(Exception, match="exit status"):
            swan.up("other")
        logs = "".join(daemon.log() for daemon in swan.daemons)
        assert "cordon: " in logs and "algorithm" in logs, logs[-3000:]
        assert not swan.states()
        return
    swan.up("other")
    found = swan.states()
    assert len(found) == 4
    assert {sa.offload for sa in found} == {None}
    swan.ping(swan.right.host)
    if swan.hw_offload == "auto":
        # For such SAs the policies must not be in packet mode, or nothing would find the way to them.
        policies = swan.pair.left.run(f"ip xfrm policy list src {swan.left.host}/32").stdout
        assert policies and "offload" not in policies


#: what the left and the right card don't take; every hw_offload = auto comes up with them
LESSER = [("no-offload=packet", "no-cipher=aes-gcm"), ("no-offload=crypto", "sa-max=2"), ("no-icv=16", "no-family=inet6"),
          ("no-mode=tunnel", "replay-window-max=32")]


@pytest.mark.limit(240)
@pytest.mark.parametrize("limits", LESSER, ids=":".join)
def test_auto_comes_up_on_any_card(limits):
    """Whatever the cards refuse, the policies are where the SAs are, and traffic passes."""
    args = [f"--limit=p{port}:{limit}" for port, limit in enumerate(limits)]
    with Pair("7.3", cordond_args=args) as pair, Swan(pair, "auto") as swan:
        for child, target in (("net", swan.right.host), ("net6", swan.right.host6)):
            swan.daemons[0].initiate(child)
            swan.ping(target)
        swan.daemons[0].rekey("net")
        swan.ping(swan.right.host)
