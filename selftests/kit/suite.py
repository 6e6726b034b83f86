# SPDX-License-Identifier: GPL-2.0-only
"""ESP suites, as iproute2 takes them."""

from dataclasses import dataclass


def make_bytes(length, seed=0):
    """Different bytes everywhere, so that a slip in the order shows."""
    return "0x" + bytes((seed + 7 * n) & 0xFF for n in range(length)).hex() if length else "''"


@dataclass(frozen=True)
class Suite:
    """A suite.

    cipher: the stack's name. key: bits of the cipher's key, salt not counted. salt: bytes behind it. icv: bits.
    auth: the stack's name of the authentication and the bits of its key, empty for one that the cipher does.
    """

    name: str
    cipher: str
    key: int
    icv: int
    salt: int = 0
    auth: str = ""
    auth_key: int = 0

    def words(self, seed=0):
        """Arguments of `ip xfrm state`."""
        key = make_bytes(self.key // 8 + self.salt, seed)
        if not self.auth:
            return f"aead '{self.cipher}' {key} {self.icv}"
        auth = make_bytes(self.auth_key // 8, seed + 101)
        return f"auth-trunc '{self.auth}' {auth} {self.icv} enc '{self.cipher}' {key}"


#: label, the stack's name, bytes of salt, bits of ICVs
AEADS = (("gcm", "rfc4106(gcm(aes))", 4, (64, 96, 128)), ("gmac", "rfc4543(gcm(aes))", 4, (128,)),
         ("ccm", "rfc4309(ccm(aes))", 3, (64, 96, 128)))
#: label, the stack's name, bytes of salt, bits of keys
CIPHERS = (("cbc", "cbc(aes)", 0, (128, 192, 256)), ("ctr", "rfc3686(ctr(aes))", 4, (128, 192, 256)),
           ("null", "ecb(cipher_null)", 0, (0,)))
#: label, the stack's name, bits of the key, bits of the ICV
AUTHS = (("sha1-96", "hmac(sha1)", 160, 96), ("sha256-96", "hmac(sha256)", 256, 96),
         ("sha256-128", "hmac(sha256)", 256, 128), ("sha384-192", "hmac(sha384)", 384, 192),
         ("sha512-256", "hmac(sha512)", 512, 256), ("xcbc-96", "xcbc(aes)", 128, 96), ("cmac-96", "cmac(aes)", 128, 96))


def _aeads():
    for label, name, salt, icvs in AEADS:
        for bits in (128, 192, 256):
            for icv in icvs:
                yield Suite(f"{label}{bits}-{icv}", name, bits, icv, salt)
    yield Suite("chacha20", "rfc7539esp(chacha20,poly1305)", 256, 128, 4)


def _pairs():
    for label, name, salt, keys in CIPHERS:
        for bits in keys:
            for auth, auth_name, auth_bits, icv in AUTHS:
                yield Suite(f"{label}{bits or ''}-{auth}", name, bits, icv, salt, auth_name, auth_bits)


#: every suite that the card has
SUITES = {suite.name: suite for suite in (*_aeads(), *_pairs())}
