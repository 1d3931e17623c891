"""The whole path: a pod with a claim, the plugin, the mount pod, FUSE, metadata, objects; with parts of it killed."""

from __future__ import annotations

import json
import re
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cri.embedded.machine import EmbeddedMachine
from node.cluster import Cluster

from tools import PYTHON, wait_until

pytestmark = pytest.mark.time_limit(900)
HOST = "/var/lib/kubelet/plugins/objectfs.csi.pybernetes.io"
SYSTEM = "objectfs-system"
MOUNT_POD = "objectfs-node-1-shared-pv"
DRIVER = "objectfs.csi.pybernetes.io"
WRITE = "while true; do date >> /data/$0; usleep 50000; done"
SECRET = {"name": "vol-secret", "namespace": "default"}


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    if reason := EmbeddedMachine.lacking():
        pytest.skip(reason)
    with (
        tempfile.TemporaryDirectory(prefix="pyb-") as folder,
        Cluster(Path(folder), "objectfs", runtime="embedded") as made,
    ):
        named = ["--name", made.layout.name, "--data-dir", str(made.layout.data)]
        # A hundred megabytes, which a busy machine needs its time for.
        made._run([*PYTHON, "image", "from-python", *named], check=True, timeout=300.0)
        command = [*PYTHON, "objectfs", "csi", "manifest", "--local", local(made)]
        text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        made.kubectl("apply", "-f", "-", stdin=text)
        yield made


def local(cluster: Cluster) -> str:
    """Metadata and objects of the tests' volumes, on this machine's disk."""
    return f"{cluster.folder}/local"


def pod(name: str, claim: str, script: str) -> dict[str, Any]:
    container = {
        "name": "c", "image": "busybox", "command": ["sh", "-c", script],
        "volumeMounts": [{"name": "v", "mountPath": "/data"}],
    }  # fmt: skip
    return {
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "terminationGracePeriodSeconds": 0, "containers": [container],
            "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": claim}}],
        },
    }  # fmt: skip


def claim(name: str, storage_class: str, size: str, **more: Any) -> dict[str, Any]:
    spec = {"accessModes": ["ReadWriteMany"], "storageClassName": storage_class, **more}
    return {
        "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name, "namespace": "default"},
        "spec": {**spec, "resources": {"requests": {"storage": size}}},
    }  # fmt: skip


def secret(cluster: Cluster) -> dict[str, Any]:
    place = local(cluster)
    data = {"name": "shared", "metaurl": f"sqlite://{place}/meta.db", "storage": "file", "bucket": f"{place}/bucket"}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": SECRET, "stringData": data}


def is_running(cluster: Cluster, name: str, namespace: str = "default") -> bool:
    found = cluster.get("pods", "-n", namespace, "--field-selector", f"metadata.name={name}")["items"]
    if not found:
        return False
    states = found[0]["status"].get("containerStatuses", [])
    return bool(states) and all(each["ready"] for each in states)


def lines(cluster: Cluster, name: str) -> int:
    return int(cluster.kubectl("exec", name, "--", "wc", "-l", f"/data/{name}").split()[0])


def still_writes(cluster: Cluster, *names: str) -> None:
    before = {name: lines(cluster, name) for name in names}
    for name in names:
        wait_until(lambda name=name: lines(cluster, name) > before[name] + 1, f"{name} writes on")


def log(cluster: Cluster, *words: str) -> str:
    """What a pod of the driver has written; an error message while its container is not there yet."""
    return cluster.kubectl("logs", "-n", SYSTEM, *words, check=False)


def plugin_log(cluster: Cluster) -> str:
    return log(cluster, "-l", "app=objectfs-csi-node", "--tail", "-1")


def delete(cluster: Cluster, namespace: str, *words: str) -> None:
    cluster.kubectl("delete", "pod", "-n", namespace, *words, "--force", "--grace-period=0")


def test_a_pod_writes_through_a_mount_pod_that_may_die(cluster: Cluster) -> None:
    attributes = {"mount-options": "cache-size=100,enable-xattr"}
    csi: dict[str, Any] = {"driver": DRIVER, "volumeHandle": "shared-pv", "volumeAttributes": attributes}
    csi["nodePublishSecretRef"] = SECRET
    volume = {
        "apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "shared-pv"},
        "spec": {
            "capacity": {"storage": "10Gi"}, "accessModes": ["ReadWriteMany"], "storageClassName": "", "csi": csi,
        },
    }  # fmt: skip
    apps = [pod(f"app-{each}", "shared", WRITE.replace("$0", f"app-{each}")) for each in (1, 2)]
    cluster.apply(secret(cluster), volume, claim("shared", "", "10Gi", volumeName="shared-pv"), *apps)
    for name in ("app-1", "app-2"):
        wait_until(lambda name=name: is_running(cluster, name), f"{name} runs", timeout=180)
    still_writes(cluster, "app-1", "app-2")

    # The order of events as the plugin logs them.
    target = r"/var/lib/kubelet/pods/\S+/volumes/kubernetes.io~csi/shared-pv/mount"
    expected = [
        rf"volume shared-pv: create or add reference {target} \(1 in all\)",
        rf"mount pod {MOUNT_POD}: create or update Secret {MOUNT_POD}-secret",
        rf"mount pod {MOUNT_POD}: create\n",
        rf"mount pod {MOUNT_POD}: wait until {HOST}/volume/shared-pv is ready",
        rf"volume shared-pv: bound {HOST}/volume/shared-pv at {target}",
        rf"volume shared-pv: create or add reference {target} \(2 in all\)",
    ]
    assert re.search(".*".join(expected), plugin_log(cluster), re.DOTALL), plugin_log(cluster)
    client_log = log(cluster, MOUNT_POD)
    assert f"Meta address: sqlite://{local(cluster)}/meta.db" in client_log
    assert "OK, shared is ready at /jfs/shared-pv" in client_log
    options = "rw,nosuid,nodev,relatime,user_id=0,group_id=0,default_permissions,allow_other"
    inside = cluster.kubectl("exec", "app-1", "--", "cat", "/proc/mounts")
    assert f"OBJECTFS:shared /data fuse.objectfs {options}" in inside
    host = cluster.kubectl("exec", "-n", SYSTEM, "ds/objectfs-csi-node", "--", "cat", "/proc/mounts")
    assert f"OBJECTFS:shared {HOST}/volume/shared-pv fuse.objectfs" in host
    found = cluster.get("pod", "-n", SYSTEM, MOUNT_POD)
    assert len(json.loads(found["metadata"]["annotations"]["objectfs.pybernetes.io/references"])) == 2

    # The mount pod is deleted, then the plugin, then the mount pod: the programs write on.
    for killed in ([MOUNT_POD], ["-l", "app=objectfs-csi-node"], [MOUNT_POD]):
        before = cluster.get("pods", "-n", SYSTEM, *(killed if killed[0] == "-l" else []))
        uids = {each["metadata"]["uid"] for each in before["items"]}
        delete(cluster, SYSTEM, *killed)
        name = MOUNT_POD if killed == [MOUNT_POD] else ""

        def is_back(name: str = name, uids: set[str] = uids) -> bool:
            pods = cluster.get("pods", "-n", SYSTEM)["items"]
            back = [each for each in pods if each["metadata"]["uid"] not in uids]
            return any(
                (not name or each["metadata"]["name"] == name) and is_running(cluster, each["metadata"]["name"], SYSTEM)
                for each in back
            )

        wait_until(is_back, f"{killed} is back", timeout=120)
        if not name:
            # The client finds the new plugin and leaves its descriptor there again.
            wait_until(lambda: "is registered with the kubelet" in plugin_log(cluster), "the plugin is registered")
        else:
            wait_until(lambda: "is ready at" in log(cluster, MOUNT_POD), "the client is ready")
        still_writes(cluster, "app-1", "app-2")
    assert "Continue session" in log(cluster, MOUNT_POD)

    # The last reference takes the mount pod with it, and its Secret.
    delete(cluster, "default", "app-1")
    wait_until(lambda: "(1 left)" in plugin_log(cluster), "the first reference is removed")
    assert is_running(cluster, MOUNT_POD, SYSTEM)
    delete(cluster, "default", "app-2")
    wait_until(lambda: MOUNT_POD not in cluster.kubectl("get", "pods,secrets", "-n", SYSTEM), "the mount pod is gone")
    host = cluster.kubectl("exec", "-n", SYSTEM, "ds/objectfs-csi-node", "--", "cat", "/proc/mounts")
    assert "fuse.objectfs" not in host


def test_a_claim_gets_a_folder_with_its_size_as_quota_and_grows(cluster: Cluster) -> None:
    names = ("provisioner", "node-publish", "controller-expand")
    parameters = {f"csi.storage.k8s.io/{each}-secret-{key}": value for each in names for key, value in SECRET.items()}
    storage_class = {
        "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "shared"},
        "provisioner": DRIVER, "allowVolumeExpansion": True, "parameters": parameters,
    }  # fmt: skip
    cluster.apply(secret(cluster), storage_class, claim("dynamic", "shared", "1Gi"))
    cluster.apply(pod("dynamic", "dynamic", "echo hello > /data/file; exec sleep 1000"))
    wait_until(lambda: is_running(cluster, "dynamic"), "the pod runs", timeout=180)
    wait_until(lambda: "1048576" in cluster.kubectl("exec", "dynamic", "--", "df", "/data"), "df shows 1 GiB")
    size = '{"spec": {"resources": {"requests": {"storage": "2Gi"}}}}'
    cluster.kubectl("patch", "pvc", "dynamic", "-p", size)
    wait_until(lambda: "2097152" in cluster.kubectl("exec", "dynamic", "--", "df", "/data"), "df shows the new size")

    # A snapshot keeps what there was, for claims that begin with it.
    wait_until(lambda: "volumesnapshots" in cluster.kubectl("api-resources", check=False), "snapshots are served")
    group, of = "snapshot.storage.k8s.io", {f"csi.storage.k8s.io/snapshotter-secret-{k}": v for k, v in SECRET.items()}
    snapshot_class: dict[str, Any] = {"apiVersion": f"{group}/v1", "kind": "VolumeSnapshotClass", "driver": DRIVER}
    snapshot_class |= {"metadata": {"name": "shared"}, "deletionPolicy": "Delete", "parameters": of}
    snapshot: dict[str, Any] = {"apiVersion": f"{group}/v1", "kind": "VolumeSnapshot", "metadata": {"name": "now"}}
    snapshot["metadata"]["namespace"] = "default"
    source = {"persistentVolumeClaimName": "dynamic"}
    snapshot["spec"] = {"source": source, "volumeSnapshotClassName": "shared"}
    cluster.apply(snapshot_class, snapshot)
    ready = ("get", "volumesnapshot", "now", "-o", "jsonpath={.status.readyToUse}")
    wait_until(lambda: cluster.kubectl(*ready) == "true", "the snapshot is ready")
    cluster.kubectl("exec", "dynamic", "--", "sh", "-c", "echo changed > /data/file")
    model = {"apiGroup": group, "kind": "VolumeSnapshot", "name": "now"}
    cluster.apply(claim("restored", "shared", "2Gi", dataSource=model))
    cluster.apply(pod("restored", "restored", "exec sleep 1000"))
    wait_until(lambda: is_running(cluster, "restored"), "the pod of the restored claim runs", timeout=180)
    assert cluster.kubectl("exec", "restored", "--", "cat", "/data/file") == "hello\n"
    cluster.kubectl("delete", "volumesnapshot", "now", "--timeout=60s")
    for each in ("dynamic", "restored"):
        delete(cluster, "default", each)
        cluster.kubectl("delete", "pvc", each)
    wait_until(lambda: "pvc-" not in cluster.kubectl("get", "pv"), "the volume is gone")


def test_a_pod_of_a_labelled_namespace_has_its_client_as_a_sidecar(cluster: Cluster) -> None:
    command = [*PYTHON, "objectfs", "csi", "manifest", "--mode", "sidecar", "--local", local(cluster)]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    cluster.kubectl("apply", "-f", "-", stdin=text)
    labels = {"objectfs.pybernetes.io/inject": "enabled"}
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "side", "labels": labels}}
    csi = {"driver": DRIVER, "volumeHandle": "side-pv", "nodePublishSecretRef": SECRET}
    csi["volumeAttributes"] = {"folder": "side"}
    volume = {
        "apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "side-pv"},
        "spec": {
            "capacity": {"storage": "10Gi"}, "accessModes": ["ReadWriteMany"], "storageClassName": "", "csi": csi,
        },
    }  # fmt: skip
    wanted, app = claim("side", "", "10Gi", volumeName="side-pv"), pod("app", "side", WRITE.replace("$0", "app"))
    wanted["metadata"]["namespace"] = app["metadata"]["namespace"] = "side"
    cluster.apply(secret(cluster), namespace, volume, wanted)
    wait_until(lambda: cluster.get("pvc", "side", "-n", "side")["status"].get("phase") == "Bound", "the claim is bound")
    cluster.kubectl("rollout", "status", "-n", SYSTEM, "deploy/objectfs-csi-webhook", "--timeout=120s")
    wait_until(
        lambda: "caBundle" in cluster.kubectl("get", "mutatingwebhookconfigurations", "-o", "yaml"), "it is trusted"
    )
    cluster.apply(app)
    wait_until(lambda: is_running(cluster, "app", "side"), "the pod runs", timeout=180)

    def count() -> int:
        counted = cluster.kubectl("exec", "-n", "side", "app", "-c", "c", "--", "wc", "-l", "/data/app", check=False)
        number = counted.partition(" ")[0]
        return int(number) if number.isdigit() else 0  # an error while the mount is dead

    before = count()
    wait_until(lambda: count() > before, "it writes")
    inside = cluster.kubectl("exec", "-n", "side", "app", "-c", "c", "--", "cat", "/proc/mounts")
    assert "OBJECTFS:shared /data fuse.objectfs" in inside

    # The client dies with all of its container: its successor's mount is seen by the program.
    def restarts() -> int:
        found = cluster.get("pod", "-n", "side", "app")["status"]["initContainerStatuses"][0]
        return int(found["restartCount"]) if found["ready"] else 0

    kill = ("sh", "-c", "kill -9 -1")
    cluster.kubectl("exec", "-n", "side", "app", "-c", "objectfs-side-pv", "--", *kill, check=False)
    wait_until(lambda: restarts() > 0, "the client is back", timeout=180)
    before = wait_until(count, "the pod has the new mount")
    wait_until(lambda: count() > before, "it writes on")
    delete(cluster, "side", "app")
    host = ("exec", "-n", SYSTEM, "ds/objectfs-csi-node", "--", "cat", "/proc/mounts")
    wait_until(lambda: "fuse.objectfs" not in cluster.kubectl(*host), "nothing is mounted any more")
