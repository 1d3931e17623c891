"""The result of a plugin: success (`None`), or a `Status` with a code, reasons and the plugin's name."""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum


class Code(IntEnum):
    """Upstream's codes, in upstream's order."""

    SUCCESS = 0
    ERROR = 1
    UNSCHEDULABLE = 2
    UNSCHEDULABLE_AND_UNRESOLVABLE = 3
    WAIT = 4
    SKIP = 5
    PENDING = 6

    @property
    def camel(self) -> str:
        """As upstream writes it in metrics."""
        return _CAMEL[self]


_CAMEL = {each: "".join(part.capitalize() for part in each.name.split("_")) for each in Code}
ERROR = Code.ERROR
UNSCHEDULABLE = Code.UNSCHEDULABLE
UNRESOLVABLE = Code.UNSCHEDULABLE_AND_UNRESOLVABLE
"""Not to be had by preemption either."""
WAIT = Code.WAIT
PENDING = Code.PENDING


class Status:
    """A verdict that is not plain success; success is `None`. Immutable, so that one object serves thousands of nodes.

    `plugin` is filled in by the framework; plugins need not say their name.
    """

    __slots__ = ("code", "error", "plugin", "reasons")

    def __init__(self, code: Code, *reasons: str, plugin: str = "", error: BaseException | None = None) -> None:
        self.code = code
        self.reasons: tuple[str, ...] = reasons
        self.plugin = plugin
        self.error = error

    @staticmethod
    def of_error(error: BaseException, plugin: str = "") -> Status:
        """The status for an unexpected error: the pod is tried again soon."""
        return Status(Code.ERROR, str(error) or type(error).__name__, plugin=plugin, error=error)

    def by(self, plugin: str) -> Status:
        """The same, said by this plugin."""
        if self.plugin:
            return self
        return Status(self.code, *self.reasons, plugin=plugin, error=self.error)

    @property
    def message(self) -> str:
        """All reasons in one text."""
        return ", ".join(self.reasons)

    @property
    def rejected(self) -> bool:
        """Whether the pod cannot be placed (rather than that something broke, or must wait)."""
        return self.code in _REJECTED

    @property
    def is_skip(self) -> bool:
        """Whether the plugin has nothing to do with this pod."""
        return self.code == Code.SKIP

    @property
    def is_wait(self) -> bool:
        """Whether the pod shall wait for a Permit plugin's later word."""
        return self.code == Code.WAIT

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Status):
            return NotImplemented
        return (self.code, self.reasons, self.plugin) == (other.code, other.reasons, other.plugin)

    def __hash__(self) -> int:
        return hash((self.code, self.reasons, self.plugin))

    def __repr__(self) -> str:
        return f"Status({self.code.name}, {self.message!r}{f', {self.plugin}' if self.plugin else ''})"


_REJECTED = frozenset((Code.UNSCHEDULABLE, Code.UNSCHEDULABLE_AND_UNRESOLVABLE, Code.PENDING))
SKIP = Status(Code.SKIP)


def merge(statuses: Iterable[Status]) -> Status | None:
    """One status for several, as upstream merges them: errors win, then what cannot be resolved."""
    found = list(statuses)
    if not found:
        return None
    best = max(found, key=lambda each: _PRECEDENCE.get(each.code, 0))
    return Status(best.code, *(reason for each in found for reason in each.reasons), plugin=best.plugin)


_PRECEDENCE = {
    Code.ERROR: 4,
    Code.UNSCHEDULABLE_AND_UNRESOLVABLE: 3,
    Code.UNSCHEDULABLE: 2,
    Code.PENDING: 1,
}
