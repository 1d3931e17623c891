"""The probes of all containers of a simulated pod: what is due is asked, and what follows from it. Pure."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

from pybernetes.api.core.containers import AnyContainer
from pybernetes.api.core.v1 import Pod

from ..pod.actions import Verdicts
from ..probes.results import ProbeType
from ..runtime.types import ObservedContainer, ObservedPod, find_container
from .probing import Answers, Asked, Probed, ready_after
from .settings import Behaviour


class PodProbes:
    """By container id; containers without probes are not kept."""

    __slots__ = ("_behaviour", "_probed")

    def __init__(self, behaviour: Callable[[Pod, str], Behaviour]) -> None:
        self._behaviour = behaviour
        self._probed: dict[str, Probed] = {}

    def begin(self, container: AnyContainer, wanted: Behaviour, id: str, started_at: float) -> Probed | None:
        """A container runs since then; None if it has no probes."""
        if container.startup_probe is None and container.readiness_probe is None and container.liveness_probe is None:
            return None
        made = self._probed[id] = Probed(container, _answers(wanted), started_at)
        return made

    def change(self, id: str, wanted: Behaviour, now: float) -> None:
        """From now on a container answers in another way."""
        if id in self._probed:
            self._probed[id].change(_answers(wanted), now)

    def ask(self, pod: Pod, observed: ObservedPod, now: float, *, ending: bool) -> Iterator[tuple[AnyContainer, Asked]]:
        """Asks those that run what is due; which probes got bad answers."""
        running = {each.id: each for each in observed.running()}
        self._probed = {id: probed for id, probed in self._probed.items() if id in running}
        for id, each in running.items():
            container, probed = find_container(pod, each.name), self._probed.get(id)
            if container is None:
                continue
            if probed is None:
                # It was taken over from an earlier process, which has reported everything until now.
                probed = self.begin(container, self._behaviour(pod, each.name), id, each.started_at)
                for _ in probed.ask(now, ending=ending) if probed is not None else ():
                    pass
            else:
                yield from ((container, asked) for asked in probed.ask(now, ending=ending))

    def verdicts(self) -> Verdicts:
        """For the kubelet's decisions."""
        probed = self._probed
        return Verdicts(
            liveness=lambda id: probed[id].liveness if id in probed else None,
            startup=lambda id: probed[id].startup if id in probed else None,
        )

    def started(self, id: str) -> bool:
        """Whether a running container has started."""
        return id not in self._probed or self._probed[id].started

    def ready(self, pod: Pod, found: ObservedContainer, now: float) -> bool:
        """Whether a running container is ready."""
        asked = self._probed[found.id].readiness if found.id in self._probed else None
        return self.started(found.id) and (self._ready_at(pod, found) <= now if asked is None else asked)

    def again_at(self, pod: Pod, observed: ObservedPod, now: float, *, ending: bool) -> float:
        """When a container may come to be ready, or be found to be ill; infinity = never."""
        soonest = math.inf
        for each in observed.running():
            if each.id in self._probed:
                soonest = min(soonest, self._probed[each.id].again_at(ending=ending))
            if (at := self._ready_at(pod, each)) > now:
                soonest = min(soonest, at)
        return soonest

    def _ready_at(self, pod: Pod, found: ObservedContainer) -> float:
        """Of one that is not asked."""
        return found.started_at + self._behaviour(pod, found.name).ready_after


def _answers(wanted: Behaviour) -> dict[ProbeType, Answers]:
    return {
        ProbeType.STARTUP: wanted.startup_probe,
        ProbeType.READINESS: wanted.readiness_probe or ready_after(wanted.ready_after),
        ProbeType.LIVENESS: wanted.liveness_probe,
    }
