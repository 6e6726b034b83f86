# SPDX-License-Identifier: BSD-3-Clause
"""What goes into the root: the package list, resolved to names that the archive has."""

import hashlib
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from . import host, mirror
from .errors import LabError

LIST = Path(__file__).resolve().parents[1] / "packages.txt"
#: kernels that a root must hold
SERIES = ("6.12", "7.3")
#: settings of apt and dpkg inside the root
APT_OPTIONS = (
    f'APT::Default-Release "{mirror.RELEASE}-backports"',
    'APT::Install-Recommends "false"',
    'Acquire::Languages "none"',
)
DPKG_OPTIONS = (
    "path-exclude=/usr/share/doc/*",
    "path-exclude=/usr/share/man/*",
    "path-exclude=/usr/share/locale/*",
    "force-unsafe-io",
)
#: bump to make every root anew although the list is the same
VERSION = 1


def _entries():
    for line in LIST.read_text(encoding="utf-8").splitlines():
        name = line.partition("#")[0].strip()
        if name:
            yield name


def digest():
    """A short name for this recipe; the mirror and the day are no part of it."""
    parts = [str(VERSION), mirror.RELEASE, *APT_OPTIONS, *DPKG_OPTIONS, *_entries()]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:12]


def resolve(source_list):
    """The package names to install, with series such as linux-image-6.12.* made exact."""
    entries = list(_entries())
    known = None
    names = []
    for entry in entries:
        optional, entry = entry.startswith("?"), entry.lstrip("?")
        if "*" in entry:
            known = known or _archive_names(source_list)
            name = newest(entry, known)
        else:
            name = entry
        if name:
            names.append(name)
        elif not optional:
            raise LabError(f"the archive has no package that matches {entry}")
    return names


def newest(pattern, names):
    """The newest stock kernel package of a series, neither cloud nor realtime."""
    head, _, _ = pattern.partition("*")
    form = re.compile(re.escape(head) + r"[^-]+-amd64")
    found = [name for name in names if form.fullmatch(name)]
    return max(found, key=_version_key, default=None)


def _version_key(name):
    return [int(number) for number in re.findall(r"\d+", name)]


def _archive_names(source_list):
    """All package names of the archive, from an apt of our own beside the host's."""
    top = Path(tempfile.mkdtemp(prefix="apt-", dir=host.cache_dir()))
    try:
        for sub in ("etc/apt/preferences.d", "etc/apt/apt.conf.d", "var/lib/dpkg",
                    "var/lib/apt/lists/partial", "var/cache/apt/archives/partial"):
            (top / sub).mkdir(parents=True)
        (top / "var/lib/dpkg/status").touch()
        (top / "etc/apt/sources.list").write_text(source_list, encoding="utf-8")
        lines = [f'Dir "{top}";', f'Dir::State::status "{top}/var/lib/dpkg/status";',
                 'Acquire::Languages "none";', 'APT::Architecture "amd64";',
                 'APT::Sandbox::User "";']
        lines += [option + ";" for option in mirror.network_options()]
        conf = top / "apt.conf"
        conf.write_text("\n".join(lines) + "\n", encoding="utf-8")
        env = {"APT_CONFIG": str(conf), "PATH": "/usr/sbin:/usr/bin:/sbin:/bin"}
        got = subprocess.run(["apt-get", "-q", "update"], env=env, check=False, text=True,
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        if got.returncode or re.search(r"^(E|Err):?", got.stdout, re.MULTILINE):
            raise LabError("the archive's package lists can't be had:\n" + got.stdout[-2000:])
        out = subprocess.run(["apt-cache", "pkgnames", "linux-"], env=env, check=True,
                             capture_output=True, text=True).stdout
        return out.split()
    finally:
        shutil.rmtree(top, ignore_errors=True)
