# SPDX-License-Identifier: BSD-3-Clause
"""The parts of the lab that need neither root nor guests."""

import pytest

from cordonlab import LabError, console, initrd, mirror, recipe
from cordonlab.card import Cordond, make_ports
from cordonlab.console import Console
from cordonlab.errors import GuestFailed

ONE_LINE = """
deb https://other.invalid/cloud sdk-bookworm main
deb [arch=amd64] http://mirror.invalid/debian bookworm main contrib
deb http://mirror.invalid/security bookworm-security main
"""
DEB822 = """
Types: deb deb-src
URIs: http://mirror.invalid/debian
Suites: trixie trixie-updates
Components: main non-free-firmware

Types: deb
URIs: http://mirror.invalid/security
Suites: trixie-security
Components: main
"""


@pytest.mark.parametrize("name,text", [("a.list", ONE_LINE), ("b.sources", DEB822)])
def test_mirror_is_found_in_both_formats(tmp_path, monkeypatch, name, text):
    parts = tmp_path / "sources.list.d"
    parts.mkdir()
    (parts / name).write_text(text)
    conf = tmp_path / "apt.conf"
    conf.write_text(f'Dir::Etc::sourcelist "/dev/null"; Dir::Etc::sourceparts "{parts}";'
                    'APT::Architecture "amd64"; Acquire::http::Proxy "http://proxy.invalid:1";')
    monkeypatch.setenv("APT_CONFIG", str(conf))
    monkeypatch.delenv("LAB_MIRROR", raising=False)
    found = mirror.find()
    assert found.archive.rstrip("/") == "http://mirror.invalid/debian"
    assert found.security.rstrip("/") == "http://mirror.invalid/security"
    assert "trixie-backports main" in found.sources()
    assert 'Acquire::http::Proxy "http://proxy.invalid:1"' in mirror.network_options()


def test_no_debian_archive_is_said(tmp_path, monkeypatch):
    parts = tmp_path / "sources.list.d"
    parts.mkdir()
    (parts / "a.list").write_text("deb http://other.invalid/cloud sdk main\n")
    conf = tmp_path / "apt.conf"
    conf.write_text(f'Dir::Etc::sourcelist "/dev/null"; Dir::Etc::sourceparts "{parts}";')
    monkeypatch.setenv("APT_CONFIG", str(conf))
    monkeypatch.delenv("LAB_MIRROR", raising=False)
    with pytest.raises(LabError, match="LAB_MIRROR"):
        mirror.find()


def test_newest_kernel_is_stock_and_by_number():
    names = ["linux-image-7.3.9+deb13-amd64", "linux-image-7.3.10+deb13-amd64",
             "linux-image-7.3.11+deb13-cloud-amd64", "linux-image-7.3.12+deb13-rt-amd64",
             "linux-image-7.30.1+deb13-amd64", "linux-image-7.3.10+deb13-amd64-dbg"]
    assert recipe.newest("linux-image-7.3.*", names) == "linux-image-7.3.10+deb13-amd64"
    assert recipe.newest("linux-image-6.12.*", names) is None


@pytest.mark.parametrize("counts,wiring,wires", [
    ([1, 1], "back2back", ["p1", "p0"]),
    ([2, 2], "back2back", ["p2", "p3", "p0", "p1"]),
    ([1, 1, 1, 1], "back2back", ["p1", "p0", "p3", "p2"]),
    ([4], "loop", ["p1", "p0", "p3", "p2"]),
    ([1, 2, 1], "chain", ["p1", "p0", "p3", "p2"]),
    ([1, 1, 1], "chain", ["p1", "p2", "p1"]),
    ([2], [((0, 0), "tap:t0")], ["tap:t0", "none"]),
])
def test_wiring(tmp_path, counts, wiring, wires):
    if counts == [1, 1, 1]:
        with pytest.raises(LabError, match="twice"):
            make_ports(counts, wiring, tmp_path)
        return
    assert [port.wire for port in make_ports(counts, wiring, tmp_path)] == wires


@pytest.mark.parametrize("wiring", ["star", [((0, 0), (1, 0))]])
def test_wiring_that_cannot_be(tmp_path, wiring):
    with pytest.raises(LabError):
        make_ports([1], wiring, tmp_path)


def test_cordond_command_line(tmp_path):
    ports = make_ports([1, 1], "back2back", tmp_path, {"p1": tmp_path / "p1.pcapng"})
    argv = Cordond("/sbin/cordond", ports, tmp_path / "log", ["--verbose"]).argv()
    assert argv == ["/sbin/cordond", "--port", f"name=p0,socket={tmp_path}/p0.sock,wire=p1",
                    "--port", f"name=p1,socket={tmp_path}/p1.sock,wire=p0",
                    "--capture", f"p1={tmp_path}/p1.pcapng", "--verbose"]


@pytest.mark.parametrize("line", [
    "WARNING: CPU: 0 PID: 1 at net/core/dev.c:1", "BUG: sleeping function called",
    "Oops: general protection fault", "INFO: task x:1 blocked for more than 120 seconds.",
    "rcu: INFO: rcu_preempt self-detected stall on CPU", "Kernel panic - not syncing",
    "WARNING: possible circular locking dependency detected", "Call Trace:",
    "NETDEV WATCHDOG: eth0 (cordon): transmit queue 0 timed out",
])
def test_console_trouble(tmp_path, line):
    log = tmp_path / "console.log"
    watch = Console("vm0", log)
    log.write_text("[    0.1] all is well\n")
    watch.check()
    with open(log, "a", encoding="utf-8") as file:
        file.write(f"[    1.0] {line}\n")
    with pytest.raises(GuestFailed, match="console.log"):
        watch.check()
    watch.expect(".*")
    watch.check()


@pytest.mark.parametrize("line", [
    "virtio_net virtio4 mgmt0: renamed from eth0", "tsc: Unable to calibrate against PIT",
    "kfence: initialized", "DMA-API: preallocated 65536 debug entries",
    "mtrr: your CPUs had inconsistent fixed MTRR settings", "debug: no warning here",
])
def test_console_noise(line):
    assert not console.TROUBLE.search(line)


def test_modules_come_after_what_they_need(tmp_path):
    (tmp_path / "modules.dep").write_text(
        "fs/9p.ko.xz: net/9pnet.ko.xz fs/netfs.ko.xz\nnet/9pnet.ko.xz: fs/netfs.ko.xz\n"
        "fs/netfs.ko.xz:\nother.ko.xz:\n")
    assert initrd.module_order(tmp_path, ("9p", "built_in")) == [
        "fs/netfs.ko.xz", "net/9pnet.ko.xz", "fs/9p.ko.xz"]
