"""The life of pods on a real node, through kubectl: order, restarts, ends, and what their statuses say meanwhile."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

import pytest
from node.cluster import Cluster
from node.pods import Namespace, config_map, container, pod

import tools
from pybernetes.api.core.v1 import Pod

SILENT = """
import socket, time
server = socket.create_server(("127.0.0.1", 0))
print(server.getsockname()[1], flush=True)
kept = []
while True:
    kept.append(server.accept())
    print("connected", flush=True)
"""
ENDS_ON_TERM = "trap 'exit 0' TERM; while :; do sleep 0.1; done"


@pytest.fixture(scope="module")
def space(node: Cluster) -> Iterator[Namespace]:
    """A namespace of these tests' own."""
    found = Namespace(node, "lifecycle")
    yield found
    node.kubectl("delete", "namespace", "lifecycle", "--wait=false")


def phase(found: Any) -> str:
    return str(found["status"]["phase"])


def statuses(found: Any, kind: str = "containerStatuses") -> dict[str, Any]:
    return {each["name"]: each for each in found["status"].get(kind) or ()}


def condition(found: Any, type: str) -> Any:
    return next((each for each in found["status"].get("conditions") or () if each["type"] == type), {})


def waiting(found: Any, name: str = "main") -> str:
    state = statuses(found).get(name, {}).get("state", {})
    return str(state.get("waiting", {}).get("reason", ""))


def test_init_containers_run_in_order_and_sidecars_end_last(space: Namespace) -> None:
    volume = {"volumeMounts": [{"name": "v", "mountPath": "/v"}]}
    side = f"echo side >> /v/log; trap 'echo side-ends >> /v/log; cat /v/log; exit 0' TERM; {ENDS_ON_TERM[20:]}"
    space.apply(
        pod(
            "order",
            [container("sleep 0.5; echo main >> /v/log", **volume)],
            volumes=[{"name": "v", "emptyDir": {}}],
            terminationGracePeriodSeconds=10,
            initContainers=[
                container("sleep 0.3; echo one >> /v/log", "one", **volume),
                container(side, "side", restartPolicy="Always", **volume),
                container("grep -q side /v/log || exit 1; echo two >> /v/log", "two", **volume),
            ],
        )
    )
    found = space.wait("order", lambda found: phase(found) == "Succeeded", "Succeeded")
    assert space.kubectl("logs", "order", "-c", "side").split() == ["one", "side", "two", "main", "side-ends"]
    inits = statuses(found, "initContainerStatuses")
    assert [inits[name]["state"]["terminated"]["reason"] for name in ("one", "side", "two")] == ["Completed"] * 3
    assert condition(found, "Initialized")["reason"] == "PodCompleted"
    assert condition(found, "Ready")["reason"] == "PodCompleted"


def test_a_failed_init_container_fails_a_pod_that_is_never_restarted(space: Namespace) -> None:
    space.apply(pod("badinit", "true", initContainers=[container("exit 9", "one")]))
    found = space.wait("badinit", lambda found: phase(found) == "Failed", "Failed")
    assert statuses(found, "initContainerStatuses")["one"]["state"]["terminated"]["exitCode"] == 9
    assert waiting(found) == "PodInitializing"


def test_a_container_that_keeps_failing_waits_longer_and_longer(space: Namespace) -> None:
    space.apply(pod("crash", "exit 7", restartPolicy="Always"))
    found = space.wait("crash", lambda found: waiting(found) == "CrashLoopBackOff", "in a crash loop")
    status = statuses(found)["main"]
    assert status["restartCount"] == 1
    assert status["lastState"]["terminated"]["exitCode"] == 7
    assert status["lastState"]["terminated"]["reason"] == "Error"
    uid = found["metadata"]["uid"]
    expected = f"back-off 10s restarting failed container=main pod=crash_lifecycle({uid})"
    assert status["state"]["waiting"]["message"] == expected
    assert phase(found) == "Running"
    wanted = {
        f"Back-off restarting failed container main in pod crash_lifecycle({uid})",
        "Container created",
        "Container started",
    }

    def told() -> bool:
        events = json.loads(space.kubectl("get", "events", "-o", "json"))["items"]
        return wanted <= {each["message"] for each in events if each["involvedObject"]["name"] == "crash"}

    tools.wait_until(told, "events tell of it", 60.0, every=0.2)


def test_restart_policies_and_rules(space: Namespace) -> None:
    volume = {"volumeMounts": [{"name": "v", "mountPath": "/v"}]}
    count = "echo x >> /v/n; test $(wc -l < /v/n) -ge 2 && exit 0; "
    rule = [{"action": "Restart", "exitCodes": {"operator": "In", "values": [42]}}]
    volumes = [{"name": "v", "emptyDir": {}}]
    space.apply(
        pod("onfailure", [container(count + "exit 1", **volume)], restartPolicy="OnFailure", volumes=volumes),
        pod(
            "byrule",
            [container(count + "exit 42", restartPolicy="Never", restartPolicyRules=rule, **volume)],
            volumes=volumes,
        ),
        pod("norule", [container("exit 41", restartPolicy="Never", restartPolicyRules=rule)]),
    )
    for name in ("onfailure", "byrule"):
        found = space.wait(name, lambda found: phase(found) == "Succeeded", "Succeeded")
        assert statuses(found)["main"]["restartCount"] == 1, name
    found = space.wait("norule", lambda found: phase(found) == "Failed", "Failed")
    assert statuses(found)["main"]["restartCount"] == 0


def test_one_containers_end_may_start_all_over(space: Namespace) -> None:
    volume = {"volumeMounts": [{"name": "v", "mountPath": "/v"}]}
    rule = [{"action": "RestartAllContainers", "exitCodes": {"operator": "In", "values": [88]}}]
    script = "test $(wc -l < /v/n) -ge 2 && exit 0; exit 88"
    space.apply(
        pod(
            "allover",
            [
                container(script, restartPolicy="Never", restartPolicyRules=rule, **volume),
                container(
                    ENDS_ON_TERM.replace("while", "test $(wc -l < /v/n) -ge 2 && exit 0; while"), "other", **volume
                ),
            ],
            initContainers=[container("echo x >> /v/n", "init", **volume)],
            volumes=[{"name": "v", "emptyDir": {}}],
        )
    )
    found = space.wait("allover", lambda found: phase(found) == "Succeeded", "Succeeded")
    assert statuses(found)["main"]["restartCount"] >= 1
    assert condition(found, "AllContainersRestarting")["status"] == "False"


def test_a_deadline_ends_a_pod(space: Namespace) -> None:
    space.apply(pod("deadline", ENDS_ON_TERM, activeDeadlineSeconds=1, terminationGracePeriodSeconds=5))
    found = space.wait("deadline", lambda found: phase(found) == "Failed", "Failed")
    assert found["status"]["reason"] == "DeadlineExceeded"
    assert found["status"]["message"] == "Pod was active on the node longer than the specified deadline"


def test_readiness_gates_hold_a_pod_back(space: Namespace) -> None:
    space.apply(pod("gate", ENDS_ON_TERM, readinessGates=[{"conditionType": "example.com/open"}]))
    found = space.wait("gate", lambda found: condition(found, "ContainersReady").get("status") == "True", "running")
    assert condition(found, "Ready")["reason"] == "ReadinessGatesNotReady"
    opened = {"status": {"conditions": [{"type": "example.com/open", "status": "True"}]}}

    async def patch() -> None:
        async with space.cluster.client() as client:
            await client.patch(Pod, "gate", opened, space.name, type="strategic", subresource="status")

    asyncio.run(patch())
    space.wait("gate", lambda found: condition(found, "Ready").get("status") == "True", "ready")


def test_missing_objects_are_reported_and_waited_for(space: Namespace) -> None:
    env = [{"name": "A", "valueFrom": {"configMapKeyRef": {"name": "later", "key": "a"}}}]
    space.apply(pod("noconfig", 'echo "$A"', main={"env": env}))
    found = space.wait("noconfig", lambda found: waiting(found) == "CreateContainerConfigError", "told")
    assert statuses(found)["main"]["state"]["waiting"]["message"] == 'configmap "later" not found'
    assert phase(found) == "Pending"
    space.apply(config_map("later", {"a": "here"}))
    assert space.logs("noconfig") == "here\n"


def test_a_missing_command_is_reported(space: Namespace) -> None:
    space.apply(pod("nocommand", [{**container(""), "command": ["/no/such/thing"]}]))
    found = space.wait("nocommand", lambda found: phase(found) in ("Failed", "Running") or waiting(found) != "", "told")
    found = space.wait(
        "nocommand",
        lambda found: "terminated" in statuses(found)["main"]["state"] or waiting(found) == "RunContainerError",
        "told",
    )
    assert "/no/such/thing" in json.dumps(statuses(found)["main"])


def test_a_node_refuses_what_it_has_no_room_for_and_the_pod_can_be_deleted(space: Namespace) -> None:
    huge = {"resources": {"requests": {"cpu": "1000"}}}
    space.apply(
        pod("huge", "true", main=huge, nodeName="node-1"),
        pod("elsewhere", "true", nodeName="node-1", nodeSelector={"no": "such"}),
    )
    found = space.wait("huge", lambda found: phase(found) == "Failed", "Failed")
    assert found["status"]["reason"] == "OutOfcpu"
    assert found["status"]["message"].startswith(
        "Pod was rejected: Node didn't have enough resource: cpu, requested: 1000000"
    )
    found = space.wait("elsewhere", lambda found: phase(found) == "Failed", "Failed")
    assert found["status"]["reason"] == "NodeAffinity"
    space.kubectl("delete", "pod", "huge", "elsewhere", "--timeout=90s")


def test_a_deletion_asks_first_and_a_shorter_one_does_not_wait_for_a_longer(space: Namespace) -> None:
    space.apply(
        pod("polite", "trap 'sleep 0.5; exit 0' TERM; while :; do sleep 0.1; done", terminationGracePeriodSeconds=100),
        pod("stubborn", "trap '' TERM; while :; do sleep 0.1; done", terminationGracePeriodSeconds=300),
    )
    space.running("polite")
    space.running("stubborn")
    begin = time.monotonic()
    space.kubectl("delete", "pod", "polite")
    assert time.monotonic() - begin < 60
    space.kubectl("delete", "pod", "stubborn", "--wait=false")
    found = space.get("stubborn")
    assert found["metadata"]["deletionGracePeriodSeconds"] == 300
    assert phase(found) == "Running"
    space.kubectl("delete", "pod", "stubborn", "--grace-period=1", "--timeout=90s")


def test_a_pod_that_becomes_unready_during_its_grace_period_is_reported_at_once(space: Namespace) -> None:
    command = "touch /tmp/ready; trap 'rm -f /tmp/ready' TERM; while :; do sleep 0.1; done"
    probe = {"exec": {"command": ["test", "-e", "/tmp/ready"]}, "periodSeconds": 1, "failureThreshold": 1}
    space.apply(pod("drains", command, main={"readinessProbe": probe}, terminationGracePeriodSeconds=100))
    space.kubectl("wait", "pod", "drains", "--for=condition=Ready", "--timeout=110s")
    space.kubectl("delete", "pod", "drains", "--wait=false")

    def unready() -> bool:
        found = space.get("drains")
        return "deletionTimestamp" in found["metadata"] and condition(found, "Ready")["status"] == "False"

    tools.wait_until(unready, "it is not ready", 60.0, every=0.2)
    assert "running" in statuses(space.get("drains"))["main"]["state"]
    space.kubectl("delete", "pod", "drains", "--grace-period=1")


def test_finished_pods_stay_with_their_logs_until_they_are_deleted(space: Namespace) -> None:
    space.apply(pod("finished", "echo done; exit 3"))
    found = space.wait("finished", lambda found: phase(found) == "Failed", "Failed")
    end = statuses(found)["main"]["state"]["terminated"]
    assert (end["exitCode"], end["reason"]) == (3, "Error")
    assert end["containerID"].startswith(("containerd://", "pybernetes://"))
    assert space.kubectl("logs", "finished") == "done\n"
    space.kubectl("delete", "pod", "finished", "--timeout=90s")


def test_a_file_on_the_node_is_a_pod_that_the_api_shows(node: Cluster) -> None:
    manifest = pod("static", ENDS_ON_TERM, restartPolicy="Always", metadata={"namespace": "kube-system"})
    file = node.layout.node("node-1") / "etc-kubernetes" / "manifests" / "static.json"
    name = "static-node-1"

    def shown() -> Any:
        text = node.kubectl("-n", "kube-system", "get", "pod", name, "-o", "json", check=False)
        found = json.loads(text) if text.startswith("{") else None
        return found if found and condition(found, "Ready").get("status") == "True" else None

    file.write_text(json.dumps(manifest))
    try:
        found = tools.wait_until(shown, "the static pod is shown", 60.0, every=0.1)
        assert found["metadata"]["ownerReferences"][0]["kind"] == "Node"
        assert found["metadata"]["annotations"]["kubernetes.io/config.source"] == "file"
        first = statuses(found)["main"]["containerID"]
        # Deleting the mirror pod deletes nothing but the mirror pod.
        node.kubectl("-n", "kube-system", "delete", "pod", name, "--wait=false")
        uid = found["metadata"]["uid"]
        found = tools.wait_until(
            lambda: (new := shown()) and new["metadata"]["uid"] != uid and new, "a new mirror", 60.0, every=0.1
        )
        assert statuses(found)["main"]["containerID"] == first
        manifest["metadata"]["labels"] = {"new": "yes"}
        file.write_text(json.dumps(manifest))
        tools.wait_until(
            lambda: (new := shown()) and new["metadata"].get("labels") == {"new": "yes"}, "the new pod", 60.0, every=0.1
        )
    finally:
        file.unlink()

    def gone() -> bool:
        return "NotFound" in node.kubectl("-n", "kube-system", "get", "pod", name, check=False)

    tools.wait_until(gone, "the static pod is gone", 60.0, every=0.1)


def test_a_deletion_ends_a_pod_whose_post_start_hook_runs(space: Namespace) -> None:
    hook = {"postStart": {"exec": {"command": ["sh", "-c", "touch /tmp/hook; sleep 3000"]}}}
    script = "while [ ! -e /tmp/hook ]; do sleep 0.1; done; echo hooked; sleep 3000"
    space.apply(pod("hooked", script, main={"lifecycle": hook}))
    tools.wait_until(lambda: "hooked" in space.kubectl("logs", "hooked", check=False), "the hook runs", 60.0, every=0.2)
    space.kubectl("delete", "pod", "hooked", "--grace-period=1", "--timeout=60s")


def test_a_deletion_ends_a_pod_whose_image_comes_from_a_silent_registry(space: Namespace) -> None:
    init = space.cluster.init()
    listening = subprocess.Popen(  # in the node's network: accepts and says nothing
        ["nsenter", "-t", str(init), "-n", "--", sys.executable, "-c", SILENT],
        stdout=subprocess.PIPE,
    )
    try:
        assert listening.stdout is not None
        port = int(listening.stdout.readline())
        silent = {"name": "main", "image": f"127.0.0.1:{port}/silent:1"}
        space.apply(pod("silent", [silent]))
        assert listening.stdout.readline() == b"connected\n"
        space.kubectl("delete", "pod", "silent", "--grace-period=1", "--timeout=15s")
    finally:
        listening.kill()
        listening.wait()
