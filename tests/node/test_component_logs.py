"""What an operator greps for in the components' logs, in upstream's words; and what `pyb why` says of the same pod."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from node.cluster import Cluster
from node.pods import Namespace, pod

import tools

SLEEP = "trap 'exit 0' TERM; sleep 3600 & wait"


@pytest.fixture(scope="module")
def space(node: Cluster) -> Iterator[Namespace]:
    yield Namespace(node, f"logs-{os.getpid()}")
    node.kubectl("delete", "namespace", f"logs-{os.getpid()}", "--wait=false")


def test_the_life_of_a_pod_is_in_the_logs_and_why_tells_its_state(space: Namespace) -> None:
    probe = {"exec": {"command": ["sh", "-c", "echo no; exit 1"]}, "periodSeconds": 1}
    unready = pod("unready", SLEEP, main={"readinessProbe": probe})
    nowhere = pod("nowhere", SLEEP, nodeSelector={"no": "where"})
    space.apply(unready, nowhere, pod("noimage", [{"name": "main", "image": "none:1", "imagePullPolicy": "Never"}]))
    found = space.wait("unready", lambda each: each["status"].get("phase") == "Running", "running")
    sandboxed, uid = f'pod="{space.name}/unready"', found["metadata"]["uid"]
    id = found["status"]["containerStatuses"][0]["containerID"].partition("://")[2]
    expect(
        space,
        ("scheduler", f'"Unable to schedule pod; no fit; waiting" pod="{space.name}/nowhere" err="0/1 nodes are avail'),
        ("node-1-kubelet", f'"SyncLoop ADD" source="api" pods=["{space.name}/unready"]'),
        ("node-1-kubelet", f'"No sandbox for pod can be found. Need to start a new one" {sandboxed}'),
        (
            "node-1-kubelet",
            f'"SyncLoop (PLEG): event for pod" {sandboxed} '
            f'event={{"ID":"{uid}","Type":"ContainerStarted","Data":"{id}"}}',
        ),
        ("node-1-kubelet", f'"Observed pod startup duration" {sandboxed}'),
        ("node-1-kubelet", f'"Probe failed" probeType="Readiness" {sandboxed} podUID="{uid}" containerName="main"'),
        (
            "node-1-kubelet",
            '"Error syncing pod, skipping" err="failed to \\"StartContainer\\" for \\"main\\" with ErrImageNeverPull',
        ),
    )
    for name, sentence in (
        ("unready", "container main is not ready: Readiness probe failed: no"),
        ("nowhere", "no node fits: 0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector"),
        ("noimage", "the image none:1 of container main cannot be had: Container image"),
    ):
        said = space.cluster.pyb("why", f"pod/{name}", "-n", space.name)
        assert said.startswith(f"Pod {space.name}/{name}: {sentence}"), said
    space.kubectl("delete", "pod", "unready", "--grace-period=1")
    expect(
        space,
        ("node-1-kubelet", f'"Killing container with a grace period" {sandboxed} podUID="{uid}" containerName="main"'),
        ("node-1-kubelet", f'"Type":"ContainerDied","Data":"{id}"'),
        ("node-1-kubelet", f'"SyncLoop REMOVE" source="api" pods=["{space.name}/unready"]'),
    )


def expect(space: Namespace, *lines: tuple[str, str]) -> None:
    """Each line is in the log of a component, or comes."""
    for component, line in lines:
        log = space.cluster.layout.log(component)
        tools.wait_until(lambda log=log, line=line: line in log.read_text(), f"{component} logs {line}", 60.0, 0.1)
