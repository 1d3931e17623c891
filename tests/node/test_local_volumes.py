"""Volumes of the default StorageClass on a node: made for claims, kept over pods, grown, limited, removed."""

from __future__ import annotations

import itertools
import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from node.cluster import Cluster
from node.pods import Namespace, container, pod

from tools import PYTHON, wait_until

_numbers = itertools.count(1)
VOLUMES = "/var/lib/kubelet/plugins/local.csi.pybernetes.io/volumes"


@pytest.fixture
def space(node: Cluster) -> Iterator[Namespace]:
    made = Namespace(node, f"local-volumes-{next(_numbers)}")
    yield made
    node.kubectl("delete", "namespace", made.name, "--wait=false")


def claim(name: str, size: str = "64Mi", **spec: Any) -> dict[str, Any]:
    wanted = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}, **spec}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name}, "spec": wanted}


def user(name: str, script: str, of: str = "data", **spec: Any) -> Any:
    volumes = [{"name": "v", "persistentVolumeClaim": {"claimName": of}}]
    main = spec.pop("main", {"volumeMounts": [{"name": "v", "mountPath": "/v"}]})
    return pod(name, script, main=main, volumes=volumes, **spec)


def claims(space: Namespace) -> dict[str, Any]:
    found = json.loads(space.kubectl("get", "pvc", "-o", "json"))["items"]
    return {each["metadata"]["name"]: each for each in found}


def expand(space: Namespace, name: str, size: str) -> None:
    space.kubectl("patch", "pvc", name, "-p", json.dumps({"spec": {"resources": {"requests": {"storage": size}}}}))
    wait_until(lambda: claims(space)[name]["status"]["capacity"]["storage"] == size, f"{name} has {size}", every=0.1)


def test_the_default_class_is_there_and_its_driver_only_when_it_is_needed(node: Cluster) -> None:
    shown = node.kubectl("get", "sc").splitlines()
    assert shown[1].split()[:6] == [
        "standard",
        "(default)",
        "local.csi.pybernetes.io",
        "Delete",
        "WaitForFirstConsumer",
        "true",
    ]


def test_a_statefulset_keeps_its_data_over_its_pods_and_the_volume_goes_with_the_claim(
    space: Namespace, node: Cluster
) -> None:
    template = claim("data")
    main = container(
        "echo $(hostname) started >> /v/log; sleep 600", volumeMounts=[{"name": "data", "mountPath": "/v"}]
    )
    labels = {"app": "db"}
    space.apply(
        {
            "apiVersion": "apps/v1",
            "kind": "StatefulSet",
            "metadata": {"name": "db"},
            "spec": {
                "replicas": 2,
                "serviceName": "db",
                "selector": {"matchLabels": labels},
                "template": {
                    "metadata": {"labels": labels},
                    "spec": {"containers": [main], "terminationGracePeriodSeconds": 0},
                },
                "volumeClaimTemplates": [{"metadata": template["metadata"], "spec": template["spec"]}],
            },
        }
    )
    space.kubectl("rollout", "status", "statefulset/db", "--timeout=110s")
    space.kubectl("delete", "pod", "db-1")
    space.kubectl("rollout", "status", "statefulset/db", "--timeout=110s")
    space.until("db-1", "cat /v/log", "db-1 started\ndb-1 started\n")
    space.until("db-0", "cat /v/log", "db-0 started\n")
    names = {each["spec"]["volumeName"] for each in claims(space).values()}
    assert names <= set(node.inside("ls", VOLUMES).split())
    expand(space, "data-db-0", "128Mi")
    space.kubectl("delete", "statefulset", "db")
    space.kubectl("delete", "pvc", "--all")
    wait_until(
        lambda: not names & set(node.inside("ls", VOLUMES).split()), "the volumes are gone from the disk", every=0.1
    )
    wait_until(lambda: not names & {each["metadata"]["name"] for each in node.get("pv")["items"]}, "and from the API")


def test_a_group_a_part_of_a_volume_and_read_only_use(space: Namespace) -> None:
    part = {"volumeMounts": [{"name": "v", "mountPath": "/v"}, {"name": "v", "mountPath": "/part", "subPath": "a/b"}]}
    space.apply(
        claim("data"),
        user(
            "one", "echo x > /part/file; stat -c %g /v; cat /v/a/b/file", main=part, securityContext={"fsGroup": 4711}
        ),
    )
    assert space.logs("one") == "4711\nx\n"
    reading = {"volumeMounts": [{"name": "v", "mountPath": "/v", "readOnly": True}]}
    space.apply(user("two", "cat /v/a/b/file; touch /v/no 2>/dev/null || echo refused", main=reading))
    assert space.logs("two") == "x\nrefused\n"


def test_a_class_that_enforces_capacity_has_images_that_are_full_when_they_are(space: Namespace, node: Cluster) -> None:
    node.apply(
        {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "StorageClass",
            "metadata": {"name": "enforced"},
            "provisioner": "local.csi.pybernetes.io",
            "parameters": {"capacity": "enforced"},
            "volumeBindingMode": "WaitForFirstConsumer",
            "allowVolumeExpansion": True,
        }
    )
    # With a grace period the pod is in the API until its volume is unmounted.
    filler = user("filler", "trap exit TERM; sleep 600 & wait", terminationGracePeriodSeconds=20)
    space.apply(claim("data", "32Mi", storageClassName="enforced"), filler)
    space.running("filler")
    write = "dd if=/dev/zero of=/v/file bs=1M count=60 2>/dev/null && echo all || echo full"
    assert space.exec("filler", write) == "full\n"
    more = {"spec": {"resources": {"requests": {"storage": "96Mi"}}}}
    space.kubectl("patch", "pvc", "data", "-p", json.dumps(more))
    # Not every machine lets a mounted file system grow (CAP_SYS_RESOURCE): a pod that starts anew has it everywhere.
    volume = claims(space)["data"]["spec"]["volumeName"]
    wait_until(lambda: node.get("pv", volume)["spec"]["capacity"]["storage"] == "96Mi", "the volume is larger")
    space.kubectl("delete", "pod", "filler")
    space.apply(filler)
    space.running("filler")
    assert space.exec("filler", write) == "all\n"
    wait_until(lambda: claims(space)["data"]["status"]["capacity"]["storage"] == "96Mi", "its claim says so")
    space.kubectl("delete", "pod", "filler")
    device = claim("device", "16Mi", storageClassName="enforced", volumeMode="Block")
    devices = {"volumeDevices": [{"name": "v", "devicePath": "/dev/xvda"}]}
    space.apply(device, user("raw", "echo hello > /dev/xvda; head -c 5 /dev/xvda; sleep 600", "device", main=devices))
    space.until("raw", "head -c 5 /dev/xvda", "hello")
    space.kubectl("delete", "pod", "raw")
    space.kubectl("delete", "pvc", "--all")
    wait_until(lambda: "plugins/local.csi" not in node.inside("losetup", "--list"), "no loop device is left", every=0.2)


def test_a_killed_driver_is_started_again_and_the_pods_go_on(space: Namespace, node: Cluster) -> None:
    space.apply(claim("data"), user("keeper", "while true; do date > /v/now; sleep 0.1; done"))
    space.running("keeper")
    node.inside("sh", "-c", "kill -9 $(pgrep -f 'pybernetes [c]si-local')")
    space.apply(claim("more"), user("later", "echo fine > /v/x; cat /v/x", "more"))
    assert space.logs("later") == "fine\n"
    assert space.exec("keeper", "test -s /v/now && echo yes") == "yes\n"


def snapshot(name: str, source: dict[str, str], **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "snapshot.storage.k8s.io/v1",
        "kind": "VolumeSnapshot",
        "metadata": {"name": name},
        "spec": {"source": source, **spec},
    }


def test_snapshots_are_made_restored_and_removed_and_volumes_cloned(space: Namespace, node: Cluster) -> None:
    space.apply(claim("data"), user("one", "echo first > /v/file"))
    space.logs("one")
    wait_until(
        lambda: "volumesnapshots" in node.kubectl("api-resources", check=False), "snapshots are served", every=0.3
    )
    of = {"persistentVolumeClaimName": "data"}
    other = {"apiVersion": "snapshot.storage.k8s.io/v1", "kind": "VolumeSnapshotClass", "metadata": {"name": "other"}}
    node.apply({**other, "driver": "other.example.com", "deletionPolicy": "Delete"})
    space.apply(snapshot("now", of), snapshot("never", {"persistentVolumeClaimName": "nothing"}))
    space.apply(snapshot("wrong", of, volumeSnapshotClassName="other"))
    ready = ("get", "vs", "now", "-o", "jsonpath={.status.readyToUse}")
    wait_until(lambda: space.kubectl(*ready) == "true", "the snapshot is ready", every=0.2)
    space.apply(user("two", "echo second > /v/file"))
    space.logs("two")
    from_snapshot = {"apiGroup": "snapshot.storage.k8s.io", "kind": "VolumeSnapshot", "name": "now"}
    space.apply(
        claim("restored", dataSource=from_snapshot),
        user("three", "cat /v/file", "restored"),
        claim("cloned", dataSource={"kind": "PersistentVolumeClaim", "name": "data"}),
        user("four", "cat /v/file", "cloned"),
    )
    assert space.logs("three") == "first\n"
    assert space.logs("four") == "second\n"
    error = space.kubectl("get", "vs", "never", "-o", "jsonpath={.status.error.message}")
    assert error == f"snapshot source: PersistentVolumeClaim {space.name}/nothing not found"
    error = space.kubectl("get", "vs", "wrong", "-o", "jsonpath={.status.error.message}")
    name = claims(space)["data"]["spec"]["volumeName"]
    assert error == (
        f"VolumeSnapshotClass other is of driver other.example.com, the volume {name} is of local.csi.pybernetes.io"
    )
    both = snapshot("both", {**of, "volumeSnapshotContentName": "x"})
    refused = space.kubectl("create", "-f", "-", stdin=json.dumps(both), check=False)
    assert "exactly one of persistentVolumeClaimName and volumeSnapshotContentName must be set" in refused
    content = space.kubectl("get", "vs", "now", "-o", "jsonpath={.status.boundVolumeSnapshotContentName}")
    space.kubectl("delete", "vs", "now", "never", "wrong", "--timeout=60s")
    assert content not in node.kubectl("get", "vsc", "-o", "name")
    assert node.inside("ls", VOLUMES.replace("volumes", "snapshots")) == ""


def test_a_class_that_binds_at_once_has_a_volume_before_any_pod(space: Namespace, node: Cluster) -> None:
    node.apply(
        {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "StorageClass",
            "metadata": {"name": "immediate"},
            "provisioner": "local.csi.pybernetes.io",
        }
    )
    space.apply(claim("data", storageClassName="immediate"))
    wait_until(lambda: claims(space)["data"]["status"]["phase"] == "Bound", "the claim is bound", every=0.1)
    space.apply(user("one", "echo x > /v/file && cat /v/file"))
    assert space.logs("one") == "x\n"


def test_what_cannot_be_made_is_said_on_the_claim(space: Namespace, node: Cluster) -> None:
    node.apply(
        {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "StorageClass",
            "metadata": {"name": "wrong"},
            "provisioner": "local.csi.pybernetes.io",
            "parameters": {"colour": "blue"},
            "volumeBindingMode": "WaitForFirstConsumer",
        }
    )
    space.apply(
        claim("data", storageClassName="wrong"),
        user("one", "true"),
        claim("shared", accessModes=["ReadWriteMany"]),
        user("two", "true", "shared"),
    )
    wanted = {"data": "parameters: colour not known", "shared": "ReadWriteMany is not supported"}
    for name, text in wanted.items():
        selector = f"involvedObject.name={name},reason=ProvisioningFailed"

        def said(selector: str = selector, text: str = text) -> bool:
            events = json.loads(space.kubectl("get", "events", f"--field-selector={selector}", "-o", "json"))["items"]
            return any(text in each["message"] for each in events)

        wait_until(said, f"{name}: {text}", every=0.2)


def test_a_populator_fills_the_volume_of_a_claim_before_its_pod_has_it(
    space: Namespace, node: Cluster, tmp_path: Path
) -> None:
    group = "greetings.example.com"
    any_object = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": any_object}}
    names = {"kind": "Greeting", "plural": "greetings"}
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"greetings.{group}"},
        "spec": {"group": group, "names": names, "scope": "Namespaced", "versions": [version]},
    }
    fill = {"name": "fill", "image": "busybox", "command": ["sh", "-c", 'echo "$SOURCE" > /mnt/file']}
    template = tmp_path / "pod.json"
    template.write_text(json.dumps({"containers": [fill], "terminationGracePeriodSeconds": 0}))
    flags = {"group": group, "version": "v1", **names, "pod-template": str(template), "namespace": space.name}
    command = [*PYTHON, "csi", "populator", *(f"--{key}={value}" for key, value in flags.items())]
    node.apply(definition)
    populator = subprocess.Popen(command, env=node.environment)
    try:
        wait_until(lambda: "greetings" in node.kubectl("api-resources", check=False), "greetings are served", every=0.3)
        greeting = {"apiVersion": f"{group}/v1", "kind": "Greeting", "metadata": {"name": "one"}}
        source = {"apiGroup": group, "kind": "Greeting", "name": "one"}
        space.apply({**greeting, "spec": {"text": "hello"}}, claim("data", dataSourceRef=source))
        space.apply(user("one", "cat /v/file"))
        assert space.logs("one") == '{"text": "hello"}\n'
        wait_until(lambda: list(claims(space)) == ["data"], "the populator's claim is gone", every=0.1)
    finally:
        populator.terminate()
        populator.wait(30)
        node.kubectl("delete", "crd", f"greetings.{group}", "--wait=false")
