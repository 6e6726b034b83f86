# SPDX-License-Identifier: BSD-3-Clause
"""Where this machine gets Debian from, asked of apt itself."""

import os
import re
import shlex
import subprocess
import tempfile
from pathlib import Path

from .errors import LabError
from .host import KEYRING

#: the release that the root is made of
RELEASE = "trixie"
DEBIAN_RELEASES = {
    "buster", "bullseye", "bookworm", "trixie", "forky", "duke", "sid",
    "oldoldstable", "oldstable", "stable", "testing", "unstable",
}
#: apt's settings that decide how an archive is reached
NETWORK_OPTIONS = re.compile(
    r'^Acquire::(http|https|ftp|tor|ForceIPv|Retries|Check-Valid|Max-ValidTime|'
    r'AllowInsecure|Proxy|proxy)\S* ".+";$', re.IGNORECASE)


class Mirror:
    """The archive and, where configured, the security archive."""

    def __init__(self, archive, security=None):
        self.archive = archive
        self.security = security

    def sources(self):
        """One-line apt sources of everything that the root is made of."""
        opts = f"[signed-by={KEYRING}]"
        lines = [f"deb {opts} {self.archive} {suite} main"
                 for suite in (RELEASE, f"{RELEASE}-updates", f"{RELEASE}-backports")]
        if self.security:
            lines.append(f"deb {opts} {self.security} {RELEASE}-security main")
        return "\n".join(lines) + "\n"


def find():
    """Return the Mirror of this machine; LAB_MIRROR overrides it."""
    if os.environ.get("LAB_MIRROR"):
        return Mirror(os.environ["LAB_MIRROR"], os.environ.get("LAB_MIRROR_SECURITY"))
    archive = security = None
    for uri, suite, component in _targets():
        name, _, kind = suite.partition("-")
        if component != "main" or name.split("/")[0] not in DEBIAN_RELEASES:
            continue
        if suite.endswith(("-security", "/updates")):
            security = security or uri
        elif kind in ("", "updates", "backports"):
            archive = archive or uri
    if not archive:
        raise LabError("apt's configuration names no Debian archive with a component main; "
                       "set LAB_MIRROR to the address of one")
    return Mirror(archive, security)


def _targets():
    """(archive, suite, component) of every package index that apt is configured for.

    apt is asked what it would fetch into an empty directory: so it tells all, whether or
    not it has fetched anything yet.
    """
    with tempfile.TemporaryDirectory(prefix="lab-apt-") as lists:
        Path(lists, "partial").mkdir()
        out = subprocess.run(
            ["apt-get", "update", "--print-uris", "-o", f"Dir::State::lists={lists}"],
            check=True, capture_output=True, text=True).stdout
    found = re.findall(r"^'(.+?)/dists/(.+?)/([^/']+)/binary-[^/']+/Packages", out, re.MULTILINE)
    return dict.fromkeys(found)


def network_options():
    """apt options, one a string, that carry this machine's proxies and logins."""
    out = subprocess.run(["apt-config", "dump", "Acquire"], check=True,
                         capture_output=True, text=True).stdout
    options = []
    for line in out.splitlines():
        if NETWORK_OPTIONS.match(line):
            name, value = shlex.split(line.rstrip(";"))
            options.append(f'{name} "{value}"')
    for name, path in (("netrc", "/etc/apt/auth.conf"), ("netrcparts", "/etc/apt/auth.conf.d")):
        readable = os.access(path, os.R_OK)
        if readable and (Path(path).is_file() or any(Path(path).iterdir())):
            options.append(f'Dir::Etc::{name} "{path}"')
    return options
