#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Prints a compile_commands.json of the firmware, from what make would run."""

import json
import shlex
import subprocess
import sys
from pathlib import Path


def main():
    tree = Path(sys.argv[1])
    dry = subprocess.run(["make", "-C", tree / "firmware", "-nB", "V=1", "CC=clang", "BUILD=/nonexistent", "all"],
                         check=True, capture_output=True, text=True)
    commands = []
    for line in dry.stdout.replace("\\\n", " ").splitlines():
        words = shlex.split(line)
        sources = [word for word in words if word.endswith(".c")]
        if words and words[0] == "clang" and len(sources) == 1:
            commands.append({"directory": str(tree / "firmware"), "file": sources[0], "arguments": words})
    json.dump(commands, sys.stdout, indent=1)


if __name__ == "__main__":
    main()
