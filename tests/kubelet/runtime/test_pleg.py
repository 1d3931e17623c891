"""The kubelet notices changes of its runtime without events."""

from __future__ import annotations

from typing import Any, cast

from pybernetes.client.clock import FakeClock
from pybernetes.cri import v1 as cri
from pybernetes.kubelet.runtime import labels
from pybernetes.kubelet.runtime.pleg import PLEG
from pybernetes.kubelet.runtime.pod_observer import Observing
from pybernetes.kubelet.runtime.types import PodRef

LABELS = {labels.POD_UID: "u", labels.POD_NAME: "p", labels.POD_NAMESPACE: "ns", labels.CONTAINER_NAME: "c"}


class Runtime:
    """One sandbox and some containers, and no events."""

    def __init__(self) -> None:
        self.containers: list[str] = []

    async def list_pod_sandbox(self, request: Any = None) -> Any:
        item = cri.PodSandbox(id="s", state=cri.SANDBOX_READY, labels=LABELS)
        return cri.ListPodSandboxResponse(items=[item])

    async def list_containers(self, request: Any = None) -> Any:
        found = [cri.Container(id=each, state=cri.CONTAINER_RUNNING, labels=LABELS) for each in self.containers]
        return cri.ListContainersResponse(containers=found)

    async def pod_sandbox_status(self, request: Any) -> Any:
        return cri.PodSandboxStatusResponse(status=cri.PodSandboxStatus(id="s", state=cri.SANDBOX_READY))

    async def container_status(self, request: Any) -> Any:
        status = cri.ContainerStatus(id=request.container_id, state=cri.CONTAINER_RUNNING, labels=LABELS)
        return cri.ContainerStatusResponse(status=status)


async def test_a_container_that_came_and_went_between_two_lists_is_missed() -> None:
    """Made after one list, it was lost by the runtime before the next: both lists are the same."""
    runtime = Runtime()
    changed: list[str] = []
    anything = cast(Any, runtime)
    pleg = PLEG(anything, Observing(anything), FakeClock(), changed.append, lambda: None)
    await pleg._relist()
    runtime.containers = ["c1"]
    await pleg.refresh(PodRef("u", "ns", "p"))  # the pod's worker has started it
    runtime.containers = []
    changed.clear()
    await pleg._relist()
    assert changed == ["u"]
    await pleg.refresh(PodRef("u", "ns", "p"))
    changed.clear()
    await pleg._relist()
    assert changed == []  # nothing is new
