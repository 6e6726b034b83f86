# SPDX-License-Identifier: GPL-2.0-only
"""ESP suites: what the card has works against the kernel's software, all else is refused by name."""

import itertools
import re

import pytest

from kit import SUITES, Suite, Tunnel
from kit.host import DEV
from kit.limits import Limits
from kit.suite import AEADS, AUTHS, CIPHERS, make_bytes

OFFLOADS = ("crypto", "packet")
#: around the blocks of the ciphers
SIZES = (0, 3, 5, 6, 7, 15, 22, 80, 1300)


def is_for_traffic(suite):
    """Lengths of keys and authentications are independent: not each with each."""
    return not suite.auth or suite.key <= 128 or suite.name.endswith("sha256-128")


TRAFFIC = [name for name, suite in SUITES.items() if is_for_traffic(suite)]
#: one of each cipher, and each authentication once
CORE = ("gcm192-96", "gmac128-128", "ccm256-64", "chacha20", "cbc256-sha256-128", "cbc128-sha1-96", "ctr128-sha512-256",
        "ctr128-xcbc-96", "null-sha384-192", "null-cmac-96", "cbc128-sha256-96")
TUNNELS = ("gcm192-64", "gmac256-128", "ccm128-96", "chacha20", "cbc192-sha256-128", "ctr256-sha256-128", "null-sha1-96")
MODES = [("tunnel", 4, 4), ("tunnel", 6, 6), ("transport", 6, 6)]
#: each suite in one of the modes
PLACES = [(name, *MODES[n % len(MODES)]) for n, name in enumerate(TUNNELS)]
BOTH_ENDS = ("ccm192-128", "chacha20", "cbc128-sha512-256", "ctr192-sha256-128", "null-xcbc-96")


class Watch:
    """What hosts and wire saw of a tunnel's traffic: the card did it, and nothing went wrong."""

    def __init__(self, pair, hosts):
        self.pair = pair
        self.hosts = hosts
        self.before = [host.stats() for host in hosts]
        self.errors = [host.xfrm_stat() for host in pair.hosts()]

    def check(self, offload, least):
        """Every SA is offloaded, the cards encrypted and decrypted at least so many packets."""
        for host, before in zip(self.hosts, self.before, strict=True):
            states = host.run("ip xfrm state").stdout
            assert states.count(f"mode {offload}") == 2, states
            now = host.stats()
            for name in ("port_tx_sa_packets", "port_rx_sa_packets"):
                assert now[name] >= before[name] + least, name
            for name in ("ipsec_rx_software", "ipsec_sa_refused"):
                assert now[name] == before[name], name
        assert [host.xfrm_stat() for host in self.pair.hosts()] == self.errors


def check_suite(pair, tunnel):
    """Packets of many lengths, both ways."""
    offload = tunnel.left_offload
    watch = Watch(pair, [host for host, mode in zip(pair.hosts(), (offload, tunnel.right_offload), strict=True) if mode])
    assert pair.left.ping_sizes(tunnel.target(pair.right), SIZES) == []
    watch.check(offload, len(SIZES))


@pytest.mark.parametrize("name", TRAFFIC)
@pytest.mark.parametrize("offload", OFFLOADS)
def test_suite(pair, offload, name):
    with Tunnel(pair.left, pair.right, left_offload=offload, sa={"suite": SUITES[name]}) as tunnel:
        check_suite(pair, tunnel)


@pytest.mark.core
@pytest.mark.parametrize("name", CORE)
@pytest.mark.parametrize("offload", OFFLOADS)
def test_suite_with_esn(pair, offload, name):
    sa = {"suite": SUITES[name], "esn": True, "window": 64}
    with Tunnel(pair.left, pair.right, left_offload=offload, sa=sa) as tunnel:
        check_suite(pair, tunnel)


@pytest.mark.limit(240)
@pytest.mark.parametrize("place", PLACES, ids=["-".join(map(str, place)) for place in PLACES])
@pytest.mark.parametrize("offload", OFFLOADS)
def test_suite_and_mode(pair, offload, place):
    """Tunnels, IPv6, TCP."""
    name, *mode = place
    mark = pair.wire.mark()
    with Tunnel(pair.left, pair.right, *mode, left_offload=offload, sa={"suite": SUITES[name]}) as tunnel:
        check_suite(pair, tunnel)
        pair.left.tcp(pair.right, tunnel.target(pair.right), 1 << 17)
    frames = pair.wire.since(mark)
    assert not [f for f in frames if f.is_clear()]
    numbers = [f.esp[:2] for f in frames if f.esp]
    assert len(numbers) > 60 and len(set(numbers)) == len(numbers)


@pytest.mark.parametrize("name", BOTH_ENDS)
@pytest.mark.parametrize("offload", OFFLOADS)
def test_both_ends(pair, offload, name):
    sa = {"suite": SUITES[name]}
    with Tunnel(pair.left, pair.right, left_offload=offload, right_offload=offload, sa=sa) as tunnel:
        check_suite(pair, tunnel)


@pytest.mark.core
@pytest.mark.parametrize("offload", OFFLOADS)
def test_cbc_ivs_cant_be_foreseen(pair, offload):
    """RFC 3602 3: no counter, nothing that stays, nothing that comes again."""
    mark = pair.wire.mark()
    with Tunnel(pair.left, pair.right, left_offload=offload, sa={"suite": SUITES["cbc128-sha1-96"]}) as tunnel:
        pair.left.ping(tunnel.target(pair.right), count=100, options="-i 0.01")
        spi = tunnel.out.spi
    ivs = [f.l4[8:24] for f in pair.wire.since(mark) if f.esp and f.esp[0] == spi]
    assert len(ivs) >= 100 and len(set(ivs)) == len(ivs)
    # A byte that is random has one value in 100 of them with a probability of 256^-99.
    assert all(len(set(column)) > 1 for column in zip(*ivs, strict=True))
    steps = {int.from_bytes(after, "big") - int.from_bytes(before, "big") for before, after in zip(ivs, ivs[1:], strict=False)}
    assert len(steps) == len(ivs) - 1


def auth(name, key, icv):
    """Words of an authentication, with a cipher."""
    return f"auth-trunc '{name}' {make_bytes(key // 8)} {icv} enc 'cbc(aes)' {make_bytes(16)}"


def enc(name, key):
    """Words of a cipher, with an authentication."""
    return f"auth-trunc 'hmac(sha256)' {make_bytes(32)} 128 enc '{name}' {make_bytes(key // 8)}"


ENCS = "cbc ctr null"
DIGESTS = "sha1 sha256 sha384 sha512 xcbc cmac"
#: words, and what the driver says
REFUSED = {
    "3des": (enc("cbc(des3_ede)", 192), f"cbc(des3_ede) not supported, allowed: {ENCS}"),
    "camellia": (enc("cbc(camellia)", 128), f"cbc(camellia) not supported, allowed: {ENCS}"),
    "md5": (auth("hmac(md5)", 128, 96), f"hmac(md5) not supported, allowed: {DIGESTS}"),
    "no-digest": (auth("digest_null", 0, 0), f"digest_null not supported, allowed: {DIGESTS}"),
    "no-auth": (f"enc 'cbc(aes)' {make_bytes(16)}", f"auth missing, allowed: {DIGESTS}"),
    "sha256-64": (auth("hmac(sha256)", 256, 64), "sha256 ICV of 64 bits not supported, allowed: 96 128"),
    "sha1-100": (auth("hmac(sha1)", 160, 100), "sha1 ICV of 100 bits not supported, allowed: 96"),
    "sha512-512": (auth("hmac(sha512)", 512, 512), "sha512 ICV of 512 bits not supported, allowed: 256"),
    "cmac-128": (auth("cmac(aes)", 128, 128), "cmac ICV of 128 bits not supported, allowed: 96"),
}


def state(host, spi, words, offload, direction="out"):
    """Words of an SA of a host."""
    return (f"xfrm state add src {host.v4} dst 10.9.0.2 proto esp spi {spi:#x} reqid 1 mode transport {words} "
            f"offload {offload} dev {DEV} dir {direction}")


@pytest.mark.core
@pytest.mark.parametrize("name", REFUSED)
def test_refused_in_packet_mode(pair, name):
    words, text = REFUSED[name]
    result = pair.left.run("ip " + state(pair.left, 0x2000, words, "packet"), check=False)
    assert result.status != 0
    assert f"Error: cordon: {text}.\n" in result.stderr, result.stderr
    assert pair.left.run("ip xfrm state").stdout == ""


@pytest.mark.core
@pytest.mark.parametrize("name", REFUSED)
def test_software_in_crypto_mode(pair, name):
    words, text = REFUSED[name]
    result = pair.left.run("ip " + state(pair.left, 0x2000, words, "crypto"), check=False)
    assert result.status == 0, result.output
    assert f"cordon: {text}." in result.output, result.output
    states = pair.left.run("ip xfrm state").stdout
    assert "spi 0x00002000" in states and "offload" not in states


@pytest.mark.parametrize("suite", (Suite("3des", "cbc(des3_ede)", 192, 96, 0, "hmac(sha1)", 160),
                                   Suite("md5", "cbc(aes)", 128, 96, 0, "hmac(md5)", 128)), ids=lambda suite: suite.name)
def test_software_in_crypto_mode_passes_traffic(pair, suite):
    before = pair.left.stats()["port_tx_sa_packets"]
    with Tunnel(pair.left, pair.right, left_offload="crypto", sa={"suite": suite}) as tunnel:
        assert pair.left.ping_sizes(tunnel.target(pair.right), SIZES) == []
    assert pair.left.stats()["port_tx_sa_packets"] == before


@pytest.mark.core
def test_published_limits(pair):
    """As the card comes, it has it all."""
    limits = Limits.read(pair.left)
    algorithms, others = limits.algorithms, limits.others
    aes = {128, 192, 256}
    for _, name, salt, icvs in AEADS:
        assert algorithms.pop(("aead", name)) == ({n + 8 * salt for n in aes}, set(icvs))
    assert algorithms.pop(("aead", "rfc7539esp(chacha20,poly1305)")) == ({288}, {128})
    for _, name, salt, keys in CIPHERS:
        assert algorithms.pop(("enc", name)) == ({n + 8 * salt for n in keys}, set())
    for name in {name for _, name, _, _ in AUTHS}:
        keys, icvs = algorithms.pop(("auth", name))
        assert {key for _, other, key, _ in AUTHS if other == name} <= keys
        assert {icv for _, other, _, icv in AUTHS if other == name} == icvs
    assert not algorithms
    assert others["offloads"] == ["crypto", "packet"]
    assert {"transport", "tunnel"} <= set(others["modes"])
    assert others["families"] == ["IPv4", "IPv6"]
    assert others["replay-window"] == ["0-4096"]
    assert others["packet espinudp"] == ["IPv4", "IPv6"] and others["crypto espinudp"] == ["IPv4"]
    assert set(others["packet flags"]) - set(others["crypto flags"]) == {"oseq-may-wrap"}


def combinations():
    """(words, (kind, name, key, ICV) of what is tried) for every algorithm of the stack and lengths around what is right."""
    for name in [name for _, name, _, _ in AEADS] + ["rfc7539esp(chacha20,poly1305)"]:
        for key, icv in itertools.product((152, 160, 216, 224, 280, 288), (64, 96, 128)):
            yield f"aead '{name}' {make_bytes(key // 8)} {icv}", ("aead", name, key, icv)
    for name in [name for _, name, _, _ in CIPHERS] + [f"cbc({x})" for x in (
            "des3_ede", "camellia", "serpent", "twofish", "cast5", "blowfish", "sm4")]:
        for key in (0, 128, 160, 192, 224, 256, 288):
            yield enc(name, key), ("enc", name, key, None)
    for name in sorted({name for _, name, _, _ in AUTHS} | {"hmac(md5)", "hmac(rmd160)", "hmac(sm3)", "digest_null"}):
        lengths = {(key, icv) for _, _, key, icv in AUTHS} | {(key, 96) for key in (0, 8, 136, 520)}
        for key, icv in sorted(lengths | {(256, 64), (256, 100), (512, 128)}):
            yield auth(name, key, icv), ("auth", name, key, icv)


@pytest.mark.limit(300)
@pytest.mark.parametrize("offload", OFFLOADS)
def test_published_limits_are_what_happens(pair, offload):
    """Whatever algorithm and lengths: an SA is offloaded if and only if they are published."""
    limits = Limits.read(pair.left)
    tries = list(combinations())
    # Not one `ip -batch`: whatever -force says, it ends at the first SA that is refused.
    script = ["ip " + state(pair.left, 0x10000 + n, words, offload, ("in", "out")[n % 2]) for n, (words, _) in enumerate(tries)]
    pair.left.vm.write("/tmp/combinations", "\n".join(script) + "\n")
    pair.left.run("sh /tmp/combinations >/dev/null 2>&1", timeout=240, check=False)
    states = pair.left.run("ip xfrm state").stdout.split("\nsrc ")
    taken = {int(re.search(r"spi (0x\w+)", text)[1], 0) - 0x10000 for text in states if f"mode {offload}" in text}
    expected = {n for n, (_, algorithm) in enumerate(tries) if limits.has_algorithm(*algorithm)}
    assert len(expected) > 40
    assert [tries[n][1] for n in sorted(taken ^ expected)] == []
