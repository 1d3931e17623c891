"""The state that plugins keep during one attempt to schedule one pod."""

from __future__ import annotations

import copy
from typing import Any, Protocol, runtime_checkable


@runtime_checkable
class Cloneable(Protocol):
    """State that a what-if run changes (`add_pod`, `remove_pod`) and which therefore has to be copied before it."""

    def clone(self) -> Any:
        """An independent copy."""
        ...


class CycleState:
    """A small dictionary from a plugin's key (by habit its name) to what it wrote in `pre_filter` or `pre_score`."""

    __slots__ = ("data", "skip_filter", "skip_score")

    def __init__(self) -> None:
        self.data: dict[str, Any] = {}
        self.skip_filter: set[str] = set()
        """Plugins whose `pre_filter` said skip: their `filter`, `add_pod` and `remove_pod` are not called."""
        self.skip_score: set[str] = set()
        """Plugins whose `pre_score` said skip: their `score` is not called."""

    def __getitem__(self, key: str) -> Any:
        return self.data[key]

    def __setitem__(self, key: str, value: Any) -> None:
        self.data[key] = value

    def __contains__(self, key: str) -> bool:
        return key in self.data

    def get(self, key: str, default: Any = None) -> Any:
        """The value written under the key."""
        return self.data.get(key, default)

    def clone(self) -> CycleState:
        """A copy for a what-if run: values with a `clone` method are cloned, others are shared (never change those)."""
        duplicate = CycleState()
        duplicate.data = {
            key: value.clone() if isinstance(value, Cloneable) else copy.copy(value) if type(value) in _PLAIN else value
            for key, value in self.data.items()
        }
        duplicate.skip_filter = set(self.skip_filter)
        duplicate.skip_score = set(self.skip_score)
        return duplicate


_PLAIN = (dict, list, set)
