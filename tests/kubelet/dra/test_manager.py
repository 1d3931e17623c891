"""Dynamic resources on the node, with a real driver at a real socket: registration, calls, checkpoint, recovery."""

from __future__ import annotations

import asyncio
import json
import tempfile
import zlib
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
from kubelet.dra.sample_driver import KIND, SampleDriver

from pybernetes.api import errors
from pybernetes.api.core.v1 import Container, Pod
from pybernetes.api.resource.v1 import ResourceClaim, ResourceSlice
from pybernetes.client.clock import SystemClock
from pybernetes.kubelet.dra.claims import ClaimError
from pybernetes.kubelet.dra.manager import DRAManager
from pybernetes.kubelet.plugins.registry import PluginRegistry
from tools import wait_until

DRIVER = "gpu.example.com"


@pytest.fixture
def folder() -> Iterator[Path]:
    """Short, because the path of a socket has 107 bytes at most."""
    with tempfile.TemporaryDirectory(prefix="pyb-") as made:
        yield Path(made)


async def _until(condition: Callable[[], Any], what: str) -> Any:
    return await asyncio.to_thread(wait_until, condition, what)


class Claims:
    """The API server's ResourceClaims, and which ResourceSlices were deleted."""

    def __init__(self) -> None:
        self.claims: dict[str, ResourceClaim] = {}
        self.wiped: list[str] = []

    async def get(self, kind: type, name: str, namespace: str) -> ResourceClaim:
        assert (kind, namespace) == (ResourceClaim, "default")
        if name not in self.claims:
            raise errors.NotFound("resource.k8s.io", "resourceclaims", name)
        return self.claims[name]

    async def delete_collection(self, kind: type, *, field_selector: str) -> None:
        assert kind is ResourceSlice
        self.wiped.append(field_selector)

    def add(self, name: str, *pods: str, driver: str = DRIVER, allocated: bool = True) -> None:
        results = [{"request": "gpu", "driver": driver, "pool": "pool", "device": "gpu-0"}]
        status: dict[str, Any] = {"reservedFor": [{"resource": "pods", "name": each, "uid": each} for each in pods]}
        if allocated:
            status["allocation"] = {"devices": {"results": results}}
        meta = {"name": name, "namespace": "default", "uid": f"uid-{name}"}
        self.claims[name] = msgspec.convert({"metadata": meta, "status": status}, ResourceClaim)


def _pod(uid: str, claim: str, *, template: bool = False, request: str = "") -> Pod:
    entry = {"name": "c", "resourceClaimTemplateName": "t"} if template else {"name": "c", "resourceClaimName": claim}
    status = {"resourceClaimStatuses": [{"name": "c", "resourceClaimName": claim}]} if template and claim else {}
    used = {"name": "c", "request": request} if request else {"name": "c"}
    containers = [{"name": "main", "resources": {"claims": [used]}}, {"name": "other"}]
    return msgspec.convert(
        {
            "metadata": {"name": uid, "namespace": "default", "uid": uid},
            "spec": {"resourceClaims": [entry], "containers": containers},
            "status": status,
        },
        Pod,
    )


def _container(pod: Pod, number: int = 0) -> Container:
    assert pod.spec is not None
    assert pod.spec.containers is not None
    return pod.spec.containers[number]


class Node:
    def __init__(self, folder: Path, claims: Claims) -> None:
        self.woken: set[str] = set()
        self.manager = DRAManager(claims, folder, "node-1", SystemClock(), changed=self.woken.update)  # type: ignore[arg-type]
        self.registry = PluginRegistry(folder / "plugins_registry", {"DRAPlugin": self.manager.drivers})


@asynccontextmanager
async def _kubelet(folder: Path, claims: Claims) -> AsyncIterator[Node]:
    node = Node(folder, claims)
    tasks = [asyncio.create_task(each) for each in (node.registry.run(), node.manager.wipe())]
    try:
        yield node
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


@pytest.mark.parametrize("version", ["v1", "v1beta1"])
async def test_claims_are_prepared_shared_and_unprepared_after_the_last_pod(folder: Path, version: str) -> None:
    claims = Claims()
    claims.add("one", "a", "b")
    async with _kubelet(folder, claims) as node:
        a, b = _pod("a", "one"), _pod("b", "one")
        with pytest.raises(ClaimError, match=f"prepare dynamic resources: DRA driver {DRIVER} is not registered"):
            await node.manager.prepare(a)
        await node.manager.unprepare("a")  # the pod can be deleted although its driver was never there
        with pytest.raises(ClaimError):
            await node.manager.prepare(a)
        driver = SampleDriver(DRIVER, folder / "plugins_registry", folder / "cdi", versions=[f"{version}.DRAPlugin"])
        async with driver:
            await _until(lambda: node.woken == {"a"}, "the waiting pod is woken by its driver")
            await _until(lambda: driver.registered == [(True, "")], "the driver is notified of its registration")
            await node.manager.prepare(a)
            await node.manager.prepare(a)
            await node.manager.prepare(b)
            assert driver.calls == [f"{version} prepare one"]
            assert node.manager.cdi_devices(a, _container(a)) == [f"{KIND}=uid-one-gpu-0"]
            assert node.manager.cdi_devices(a, _container(a, 1)) == []
            assert node.manager.cdi_devices(
                _pod("a", "one", request="gpu"), _container(_pod("a", "one", request="gpu"))
            )
            other = _pod("a", "one", request="else")
            assert node.manager.cdi_devices(other, _container(other)) == []
            kept = json.loads((folder / "dra_manager_state").read_text())
            assert kept["Checksum"] == zlib.crc32(kept["Data"].encode())
            (state,) = json.loads(kept["Data"])["ClaimInfoStateList"]
            assert (state["ClaimUID"], state["PodUIDs"]) == ("uid-one", {"a": {}, "b": {}})
            await node.manager.unprepare("a")
            assert driver.calls == [f"{version} prepare one"]
            await node.manager.unprepare("b")
            assert driver.calls == [f"{version} prepare one", f"{version} unprepare one"]
            assert node.manager.holders() == set()
        await _until(lambda: not node.manager.drivers.names(), "the driver is gone with its socket")


async def test_a_restarted_kubelet_knows_what_is_prepared_and_unprepares_it(folder: Path) -> None:
    claims = Claims()
    claims.add("one", "a")
    async with SampleDriver(DRIVER, folder / "plugins_registry", folder / "cdi") as driver:
        a = _pod("a", "one")
        async with _kubelet(folder, claims) as node:
            await _until(lambda: driver.registered, "registered")
            await node.manager.prepare(a)
        async with _kubelet(folder, claims) as node:
            assert node.manager.cdi_devices(a, _container(a)) == [f"{KIND}=uid-one-gpu-0"]
            assert claims.wiped[-1] == "spec.nodeName=node-1" or await _until(lambda: claims.wiped, "wiped")
            await _until(lambda: len(driver.registered) == 2, "registered with the new kubelet")
            driver.refuse = "busy"
            with pytest.raises(ClaimError, match="NodeUnprepareResources failed for ResourceClaim one: busy"):
                await node.manager.unprepare("a")
            assert node.manager.holders() == {"a"}
            driver.refuse = ""
            await node.manager.unprepare("a")
        (folder / "dra_manager_state").write_text("{")
        async with _kubelet(folder, claims) as node:  # set aside, not a crash loop
            assert node.manager.holders() == set()


async def test_what_keeps_a_pod_waiting_is_said(folder: Path) -> None:
    claims = Claims()
    claims.add("unallocated", "a", allocated=False)
    claims.add("other", "b")
    claims.add("mine", "a")
    async with _kubelet(folder, claims) as node:
        for pod, text in (
            (_pod("a", "", template=True), 'pod "default/a": ResourceClaim not created yet'),
            (_pod("a", "missing"), 'fetch ResourceClaim missing: resourceclaims.resource.k8s.io "missing" not found'),
            (_pod("a", "other"), r"pod a \(a\) is not allowed to use ResourceClaim other \(uid-other\)"),
            (_pod("a", "unallocated"), "ResourceClaim unallocated: not allocated"),
            (_pod("a", "mine", template=True), "ResourceClaim default/mine was not created for Pod default/a"),
        ):
            with pytest.raises(ClaimError, match=text):
                await node.manager.prepare(pod)
        old = SampleDriver(DRIVER, folder / "plugins_registry", folder / "cdi", versions=["v1alpha4.Node"])
        async with old:
            await _until(lambda: old.registered, "an answer")
            assert old.registered[0][0] is False
            assert "none of services supported by the plugin" in old.registered[0][1]
        driver = SampleDriver(DRIVER, folder / "plugins_registry", folder / "cdi")
        async with driver:
            await _until(lambda: driver.registered, "registered")
            driver.refuse = "no such device"
            with pytest.raises(ClaimError, match="failed for ResourceClaim mine: no such device"):
                await node.manager.prepare(_pod("a", "mine"))
            driver.refuse = ""
            claims.claims["mine"].metadata.uid = "new"  # type: ignore[union-attr]
            with pytest.raises(ClaimError, match="old ResourceClaim with same name mine and different UID uid-mine"):
                await node.manager.prepare(_pod("a", "mine"))
