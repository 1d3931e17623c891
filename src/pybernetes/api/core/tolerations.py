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
