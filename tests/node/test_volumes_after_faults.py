"""Volumes outlive the kubelet, and are gone with their pods even if it was dead when they went."""

from __future__ import annotations

import os
import signal

from node.cluster import Cluster
from node.pods import Namespace, config_map, pod, secret

import tools

VOLUMES = {
    "disk": {"emptyDir": {}},
    "memory": {"emptyDir": {"medium": "Memory"}},
    "config": {"configMap": {"name": "m"}},
    "keys": {"secret": {"secretName": "s"}},
    "image": {"image": {"reference": "docker.io/library/busybox:latest", "pullPolicy": "IfNotPresent"}},
}


def _pod(name: str) -> dict[str, object]:
    mounts = [{"name": each, "mountPath": f"/{each}"} for each in VOLUMES]
    part = {"name": "disk", "mountPath": "/part", "subPath": "a/b"}
    volumes = [{"name": each, **source} for each, source in VOLUMES.items()]
    script = "echo 1 > /disk/file; echo 2 > /memory/file; echo 3 > /part/file; sleep 600"
    made: dict[str, object] = pod(name, script, main={"volumeMounts": [*mounts, part]}, volumes=volumes)
    return made


READ = "cat /disk/file /memory/file /part/file /config/k; ls /image/bin/busybox"


def test_a_kubelet_that_was_killed_goes_on_with_its_volumes(own_node: Cluster) -> None:
    space = Namespace(own_node, "faulty-volumes")
    space.apply(config_map("m", {"k": "old"}), secret("s", {"k": "1"}), _pod("stays"), _pod("goes"))
    for name in ("stays", "goes"):
        space.running(name)
        space.until(name, READ, "1\n2\n3\nold/image/bin/busybox\n")
    gone = space.get("goes")["metadata"]["uid"]
    mounts = own_node.inside("cat", "/proc/mounts")
    assert gone in mounts
    _stop_kubelet(own_node, space)
    own_node.wait_ready()
    space.until("stays", READ, "1\n2\n3\nnew/image/bin/busybox\n")
    assert space.get("stays")["status"]["containerStatuses"][0]["restartCount"] == 0

    def left() -> str:
        shown = [own_node.inside("cat", "/proc/mounts"), own_node.inside("ls", "/var/lib/kubelet/pods")]
        if own_node.runtime == "containerd":
            shown.append(own_node.inside("ctr", "-n", "k8s.io", "snapshots", "ls"))
        return "".join(text for text in shown if gone in text)

    tools.wait_until(lambda: not left(), "nothing is left of the pod that went", 60.0, every=0.2)
    space.kubectl("delete", "pod", "stays")


def _stop_kubelet(cluster: Cluster, space: Namespace) -> None:
    """The kubelet is dead while one pod is deleted by force and a ConfigMap changes."""
    pid = cluster.find("kubelet")
    assert pid
    os.kill(pid, signal.SIGSTOP)  # so that no other one is started in the meantime
    try:
        space.kubectl("delete", "pod", "goes", "--grace-period=0", "--force", "--wait=false")
        space.kubectl("patch", "configmap", "m", "-p", '{"data": {"k": "new"}}')
    finally:
        os.kill(pid, signal.SIGKILL)
