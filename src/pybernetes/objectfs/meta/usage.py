"""Counts the usage of a volume and its quotas in the transaction that changes the files, so that it is never wrong.

A counter is the sum of its stripes, so that clients do not wait for each other. Limits are compared with a glance at
them: changes of the same moment may pass a limit together.
"""

from __future__ import annotations

from errno import EDQUOT, ENOSPC
from struct import Struct
from typing import NamedTuple

from pybernetes.objectfs.meta.engine import Transaction
from pybernetes.objectfs.meta.records import Attributes, fail, space

USAGE, QUOTA_USAGE, QUOTA = b"CU", b"QU", b"QL"
_USAGE = Struct("<qq")
_QUOTA = Struct("<QQQ")  # root inode, bytes, inodes
_NUMBER = Struct(">I")
MOST = 1 << 62
"""Bytes that a stripe can count."""


class Limits:
    """A volume's limits as a client knows them; 0 is none."""

    def __init__(self, capacity: int = 0, inodes: int = 0, trash_days: float = 0.0) -> None:
        self.capacity, self.inodes, self.trash_days = capacity, inodes, trash_days


class Quota(NamedTuple):
    """A folder's limits; 0 is none."""

    root: int
    size: int
    inodes: int

    def encode(self) -> bytes:
        return _QUOTA.pack(*self)

    @classmethod
    def decode(cls, value: bytes) -> Quota:
        return cls(*_QUOTA.unpack(value))


def quota_key(number: int) -> bytes:
    return QUOTA + _NUMBER.pack(number)


def quota_usage_prefix(number: int) -> bytes:
    return QUOTA_USAGE + _NUMBER.pack(number)


def number_of(key: bytes) -> int:
    """The quota that a key is about."""
    return int(_NUMBER.unpack_from(key, 2)[0])


def used(tx: Transaction, prefix: bytes = USAGE) -> tuple[int, int]:
    """Used bytes and inodes of the volume, or of a quota."""
    parts = [_USAGE.unpack(value) for _, value in tx.glance(prefix)]
    return sum(size for size, _ in parts), sum(count for _, count in parts)


def limits_and_use(tx: Transaction, quota: int) -> tuple[Quota, tuple[int, int]] | None:
    """A quota with what it uses; None if it was removed."""
    value = tx.get(quota_key(quota))
    return None if value is None else (Quota.decode(value), used(tx, quota_usage_prefix(quota)))


def stripe_keys(tx: Transaction, quota: int) -> list[bytes]:
    """The keys that `charge` will read, to be fetched together with others."""
    if not quota:
        return [USAGE + tx.stripe]
    return [USAGE + tx.stripe, quota_key(quota), quota_usage_prefix(quota) + tx.stripe]


def charge(tx: Transaction, quota: int, size: int, inodes: int, limits: Limits | None = None) -> None:
    """Counts what is added or removed; ENOSPC beyond a limit of the volume, EDQUOT beyond one of the quota."""
    if not size and not inodes:
        return
    grows = size > 0 or inodes > 0
    if limits is not None and grows and (limits.capacity or limits.inodes):
        _check(used(tx), size, inodes, limits.capacity, limits.inodes, ENOSPC)
    _add(tx, USAGE + tx.stripe, size, inodes)
    value = tx.get(quota_key(quota)) if quota else None
    if value is not None:
        found = Quota.decode(value)
        if limits is not None and grows and (found.size or found.inodes):
            _check(used(tx, quota_usage_prefix(quota)), size, inodes, found.size, found.inodes, EDQUOT)
        _add(tx, quota_usage_prefix(quota) + tx.stripe, size, inodes)


def move(tx: Transaction, attributes: Attributes, quota: int) -> None:
    """Lets an inode count for another quota (0: none). The caller stores the attributes."""
    for number, sign in ((attributes.quota, -1), (quota, 1)):
        if number and tx.get(quota_key(number)) is not None:
            _add(tx, quota_usage_prefix(number) + tx.stripe, sign * space(attributes), sign)
    attributes.quota = quota


def drop_if_root(tx: Transaction, attributes: Attributes) -> None:
    """The folder of a quota is removed: its quota goes with it."""
    value = tx.get(quota_key(attributes.quota))
    if value is not None and Quota.decode(value).root == attributes.inode:
        tx.delete(quota_key(attributes.quota))
        for key, _ in tx.glance(quota_usage_prefix(attributes.quota)):
            tx.delete(key)


def _check(now: tuple[int, int], size: int, inodes: int, most: int, most_inodes: int, code: int) -> None:
    if (most and size > 0 and now[0] + size > most) or (most_inodes and inodes > 0 and now[1] + inodes > most_inodes):
        raise fail(code)


def _add(tx: Transaction, key: bytes, size: int, inodes: int) -> None:
    value = tx.get(key)
    before = _USAGE.unpack(value) if value else (0, 0)
    if before[0] + size > MOST:
        raise fail(ENOSPC)
    tx.put(key, _USAGE.pack(before[0] + size, before[1] + inodes))
