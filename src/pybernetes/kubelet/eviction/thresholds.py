"""Thresholds: when a resource of the node counts as short (`memory.available<100Mi`, `nodefs.available<10%`).

Written as in KubeletConfiguration: maps from a signal to a quantity or a percentage of what there is.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from pybernetes.api.quantity import BINARY_SI, Quantity, parse
from pybernetes.api.times import parse_duration

MEMORY: Final = "memory.available"
ALLOCATABLE_MEMORY: Final = "allocatableMemory.available"
NODEFS: Final = "nodefs.available"
NODEFS_INODES: Final = "nodefs.inodesFree"
IMAGEFS: Final = "imagefs.available"
IMAGEFS_INODES: Final = "imagefs.inodesFree"
CONTAINERFS: Final = "containerfs.available"
CONTAINERFS_INODES: Final = "containerfs.inodesFree"
PID: Final = "pid.available"

INODES: Final = "inodes"
PIDS: Final = "pids"
EPHEMERAL_STORAGE: Final = "ephemeral-storage"

RESOURCES: Final = {
    MEMORY: "memory",
    ALLOCATABLE_MEMORY: "memory",
    IMAGEFS: EPHEMERAL_STORAGE,
    IMAGEFS_INODES: INODES,
    CONTAINERFS: EPHEMERAL_STORAGE,
    CONTAINERFS_INODES: INODES,
    NODEFS: EPHEMERAL_STORAGE,
    NODEFS_INODES: INODES,
    PID: PIDS,
}
"""Which resource a signal is about."""

CONDITIONS: Final = {
    signal: {"memory": "MemoryPressure", PIDS: "PIDPressure"}.get(resource, "DiskPressure")
    for signal, resource in RESOURCES.items()
}
"""Which condition of the node a signal makes true."""

DEFAULT_HARD: Final = {
    MEMORY: "100Mi",
    NODEFS: "10%",
    NODEFS_INODES: "5%",
    IMAGEFS: "15%",
    IMAGEFS_INODES: "5%",
}


@dataclass(frozen=True, slots=True)
class Amount:
    """A quantity, or a part of what there is."""

    quantity: Quantity | None = None
    percentage: float = 0.0
    """Between 0 and 1, in single precision as upstream keeps it."""

    def of(self, capacity: int) -> Quantity:
        """The quantity, of such a capacity."""
        return self.quantity if self.quantity is not None else Quantity(int(capacity * self.percentage), 0, BINARY_SI)


@dataclass(frozen=True, slots=True)
class Threshold:
    """A signal that must not fall below an amount."""

    signal: str
    amount: Amount
    grace: float = 0.0
    """Seconds that it may stay below; 0 = hard: no grace for pods either."""
    minimum_reclaim: Amount | None = None

    @property
    def hard(self) -> bool:
        """Whether pods go at once."""
        return not self.grace

    @property
    def resource(self) -> str:
        """The resource that the signal is about."""
        return RESOURCES[self.signal]


@dataclass(frozen=True, slots=True)
class Level:
    """The available amount of a resource and its capacity."""

    available: int
    capacity: int


def parse_thresholds(
    hard: Mapping[str, str],
    soft: Mapping[str, str] | None = None,
    soft_grace: Mapping[str, str] | None = None,
    minimum_reclaim: Mapping[str, str] | None = None,
    *,
    enforce_allocatable: bool = True,
) -> list[Threshold]:
    """All thresholds of a configuration; `ValueError` in upstream's words.

    With `enforce_allocatable` what pods together may have is watched as the machine's memory is.
    """
    graces = _graces(soft_grace or {})
    reclaims = {signal: _reclaim(signal, text) for signal, text in (minimum_reclaim or {}).items()}
    result = []
    for signal, text in hard.items():
        if (amount := _amount(signal, text)) is not None:
            result.append(Threshold(signal, amount, minimum_reclaim=reclaims.get(signal)))
    for signal, text in (soft or {}).items():
        if (amount := _amount(signal, text)) is not None:
            if signal not in graces:
                raise ValueError(f"grace period must be specified for the soft eviction threshold {signal}")
            result.append(Threshold(signal, amount, graces[signal], reclaims.get(signal)))
    if enforce_allocatable:
        result += [
            Threshold(ALLOCATABLE_MEMORY, each.amount, minimum_reclaim=each.minimum_reclaim)
            for each in result
            if each.signal == MEMORY and each.hard
        ]
    return result


def with_containerfs(thresholds: Iterable[Threshold], *, dedicated_imagefs: bool) -> list[Threshold]:
    """Writable layers are where images are, or on the node's file system: they have the thresholds of that one."""
    pairs = {IMAGEFS: CONTAINERFS, IMAGEFS_INODES: CONTAINERFS_INODES}
    if not dedicated_imagefs:
        pairs = {NODEFS: CONTAINERFS, NODEFS_INODES: CONTAINERFS_INODES}
    kept = [each for each in thresholds if each.signal not in (CONTAINERFS, CONTAINERFS_INODES)]
    return kept + [
        Threshold(pairs[each.signal], each.amount, each.grace, each.minimum_reclaim)
        for each in kept
        if each.signal in pairs
    ]


def met(thresholds: Iterable[Threshold], levels: Mapping[str, Level], *, with_reclaim: bool = False) -> list[Threshold]:
    """Those that are crossed; `with_reclaim` adds what must be won back once one was."""
    result = []
    for threshold in thresholds:
        level = levels.get(threshold.signal)
        if level is None:
            continue
        least = threshold.amount.of(level.capacity)
        if with_reclaim and threshold.minimum_reclaim is not None:
            least = least + threshold.minimum_reclaim.of(level.capacity)
        if least > Quantity(level.available):
            result.append(threshold)
    return result


def conditions(thresholds: Sequence[Threshold]) -> list[str]:
    """The node's conditions that crossed thresholds make true."""
    return list(dict.fromkeys(CONDITIONS[each.signal] for each in thresholds))


def reserved(hard: Mapping[str, str], memory: int, storage: int) -> dict[str, Quantity]:
    """The memory and ephemeral-storage below the hard eviction thresholds, which pods cannot use."""
    result: dict[str, Quantity] = {}
    for threshold in parse_thresholds(hard, enforce_allocatable=False):
        if threshold.signal == MEMORY:
            result["memory"] = threshold.amount.of(memory)
        elif threshold.signal == NODEFS:
            result[EPHEMERAL_STORAGE] = threshold.amount.of(storage)
    return result


def _check_signal(signal: str) -> None:
    if signal not in RESOURCES:
        raise ValueError(f"unsupported eviction signal {signal}")


def _amount(signal: str, text: str) -> Amount | None:
    _check_signal(signal)
    if text.endswith("%"):
        if text in ("0%", "100%"):
            return None  # switches the threshold off
        percentage = _percentage(text)
        if percentage < 0:
            raise ValueError(f"eviction percentage threshold {signal} must be >= 0%: {text}")
        if percentage > 1:
            raise ValueError(f"eviction percentage threshold {signal} must be <= 100%: {text}")
        return Amount(percentage=percentage)
    quantity = parse(text)
    if quantity.sign() <= 0:
        raise ValueError(f"eviction threshold {signal} must be positive: {quantity}")
    return Amount(quantity)


def _reclaim(signal: str, text: str) -> Amount:
    _check_signal(signal)
    if text.endswith("%"):
        percentage = _percentage(text)
        if percentage <= 0:
            raise ValueError(f"eviction percentage minimum reclaim {signal} must be positive: {text}")
        return Amount(percentage=percentage)
    quantity = parse(text)
    if quantity.sign() < 0:
        raise ValueError(f"negative eviction minimum reclaim specified for {signal}")
    return Amount(quantity)


def _graces(statements: Mapping[str, str]) -> dict[str, float]:
    result = {}
    for signal, text in statements.items():
        _check_signal(signal)
        nanoseconds = parse_duration(text)
        if nanoseconds < 0:
            raise ValueError(f"invalid eviction grace period specified: {text}, must be a positive value")
        result[signal] = nanoseconds / 1e9
    return result


def _percentage(text: str) -> float:
    try:
        value = float(text.rstrip("%"))
    except ValueError:
        raise ValueError(f'strconv.ParseFloat: parsing "{text.rstrip("%")}": invalid syntax') from None
    single: float = struct.unpack("f", struct.pack("f", struct.unpack("f", struct.pack("f", value))[0] / 100))[0]
    return single
