"""What the runtime's log tells of the calls of a kubelet."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from pybernetes.component import klog
from pybernetes.cri import v1 as cri
from pybernetes.cri.embedded import call_log
from pybernetes.cri.embedded.call_log import LoggedCalls
from pybernetes.cri.embedded.server import EmbeddedRuntime
from pybernetes.cri.errors import CRIError
from pybernetes.cri.remote import snake_case

POD = cri.PodSandboxConfig(metadata=cri.PodSandboxMetadata(name="web", namespace="shop", uid="u1"))


class _Runtime:
    async def run_pod_sandbox(self, request: Any) -> Any:
        return cri.RunPodSandboxResponse(pod_sandbox_id="s1")

    async def create_container(self, request: Any) -> Any:
        return cri.CreateContainerResponse(container_id="c1")

    async def stop_container(self, request: Any) -> Any:
        return cri.StopContainerResponse()

    async def pull_image(self, request: Any) -> Any:
        raise CRIError("NotFound", "no such image")

    async def container_status(self, request: Any) -> Any:
        raise CRIError("NotFound", "it is gone")

    async def version(self, request: Any) -> Any:
        return cri.VersionResponse()

    async def get_container_events(self, request: Any) -> AsyncIterator[Any]:
        yield "event"


@pytest.fixture
def lines(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    monkeypatch.setattr(call_log, "_since", lambda begin: "0.001s")
    found: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: found.append(klog.Formatter().format(record).partition("] ")[2])  # type: ignore[method-assign]
    caplog.set_level(klog.level_of(2), call_log.log.name)
    call_log.log.addHandler(handler)
    yield found
    call_log.log.removeHandler(handler)


async def test_what_changes_something_and_what_fails_is_logged(lines: list[str]) -> None:
    runtime = LoggedCalls(_Runtime())
    assert (await runtime.run_pod_sandbox(cri.RunPodSandboxRequest(config=POD))).pod_sandbox_id == "s1"
    container = cri.ContainerConfig(metadata=cri.ContainerMetadata(name="main"), image=cri.ImageSpec(image="sha256:1"))
    asked = cri.CreateContainerRequest(pod_sandbox_id="s1", config=container, sandbox_config=POD)
    await runtime.create_container(asked)
    await runtime.stop_container(cri.StopContainerRequest(container_id="c1", timeout=30))
    await runtime.version(cri.VersionRequest())
    pull = cri.PullImageRequest(image=cri.ImageSpec(image="web:1"), auth=cri.AuthConfig(password="hidden"))
    with pytest.raises(CRIError, match="no such image"):
        await runtime.pull_image(pull)
    with pytest.raises(CRIError, match="gone"):
        await runtime.container_status(cri.ContainerStatusRequest(container_id="c1"))
    assert [each async for each in runtime.get_container_events(None)] == ["event"]
    assert lines == [
        '"RunPodSandbox" pod="shop/web" sandboxID="s1" took="0.001s"',
        '"CreateContainer" pod="shop/web" container="main" sandboxID="s1" containerID="c1" took="0.001s"',
        '"StopContainer" containerID="c1" timeout="30s" took="0.001s"',
        '"PullImage failed" err="no such image" image="web:1" took="0.001s"',
    ]


def test_all_names_are_methods_of_cri() -> None:
    methods = {snake_case(each.name) for each in cri.methods()}
    assert set(call_log.CHANGING) <= methods
    assert all(hasattr(EmbeddedRuntime, name) or name.endswith("image") for name in call_log.CHANGING)
