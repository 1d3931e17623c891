"""Which taints a pod bears."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

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


def covers(wide: Toleration, narrow: Toleration) -> bool:
    """Whether the one tolerates everything that the other does."""
    if wide == narrow:
        return True
    if (narrow.key or "") != (wide.key or "") and (wide.key or wide.operator != "Exists"):
        return False
    if wide.effect and wide.effect != narrow.effect:
        return False
    if wide.effect == "NoExecute" and wide.toleration_seconds is not None:
        seconds = narrow.toleration_seconds
        if seconds is None or seconds > wide.toleration_seconds:
            return False
    if wide.operator in (None, "", "Equal"):
        return narrow.operator == "Equal" and (narrow.value or "") == (wide.value or "")
    return wide.operator == "Exists"


def merge_tolerations(first: Sequence[Toleration], second: Sequence[Toleration]) -> list[Toleration]:
    """Both lists as one, without those that another one covers."""
    everything = [*first, *second]
    merged: list[Toleration] = []
    for index, each in enumerate(everything):
        if any(covers(other, each) for other in merged):
            continue
        if any(other != each and covers(other, each) for other in everything[index + 1 :]):
            continue
        merged.append(each)
    return merged
