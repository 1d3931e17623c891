"""Resources of pods on a real node, through kubectl: cgroups, resizes in place, device plugins, limits of disk."""

from __future__ import annotations

import asyncio
import json
import os
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from kubelet.devices.sample_plugin import SamplePlugin
from node.cluster import Cluster
from node.pods import Namespace, container, pod

import tools
from pybernetes.api.core.v1 import Pod

MI = 1 << 20
SLEEP = "trap 'exit 0' TERM; sleep 3600 & wait"


@pytest.fixture(scope="module")
def namespace_of_all(node: Cluster) -> Iterator[Namespace]:
    yield Namespace(node, f"resources-{os.getpid()}")
    node.kubectl("delete", "namespace", f"resources-{os.getpid()}", "--wait=false")


@pytest.fixture
def space(namespace_of_all: Namespace) -> Iterator[Namespace]:
    """A namespace whose pods go after each test: what they request is what the next ones need."""
    yield namespace_of_all
    namespace_of_all.kubectl("delete", "pods", "--all", "--wait=false")


def resources(cpu: str = "", memory: str = "", **limits: str) -> dict[str, Any]:
    """`resources("100m/200m", "32Mi/64Mi")`: request and limit."""
    result: dict[str, Any] = {"requests": {}, "limits": dict(limits)}
    for name, text in (("cpu", cpu), ("memory", memory)):
        request, slash, limit = text.partition("/")
        if request:
            result["requests"][name] = request
        if slash:
            result["limits"][name] = limit
    return {"resources": {key: value for key, value in result.items() if value}}


def resize(space: Namespace, name: str, new: dict[str, Any], container: str = "main") -> None:
    """Gives a container other resources."""
    resize_pod(space, name, {"containers": [{"name": container, **new}]})


def resize_pod(space: Namespace, name: str, spec: dict[str, Any]) -> None:
    """What `kubectl patch --subresource=resize` does; Debian's kubectl is too old for it."""

    async def patch() -> None:
        async with space.cluster.client() as client:
            await client.patch(Pod, name, {"spec": spec}, space.name, type="strategic", subresource="resize")

    asyncio.run(patch())


def cgroup(space: Namespace, found: Any, controller: str, file: str, container: bool = False) -> str:
    """A file of a pod's cgroup on the node, or of that of its first container."""
    folder = {"Guaranteed": "", "Burstable": "burstable/", "BestEffort": "besteffort/"}[found["status"]["qosClass"]]
    path = f"/sys/fs/cgroup/{controller}/kubepods/{folder}pod{found['metadata']['uid']}"
    if container:
        path += "/" + found["status"]["containerStatuses"][0]["containerID"].partition("://")[2]
    return space.cluster.inside("cat", f"{path}/{file}").strip()


def conditions(found: Any) -> dict[str, Any]:
    return {each["type"]: each for each in found["status"].get("conditions") or ()}


def actual(found: Any) -> Any:
    return found["status"]["containerStatuses"][0]["resources"]


def resized(expected: dict[str, Any]) -> Callable[[Any], bool]:
    """Whether the container has it, and nothing is under way any more."""
    return lambda found: actual(found) == expected["resources"] and "PodResizeInProgress" not in conditions(found)


# cgroups


def test_pods_have_cgroups_by_quality_of_service_that_go_with_them(space: Namespace) -> None:
    space.apply(
        pod("guaranteed", SLEEP, main=resources("100m/100m", "32Mi/32Mi")),
        pod("burstable", SLEEP, main=resources("200m/500m", "32Mi")),
        pod("besteffort", SLEEP),
    )
    found = {name: space.running(name) for name in ("guaranteed", "burstable", "besteffort")}
    for name, shares, quota, memory in (
        ("guaranteed", "102", "10000", str(32 * MI)),
        ("burstable", "204", "50000", "9223372036854771712"),
        ("besteffort", "2", "-1", "9223372036854771712"),
    ):
        for inner in (False, True):
            assert cgroup(space, found[name], "cpu", "cpu.shares", inner) == shares, name
            assert cgroup(space, found[name], "cpu", "cpu.cfs_quota_us", inner) == quota, name
            assert cgroup(space, found[name], "memory", "memory.limit_in_bytes", inner) == memory, name
    assert space.exec("besteffort", "cat /proc/1/oom_score_adj").strip() == "1000"
    names = " -o ".join(f"-name pod{each['metadata']['uid']}" for each in found.values())
    space.kubectl("delete", "pod", "guaranteed", "burstable", "besteffort")
    search = f"find /sys/fs/cgroup {names} 2>/dev/null || true"  # others' cgroups come and go while it looks
    tools.wait_until(lambda: not space.cluster.inside("sh", "-c", search), "their cgroups are gone", 60.0)


def test_a_container_that_takes_more_memory_than_its_limit_is_killed_for_it(space: Namespace) -> None:
    space.apply(pod("oom", "tail /dev/zero", main=resources("", "16Mi/32Mi")))
    found = space.wait("oom", lambda found: found["status"]["phase"] == "Failed", "killed")
    ended = found["status"]["containerStatuses"][0]["state"]["terminated"]
    assert (ended["reason"], ended["exitCode"]) == ("OOMKilled", 137)


def test_a_pods_own_limits_are_those_of_its_containers_together(space: Namespace) -> None:
    space.apply(pod("pod-level", [container(SLEEP), container(SLEEP, "other")], **resources("100m/300m", "32Mi/64Mi")))
    found = space.running("pod-level")
    assert found["status"]["qosClass"] == "Burstable"
    assert cgroup(space, found, "cpu", "cpu.cfs_quota_us") == "30000"
    assert cgroup(space, found, "memory", "memory.limit_in_bytes") == str(64 * MI)
    assert cgroup(space, found, "memory", "memory.limit_in_bytes", True) == str(64 * MI)
    assert found["status"]["resources"]["limits"] == {"cpu": "300m", "memory": "64Mi"}


# resize


def test_a_resize_changes_a_container_while_it_runs(space: Namespace) -> None:
    before, after = resources("100m/200m", "32Mi/64Mi"), resources("200m/400m", "48Mi/96Mi")
    space.apply(pod("grow", SLEEP, main=before))
    first = space.running("grow")
    assert actual(first) == before["resources"]
    for new, quota, memory in ((after, "40000", 96 * MI), (before, "20000", 64 * MI)):
        resize(space, "grow", new)
        found = space.wait("grow", resized(new), "resized")
        assert found["status"]["containerStatuses"][0]["allocatedResources"] == new["resources"]["requests"]
        assert found["status"]["resources"] == new["resources"]
        for inner in (False, True):
            assert cgroup(space, found, "cpu", "cpu.cfs_quota_us", inner) == quota
            assert cgroup(space, found, "memory", "memory.limit_in_bytes", inner) == str(memory)
        status = found["status"]["containerStatuses"][0]
        assert (status["restartCount"], status["containerID"]) == (
            0,
            first["status"]["containerStatuses"][0]["containerID"],
        )
    assert space.event("grow", "ResizeCompleted").startswith('Pod resize completed: {"containers":[{"name":"main"')


def test_a_container_is_restarted_for_a_resize_if_its_policy_says_so(space: Namespace) -> None:
    policy = {"resizePolicy": [{"resourceName": "memory", "restartPolicy": "RestartContainer"}]}
    before = resources("100m/200m", "32Mi/64Mi")
    space.apply(pod("restart", SLEEP, main={**before, **policy}, restartPolicy="Always"))
    space.running("restart")
    cpu_only = resources("150m/300m", "32Mi/64Mi")
    resize(space, "restart", cpu_only)
    found = space.wait("restart", resized(cpu_only), "resized")
    assert found["status"]["containerStatuses"][0]["restartCount"] == 0
    both = resources("150m/300m", "32Mi/96Mi")
    resize(space, "restart", both)
    found = space.wait(
        "restart",
        lambda found: resized(both)(found) and found["status"]["containerStatuses"][0]["restartCount"] == 1,
        "restarted with more",
    )
    assert cgroup(space, found, "memory", "memory.limit_in_bytes") == str(96 * MI)
    assert space.event("restart", "Killing") == "Container main resize requires restart"


def test_containers_are_restarted_once_for_a_limit_of_their_pod_that_grows_or_shrinks(space: Namespace) -> None:
    """While one still has the higher limit the kernel would refuse the lower one for the pod."""
    policy = {"resizePolicy": [{"resourceName": "cpu", "restartPolicy": "RestartContainer"}]}
    sidecar = container(SLEEP, "sidecar", restartPolicy="Always", **policy)
    before, after = resources("80m/80m", "64Mi/64Mi"), resources("90m/90m", "64Mi/64Mi")
    space.apply(
        pod("restart-all", SLEEP, main=policy, initContainers=[sidecar], restartPolicy="Always", **before),
    )
    space.running("restart-all")
    for new, quota, times in ((after, "9000", 1), (before, "8000", 2)):
        resize_pod(space, "restart-all", new)

        def restarted(found: Any, times: int = times, new: dict[str, Any] = new) -> bool:
            statuses = [*found["status"]["initContainerStatuses"], *found["status"]["containerStatuses"]]
            again = all(each["restartCount"] == times and "running" in each["state"] for each in statuses)
            settled = "PodResizeInProgress" not in conditions(found)
            return again and settled and found["status"]["resources"]["limits"] == new["resources"]["limits"]

        found = space.wait("restart-all", restarted, "restarted")
        for inner in (False, True):
            assert cgroup(space, found, "cpu", "cpu.cfs_quota_us", inner) == quota
    events = json.loads(
        space.kubectl("get", "events", "--field-selector=involvedObject.name=restart-all", "-o", "json")
    )
    assert "ResizeError" not in {each["reason"] for each in events["items"]}


def test_a_limit_below_what_is_used_is_an_error_until_it_is_not(space: Namespace) -> None:
    """Memory of an emptyDir is the container's, and can be given back."""
    before, after = resources("50m/100m", "32Mi/128Mi"), resources("50m/100m", "32Mi/48Mi")
    volumes = {"volumes": [{"name": "m", "emptyDir": {"medium": "Memory"}}]}
    main = {**before, "volumeMounts": [{"name": "m", "mountPath": "/m"}]}
    space.apply(pod("shrink", f"dd if=/dev/zero of=/m/x bs=1M count=64 2>&-; {SLEEP}", main=main, **volumes))
    space.running("shrink")
    space.until("shrink", "stat -c %s /m/x", f"{64 * MI}\n")
    resize(space, "shrink", after)
    found = space.wait(
        "shrink", lambda found: conditions(found).get("PodResizeInProgress", {}).get("reason") == "Error", "an error"
    )
    message = conditions(found)["PodResizeInProgress"]["message"]
    assert message.startswith("cannot decrease memory limits: "), message
    assert 'attempting to set container "main" memory limit (50331648) below current usage' in message
    assert actual(found)["limits"]["memory"] == "128Mi"
    space.exec("shrink", "rm /m/x")
    space.wait("shrink", resized(after), "smaller", timeout=90)
    assert space.event("shrink", "ResizeError").startswith("Pod resize error: ")


def test_a_resize_waits_until_the_node_has_room(space: Namespace) -> None:
    space.kubectl("delete", "pod", "--all")
    allocatable = space.cluster.get("node", "node-1")["status"]["allocatable"]["cpu"]
    assert allocatable.isdigit(), "the test counts whole CPUs"
    wanted = int(allocatable) * 1000 - 500
    space.apply(pod("waits", SLEEP, main=resources("50m", "16Mi")), pod("holds", SLEEP, main=resources("600m")))
    space.running("waits")
    space.running("holds")
    more = resources(f"{wanted}m", "16Mi")
    resize(space, "waits", more)
    found = space.wait("waits", lambda found: "PodResizePending" in conditions(found), "pending")
    pending = conditions(found)["PodResizePending"]
    assert (pending["status"], pending["reason"]) == ("True", "Deferred")
    assert re.fullmatch(
        rf"Node didn't have enough resource: cpu, requested: {wanted}, used: \d+, capacity: \d+", pending["message"]
    )
    assert found["status"]["containerStatuses"][0]["allocatedResources"]["cpu"] == "50m"
    assert space.event("waits", "ResizeDeferred").startswith("Pod resize OutOfcpu: ")
    space.kubectl("delete", "pod", "holds", "--wait=false")
    found = space.wait("waits", resized(more), "resized")
    assert "PodResizePending" not in conditions(found)


def test_the_pods_own_limits_can_be_resized(space: Namespace) -> None:
    space.apply(pod("resize-pod", SLEEP, **resources("100m/200m", "32Mi/64Mi")))
    found = space.running("resize-pod")

    async def patch() -> None:
        async with space.cluster.client() as client:
            body = {"spec": resources("100m/400m", "32Mi/96Mi")}
            await client.patch(Pod, "resize-pod", body, space.name, type="strategic", subresource="resize")

    asyncio.run(patch())
    found = space.wait(
        "resize-pod",
        lambda found: (
            found["status"]["resources"]["limits"] == {"cpu": "400m", "memory": "96Mi"}
            and "PodResizeInProgress" not in conditions(found)
        ),
        "resized",
    )
    for inner in (False, True):
        assert cgroup(space, found, "memory", "memory.limit_in_bytes", inner) == str(96 * MI)
        assert cgroup(space, found, "cpu", "cpu.cfs_quota_us", inner) == "40000"


# disk


def test_pods_that_fill_the_disk_beyond_their_limits_are_evicted(space: Namespace) -> None:
    mount = {"volumeMounts": [{"name": "v", "mountPath": "/v"}]}
    space.apply(
        pod(
            "full-volume",
            f"dd if=/dev/zero of=/v/x bs=1M count=4; {SLEEP}",
            main=mount,
            volumes=[{"name": "v", "emptyDir": {"sizeLimit": "1Mi"}}],
        ),
        pod(
            "full-log",
            f"dd if=/dev/zero bs=1k count=4096 | tr '\\0' x | fold -w 1000; {SLEEP}",
            main=resources(**{"ephemeral-storage": "1Mi"}),
        ),
    )
    expected = {
        "full-volume": 'Usage of EmptyDir volume "v" exceeds the limit "1Mi". ',
        "full-log": "Pod ephemeral local storage usage exceeds the total limit of containers 1Mi. ",
    }
    for name, message in expected.items():
        found = space.wait(name, lambda found: found["status"]["phase"] == "Failed", "evicted")
        assert (found["status"]["reason"], found["status"]["message"]) == ("Evicted", message)
        assert space.event(name, "Evicted") == message


# devices


def test_a_device_plugin_gives_its_devices_to_containers(space: Namespace) -> None:
    folder = space.cluster.layout.node("node-1") / "lib-kubelet/device-plugins"
    name = "example.com/sample"

    def counts() -> tuple[str | None, str | None]:
        status = space.cluster.get("node", "node-1")["status"]
        return status["capacity"].get(name), status["allocatable"].get(name)

    async def until(condition: Callable[[], Any], what: str) -> Any:
        return await asyncio.to_thread(tools.wait_until, condition, what, 90.0, 0.1)

    async def scenario() -> None:
        plugin = SamplePlugin(folder, name, "g0", "g1")
        async with plugin:
            await until(lambda: counts() == ("2", "2"), "the node has the devices")
            wanted = resources(**{name: "2"})
            space.apply(pod("device", f"echo $SAMPLE_DEVICES; ls -l /dev/g0 /dev/g1; {SLEEP}", main=wanted))
            found = await asyncio.to_thread(space.running, "device")
            (health,) = found["status"]["containerStatuses"][0]["allocatedResourcesStatus"]
            assert health["name"] == name
            assert [each["resourceID"] for each in health["resources"]] == ["g0", "g1"]
            said = await until(lambda: space.kubectl("logs", "device"), "its log")
            assert said.startswith("g0,g1\n"), said
            await until(lambda: space.kubectl("logs", "device").count("\ncrw") == 2, "both are devices")
            space.apply(pod("device-2", SLEEP, main=wanted))
            plugin.set_health(g0="Unhealthy")
            await until(lambda: counts() == ("2", "1"), "a device is unhealthy")
            await until(
                lambda: '"health": "Unhealthy"' in space.kubectl("get", "pod", "device", "-o", "json"),
                "the pod's status says so",
            )
            plugin.set_health(g0="Healthy")
            await until(lambda: counts() == ("2", "2"), "it is healthy again")
            assert space.get("device-2")["status"]["phase"] == "Pending"
            space.kubectl("delete", "pod", "device")
            await asyncio.to_thread(space.running, "device-2")
            assert plugin.allocated == [["g0", "g1"], ["g0", "g1"]]
            space.kubectl("delete", "pod", "device-2")
        await until(lambda: counts() == ("2", "0"), "the plugin has gone")

    asyncio.run(scenario())
    kept = json.loads((folder / "kubelet_internal_checkpoint").read_text())
    assert set(kept["Data"]["RegisteredDevices"]) == {name}
