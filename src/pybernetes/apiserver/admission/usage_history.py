"""Records the usage of containers by image: samples by day in buckets, so that percentiles of a month cost little
memory.

A bucket is a twentieth wider than the one before it; a percentile is therefore at most that much too high, and never
too low. A day of one image in one namespace takes a few hundred bytes, however many samples it had.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

import msgspec

DAY: Final = 86_400.0
KEPT_DAYS: Final = 31
_GROWTH: Final = 1.05
_WIDTH: Final = math.log(_GROWTH)

Key = tuple[str, str, str, int]
"""Resource, image, namespace, and the day since the epoch."""


class UsageHistory:
    """The samples of the last month. Values are whole numbers: millicores, bytes."""

    def __init__(self) -> None:
        self._days: dict[Key, Counter[int]] = {}

    def record(self, resource: str, image: str, namespace: str, value: int, now: float) -> None:
        """Add a sample."""
        self._days.setdefault((resource, image, namespace, int(now // DAY)), Counter())[_bucket(value)] += 1

    def percentile(
        self, resource: str, percentile: int, image: str, namespace: str | None, *, exact: bool, days: int, now: float
    ) -> tuple[int, int]:
        """The value that so many of a hundred samples do not exceed, and the number of samples.

        Of the image itself or, not `exact`, of all its tags; in a namespace, or None = in all.
        """
        since = int(now // DAY) - days
        total: Counter[int] = Counter()
        for (kind, known, where, day), counts in self._days.items():
            if kind != resource or day <= since or (namespace is not None and where != namespace):
                continue
            if (known if exact else repository(known)) == image:
                total.update(counts)
        samples = total.total()
        below = math.ceil(samples * percentile / 100)
        for bucket in sorted(total):
            below -= total[bucket]
            if below <= 0:
                return _upper(bucket), samples
        return 0, 0

    def forget(self, now: float) -> None:
        """Drop what is older than a month."""
        oldest = int(now // DAY) - KEPT_DAYS
        self._days = {key: counts for key, counts in self._days.items() if key[3] > oldest}

    def load(self, file: Path) -> None:
        """Read what `save` wrote. Raises ValueError."""
        try:
            rows = msgspec.json.decode(file.read_bytes(), type=list[tuple[str, str, str, int, dict[str, int]]])
        except FileNotFoundError:
            return
        except (OSError, msgspec.MsgspecError) as error:
            raise ValueError(f"{file}: {error}") from None
        self._days = {
            (kind, image, namespace, day): Counter({int(bucket): count for bucket, count in counts.items()})
            for kind, image, namespace, day, counts in rows
        }

    def save(self, file: Path) -> None:
        """Write everything to a file, at once or not at all."""
        beside = file.with_name(f"{file.name}.new")
        beside.write_bytes(msgspec.json.encode(list(self._rows())))
        beside.replace(file)

    def _rows(self) -> Iterator[list[Any]]:
        for key, counts in self._days.items():
            yield [*key, {str(bucket): count for bucket, count in counts.items()}]


def repository(image: str) -> str:
    """An image without tag and digest; a port of its registry is no tag."""
    name = image.partition("@")[0]
    head, colon, tail = name.rpartition(":")
    return head if colon and "/" not in tail else name


def estimate(history: UsageHistory, resource: str, image: str, steps: Iterable[Step], now: float) -> int | None:
    """The recommended request: from the first step with enough samples, else from the last one, if that has any."""
    value = samples = 0
    for step in steps:
        name = image if step.exact else repository(image)
        value, samples = history.percentile(
            resource, step.percentile, name, step.namespace, exact=step.exact, days=step.days, now=now
        )
        if samples >= ENOUGH:
            break
    return value if samples else None


ENOUGH: Final = 30
"""Samples that make an estimate; as it was upstream."""


class Step(msgspec.Struct, frozen=True):
    """One place to look for samples."""

    percentile: int
    namespace: str | None
    exact: bool
    days: int


def _bucket(value: int) -> int:
    return 0 if value <= 1 else math.ceil(math.log(value) / _WIDTH)


def _upper(bucket: int) -> int:
    return math.ceil(_GROWTH**bucket - 1e-9)
