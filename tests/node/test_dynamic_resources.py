"""A pod with a ResourceClaim on a real node: it waits for its driver, says so, gets its device, and gives it back."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from kubelet.dra.sample_driver import SampleDriver
from node.cluster import Cluster
from node.pods import Namespace, pod

import tools

DRIVER = "gpu.example.com"
SLEEP = "trap 'exit 0' TERM; sleep 3600 & wait"
META = {"apiVersion": "resource.k8s.io/v1"}


@pytest.fixture(scope="module")
def space(node: Cluster) -> Iterator[Namespace]:
    yield Namespace(node, f"dra-{os.getpid()}")
    node.kubectl("delete", "namespace", f"dra-{os.getpid()}", "--wait=false")


def test_a_pod_waits_for_its_driver_and_gets_the_device_of_its_claim(space: Namespace) -> None:
    cluster = space.cluster
    registry = cluster.layout.node("node-1") / "lib-kubelet/plugins_registry"
    state = cluster.layout.node("node-1") / "lib-kubelet/dra_manager_state"
    cdi = Path(f"/proc/{cluster.init()}/root/var/run/cdi")
    if cdi.parent.is_symlink():
        cdi = Path(f"/proc/{cluster.init()}/root/run/cdi")
    devices = {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "sample"}}]}
    cluster.apply(
        {
            **META,
            "kind": "DeviceClass",
            "metadata": {"name": "sample"},
            "spec": {"selectors": [{"cel": {"expression": f'device.driver == "{DRIVER}"'}}]},
        },
        {
            **META,
            "kind": "ResourceSlice",
            "metadata": {"name": "node-1-sample"},
            "spec": {
                "driver": DRIVER,
                "nodeName": "node-1",
                "pool": {"name": "pool", "generation": 1, "resourceSliceCount": 1},
                "devices": [{"name": "gpu-0"}],
            },
        },
    )
    template = {"metadata": {"name": "one"}, "spec": {"spec": {"devices": devices}}}
    space.apply({**META, "kind": "ResourceClaimTemplate", **template})
    wanted = pod("claimer", f"env | grep SAMPLE; ls -l /dev/gpu-0; cat /gpu-0; {SLEEP}")
    wanted["spec"]["resourceClaims"] = [{"name": "gpu", "resourceClaimTemplateName": "one"}]
    wanted["spec"]["containers"][0]["resources"] = {"claims": [{"name": "gpu"}]}
    space.apply(wanted)

    async def until(condition: Callable[[], Any], what: str) -> Any:
        return await asyncio.to_thread(tools.wait_until, condition, what, 90.0, 0.1)

    async def scenario() -> None:
        said = await until(lambda: space.event("claimer", "FailedPrepareDynamicResources"), "the pod waits")
        expected = f"prepare dynamic resources: DRA driver {DRIVER} is not registered"
        assert said == f"Failed to prepare dynamic resources: {expected}"
        assert space.get("claimer")["status"]["phase"] == "Pending"
        for component, line in (
            ("node-1-kubelet", f'"Failed to prepare dynamic resources" err="{expected}" pod="{space.name}/claimer"'),
            ("node-1-kubelet", f'"SyncLoop ADD" source="api" pods=["{space.name}/claimer"]'),
            ("node-1-kubelet", '"Creating Container Manager object based on Node Config" nodeConfig={'),
            ("scheduler", f'"Successfully bound pod to node" pod="{space.name}/claimer" node="node-1"'),
        ):
            await until(
                lambda text=line, name=component: text in cluster.layout.log(name).read_text(),
                f"{component} logs {line}",
            )
        driver = SampleDriver(DRIVER, registry, cdi)
        async with driver:
            found = await asyncio.to_thread(space.running, "claimer")
            assert driver.calls[0].startswith("v1 prepare claimer-gpu-"), driver.calls
            await until(lambda: space.kubectl("logs", "claimer").count("\n") >= 4, "all lines")
            log = space.kubectl("logs", "claimer")
            assert f"SAMPLE_DRIVER={DRIVER}" in log
            assert "SAMPLE_GPU_0=" in log
            assert "\ncrw" in log, log
            assert "1,   7" in log, log
            assert found["metadata"]["uid"] in state.read_text()
            await asyncio.to_thread(space.kubectl, "delete", "pod", "claimer")
            await until(lambda: len(driver.calls) > 1, "the driver unprepares")
            assert [each.split()[1] for each in driver.calls] == ["prepare", "unprepare"]
            await until(lambda: found["metadata"]["uid"] not in state.read_text(), "the state is forgotten")

    asyncio.run(scenario())
