# SPDX-License-Identifier: BSD-3-Clause
"""The driver, built in the root for one of its kernels."""

import os
from pathlib import Path

from . import host
from .errors import LabError


def build_dir(build=None):
    """The build directory: an argument, $BUILD, or "build" in the checkout."""
    return Path(build or os.environ.get("BUILD") or host.tree() / "build").resolve()


def path(series, build=None):
    """Where the module for a kernel series is, or will be."""
    return build_dir(build) / f"modules-{series}" / "cordon.ko"


def in_guest(build, series):
    """The same, as a guest sees it; it must have been built."""
    here = path(series, build)
    if not here.exists():
        raise LabError(f"there is no {here}; build it: lab module {series}")
    return f"/build/{here.relative_to(build_dir(build))}"


def make(root, series, build=None, options=(), timeout=900):
    """Build the driver with the root's compiler; output goes to the terminal.

    options: more words for make, such as W=1.
    """
    kernels = root.kernels(bootable=False)
    if series not in kernels:
        raise LabError(f"the root has no headers of {series}; there are: " + ", ".join(kernels))
    target = path(series, build).parent
    target.mkdir(parents=True, exist_ok=True)
    done = root.run([host.tree() / "drivers/build.sh", kernels[series].headers, target,
                     *options],
                    binds=[build_dir(build)], timeout=timeout, echo=True)
    if not done.ok:
        raise LabError(f"the driver can't be built for {kernels[series].release}, "
                       f"status {done.status}")
    return path(series, build)
