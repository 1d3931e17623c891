"""How the runtime is: its name, whether it and its network are ready, its handlers. Asked every few seconds."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Any, Final

from pybernetes.api.core.v1 import NodeRuntimeHandler
from pybernetes.api.core.v1.node import NodeRuntimeHandlerFeatures
from pybernetes.client.clock import Clock
from pybernetes.cri.errors import CRIError
from pybernetes.cri.remote import Runtime

EVERY: Final = 5.0
"""Seconds between two looks; upstream's."""
WHILE_NOT_READY: Final = 0.25
DOWN: Final = 30.0
"""Seconds without an answer after which the runtime is down; upstream's."""
log = logging.getLogger(__name__)


class RuntimeState:
    """`changed` is called when something is different."""

    def __init__(self, runtime: Runtime, clock: Clock, changed: Callable[[], None]) -> None:
        self._runtime = runtime
        self._clock = clock
        self._changed = changed
        self.name = "containerd"
        self.version = ""
        self.handlers: Sequence[NodeRuntimeHandler] = ()
        self.supplemental_groups_policy = False
        self.recursive_read_only = False
        self._seen: float | None = None
        self._runtime_problem = ""
        self._network_problem = "container runtime status check may not have completed yet"

    @property
    def node_version(self) -> str:
        """`containerd://1.6.20`, for the node's status."""
        return f"{self.name}://{self.version}" if self.version else ""

    @property
    def has_cdi(self) -> bool:
        """Whether the runtime gives CDI devices to containers: all do but containerd before 2.0."""
        return self.name != "containerd" or not self.version.removeprefix("v").startswith(("0.", "1."))

    def runtime_problem(self) -> str:
        """Why the runtime is not ready; empty if it is."""
        if self._seen is None:
            return "container runtime status check may not have completed yet"
        if self._clock.monotonic() - self._seen > DOWN:
            return "container runtime is down"
        return self._runtime_problem

    def network_problem(self) -> str:
        """Why the pods' network is not ready; empty if it is."""
        return self._network_problem

    async def run(self) -> None:
        """Look until cancelled."""
        while True:
            before, seen = (self._runtime_problem, self._network_problem), self._seen
            try:
                await self.look()
            except CRIError as error:
                log.info("the runtime does not tell its status: %s", error)
            back = self._seen is not None and (seen is None or self._seen - seen > DOWN)
            if back or before != (self._runtime_problem, self._network_problem):
                self._changed()
            ready = not self.runtime_problem() and not self._network_problem
            await self._clock.sleep(EVERY if ready else WHILE_NOT_READY)

    async def look(self) -> None:
        """Ask the runtime once."""
        answer = await self._runtime.version()  # each time: it may have been upgraded under us
        self.name, self.version = answer.runtime_name or "containerd", answer.runtime_version
        answer = await self._runtime.status()
        conditions = {each.type: each for each in answer.status.conditions}
        self._runtime_problem = _problem("container runtime not ready", conditions.get("RuntimeReady"))
        self._network_problem = _problem("container runtime network not ready", conditions.get("NetworkReady"))
        self.handlers = [_handler(each) for each in answer.runtime_handlers]
        self.supplemental_groups_policy = answer.features.supplemental_groups_policy
        self.recursive_read_only = any(each.features.recursive_read_only_mounts for each in answer.runtime_handlers)
        self._seen = self._clock.monotonic()

    async def wait_up(self) -> None:
        """Return when the runtime has answered once."""
        while True:
            try:
                await self.look()
                return
            except CRIError as error:
                log.info("waiting for the runtime: %s", error)
                await asyncio.sleep(0.1)


def _problem(words: str, condition: Any) -> str:
    if condition is None:
        return f"{words}: <nil>"
    if condition.status:
        return ""
    return f"{words}: {condition.type}=false reason:{condition.reason} message:{condition.message}"


def _handler(handler: Any) -> NodeRuntimeHandler:
    features = handler.features
    return NodeRuntimeHandler(
        name=handler.name,
        features=NodeRuntimeHandlerFeatures(
            recursive_read_only_mounts=features.recursive_read_only_mounts, user_namespaces=features.user_namespaces
        ),
    )
