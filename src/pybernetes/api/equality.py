"""Whether two values mean the same: an absent list, map or text and an empty one are one and the same to the API.

Clients send `labels: {}` or leave it out as they please; neither is a change, none bumps a generation and none hurts an
immutable field. `1Gi` is 1073741824 bytes. But a flag or number that is not said may differ from one that is zero: a
missing `hostUsers` is not `false`.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from .quantity import QuantityError, parse

# Numbers and flags for which absent means zero; for all others it means "not said".
_ZERO: Final = frozenset(
    {
        "host_network",
        "host_pid",
        "host_ipc",
        "stdin",
        "stdin_once",
        "tty",
        "read_only",
        "host_port",
        "container_port",
        "initial_delay_seconds",
        "timeout_seconds",
        "period_seconds",
        "success_threshold",
        "failure_threshold",
        "partition",
        "weight",
        "lun",
        "chap_auth_discovery",
        "chap_auth_session",
        "ssl_enabled",
        "min_ready_seconds",
        "observed_generation",
        "restart_count",
        "ready",
    }
)
_QUANTITIES: Final = frozenset(
    {
        "limits",
        "requests",
        "overhead",
        "size_limit",
        "divisor",
        "capacity",
        "allocatable",
        "allocated_resources",
        "hard",
    }
)


def semantically_equal(one: Any, other: Any, field: str = "") -> bool:
    """Whether two values of the same field mean the same; the name of the field helps with numbers and quantities."""
    if one is other or one == other:
        return True
    if one is None or other is None:
        present = other if one is None else one
        if isinstance(present, bool | int):
            return not present and field in _ZERO
        return isinstance(present, str | list | dict) and not present
    if isinstance(one, msgspec.Struct):
        return type(one) is type(other) and all(
            semantically_equal(getattr(one, name), getattr(other, name), name) for name in one.__struct_fields__
        )
    if isinstance(one, list):
        return (
            isinstance(other, list)
            and len(one) == len(other)
            and all(semantically_equal(a, b, field) for a, b in zip(one, other, strict=True))
        )
    if isinstance(one, dict):
        return (
            isinstance(other, dict)
            and one.keys() == other.keys()
            and all(semantically_equal(value, other[key], field) for key, value in one.items())
        )
    return field in _QUANTITIES and _same_quantity(one, other)


def _same_quantity(one: Any, other: Any) -> bool:
    try:
        return parse(str(one)) == parse(str(other))
    except QuantityError:
        return False
