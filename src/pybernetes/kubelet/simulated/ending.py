"""Computes when terminated containers of a simulated pod end: hooks, the signal, the grace period, sidecars last.
Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pybernetes.api.core.podresources import is_sidecar
from pybernetes.api.core.v1 import Pod, PodSpec

from ..pod.killing import MINIMUM_GRACE
from ..runtime.types import ObservedContainer, find_container
from .hooks import hook
from .settings import Behaviour


@dataclass(frozen=True, slots=True)
class Stop:
    """How one container ends."""

    at: float
    in_time: bool
    """Whether it ended by itself before it was killed."""
    hook_fails: bool = False


def stops(
    pod: Pod, running: Sequence[ObservedContainer], behaviour: Callable[[str], Behaviour], grace: int, now: float
) -> dict[str, Stop]:
    """The end of each running container, by container id, if all are stopped now."""
    found: dict[str, Stop] = {}
    sidecars = _sidecars(pod)
    latest = now
    # Sidecars after all others, and each after those that came later.
    for each in sorted(running, key=lambda each: sidecars.get(each.name, -1)):
        container, wanted = find_container(pod, each.name), behaviour(each.name)
        lifecycle = container.lifecycle if container is not None else None
        before = hook(lifecycle.pre_stop if lifecycle else None, wanted.pre_stop) if grace else None
        signalled = now + min(before.seconds, grace) if before is not None else now
        if each.name in sidecars:
            signalled = max(signalled, min(latest, now + grace))
        # A container that is signalled late still gets the minimum grace.
        left = grace - (signalled - now)
        if signalled > now:
            left = max(left, float(MINIMUM_GRACE))
        stop = Stop(signalled + min(wanted.stop_after, left), wanted.stop_after <= left, bool(before and before.fails))
        latest = max(latest, stop.at)
        found[each.id] = stop
    return found


def _sidecars(pod: Pod) -> dict[str, int]:
    """Their names, the last one's number is 0."""
    inits = (pod.spec or PodSpec()).init_containers or ()
    return {each.name or "": number for number, each in enumerate(reversed(inits)) if is_sidecar(each)}
