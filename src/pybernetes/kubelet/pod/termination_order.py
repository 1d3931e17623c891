"""In which order the containers of a pod end: sidecars after all others, and each after those that came later."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from pybernetes.api.core.podresources import is_sidecar
from pybernetes.api.core.v1 import Pod


class TerminationOrder:
    """The order in which containers end. Containers that do not run are not waited for."""

    def __init__(self, pod: Pod, running: Iterable[str]) -> None:
        spec = pod.spec
        assert spec is not None
        self._ended = {name: asyncio.Event() for name in running}
        self._before: dict[str, list[str]] = {}
        earlier = [each.name or "" for each in spec.containers or ()]
        for container in reversed(spec.init_containers or []):
            if is_sidecar(container):
                self._before[container.name or ""] = list(earlier)
                earlier.append(container.name or "")

    async def wait_for_turn(self, name: str) -> None:
        """Return when all that must end before this container have ended."""
        for each in self._before.get(name, ()):
            if each in self._ended:
                await self._ended[each].wait()

    def has_ended(self, name: str) -> None:
        """A container is no more."""
        if name in self._ended:
            self._ended[name].set()
