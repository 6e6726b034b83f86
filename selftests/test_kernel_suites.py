# SPDX-License-Identifier: GPL-2.0-only
"""The kernel's own selftests on the card, unmodified, run from either guest against the other one."""

import pytest
from cordonlab import Lab

from kernel import Kselftest, run
from kit import Host
from kit.host import DEV

#: programs, the seconds they may take, and what they report
SUITES = {
    "drivers/net/ping.py": (400, (
        "ping.test_default_v4", "ping.test_default_v6", "ping.test_xdp_generic_sb", "ping.test_xdp_generic_mb",
        "ping.test_xdp_native_sb", "ping.test_xdp_native_mb", "ping.test_xdp_offload")),
}
SIDES = ("left", "right")
#: one connection for all commands: in an emulated guest a new one takes a second
SSH_CONFIG = "\tControlMaster auto\n\tControlPath /run/ssh-%h\n\tControlPersist yes\n"


class Suites:
    """Two guests with the card and the selftests; each program runs once on each side."""

    def __init__(self, lab, kselftest):
        module = lab.module_in_guest("7.3")
        self.lab = lab
        self.hosts = [Host(vm, n + 1, module) for n, vm in enumerate(lab.vms)]
        for host in self.hosts:
            host.load()
        lab.enable_ssh()
        for vm in lab.vms:
            vm.run("cat >> /root/.ssh/config", stdin=SSH_CONFIG, check=True)
        self.directories = [kselftest.put(vm) for vm in lab.vms]
        self.reports = {}

    def report(self, program, side):
        """The cases of a program by name."""
        if (program, side) not in self.reports:
            self.reports[program, side] = self._run(program, SIDES.index(side))
        return self.reports[program, side]

    def _run(self, program, here):
        local, remote = self.hosts[here], self.hosts[1 - here]
        env = {
            "NETIF": DEV,
            "LOCAL_V4": local.v4, "LOCAL_V6": local.v6,
            "REMOTE_V4": remote.v4, "REMOTE_V6": remote.v6,
            "REMOTE_TYPE": "ssh", "REMOTE_ARGS": f"root@{remote.vm.name}",
        }
        cases = run(local.vm, self.directories[here], program, env, SUITES[program][0])
        self.lab.check()
        return cases


@pytest.fixture(scope="module")
def suites():
    """The guests, joined by a network beside the card for ssh."""
    kselftest = Kselftest()
    with Lab(kernel="7.3", vms=2, ports=1, management=True, name="kselftest") as lab:
        yield Suites(lab, kselftest)


RUNS = [(program, side) for program in SUITES for side in SIDES]
CASES = [(*where, name) for where in RUNS for name in SUITES[where[0]][1]]


@pytest.mark.limit(900)
@pytest.mark.parametrize("program, side, name", CASES, ids=[f"{side}-{name}" for _, side, name in CASES])
def test_case(suites, program, side, name):
    case = suites.report(program, side)[name]
    if case.verdict in ("skip", "xfail"):
        pytest.skip(f"{name}: {case.reason}")
    assert case.verdict == "pass", case.detail


@pytest.mark.limit(900)
@pytest.mark.parametrize("program, side", RUNS, ids=[f"{side}-{program}" for program, side in RUNS])
def test_no_other_cases(suites, program, side):
    assert sorted(suites.report(program, side)) == sorted(SUITES[program][1])
