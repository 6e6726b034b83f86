# SPDX-License-Identifier: GPL-2.0-only
"""Two guests whose ports are wired together."""

from cordonlab import Lab

from .host import Host
from .wire import Wire


class Pair:
    """A context manager: boots the guests and loads the driver in both."""

    def __init__(self, kernel, **lab):
        self.kernel = kernel
        self.lab = Lab(kernel=kernel, vms=2, ports=1, capture=True, name=f"pair-{kernel}", **lab)
        self.left = self.right = self.wire = None

    def __enter__(self):
        self.lab.__enter__()
        try:
            module = self.lab.module_in_guest(self.kernel)
            self.left, self.right = (Host(vm, n + 1, module) for n, vm in enumerate(self.lab.vms))
            self.left.load()
            self.right.load()
            self.wire = Wire(self.lab.capture_file("p0"))
            for family in (4, 6):
                # The first packets wait for neighbours, and for a machine that is busy with booting.
                self.left.ping(self.right.address(family), count=3, check=False)
        except BaseException:
            self.lab.stop(keep=True)
            raise
        return self

    def __exit__(self, *error):
        return self.lab.__exit__(*error)

    def hosts(self):
        """Both ends."""
        return self.left, self.right
