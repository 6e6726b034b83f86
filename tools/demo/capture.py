# SPDX-License-Identifier: BSD-3-Clause
"""The wire between the gateways, as the card captured it, read with tshark."""

import mmap
import os
from collections import Counter

import hosts
from tunnel import MARKER

#: what is no clear text although it isn't encrypted: kind of frame by its topmost protocol
KINDS = {"esp": "ESP", "isakmp": "IKE", "arp": "ARP"}
#: ICMPv6 by which neighbours and routers find each other
NEIGHBOUR = {*range(130, 138), 143}
CLEAR = "clear text"
#: AES-GCM with a whole ICV, as tshark calls it
SUITE = "AES-GCM with 16 octet ICV [RFC4106]"


def kind_of(protocols, icmpv6):
    """Return the kind of a frame; protocols: as in "eth:ethertype:ip:esp"."""
    last = protocols.rpartition(":")[2]
    if last == "icmpv6" and int(icmpv6) in NEIGHBOUR:
        return "IPv6 neighbours"
    return KINDS.get(last, CLEAR)


class Capture:
    """The capture of the port that carries the tunnels."""

    def __init__(self, lab):
        self.lab = lab
        self.file = lab.capture_file(hosts.CAPTURED)
        self._config = lab.directory / "wireshark"

    def tshark(self, *words, decrypt=False):
        """Return what tshark prints of the capture."""
        if decrypt:
            words = ("-o", "esp.enable_encryption_decode:TRUE", *words)
        return self.lab.root.run(["tshark", "-n", "-r", self.file, *words],
                                 binds=[self.lab.logs, self.lab.directory], check=True,
                                 env={"WIRESHARK_CONFIG_DIR": str(self._config)}).stdout

    def write_keys(self, sas):
        """Give tshark the keys of SAs, in a file that goes when the lab goes."""
        self._config.mkdir(mode=0o700, exist_ok=True)
        rows = {(sa.src, sa.dst, sa.spi): sa.key for sa in sas}
        with open(self._config / "esp_sa", "w", encoding="ascii",
                  opener=lambda path, flags: os.open(path, flags, 0o600)) as file:
            for (src, dst, spi), key in rows.items():
                family = "IPv6" if ":" in src else "IPv4"
                file.write(f'"{family}","{src}","{dst}","{spi}","{SUITE}","0x{key}",'
                           '"NULL","","32-bit",""\n')

    def survey(self):
        """Return the number of frames of each kind, and tshark's hierarchy of protocols."""
        text = self.tshark("-T", "fields", "-e", "frame.protocols", "-e", "icmpv6.type",
                           "-z", "io,phs")
        frames, line, hierarchy = text.partition("\n====")
        found = Counter(dict.fromkeys((*KINDS.values(), CLEAR), 0))
        found.update(kind_of(*frame.split("\t")) for frame in frames.splitlines() if frame)
        return found, line.strip() + hierarchy

    def holds(self, text):
        """Tell whether bytes are anywhere in the file."""
        with open(self.file, "rb") as file, \
                mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            return data.find(text) >= 0


def show(report, capture):
    """Print and judge the wire as it is."""
    counts, hierarchy = capture.survey()
    report.show("wire: tshark -z io,phs", hierarchy)
    report.show("wire: some ESP frames", "\n".join(
        capture.tshark("-Y", "esp", "-c", "60").splitlines()[:6]))
    report.show("wire: frames of each kind",
                "\n".join(f"{kind:<16}{number:>8}" for kind, number in counts.items()))
    report.check(counts["ESP"] > 100, "there is ESP on the wire")
    report.check(counts["IKE"] >= 10, "there is IKE on the wire")
    report.check(counts[CLEAR] == 0, "there are no clear frames on the wire")
    report.check(not capture.holds(MARKER), "the text inside the pings is nowhere in the capture")


def show_decrypted(report, capture, sas):
    """Print a little of the same capture, decrypted."""
    capture.write_keys(sas)
    lines = capture.tshark("-Y", "esp && (icmp || tcp)", "-c", "400", decrypt=True).splitlines()
    report.show("the same capture, decrypted with the keys of the SAs (some frames)", "\n".join(
        line[:140] for word in (" ICMP ", " TCP ")
        for line in [line for line in lines if word in line][:4]))
    found = capture.tshark("-Y", f'esp && data.data contains "{MARKER.decode()}"', "-c", "400",
                           "-T", "fields", "-e", "ip.src", decrypt=True).splitlines()
    report.check(found, f"{len(found)} decrypted frames hold the text inside the pings")
