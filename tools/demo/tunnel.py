# SPDX-License-Identifier: BSD-3-Clause
"""What strongSwan sets up between the gateways, and the traffic that goes through it."""

import json
import re
import secrets

import hosts
from report import at_once
from swan import Charon, Child, Connection, states

#: fills the pings, so that clear text on the wire is easy to find; 16 bytes
MARKER = b"CordonClearText!"
PINGS = 5
#: Mbit/s of iperf3 where everything is captured
MOST = 400
#: lines of ip(8) that say nothing here
IDLE = re.compile(r"^\s+(?:lifetime config:|limit: |expire |enc-mask |level ).*\n", re.M)


#: connection's children, in the order in which they are brought up
CHILDREN = ("net", "net6", "gw")


def connections(left, right, hw_offload="packet"):
    """Return the connections, as the left gateway has them.

    A tunnel in packet offload carries the family of its own addresses; so there are two.
    """
    psk = secrets.token_hex(32)
    return [
        Connection("ip4", left.address, right.address, [
            Child("net", left.site.net, right.site.net, "tunnel", hw_offload),
            Child("gw", "dynamic", "dynamic", "transport", hw_offload)], psk),
        Connection("ip6", left.address6, right.address6, [
            Child("net6", left.site.net6, right.site.net6, "tunnel", hw_offload)], psk)]


def daemons(left, right):
    """Start charon on both gateways; return both."""
    wanted = connections(left, right)
    pair = [Charon(left.guest, wanted),
            Charon(right.guest, [connection.swapped() for connection in wanted])]
    at_once(Charon.start, *pair)
    return pair


def ping(run, target):
    """Ping with the marker inside; return what ping(8) printed."""
    return run(["ping", "-c", str(PINGS), "-i", "0.2", "-W", "2", "-p", MARKER.hex(), target])


def iperf(client, server, target, *words):
    """Return the Mbit/s of one TCP connection. client: runs a command; server: starts one."""
    listener = server(["iperf3", "-s", "-1", "--forceflush"])
    listener.wait_output("listening", 20)
    text = client(["iperf3", "-J", *words, "-c", target])
    listener.wait(20)
    return json.loads(text)["end"]["sum_received"]["bits_per_second"] / 1e6


def traffic(report, left, right):
    """Ping and iperf3, from host to host and from gateway to gateway."""

    def on_host(command):
        return left.site.run(command, check=True).stdout

    for name, target, server, client in (
            ("host to host, tunnel", right.site.host, right.site.start, on_host),
            ("host to host, tunnel, IPv6", right.site.host6, None, on_host),
            ("gateway to gateway, transport", right.address, right.guest.start, left.run)):
        summary = ping(client, target).strip().splitlines()[-2]
        report.say(f"{name}: {summary}")
        report.check(" 0% packet loss" in summary, f"{name}: no ping is lost")
        if server:
            rate = iperf(client, server, target, "-t", "2", "-b", f"{MOST}M")
            report.say(f"{name}: iperf3 {rate:.0f} Mbit/s (captured; at most {MOST})")
            report.check(rate > 1, f"{name}: TCP runs")


def show(report, gateway):
    """Print SAs and policies of a gateway, without keys."""
    states_text = gateway.run("ip -s xfrm state list nokeys")
    report.show(f"{gateway.name}: ip -s xfrm state list nokeys (limits left out)",
                IDLE.sub("", states_text))
    policies = re.split(r"^(?=src )", gateway.run("ip xfrm policy list nosock"), flags=re.M)
    bypass = [text for text in policies if " proto udp " in text and "tmpl" not in text]
    offloaded = sum("mode packet" in text for text in bypass)
    report.show(f"{gateway.name}: ip xfrm policy list nosock",
                "".join(text for text in policies if text not in bypass)
                + f"and {len(bypass)} policies that let IKE pass, {offloaded} in packet offload")


def check(report, gateway):
    """Judge the SAs of a gateway; return them."""
    found = states(gateway.guest)
    kinds = sorted((sa.mode, ":" in sa.src, sa.direction) for sa in found)
    report.check(kinds == sorted((*kind, way) for way in ("in", "out") for kind in
                                 (("tunnel", False), ("tunnel", True), ("transport", False))),
                 f"{gateway.name}: SAs both ways of two tunnels and of transport mode")
    report.check(all(sa.offload == "packet" and sa.device == hosts.TUNNEL for sa in found),
                 f"{gateway.name}: all {len(found)} SAs are in packet offload on {hosts.TUNNEL}")
    report.check(all(sa.packets >= PINGS for sa in found),
                 f"{gateway.name}: the SAs count their packets")
    return found
