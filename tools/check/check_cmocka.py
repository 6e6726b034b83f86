# SPDX-License-Identifier: BSD-3-Clause
"""pytest plugin: the firmware's unit tests (cmocka programs), one item for each test, plain and under ASan+UBSan."""

import os
import re
import subprocess
from pathlib import Path

import pytest

TAP_LINE = re.compile(r"^(ok|not ok) \d+ - (\w+)")
VARIANTS = {"plain": "firmware", "asan": "firmware-asan"}


def pytest_collect_file(parent, file_path):
    """NAME_test.c in firmware/tests stands for the programs that were built of it."""
    if file_path.name.endswith("_test.c") and file_path.parent.name == "tests":
        return CmockaFile.from_parent(parent, path=file_path)
    return None


class CmockaFile(pytest.File):
    """One source file, run once for each variant."""

    def collect(self):
        for variant, folder in VARIANTS.items():
            program = Path(os.environ["BUILD"], folder, "tests", self.path.stem)
            env = dict(os.environ, CMOCKA_MESSAGE_OUTPUT="TAP", UBSAN_OPTIONS="print_stacktrace=1")
            run = subprocess.run([program], env=env, capture_output=True, text=True, timeout=300, check=False)
            results = [m.groups() for m in map(TAP_LINE.match, run.stdout.splitlines()) if m]
            output = run.stdout + run.stderr
            for verdict, name in results:
                yield CmockaItem.from_parent(self, name=f"{name}[{variant}]", passed=verdict == "ok", output=output)
            if run.returncode and all(verdict == "ok" for verdict, _ in results):
                yield CmockaItem.from_parent(self, name=f"exit[{variant}]", passed=False,
                                             output=f"exit status {run.returncode}\n{output}")


class CmockaItem(pytest.Item):
    """One test of a program; it has run already."""

    def __init__(self, *, passed, output, **kwargs):
        super().__init__(**kwargs)
        self.passed = passed
        self.output = output

    def runtest(self):
        if not self.passed:
            raise AssertionError(self.output)

    def repr_failure(self, excinfo, style=None):
        return str(excinfo.value)

    def reportinfo(self):
        return self.path, 0, self.name
