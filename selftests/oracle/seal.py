# SPDX-License-Identifier: GPL-2.0-only
"""ESP by Python's cryptography: what a suite makes of payload and number."""

import hashlib
import hmac

from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.ciphers.aead import AESCCM, AESGCM, ChaCha20Poly1305
from cryptography.hazmat.primitives.cmac import CMAC

from kit.suite import make_bytes

BLOCK = 16


def _raw(length, seed):
    return bytes.fromhex(make_bytes(length, seed)[2:])


def _encrypt(key, mode, data):
    encryptor = Cipher(algorithms.AES(key), mode).encryptor()
    return encryptor.update(data) + encryptor.finalize()


class Aead:
    """RFC 4106, RFC 4309, RFC 4543, RFC 7634."""

    iv_len, block = 8, 4
    CLASSES = {"gcm": AESGCM, "gma": AESGCM, "ccm": AESCCM, "cha": ChaCha20Poly1305}

    def __init__(self, suite, seed):
        material = _raw(suite.key // 8 + suite.salt, seed)
        key, self.salt = material[:suite.key // 8], material[suite.key // 8:]
        self.icv_len, self.name = suite.icv // 8, suite.name[:3]
        self.cipher = AESCCM(key, self.icv_len) if self.name == "ccm" else self.CLASSES[self.name](key)

    def seal(self, head, high, iv, plain):
        """What follows the ESP header."""
        aad = head[:4] + high + head[4:]
        if self.name == "gma":
            return iv + plain + self.cipher.encrypt(self.salt + iv, b"", aad + iv + plain)
        text = self.cipher.encrypt(self.salt + iv, plain, aad)
        # The library knows GCM with an ICV of 16 only; a shorter one is its beginning.
        return iv + text[:len(plain) + self.icv_len]


class Pair:
    """A cipher and an authentication, RFC 4303 3.3.2."""

    def __init__(self, suite, seed):
        material = _raw(suite.key // 8 + suite.salt, seed) if suite.key else b""
        self.key, self.salt = material[:suite.key // 8], material[suite.key // 8:]
        self.auth, self.auth_key = suite.auth, _raw(suite.auth_key // 8, seed + 101)
        self.icv_len, self.name = suite.icv // 8, suite.name[:3]
        self.iv_len, self.block = {"cbc": (16, 16), "ctr": (8, 4), "nul": (0, 4)}[self.name]

    def _mac(self, data):
        if self.auth == "cmac(aes)":
            mac = CMAC(algorithms.AES(self.auth_key))
            mac.update(data)
            return mac.finalize()
        if self.auth == "xcbc(aes)":
            return self._xcbc(data)
        return hmac.new(self.auth_key, data, getattr(hashlib, self.auth[5:-1])).digest()

    def _xcbc(self, data):
        """RFC 3566 4."""
        keys = [_encrypt(self.auth_key, modes.ECB(), bytes([n]) * BLOCK) for n in (1, 2, 3)]
        whole = data and len(data) % BLOCK == 0
        if not whole:
            data += b"\x80" + bytes(-(len(data) + 1) % BLOCK)
        last = bytes(a ^ b for a, b in zip(data[-BLOCK:], keys[1 if whole else 2], strict=True))
        return _encrypt(keys[0], modes.CBC(bytes(BLOCK)), data[:-BLOCK] + last)[-BLOCK:]

    def seal(self, head, high, iv, plain):
        """What follows the ESP header."""
        text = plain
        if self.name == "cbc":
            text = _encrypt(self.key, modes.CBC(iv), plain)
        elif self.name == "ctr":
            text = _encrypt(self.key, modes.CTR(self.salt + iv + b"\0\0\0\1"), plain)
        return iv + text + self._mac(head + iv + text + high)[:self.icv_len]


def sealer(suite, seed):
    """The suite with its keys, which are those of suite.words(seed)."""
    return Pair(suite, seed) if suite.auth else Aead(suite, seed)
