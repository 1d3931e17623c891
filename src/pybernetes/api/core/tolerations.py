"""Which taints a pod bears."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import inf
from typing import Any

from msgspec.structs import astuple

from .v1.affinity import Taint, Toleration


def tolerates(toleration: Toleration, taint: Taint) -> bool:
    """Whether the toleration speaks of this taint. An empty key or effect means any.

    The operators Lt and Gt are not enabled in this version of the API and match nothing.
    """
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    if toleration.operator in (None, "", "Equal"):
        return (toleration.value or "") == (taint.value or "")
    return toleration.operator == "Exists"


def untolerated_taint(
    taints: Iterable[Taint] | None, tolerations: Sequence[Toleration] | None, effects: Iterable[str]
) -> Taint | None:
    """The first taint with one of the effects that no toleration speaks of."""
    counted = frozenset(effects)
    for taint in taints or ():
        if taint.effect in counted and not any(tolerates(each, taint) for each in tolerations or ()):
            return taint
    return None


def merge_tolerations(first: Sequence[Toleration], second: Sequence[Toleration]) -> list[Toleration]:
    """Both lists as one, without those that another one covers."""
    everything = [*first, *second]
    later = Covering()
    covered: list[bool] = []
    for each in reversed(everything):
        covered.append(later.covers_as_another(each))
        later.add(each)
    covered.reverse()
    merged: list[Toleration] = []
    kept = Covering()
    for each, covered_later in zip(everything, covered, strict=True):
        if not covered_later and not kept.covers(each):
            merged.append(each)
            kept.add(each)
    return merged


class Covering:
    """Tolerations, prepared to find out in a few lookups whether one of them covers another."""

    def __init__(self, tolerations: Iterable[Toleration] = ()) -> None:
        self._forms: set[tuple[Any, ...]] = set()
        self._best: dict[tuple[str, str, str | None], list[tuple[float, tuple[Any, ...]]]] = {}
        """By key, effect and value (None = any): the two with the most seconds, each as (seconds, its fields)."""
        for each in tolerations:
            self.add(each)

    def add(self, wide: Toleration) -> None:
        """One more."""
        form = astuple(wide)
        if form in self._forms:
            return
        self._forms.add(form)
        if wide.operator in (None, "", "Equal"):
            value: str | None = wide.value or ""
        elif wide.operator == "Exists":
            value = None
        else:
            return
        limited = wide.effect == "NoExecute" and wide.toleration_seconds is not None
        seconds = float(wide.toleration_seconds or 0) if limited else inf
        best = self._best.setdefault((wide.key or "", wide.effect or "", value), [])
        best.append((seconds, form))
        if len(best) > 2:
            best.remove(min(best, key=_seconds))

    def covers(self, narrow: Toleration) -> bool:
        """Whether one of them tolerates everything that this one does."""
        return astuple(narrow) in self._forms or self.covers_as_another(narrow)

    def covers_as_another(self, narrow: Toleration) -> bool:
        """Whether one of them that is not equal to this one does."""
        key, effect, form = narrow.key or "", narrow.effect or "", astuple(narrow)
        seconds = inf if narrow.toleration_seconds is None else narrow.toleration_seconds
        values = (None, narrow.value or "") if narrow.operator == "Equal" else (None,)
        for value in values:
            for wide_effect in {effect, ""}:
                for wide_key in {key, ""} if value is None else {key}:
                    for has, other in self._best.get((wide_key, wide_effect, value), ()):
                        if has >= seconds and other != form:
                            return True
        return False


def _seconds(entry: tuple[float, tuple[Any, ...]]) -> float:
    return entry[0]
