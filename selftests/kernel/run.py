# SPDX-License-Identifier: GPL-2.0-only
"""Runs one of the kernel's selftests in a guest and reads its report."""

import re
from pathlib import PurePosixPath
from typing import NamedTuple

PLAN = re.compile(r"^1\.\.(\d+)", re.M)
LINE = re.compile(r"^(ok|not ok) \d+ (?:- )?(\S+)(?:[ \t]+# ?(\w+) ?(.*))?$", re.M)
#: a program's exit status when all of it was skipped
ALL_SKIPPED = 4


class Failed(Exception):
    """A program ended without a whole report."""


class Case(NamedTuple):
    """One line of a report. verdict: "pass", "fail", "skip" or "xfail"."""

    name: str
    verdict: str
    reason: str
    detail: str


def parse(text):
    """Return the cases of a TAP report by name; what a case printed comes before its line."""
    cases, start = {}, 0
    for found in LINE.finditer(text):
        result, name, directive, reason = found.groups()
        verdict = "pass" if result == "ok" else "fail"
        if directive in ("SKIP", "XFAIL"):
            verdict = directive.lower()
        cases[name] = Case(name, verdict, reason or "", text[start:found.start()])
        start = found.end() + 1
    return cases


def run(guest, directory, program, env, timeout):
    """Run a program such as "drivers/net/ping.py" and return its cases by name."""
    where = PurePosixPath(directory, program)
    done = guest.run([f"./{where.name}"], cwd=where.parent, env=env, timeout=timeout)
    cases = parse(done.stdout)
    plan = PLAN.search(done.stdout)
    if done.status not in (0, 1, ALL_SKIPPED) or not plan or int(plan.group(1)) != len(cases):
        raise Failed(f"{program}: exit status {done.status}, {len(cases)} cases\n{done.output[-4000:]}")
    if done.status == 1 and all(case.verdict != "fail" for case in cases.values()):
        raise Failed(f"{program}: exit status 1 although no case failed\n{done.output[-4000:]}")
    return cases
