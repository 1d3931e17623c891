"""Encodes a block as an object: compressed (zstd, lz4), then encrypted (AES-256-GCM).

Each object has a key of its own, encrypted with the volume's RSA key and stored in front of the data, so that the RSA
key can be kept elsewhere and an object moved. The objects' names keep the length of the plain block.
"""

from __future__ import annotations

import os
from errno import EIO
from importlib import import_module
from struct import Struct
from typing import Any, Protocol

from pybernetes.objectfs.errors import ObjectFSError
from pybernetes.objectfs.format import Format

COMPRESSIONS = ("none", "zstd", "lz4")
ZSTD_LEVEL = 1
KEY_BYTES, NONCE_BYTES = 32, 12
_HEAD = Struct("<HB")  # length of the wrapped key, length of the nonce


class Codec(Protocol):
    """Both directions of a block's way. `partial`: a part of the object is that part of the block."""

    partial: bool

    def encode(self, data: bytes) -> bytes: ...

    def decode(self, data: bytes, size: int) -> bytes:
        """The block of `size` bytes; OSError if the object is damaged."""


class Plain:
    partial = True

    def encode(self, data: bytes) -> bytes:
        return data

    def decode(self, data: bytes, size: int) -> bytes:
        return data


class Zstandard:
    partial = False

    def __init__(self) -> None:
        import zstandard

        self._module = zstandard

    def encode(self, data: bytes) -> bytes:
        return self._module.ZstdCompressor(level=ZSTD_LEVEL).compress(data)

    def decode(self, data: bytes, size: int) -> bytes:
        try:
            return self._module.ZstdDecompressor().decompress(data, max_output_size=size)
        except self._module.ZstdError as error:
            raise OSError(EIO, f"zstd: {error}") from error


class LZ4:
    partial = False

    def __init__(self) -> None:
        try:
            self._module: Any = import_module("lz4.block")
        except ImportError:
            raise ObjectFSError("compression 'lz4' needs the package lz4: pip install 'pybernetes[objectfs]'") from None

    def encode(self, data: bytes) -> bytes:
        return bytes(self._module.compress(data, store_size=False))

    def decode(self, data: bytes, size: int) -> bytes:
        try:
            return bytes(self._module.decompress(data, uncompressed_size=size))
        except self._module.LZ4BlockError as error:
            raise OSError(EIO, f"lz4: {error}") from error


class Encrypted:
    """AES-256-GCM around another codec; a changed bit anywhere is an error."""

    partial = False

    def __init__(self, inner: Codec, key: Any) -> None:
        from cryptography.hazmat.primitives import hashes
        from cryptography.hazmat.primitives.asymmetric import padding

        self._inner, self._private, self._public = inner, key, key.public_key()
        self._padding = padding.OAEP(padding.MGF1(hashes.SHA256()), hashes.SHA256(), None)

    def encode(self, data: bytes) -> bytes:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        key, nonce = os.urandom(KEY_BYTES), os.urandom(NONCE_BYTES)
        wrapped = self._public.encrypt(key, self._padding)
        head = _HEAD.pack(len(wrapped), len(nonce)) + wrapped + nonce
        return bytes(head + AESGCM(key).encrypt(nonce, self._inner.encode(data), None))

    def decode(self, data: bytes, size: int) -> bytes:
        from cryptography.exceptions import InvalidTag
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        try:
            wrapped, nonce = _HEAD.unpack_from(data)
            at = _HEAD.size
            key = self._private.decrypt(data[at : at + wrapped], self._padding)
            at += wrapped
            plain = AESGCM(key).decrypt(data[at : at + nonce], data[at + nonce :], None)
        except (ValueError, InvalidTag, IndexError) as error:
            raise OSError(EIO, "the object does not fit the volume's key, or was changed") from error
        except Exception as error:  # struct.error of an object that is too short
            raise OSError(EIO, f"not an encrypted object: {error}") from error
        return self._inner.decode(plain, size)


def open_codec(settings: Format) -> Codec:
    """The codec that a volume's format names."""
    makers: dict[str, type[Codec]] = {"none": Plain, "zstd": Zstandard, "lz4": LZ4}
    if settings.compression not in makers:
        raise ObjectFSError(f"compression {settings.compression!r} is not known: {', '.join(COMPRESSIONS)}")
    codec = makers[settings.compression]()
    return Encrypted(codec, load_key(settings.encrypt_key)) if settings.encrypt_key else codec


def load_key(pem: str) -> Any:
    """The RSA key of a volume; a passphrase comes from RSA_PASSPHRASE."""
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    try:
        key = load_pem_private_key(pem.encode(), os.environ.get("RSA_PASSPHRASE", "").encode() or None)
    except (ValueError, TypeError) as error:
        raise ObjectFSError(
            f"the RSA key cannot be read (its passphrase is taken from RSA_PASSPHRASE): {error}"
        ) from None
    if not isinstance(key, RSAPrivateKey):
        raise ObjectFSError("the key is not an RSA key")
    return key
