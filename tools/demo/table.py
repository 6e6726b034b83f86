# SPDX-License-Identifier: BSD-3-Clause
"""TCP between the gateways over the second port: plain, and with IPsec done in three places."""

import secrets

import hosts
import tunnel

SECONDS = 3
#: request id of the SAs and priority of the policies, by which they are deleted again
MARK = 8
ROWS = (("plain", None), ("software IPsec", ""), ("crypto offload", "crypto"),
        ("packet offload", "packet"))
HEAD = f"{'':<16}{'Mbit/s':>8}{'sender CPU':>13}{'receiver CPU':>15}{'CPU ms/MB':>12}"


def associations(left, right, offload):
    """Return both gateways' lines for `ip -batch` that protect what goes between them."""
    lines = {left: [], right: []}
    for spi, (src, dst) in enumerate(((left, right), (right, left)), 0x1000):
        key = secrets.token_hex(20)
        ends = f"src {src.measured} dst {dst.measured}"
        for gateway, way in ((src, "out"), (dst, "in")):
            window = "replay-window 32 " if way == "in" else ""
            on_sa = f" offload {offload} dev {hosts.MEASURED} dir {way}" if offload else ""
            on_policy = f" offload packet dev {hosts.MEASURED}" if offload == "packet" else ""
            lines[gateway] += [
                f"xfrm state add {ends} proto esp spi {spi:#x} reqid {MARK} mode transport "
                f"{window}aead rfc4106(gcm(aes)) 0x{key} 128{on_sa}",
                f"xfrm policy add {ends} dir {way} priority {MARK}{on_policy} "
                f"tmpl {ends} proto esp reqid {MARK} mode transport"]
    return lines


def busy(gateway):
    """Return the jiffies that the gateway's processors were busy, and all of them."""
    fields = [int(word) for word in gateway.run(["head", "-n1", "/proc/stat"]).split()[1:9]]
    return sum(fields) - fields[3] - fields[4], sum(fields)


def measure(left, right):
    """Return the Mbit/s from left to right, and the busy shares of both."""
    before = [busy(gateway) for gateway in (left, right)]
    rate = tunnel.iperf(left.run, right.guest.start, right.measured, "-t", str(SECONDS))
    after = [busy(gateway) for gateway in (left, right)]
    shares = [(new[0] - old[0]) / max(1, new[1] - old[1])
              for old, new in zip(before, after, strict=True)]
    jiffies = sum(new[0] - old[0] for old, new in zip(before, after, strict=True))
    return rate, shares, jiffies * 10 / max(0.001, rate * SECONDS / 8)


def row(left, right, offload):
    """Measure with SAs that are there for this one row."""
    gateways = (left, right)
    if offload is None:
        return measure(left, right)
    lines = associations(left, right, offload)
    try:
        for gateway in gateways:
            gateway.run(["ip", "-batch", "-"], stdin="\n".join(lines[gateway]) + "\n")
        return measure(left, right)
    finally:
        for gateway in gateways:
            gateway.run(f"ip xfrm state deleteall reqid {MARK} && "
                        f"ip xfrm policy deleteall priority {MARK}")


def show(report, left, right):
    """Print the table."""
    lines = [HEAD]
    for name, offload in ROWS:
        rate, (sender, receiver), cost = row(left, right, offload)
        report.say(f"{name}: {rate:.0f} Mbit/s")
        report.check(rate > 1, f"{name}: TCP runs")
        lines.append(f"{name:<16}{rate:8.0f}{sender:12.0%} {receiver:14.0%} {cost:11.2f}")
    report.show(f"one TCP connection for {SECONDS} s; CPU of each guest as a share of all its "
                "processors", "\n".join(lines))
