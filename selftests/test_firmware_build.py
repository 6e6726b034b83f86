# SPDX-License-Identifier: GPL-2.0-only
"""The card builds, and its unit tests pass, on the Debian of the lab's root. Needs no guest."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[1]
BUILD = Path(os.environ.get("BUILD", TOP / "build"))
SCRIPT = """
set -e
make -s -j2 -C firmware BUILD="$1" all tests
for test in "$1"/firmware/tests/*_test; do "$test"; done
"$1"/firmware/cordond --version
"""


@pytest.mark.limit(600)
def test_on_debian_13():
    build = BUILD / "trixie"
    build.mkdir(parents=True, exist_ok=True)
    lab = [sys.executable, TOP / "tools/lab/lab", "in-root", "--bind", build, "--"]
    done = subprocess.run([*lab, "sh", "-c", SCRIPT, "sh", build], cwd=TOP, capture_output=True, text=True, timeout=580,
                          check=False)
    out = done.stdout + done.stderr
    assert done.returncode == 0, out[-4000:]
    tests = len(list((TOP / "firmware/tests").glob("*_test.c")))
    assert out.count("[  PASSED  ]") == tests and "FAILED" not in out, out[-4000:]
