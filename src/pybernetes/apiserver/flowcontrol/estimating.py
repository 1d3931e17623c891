"""How much of the server a request takes, in seats. Upstream's rules.

A list takes seats by the size of what it may have to look at. A write takes one, and after its answer so many as there
are watchers to tell of it, for as long as that is taken to last; fewer seats than that are held longer.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import msgspec

from pybernetes.api.errors import APIError

if TYPE_CHECKING:
    from ..registry.registry import Registry
    from ..requestinfo import RequestInfo
    from .levels import Level

_LONG = 19  # digits of a limit that is above every count
_SEAT_BYTES = 100_000  # bytes of a list for which a seat is taken
_MOST = 10  # seats of a request; a list from the cache, as all of ours are, counts a megabyte at most
_OF_A_LEVEL = 0.15  # the share of a level's seats that one request may take
_WATCHERS_A_SEAT = 10
_TELLING = 0.005  # seconds that it takes to tell the watchers of a seat
_WRITES = frozenset(("create", "update", "patch", "delete", "deletecollection"))
_READS_ALL = frozenset(("list", "watch"))


class Estimate(msgspec.Struct, frozen=True, gc=False):
    """Seats while a request is served, and afterwards for some seconds."""

    seats: int = 1
    final: int = 0
    latency: float = 0.0

    @property
    def width(self) -> int:
        """Seats that must be free for it."""
        return max(self.seats, self.final)


ONE = Estimate()
"""The estimate for most requests."""


def estimate(registry: Registry, level: Level, info: RequestInfo) -> Estimate:
    """The estimated cost of a request."""
    verb = info.verb
    if verb in _READS_ALL:
        return _of_list(registry, level, info)
    if verb in _WRITES and info.is_resource:
        return _of_write(registry, level, info)
    return ONE


def _of_list(registry: Registry, level: Level, info: RequestInfo) -> Estimate:
    if info.verb == "watch":
        version = info.query.get("resourceVersion", "")
        if version not in ("", "0") and not info.flag("sendInitialEvents"):
            return ONE
    if info.object_name or not info.is_resource:
        return ONE
    try:
        items = registry.store(info.group, info.version, info.resource).partition.items
    except APIError:
        return ONE
    count = len(items)
    if not count:
        return ONE
    limit = info.query.get("limit", "")
    if limit.isdecimal() and len(limit) < _LONG and 0 < int(limit) < count:
        count = int(limit)
    size = count * len(next(iter(items.values())).raw)  # objects of a kind are much alike
    return Estimate(max(1, min(_most(level), math.ceil(size / _SEAT_BYTES))))


def _of_write(registry: Registry, level: Level, info: RequestInfo) -> Estimate:
    try:
        store = registry.store(info.group, info.version, info.resource)
    except APIError:
        return ONE
    watchers = store.partition.watchers
    if len(watchers) < _WATCHERS_A_SEAT or info.subresource == "token":  # a token causes no watch event
        return ONE
    scopes = (store.scope(""), store.scope(info.namespace))
    count = sum(1 for each in watchers if not each.narrow and each.scope in scopes)
    if count < _WATCHERS_A_SEAT:
        return ONE
    wanted = math.ceil(count / _WATCHERS_A_SEAT)
    seats = min(wanted, _most(level))
    return Estimate(1, seats, wanted * _TELLING / seats)


def _most(level: Level) -> int:
    """Seats that one request of a level may take: so few that the requests of all queues of a hand fit in it."""
    nominal = level.bounds.nominal
    share = math.ceil(nominal * _OF_A_LEVEL)
    return max(1, min(_MOST, share, nominal // level.hand if level.hand else share))
