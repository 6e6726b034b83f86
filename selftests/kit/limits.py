# SPDX-License-Identifier: GPL-2.0-only
"""What a card publishes in debugfs of the SAs that it takes."""

import re
from dataclasses import dataclass

LIMITS = "/sys/kernel/debug/cordon/*/ipsec_limits"


def _bits(text):
    """Lengths of a list like "8-512" or "128 192"."""
    out = set()
    for word in text.split():
        first, _, last = word.partition("-")
        out |= set(range(int(first), int(last or first) + 1, 8))
    return out


@dataclass
class Limits:
    """algorithms: (kind, name) to the set of lengths of keys and of ICVs, in bits. others: words of the other lines."""

    algorithms: dict
    others: dict

    @classmethod
    def read(cls, host):
        """Those of a host's card."""
        host.run("mountpoint -q /sys/kernel/debug || mount -t debugfs none /sys/kernel/debug")
        algorithms, others = {}, {}
        for line in host.run(f"cat {LIMITS}").stdout.splitlines():
            found = re.fullmatch(r"(aead|enc|auth) (\S+): key ([\d -]+?)(?: icv ([\d -]+))?", line)
            if found:
                algorithms[found[1], found[2]] = _bits(found[3]), _bits(found[4] or "")
            else:
                name, value = line.split(":")
                others[name] = value.split()
        return cls(algorithms, others)

    def has_algorithm(self, kind, name, key, icv=None):
        """Is an algorithm there, with a key and an ICV of so many bits? icv: None for one that makes none."""
        keys, icvs = self.algorithms.get((kind, name), (set(), set()))
        return key in keys and (icv is None or icv in icvs)

    def has_suite(self, suite):
        """Is a suite there?"""
        key = suite.key + 8 * suite.salt
        if not suite.auth:
            return self.has_algorithm("aead", suite.cipher, key, suite.icv)
        return (self.has_algorithm("enc", suite.cipher, key) and
                self.has_algorithm("auth", suite.auth, suite.auth_key, suite.icv))

    @property
    def window(self):
        """Greatest replay window."""
        return int(self.others["replay-window"][0].split("-")[1])
