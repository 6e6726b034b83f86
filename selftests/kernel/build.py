# SPDX-License-Identifier: GPL-2.0-only
"""Builds the kernel's selftests once and keeps them in the cache."""

import hashlib
import re
import shutil
from pathlib import Path

from cordonlab import LabError, Root, host

SERIES = "7.3"
#: directories below tools/testing/selftests
TARGETS = ("net/lib", "drivers/net", "drivers/net/hw")
SCRIPT = Path(__file__).with_name("build.sh")


def source_version(root):
    """Return the version of the root's kernel source package."""
    status = (root.path / "var/lib/dpkg/status").read_text(encoding="utf-8")
    found = re.search(rf"^Package: linux-source-{re.escape(SERIES)}\n(?:.+\n)*?Version: (\S+)$", status, re.M)
    if not found:
        raise LabError(f"the root has no linux-source-{SERIES}")
    return found.group(1)


class Kselftest:
    """The installed selftests as a tar archive; built when the cache has none of this recipe."""

    def __init__(self, root=None):
        self.root = root or Root()
        version = source_version(self.root)
        recipe = hashlib.sha256(SCRIPT.read_bytes() + " ".join((self.root.path.name, *TARGETS)).encode())
        self.path = host.cache_dir() / f"kselftest-{version}-{recipe.hexdigest()[:12]}"
        self.archive = self.path / "kselftest.tar"
        if not self.archive.exists():
            self._make()

    def _make(self):
        """Only a whole build gets the final name: what an interrupted one left is thrown away."""
        with host.locked(self.path.with_name(self.path.name + ".lock")):
            if self.archive.exists():
                return
            host.say(f"building the kernel's selftests ({' '.join(TARGETS)})")
            part = self.path.with_name(self.path.name + ".part")
            for old in (part, self.path):
                shutil.rmtree(old, ignore_errors=True)
            part.mkdir()
            tarball = f"/usr/src/linux-source-{SERIES}.tar.xz"
            done = self.root.run([SCRIPT, tarball, part, *TARGETS], binds=[part], timeout=900)
            (part / "build.log").write_text(done.output, encoding="utf-8")
            if not done.ok:
                raise LabError(f"the kernel's selftests don't build; log: {part}/build.log\n{done.output[-2000:]}")
            part.rename(self.path)

    def put(self, guest, target="/root/kselftest"):
        """Unpack the selftests in a guest and return the directory."""
        guest.put(self.archive, "/tmp/kselftest.tar")
        guest.run(f"mkdir -p {target} && tar -xf /tmp/kselftest.tar -C {target} && rm /tmp/kselftest.tar", check=True)
        return target
