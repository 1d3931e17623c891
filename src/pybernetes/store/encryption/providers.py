"""How a value is encrypted. What is written begins with `k8s:enc:PROVIDER:v1:KEYNAME:`, as upstream writes it.

`aesgcm` binds a value to its key in the store: it cannot be put in the place of another. `aescbc` and `secretbox` do
not, and `aescbc` does not even notice that it was changed; they are here because upstream has them.
"""

from __future__ import annotations

import os
from typing import Protocol

PREFIX = b"k8s:enc:"


class Undecipherable(ValueError):
    """The bytes were not encrypted with this key."""


class Provider(Protocol):
    """One key of one kind of encryption."""

    prefix: bytes
    """The prefix of every value written by it; empty = values are written as they are."""

    def encrypt(self, value: bytes, key: str) -> bytes:
        """The bytes to store, without the prefix; `key` is the place they are stored at."""
        ...

    def decrypt(self, data: bytes, key: str) -> bytes:
        """Decrypt a value. Raises Undecipherable."""
        ...


class Identity:
    """No encryption."""

    prefix = b""

    def encrypt(self, value: bytes, key: str) -> bytes:
        return value

    def decrypt(self, data: bytes, key: str) -> bytes:
        if data.startswith(PREFIX):
            raise Undecipherable("identity transformer tried to read encrypted data")
        return data


class AESGCM:
    """AES in Galois counter mode: a nonce of 12 bytes, then the text with its tag."""

    def __init__(self, name: str, secret: bytes) -> None:
        from cryptography.hazmat.primitives.ciphers import aead

        self.prefix = PREFIX + f"aesgcm:v1:{name}:".encode()
        self._cipher = aead.AESGCM(secret)

    def encrypt(self, value: bytes, key: str) -> bytes:
        nonce = os.urandom(12)
        return nonce + self._cipher.encrypt(nonce, value, key.encode())

    def decrypt(self, data: bytes, key: str) -> bytes:
        from cryptography.exceptions import InvalidTag

        if len(data) < 28:
            raise Undecipherable("the stored data was shorter than the required size")
        try:
            return self._cipher.decrypt(data[:12], data[12:], key.encode())
        except InvalidTag as error:
            raise Undecipherable("cipher: message authentication failed") from error


class AESCBC:
    """AES in cipher block chaining: an initial vector of 16 bytes, then the text, padded (PKCS #7)."""

    def __init__(self, name: str, secret: bytes) -> None:
        from cryptography.hazmat.primitives.ciphers import algorithms

        self.prefix = PREFIX + f"aescbc:v1:{name}:".encode()
        self._algorithm = algorithms.AES(secret)

    def encrypt(self, value: bytes, key: str) -> bytes:
        from cryptography.hazmat.primitives.ciphers import Cipher, modes

        vector = os.urandom(16)
        size = 16 - len(value) % 16
        encryptor = Cipher(self._algorithm, modes.CBC(vector)).encryptor()
        return vector + encryptor.update(value + bytes([size]) * size) + encryptor.finalize()

    def decrypt(self, data: bytes, key: str) -> bytes:
        from cryptography.hazmat.primitives.ciphers import Cipher, modes

        if len(data) < 32 or len(data) % 16:
            raise Undecipherable("the stored data is not a multiple of the block size")
        decryptor = Cipher(self._algorithm, modes.CBC(data[:16])).decryptor()
        value = decryptor.update(data[16:]) + decryptor.finalize()
        size = value[-1]
        if not 0 < size <= 16 or value[-size:] != bytes([size]) * size:
            raise Undecipherable("invalid padding on input")
        return value[:-size]


class Secretbox:
    """NaCl's secretbox (XSalsa20 and Poly1305): a nonce of 24 bytes, then the text with its tag."""

    def __init__(self, name: str, secret: bytes) -> None:
        self.prefix = PREFIX + f"secretbox:v1:{name}:".encode()
        self._secret = secret

    def encrypt(self, value: bytes, key: str) -> bytes:
        from nacl.bindings import crypto_secretbox

        nonce = os.urandom(24)
        return nonce + bytes(crypto_secretbox(value, nonce, self._secret))

    def decrypt(self, data: bytes, key: str) -> bytes:
        from nacl.bindings import crypto_secretbox_open
        from nacl.exceptions import CryptoError

        if len(data) < 40:
            raise Undecipherable("the stored data was shorter than the required size")
        try:
            return bytes(crypto_secretbox_open(data[24:], data[:24], self._secret))
        except CryptoError as error:
            raise Undecipherable("the output array is not the expected size") from error
