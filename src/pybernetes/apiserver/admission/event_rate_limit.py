"""Events are let in at a certain rate only: for the whole server, for each namespace, user, or source and object."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from time import monotonic
from typing import TYPE_CHECKING, Any, Final

import msgspec

from pybernetes.api.base import Struct
from pybernetes.api.core.v1 import Event, EventSource, ObjectReference
from pybernetes.api.errors import TooManyRequests

from ..authz.messages import aggregate
from .configuration import check_kind
from .plugin import CREATE, UPDATE, Attributes, Plugin

if TYPE_CHECKING:
    from ..registry.registry import Registry

_VERSIONS: Final = ("eventratelimit.admission.k8s.io/v1alpha1",)
_KEPT: Final = 4096  # buckets of a limit; upstream's default


class Limit(Struct):
    """So many a second, and so many at once."""

    type: str = ""
    qps: int = 0
    burst: int = 0
    cache_size: int = 0


class _Configuration(Struct):
    limits: list[Limit] = []


def _source_and_object(attributes: Attributes) -> str:
    event: Event = attributes.new
    source = event.source or EventSource()
    about = event.involved_object or ObjectReference()
    parts = (
        source.component,
        source.host,
        about.kind,
        about.namespace,
        about.name,
        about.uid,
        about.api_version,
    )
    return "".join(each or "" for each in parts)


_KEYS: Final[dict[str, Callable[[Attributes], str]]] = {
    "Server": lambda _: "",
    "Namespace": lambda attributes: attributes.namespace,
    "User": lambda attributes: str(attributes.user.name),
    "SourceAndObject": _source_and_object,
}


class EventRateLimit(Plugin):
    """Upstream's EventRateLimit."""

    name = "EventRateLimit"
    operations = (CREATE, UPDATE)
    resources = ("events",)

    def __init__(self, registry: Registry, configuration: Any = None, clock: Callable[[], float] = monotonic) -> None:
        super().__init__(registry)
        self._limits = [_Buckets(each, clock) for each in read_configuration(configuration)]

    def validate(self, attributes: Attributes) -> None:
        # Upstream counts events of the core group only, by the kind that the client sent.
        if attributes.dry_run or attributes.requested.group:
            return
        errors = [error for each in self._limits if (error := each.refusal(attributes))]
        if errors:
            raise TooManyRequests(f"Too many requests: {aggregate(errors)}", 0)


class _Buckets:
    """Token buckets of one limit; those not used for the longest time are forgotten first."""

    def __init__(self, limit: Limit, clock: Callable[[], float]) -> None:
        self._limit, self._clock = limit, clock
        self._key = _KEYS[limit.type]
        self._most = limit.cache_size or _KEPT
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()
        """The tokens left in a bucket, and when."""

    def refusal(self, attributes: Attributes) -> str:
        """Take a token; what to say if there is none."""
        key, now = self._key(attributes), self._clock()
        burst = float(self._limit.burst)
        left, then = self._buckets.pop(key, (burst, now))
        left = min(burst, left + (now - then) * self._limit.qps)
        allowed = left >= 1
        self._buckets[key] = (left - 1 if allowed else left, now)
        if len(self._buckets) > self._most:
            self._buckets.popitem(last=False)
        return "" if allowed else f"limit reached on type {self._limit.type} for key {key}"


def read_configuration(configuration: Any) -> list[Limit]:
    """The limits. Raises ValueError, also if there are none."""
    fields = {} if configuration is None else check_kind(configuration, "Configuration", _VERSIONS, "EventRateLimit")
    try:
        limits = msgspec.convert(fields, _Configuration).limits
    except msgspec.ValidationError as error:
        raise ValueError(f"EventRateLimit: {error}") from None
    errors = [] if limits else ["limits: Invalid value: null: must not be empty"]
    for index, each in enumerate(limits):
        place = f"limits[{index}]"
        if each.type not in _KEYS:
            values = ", ".join(f'"{name}"' for name in sorted(_KEYS))
            errors.append(f'{place}.type: Unsupported value: "{each.type}": supported values: {values}')
        errors += [
            f"{place}.{name}: Invalid value: {value}: must be positive"
            for name, value in (("burst", each.burst), ("qps", each.qps))
            if value <= 0
        ]
        if each.cache_size < 0:
            errors.append(f"{place}.cacheSize: Invalid value: {each.cache_size}: must not be negative")
    if errors:
        raise ValueError(f"EventRateLimit: {aggregate(errors)}")
    return limits
