# SPDX-License-Identifier: BSD-3-Clause
"""The initrd of a guest: busybox, the modules that reach the root, and our files."""

import hashlib
import lzma
import os
from pathlib import Path

from . import host
from .errors import LabError

FILES = Path(__file__).resolve().parent / "guestfiles"
#: what is needed to mount the root, if the kernel has it as modules
MODULES = ("virtio_pci", "9p", "9pnet_virtio", "overlay", "virtio_console", "virtio_rng")
#: bump when the layout changes
VERSION = 1


class Cpio:
    """A cpio archive in the "newc" format, written front to back."""

    def __init__(self):
        self.data = bytearray()
        self.inode = 0

    def add(self, name, mode, body=b"", rdev=(0, 0)):
        self.inode += 1
        name = name.encode() + b"\0"
        fields = (self.inode, mode, 0, 0, 1, 0, len(body), 0, 0, *rdev, len(name), 0)
        self.data += b"070701" + b"".join(b"%08X" % field for field in fields) + name
        self._pad()
        self.data += body
        self._pad()

    def _pad(self):
        self.data += bytes(-len(self.data) % 4)

    def directory(self, name):
        self.add(name, 0o040755)

    def file(self, name, body, mode=0o644):
        self.add(name, 0o100000 | mode, body)

    def symlink(self, name, target):
        self.add(name, 0o120777, target.encode())

    def device(self, name, major, minor):
        self.add(name, 0o020600, rdev=(major, minor))

    def finish(self):
        self.add("TRAILER!!!", 0)
        return bytes(self.data)


def module_order(modules_dir, wanted=MODULES):
    """The files of the wanted modules, each after those that it depends on."""
    depends = {}
    for line in (modules_dir / "modules.dep").read_text(encoding="ascii").splitlines():
        path, _, rest = line.partition(":")
        depends[path] = rest.split()
    names = {Path(path).name.split(".")[0].replace("-", "_"): path for path in depends}
    order = []

    def visit(path):
        if path not in order:
            for needed in depends[path]:
                visit(needed)
            order.append(path)

    for name in wanted:
        if name in names:
            visit(names[name])
    return order


def _module_body(path):
    data = path.read_bytes()
    if path.suffix == ".xz":
        return lzma.decompress(data)
    if path.suffix == ".ko":
        return data
    raise LabError(f"a module is packed in a way that the lab doesn't know: {path}")


def _build(root, kernel):
    modules = root.path / kernel.modules.lstrip("/")
    cpio = Cpio()
    for name in ("bin", "dev", "modules"):
        cpio.directory(name)
    cpio.device("dev/console", 5, 1)
    cpio.file("bin/busybox", (root.path / "bin/busybox").read_bytes(), 0o755)
    order = []
    for path in module_order(modules):
        name = Path(path).name.split(".")[0] + ".ko"
        cpio.file(f"modules/{name}", _module_body(modules / path))
        order.append(name)
    cpio.file("modules/order", "\n".join(order).encode() + b"\n")
    for name in ("init", "start", "agent.py"):
        cpio.file(name, (FILES / name).read_bytes(), 0o755)
    return cpio.finish()


def get(root, kernel):
    """Return the path of the initrd for a kernel of the root; made when it is new."""
    mix = hashlib.sha256(f"{VERSION} {root.path.name} {kernel.release} {MODULES}".encode())
    for file in sorted(FILES.iterdir()):
        mix.update(file.read_bytes())
    path = host.cache_dir() / f"initrd-{kernel.release}-{mix.hexdigest()[:12]}"
    if not path.exists():
        part = path.with_name(f"{path.name}.{os.getpid()}")
        part.write_bytes(_build(root, kernel))
        part.rename(path)
    return path
