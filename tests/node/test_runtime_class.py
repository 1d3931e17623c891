"""RuntimeClasses on a real node: those that its runtime has, and handlers that are not there."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from node.cluster import Cluster

import tools
from pybernetes.cluster.node import containerd, embedded
from pybernetes.cri import v1 as cri
from pybernetes.cri.remote import Runtime

NAMESPACE = "runtime-classes"
HANDLERS = {"containerd": ["runc", "crun"], "embedded": ["embedded"]}
OVERHEAD = {"memory": "10Mi", "cpu": "20m"}
SOCKETS = {"containerd": containerd.SOCKET, "embedded": embedded.SOCKET}


@pytest.fixture(scope="module", autouse=True)
def classes(node: Cluster) -> Iterator[None]:
    node.kubectl("create", "namespace", NAMESPACE)
    made: list[dict[str, Any]] = [
        {
            "apiVersion": "node.k8s.io/v1",
            "kind": "RuntimeClass",
            "metadata": {"name": f"with-{handler}"},
            "handler": handler,
        }
        for handler in (*HANDLERS[node.runtime], "nothing")
    ]
    made[-2]["overhead"] = {"podFixed": OVERHEAD}
    node.apply(*made)
    yield
    node.kubectl("delete", "namespace", NAMESPACE, "--wait=false")
    node.kubectl("delete", "runtimeclass", *(each["metadata"]["name"] for each in made))


def pod(name: str, runtime_class: str | None) -> dict[str, Any]:
    container = {
        "name": "main",
        "image": "busybox",
        "imagePullPolicy": "IfNotPresent",
        "command": ["sh", "-c", "echo started; exec sleep 600"],
    }
    spec: dict[str, Any] = {"containers": [container], "terminationGracePeriodSeconds": 1}
    if runtime_class:
        spec["runtimeClassName"] = runtime_class
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": spec,
    }


async def handlers(node: Cluster) -> dict[str, str]:
    """The handler of each pod's sandbox that is in use, as the runtime says."""
    socket = Path(f"/proc/{node.init()}/root{SOCKETS[node.runtime]}")
    async with Runtime(socket) as runtime:
        listed = await runtime.list_pod_sandbox(cri.ListPodSandboxRequest())
        return {
            each.metadata.name: each.runtime_handler
            for each in listed.items
            if each.metadata.namespace == NAMESPACE and each.state == cri.SANDBOX_READY
        }


async def test_pods_run_with_the_runtime_of_their_class(node: Cluster) -> None:
    own = HANDLERS[node.runtime]
    names = ["plain", *own]
    node.apply(pod("plain", None), *(pod(each, f"with-{each}") for each in own))
    pods = [f"pod/{name}" for name in names]
    node.kubectl("wait", "-n", NAMESPACE, "--for=condition=Ready", "--timeout=110s", *pods)
    assert {name: handler for name, handler in (await handlers(node)).items() if name in names} == {
        "plain": "",
        **{each: each for each in own},
    }
    for name in names:
        tools.wait_until(lambda name=name: node.kubectl("logs", "-n", NAMESPACE, name) == "started\n", "its log")
        assert node.kubectl("exec", "-n", NAMESPACE, name, "--", "echo", "hello") == "hello\n"
    assert node.get("pod", "-n", NAMESPACE, own[-1])["spec"]["overhead"] == OVERHEAD
    node.kubectl("delete", "pod", "-n", NAMESPACE, *names, "--wait=true")
    assert not set(names) & set(await handlers(node))


def test_a_class_that_does_not_exist_is_refused_at_once(node: Cluster) -> None:
    said = node.kubectl("apply", "-f", "-", stdin=str(pod("nobody", "no-such-class")).replace("'", '"'), check=False)
    assert 'pods "nobody" is forbidden: pod rejected: RuntimeClass "no-such-class" not found' in said


def test_a_handler_the_runtime_does_not_know_is_reported_in_events(node: Cluster) -> None:
    node.apply(pod("unlucky", "with-nothing"))

    def told() -> str | None:
        events = node.get("events", "-n", NAMESPACE, "--field-selector=reason=FailedCreatePodSandBox")["items"]
        return events[0]["message"] if events else None

    message = tools.wait_until(told, "an event", 90, every=0.2)
    assert message.startswith("Failed to create pod sandbox: ")
    assert 'no runtime for "nothing" is configured' in message

    def status() -> Any:
        found = node.get("pod", "-n", NAMESPACE, "unlucky")["status"]
        return found if found.get("containerStatuses") else None

    found = tools.wait_until(status, "the pod has a status", 90, every=0.2)
    assert found["phase"] == "Pending"
    assert found["containerStatuses"][0]["state"]["waiting"]["reason"] == "ContainerCreating"
    node.kubectl("delete", "pod", "-n", NAMESPACE, "unlucky", "--wait=true")
