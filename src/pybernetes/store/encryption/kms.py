"""Keys in a KMS plugin (v2) behind a Unix socket, called over gRPC.

Values are encrypted here, each with a key of its own that is derived (HKDF) from a seed; the plugin encrypts only the
seed, which is kept with every value. So it is asked once for each seed there is, not for each value: for a new one when
its key changes, and for an old one when the first value comes that was written with it. What is stored is upstream's
form, and either of us reads what the other wrote.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Iterator
from time import monotonic
from typing import Any, NamedTuple

from pybernetes.api.randomness import new_uid

from ..base import StoreUnavailable
from .providers import PREFIX, Undecipherable

log = logging.getLogger(__name__)

_CHECK = 60.0  # seconds between two questions which key is in use; upstream's
_PATIENCE = 180.0  # seconds that the last answer counts when there is no new one; upstream's
_SEEDED = 1  # EncryptedDEKSourceType: the plugin has encrypted a seed; 0 = the key itself
_SIZE = 32  # bytes of a seed, of what is mixed into it, and of a key
_LARGEST = 1024  # bytes of a key's name and of an encrypted seed; upstream's
_WELL = 20.0  # seconds that a plugin counts as well after it said so; upstream's
_ILL = 3.0  # seconds that it counts as ill after it did not; upstream's
_RETRY = 1.0  # seconds before a plugin is asked again for a seed that it has not decrypted
_RECONNECT = 1000  # milliseconds, at most, before a plugin that was away is called again; grpc would take minutes
_SERVICE = "/v2.KeyManagementService/"


class Sealed(NamedTuple):
    """How a seed is kept: encrypted by a key of the plugin."""

    kind: int
    seed: bytes
    key_id: str
    annotations: tuple[tuple[str, bytes], ...]


class KMS:
    """One plugin."""

    def __init__(self, name: str, endpoint: str, timeout: float) -> None:
        self.prefix = PREFIX + f"kms:v2:{name}:".encode()
        self._name = name
        self._endpoint = endpoint
        self._timeout = timeout
        self._channel: Any = None
        self._asking = asyncio.Lock()
        self._ciphers: dict[Sealed, _Cipher] = {}
        self._failed: dict[Sealed, tuple[float, str]] = {}
        """Seeds that the plugin has not decrypted: when to ask again, and what it said."""
        self._writes: Sealed | None = None
        """The seed for what is written."""
        self._key_id = ""
        """The plugin's key now."""
        self._checked = 0.0
        self._ill = (0.0, "")
        """Until when the last answer counts, if it was none, and what was wrong."""

    # -- what may take time: to be awaited before the rest

    async def prepare_write(self) -> None:
        """Have a seed to write with. Raises StoreUnavailable."""
        if self._may_write():
            return
        async with self._asking:
            if self._may_write():
                return
            try:
                await self._ask()
            except StoreUnavailable as error:
                if self._writes is None or monotonic() > self._checked + _PATIENCE:
                    raise
                log.error("%s", error)

    def _may_write(self) -> bool:
        """Whether the seed is good enough: one that was looked after lately, or that the plugin is too ill to renew."""
        now = monotonic()
        if self._writes is None or now > self._checked + _PATIENCE:
            return False
        return now < self._checked + _CHECK or now < self._ill[0]

    async def check(self) -> None:
        """Whether the plugin is well; what it said lately counts. Raises StoreUnavailable."""
        async with self._asking:
            now = monotonic()
            if now < self._ill[0]:
                raise StoreUnavailable(self._ill[1])
            if self._writes is None or now >= self._checked + _WELL:
                await self._ask()

    async def _ask(self) -> None:
        try:
            await self._refresh()
        except _Failed as error:
            self._ill = (monotonic() + _ILL, f"the KMS plugin {self._name}: {error}")
            raise StoreUnavailable(self._ill[1]) from error
        self._ill = (0.0, "")

    async def prepare_read(self, data: bytes) -> None:
        """Have the seed that a value was written with; `decrypt` tells if it was not to be had."""
        try:
            sealed, _ = _unpack(data)
        except Undecipherable:
            return
        if sealed in self._ciphers or self._known_to_fail(sealed):
            return
        async with self._asking:
            if sealed in self._ciphers or self._known_to_fail(sealed):
                return
            asked: list[tuple[int, bytes | str]] = [(1, sealed.seed), (2, new_uid()), (3, sealed.key_id)]
            asked += [(4, _entry(name, value)) for name, value in sealed.annotations]
            try:
                answer = await self._call("Decrypt", asked)
            except _Failed as error:
                self._failed[sealed] = (monotonic() + _RETRY, f"failed to decrypt DEK, error: {error}")
                return
            self._failed.pop(sealed, None)
            self._ciphers[sealed] = _cipher(sealed.kind, _bytes(answer, 1))

    def _known_to_fail(self, sealed: Sealed) -> bool:
        return sealed in self._failed and monotonic() < self._failed[sealed][0]

    async def _refresh(self) -> None:
        status = await self._call("Status", [])
        version, health, key_id = (_text(status, number) for number in (1, 2, 3))
        if version not in ("v2", "v2beta1") or health != "ok" or not 0 < len(key_id) <= _LARGEST:
            raise _Failed(f"version {version!r}, healthz {health!r}, a key id of {len(key_id)} characters")
        if self._writes is None or key_id != self._key_id:
            seed = os.urandom(_SIZE)
            answer = await self._call("Encrypt", [(1, seed), (2, new_uid())])
            annotations = tuple(sorted(_pair(each) for number, each in answer if number == 3))
            sealed = Sealed(_SEEDED, _bytes(answer, 1), _text(answer, 2), annotations)
            if not 0 < len(sealed.seed) <= _LARGEST:
                raise _Failed("the encrypted seed is empty or too long")
            if sealed.key_id != key_id:  # it changes just now; to write on with a key that is none now would be stale
                raise _Failed("the key of Status is not that of Encrypt")
            self._ciphers[sealed] = _cipher(_SEEDED, seed)
            self._writes, self._key_id = sealed, key_id
        self._checked = monotonic()

    async def _call(self, method: str, fields: list[tuple[int, bytes | str]]) -> list[tuple[int, bytes]]:
        import grpc  # type: ignore[import-untyped]
        import grpc.aio  # type: ignore[import-untyped]

        if self._channel is None:
            options = [("grpc.default_authority", "localhost"), ("grpc.max_reconnect_backoff_ms", _RECONNECT)]
            self._channel = grpc.aio.insecure_channel(self._endpoint, options)
        call = self._channel.unary_unary(_SERVICE + method)
        try:
            # A plugin that starts again is waited for, as upstream does.
            answer: bytes = await call(_packed(fields), timeout=self._timeout, wait_for_ready=True)
        except grpc.aio.AioRpcError as error:
            raise _Failed(f"{method}: {error.code().name}: {error.details()}") from error
        return list(_fields(answer))

    async def close(self) -> None:
        """Hang up."""
        if self._channel is not None:
            await self._channel.close()

    # -- what does not

    @property
    def current(self) -> bytes | None:
        """The present `stamp` of written values; None if it is not known yet."""
        return self.prefix + self._key_id.encode() if self._key_id else None

    def stamp(self, data: bytes) -> bytes:
        """By which key of the plugin a value was written."""
        return self.prefix + _unpack(data)[0].key_id.encode()

    def encrypt(self, value: bytes, key: str) -> bytes:
        """After `prepare_write`."""
        sealed = self._writes
        assert sealed is not None
        fields: list[tuple[int, bytes | str]] = [(1, self._ciphers[sealed].encrypt(value, key))]
        fields += [(2, sealed.key_id), (3, sealed.seed)]
        fields += [(4, _entry(name, each)) for name, each in sealed.annotations]
        return _packed(fields) + b"\x28\x01"  # field 5, a number: the kind of the seed

    def decrypt(self, data: bytes, key: str) -> bytes:
        """After `prepare_read`. Raises Undecipherable."""
        sealed, encrypted = _unpack(data)
        cipher = self._ciphers.get(sealed)
        if cipher is None:
            raise Undecipherable(self._failed[sealed][1] if sealed in self._failed else "its seed was not decrypted")
        return cipher.decrypt(encrypted, key)


class _Failed(Exception):
    """The plugin did not answer, or not what it should."""


class _Cipher:
    """AES-GCM, with a key for each value that is derived from a seed, or with one key."""

    def __init__(self, seed: bytes, *, derives: bool) -> None:
        self._seed = seed
        self._derives = derives

    def encrypt(self, value: bytes, key: str) -> bytes:
        info, nonce = os.urandom(_SIZE), os.urandom(12)
        return info + nonce + bytes(self._aes(info).encrypt(nonce, value, key.encode()))

    def decrypt(self, data: bytes, key: str) -> bytes:
        from cryptography.exceptions import InvalidTag

        info, rest = (data[:_SIZE], data[_SIZE:]) if self._derives else (b"", data)
        if len(rest) < 28:
            raise Undecipherable("the stored data was shorter than the required size")
        try:
            return bytes(self._aes(info).decrypt(rest[:12], rest[12:], key.encode()))
        except InvalidTag as error:
            raise Undecipherable("cipher: message authentication failed") from error

    def _aes(self, info: bytes) -> Any:
        from cryptography.hazmat.primitives import hashes
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM
        from cryptography.hazmat.primitives.kdf.hkdf import HKDFExpand

        return AESGCM(HKDFExpand(hashes.SHA256(), _SIZE, info).derive(self._seed) if self._derives else self._seed)


def _cipher(kind: int, secret: bytes) -> _Cipher:
    if len(secret) not in (16, 24, 32) and (kind != _SEEDED or len(secret) < _SIZE):
        raise Undecipherable(f"the plugin decrypted a key of {len(secret)} bytes")
    return _Cipher(secret, derives=kind == _SEEDED)


def _unpack(data: bytes) -> tuple[Sealed, bytes]:
    """A stored value: how its seed is kept, and what was encrypted. Raises Undecipherable."""
    encrypted, seed, key_id, kind = b"", b"", "", 0
    annotations = []
    for number, value in _fields(data):
        if number == 1:
            encrypted = value
        elif number == 2:
            key_id = value.decode("utf-8", "replace")
        elif number == 3:
            seed = value
        elif number == 4:
            annotations.append(_pair(value))
        elif number == 5:
            kind = int.from_bytes(value, "little")
    if not encrypted or not seed or not key_id or kind not in (0, _SEEDED):
        raise Undecipherable("not an EncryptedObject")
    return Sealed(kind, seed, key_id, tuple(sorted(annotations))), encrypted


# -- protobuf, as far as these messages need it: numbers and lengths


def _packed(fields: list[tuple[int, bytes | str]]) -> bytes:
    parts = []
    for number, value in fields:
        data = value.encode() if isinstance(value, str) else value
        parts.append(bytes([number << 3 | 2]) + _varint(len(data)) + data)
    return b"".join(parts)


def _entry(name: str, value: bytes) -> bytes:
    return _packed([(1, name), (2, value)])


def _pair(entry: bytes) -> tuple[str, bytes]:
    fields = list(_fields(entry))
    return _text(fields, 1), _bytes(fields, 2)


def _text(fields: list[tuple[int, bytes]], number: int) -> str:
    return _bytes(fields, number).decode("utf-8", "replace")


def _bytes(fields: list[tuple[int, bytes]], number: int) -> bytes:
    return next((value for each, value in reversed(fields) if each == number), b"")


def _varint(number: int) -> bytes:
    data = bytearray()
    while number > 127:
        data.append(number & 127 | 128)
        number >>= 7
    return bytes([*data, number])


def _fields(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Number and value of each field; a number is in little-endian bytes. Raises Undecipherable."""
    position = 0

    def varint() -> int:
        nonlocal position
        number = shift = 0
        while True:
            byte = data[position]
            position += 1
            number |= (byte & 127) << shift
            shift += 7
            if byte < 128 or shift > 63:
                return number

    try:
        while position < len(data):
            tag = varint()
            if tag & 7 == 0:
                yield tag >> 3, (varint() & (1 << 64) - 1).to_bytes(8, "little")
                continue
            if tag & 7 != 2:
                raise Undecipherable("not an EncryptedObject")
            length = varint()
            if position + length > len(data):
                raise Undecipherable("not an EncryptedObject")
            yield tag >> 3, data[position : position + length]
            position += length
    except IndexError as error:
        raise Undecipherable("not an EncryptedObject") from error
