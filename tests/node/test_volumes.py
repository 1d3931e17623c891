"""What containers find in their volumes, on a real node, through kubectl.

All pods that end by themselves are made at once and looked at one by one: a node starts thirty as quickly as five.
"""

from __future__ import annotations

import base64
import os
from collections.abc import Iterator
from typing import Any

import pytest
from node.cluster import Cluster
from node.pods import Namespace, config_map, container, pod, secret

import tools

NOBODY = {"runAsUser": 65534, "runAsGroup": 65534}


def show(path: str) -> str:
    """A script that writes the mode, name and content of all files."""
    return (
        f"cd {path} && for f in $(find -L . -type f | grep -v '/\\.\\.' | sort);"
        " do echo $(stat -Lc %a $f) ${f#./} $(cat $f); done"
    )


def mounted(*names: str, **more: Any) -> list[dict[str, Any]]:
    """Each volume at /NAME."""
    return [{"name": name, "mountPath": f"/{name}", **more} for name in names]


def volume(name: str, **source: Any) -> dict[str, Any]:
    return {"name": name, **source}


def reading(name: str, *volumes: dict[str, Any], context: dict[str, Any] | None = None, **spec: Any) -> Any:
    """A pod that shows the files of its volumes."""
    names = [each["name"] for each in volumes]
    script = "; ".join(f"echo == {each}; {show('/' + each)}" for each in names)
    return pod(
        name,
        script,
        main={"volumeMounts": mounted(*names)},
        volumes=list(volumes),
        securityContext=context or {},
        **spec,
    )


def _ref(path: str, field: str, **more: Any) -> dict[str, Any]:
    return {"path": path, "fieldRef": {"fieldPath": field}, **more}


def _limits(path: str, resource: str) -> dict[str, Any]:
    return {"path": path, "resourceFieldRef": {"containerName": "main", "resource": resource}}


ITEMS = [{"key": "data-1", "path": "path/to/data-1"}]
ITEMS_MODE = [{"key": "data-1", "path": "path/to/data-1", "mode": 0o400}]
EMPTY_SCRIPT = """
for m in default memory; do
  stat -c "$m %a" /$m
  for p in 0644 0666 0777; do echo hello > /$m/$p; chmod $p /$m/$p; stat -c "%a %u" /$m/$p; cat /$m/$p; done
done
awk '$2 == "/memory" {print $3}' /proc/mounts
"""
EMPTY = [volume("default", emptyDir={}), volume("memory", emptyDir={"medium": "Memory"})]


def _empty_says(user: int) -> str:
    files = "".join(f"{mode} {user}\nhello\n" for mode in ("644", "666", "777"))
    return f"default 777\n{files}memory 1777\n{files}tmpfs\n"


def _projected(*sources: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"sources": list(sources), **more}


CASES: dict[str, tuple[Any, str]] = {
    "config-map": (
        reading("config-map", volume("v", configMap={"name": "m"})),
        "== v\n644 data-1 value-1\n644 data-2 value-2\n",
    ),
    "config-map-default-mode": (
        reading("config-map-default-mode", volume("v", configMap={"name": "m", "defaultMode": 0o400})),
        "== v\n400 data-1 value-1\n400 data-2 value-2\n",
    ),
    "config-map-items": (
        reading("config-map-items", volume("v", configMap={"name": "m", "items": ITEMS}), context=NOBODY),
        "== v\n644 path/to/data-1 value-1\n",
    ),
    "config-map-item-mode": (
        reading("config-map-item-mode", volume("v", configMap={"name": "m", "items": ITEMS_MODE})),
        "== v\n400 path/to/data-1 value-1\n",
    ),
    "config-map-twice": (
        reading(
            "config-map-twice",
            volume("v", configMap={"name": "m"}),
            volume("w", configMap={"name": "m"}),
            context=NOBODY,
        ),
        "".join(f"== {each}\n644 data-1 value-1\n644 data-2 value-2\n" for each in "vw"),
    ),
    "config-map-binary": (
        pod(
            "config-map-binary",
            "od -An -tx1 /v/bin",
            main={"volumeMounts": mounted("v")},
            volumes=[volume("v", configMap={"name": "b"})],
        ),
        " de ad be ef 00\n",
    ),
    "secret-group": (
        reading(
            "secret-group",
            volume("v", secret={"secretName": "s", "defaultMode": 0o440}),
            context={"runAsUser": 1000, "fsGroup": 1001},
        ),
        "== v\n440 key secret-value\n",
    ),
    "secret-items": (
        reading(
            "secret-items",
            volume("v", secret={"secretName": "s", "items": [{"key": "key", "path": "new/path", "mode": 0o400}]}),
        ),
        "== v\n400 new/path secret-value\n",
    ),
    "downward": (
        reading(
            "downward",
            volume(
                "v",
                downwardAPI={
                    "defaultMode": 0o400,
                    "items": [
                        _ref("name", "metadata.name"),
                        _ref("labels", "metadata.labels", mode=0o640),
                        _limits("cpu", "limits.cpu"),
                    ],
                },
            ),
            metadata={"labels": {"b": "2", "a": "1"}},
        ),
        f'== v\n400 cpu {os.cpu_count()}\n640 labels a="1" b="2"\n400 name downward\n',
    ),
    "downward-limits": (
        pod(
            "downward-limits",
            "cd /v; for f in *; do echo $f $(cat $f); done",
            main={
                "volumeMounts": mounted("v"),
                "resources": {
                    "limits": {"cpu": "1250m", "memory": "64Mi"},
                    "requests": {"cpu": "250m", "memory": "32Mi"},
                },
            },
            volumes=[
                volume(
                    "v",
                    downwardAPI={
                        "items": [
                            _limits("cpu-limit", "limits.cpu"),
                            _limits("cpu-request", "requests.cpu"),
                            _limits("memory-limit", "limits.memory"),
                            _limits("memory-request", "requests.memory"),
                        ]
                    },
                )
            ],
        ),
        "cpu-limit 2\ncpu-request 1\nmemory-limit 67108864\nmemory-request 33554432\n",
    ),
    "projected": (
        reading(
            "projected",
            volume(
                "v",
                projected=_projected(
                    {"configMap": {"name": "m", "items": ITEMS}},
                    {"secret": {"name": "s"}},
                    {"downwardAPI": {"items": [_ref("podname", "metadata.name", mode=0o400)]}},
                    {"configMap": {"name": "none", "optional": True}},
                ),
            ),
        ),
        "== v\n644 key secret-value\n644 path/to/data-1 value-1\n400 podname projected\n",
    ),
    "token": (
        pod(
            "token",
            "cd /v; stat -Lc '%a %u' token; tr -dc . < token; echo; id -u",
            main={"volumeMounts": mounted("v")},
            volumes=[volume("v", projected=_projected({"serviceAccountToken": {"path": "token", "audience": "x"}}))],
            securityContext=NOBODY,
        ),
        "600 65534\n..\n65534\n",
    ),
    "empty-root": (
        pod("empty-root", EMPTY_SCRIPT, main={"volumeMounts": mounted("default", "memory")}, volumes=EMPTY),
        _empty_says(0),
    ),
    "empty-nobody": (
        pod(
            "empty-nobody",
            EMPTY_SCRIPT,
            main={"volumeMounts": mounted("default", "memory")},
            volumes=EMPTY,
            securityContext=NOBODY,
        ),
        _empty_says(65534),
    ),
    "empty-size": (
        pod(
            "empty-size",
            "df -k /v | tail -1 | awk '{print $2}'",
            main={"volumeMounts": mounted("v")},
            volumes=[volume("v", emptyDir={"medium": "Memory", "sizeLimit": "8Mi"})],
        ),
        "8192\n",
    ),
    "empty-group": (
        pod(
            "empty-group",
            "stat -c '%a %g' /v; id -G",
            main={"volumeMounts": mounted("v")},
            volumes=[volume("v", emptyDir={})],
            securityContext={**NOBODY, "fsGroup": 1234, "supplementalGroups": [5678]},
        ),
        "2777 1234\n65534 1234 5678\n",
    ),
    "shared": (
        pod(
            "shared",
            [
                container("while ! [ -e /v/x ]; do sleep 0.05; done; cat /v/x", volumeMounts=mounted("v")),
                container("echo from another > /v/x", "other", volumeMounts=mounted("v")),
            ],
            volumes=[volume("v", emptyDir={})],
        ),
        "from another\n",
    ),
    "nested": (
        pod(
            "nested",
            "cat /v/data-1 /v/in/key; ls /v/in/deep",
            main={
                "volumeMounts": [
                    {"name": "v", "mountPath": "/v"},
                    {"name": "s", "mountPath": "/v/in"},
                    {"name": "e", "mountPath": "/v/in/deep"},
                ]
            },
            volumes=[
                volume("v", configMap={"name": "m"}),
                volume("s", secret={"secretName": "s"}),
                volume("e", emptyDir={}),
            ],
        ),
        "value-1secret-value",
    ),
    "read-only": (
        pod(
            "read-only",
            "exec 2>&1; touch /c/x; touch /r/x; touch /w/x && echo written",
            main={
                "volumeMounts": [*mounted("c", "w"), {"name": "w", "mountPath": "/r", "readOnly": True}],
            },
            volumes=[volume("c", configMap={"name": "m"}), volume("w", emptyDir={})],
        ),
        "touch: /c/x: Read-only file system\ntouch: /r/x: Read-only file system\nwritten\n",
    ),
    "subpaths": (
        pod(
            "subpaths",
            "cat /a /b /c /d; cat /etc/passwd; ls /e",
            main={
                "volumeMounts": [
                    {"name": "m", "mountPath": "/a", "subPath": "data-1"},
                    {"name": "s", "mountPath": "/b", "subPath": "key"},
                    {"name": "d", "mountPath": "/c", "subPath": "deep/name"},
                    {"name": "p", "mountPath": "/d", "subPath": "data-2"},
                    {"name": "m", "mountPath": "/etc/passwd", "subPath": "data-1"},
                    {"name": "p", "mountPath": "/e", "subPath": "."},
                ]
            },
            volumes=[
                volume("m", configMap={"name": "m"}),
                volume("s", secret={"secretName": "s"}),
                volume("d", downwardAPI={"items": [_ref("deep/name", "metadata.name")]}),
                volume("p", projected=_projected({"configMap": {"name": "m"}})),
            ],
        ),
        "value-1secret-valuesubpathsvalue-2value-1data-1\ndata-2\n",
    ),
    "subpath-expression": (
        pod(
            "subpath-expression",
            "echo here > /one/x; find /all -type f",
            main={
                "env": [{"name": "NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
                "volumeMounts": [
                    {"name": "v", "mountPath": "/one", "subPathExpr": "a/$(NAME)"},
                    {"name": "v", "mountPath": "/all"},
                ],
            },
            volumes=[volume("v", emptyDir={})],
        ),
        "/all/a/subpath-expression/x\n",
    ),
    "host-path": (
        pod(
            "host-path",
            "echo x > /d/new && cat /f && ls /d",
            main={"volumeMounts": [{"name": "d", "mountPath": "/d"}, {"name": "f", "mountPath": "/f"}]},
            volumes=[
                volume("d", hostPath={"path": "/run/pyb-test/d", "type": "DirectoryOrCreate"}),
                volume("f", hostPath={"path": "/etc/hostname", "type": "File"}),
            ],
        ),
        "node-1\nnew\n",
    ),
    "image": (
        pod(
            "image",
            "exec 2>&1; ls /v/bin/busybox; touch /v/x; ls /sub/busybox",
            main={
                "volumeMounts": [{"name": "v", "mountPath": "/v"}, {"name": "v", "mountPath": "/sub", "subPath": "bin"}]
            },
            volumes=[
                volume("v", image={"reference": "docker.io/library/busybox:latest", "pullPolicy": "IfNotPresent"})
            ],
        ),
        "/v/bin/busybox\ntouch: /v/x: Read-only file system\n/sub/busybox\n",
    ),
}


@pytest.fixture(scope="module")
def space(node: Cluster) -> Iterator[Namespace]:
    found = Namespace(node, "volumes")
    found.apply(
        config_map("m", {"data-1": "value-1", "data-2": "value-2"}),
        config_map("b", {}, binaryData={"bin": base64.b64encode(b"\xde\xad\xbe\xef\x00").decode()}),
        secret("s", {"key": "secret-value"}),
    )
    found.apply(*(each for each, _ in CASES.values()))
    yield found
    node.kubectl("delete", "namespace", "volumes", "--wait=false")
    node.inside("rm", "-rf", "/run/pyb-test", check=False)


@pytest.mark.parametrize("name", CASES)
def test_what_a_container_finds(space: Namespace, name: str) -> None:
    assert space.logs(name) == CASES[name][1]


def test_changes_are_seen_while_a_container_runs(space: Namespace) -> None:
    names = ["cm", "sec", "down", "proj", "later"]
    space.apply(
        config_map("changing", {"k": "1", "gone": "x"}),
        secret("changing", {"k": "1"}),
        pod(
            "watching",
            "sleep 600",
            main={"volumeMounts": [*mounted(*names), {"name": "cm", "mountPath": "/fixed", "subPath": "k"}]},
            metadata={"labels": {"a": "1"}, "annotations": {"note": "1"}},
            volumes=[
                volume("cm", configMap={"name": "changing"}),
                volume("sec", secret={"secretName": "changing"}),
                volume(
                    "down",
                    downwardAPI={
                        "items": [_ref("labels", "metadata.labels"), _ref("notes", "metadata.annotations['note']")]
                    },
                ),
                volume(
                    "proj",
                    projected=_projected(
                        {"configMap": {"name": "changing"}}, {"secret": {"name": "late", "optional": True}}
                    ),
                ),
                volume("later", configMap={"name": "later", "optional": True}),
            ],
        ),
    )
    space.running("watching")
    assert space.exec("watching", "cat /cm/k /sec/k /down/labels /down/notes /proj/k; ls /later") == '11a="1"11'
    patch = '{"data": {"k": "2", "gone": null, "new": "3"}}'
    space.kubectl("patch", "configmap", "changing", "-p", patch)
    space.kubectl("patch", "secret", "changing", "-p", '{"stringData": {"k": "2"}}')
    space.kubectl("label", "pod", "watching", "a=2", "--overwrite")
    space.kubectl("annotate", "pod", "watching", "note=2", "--overwrite")
    space.apply(config_map("later", {"x": "y"}), secret("late", {"z": "late"}))
    expected = '22a="2"22k\nnew\nlate\nx\n1'
    script = "cat /cm/k /sec/k /down/labels /down/notes /proj/k; ls /cm; cat /proj/z; echo; ls /later; cat /fixed"
    space.until("watching", script, expected)
    space.kubectl("delete", "configmap", "later", "--wait=false")
    space.kubectl("delete", "secret", "late", "--wait=false")
    space.until("watching", "ls /later /proj", "/later:\n\n/proj:\nk\nnew\n")
    space.kubectl("delete", "pod", "watching", "--wait=false")


def test_a_pod_waits_for_what_is_missing_and_starts_when_it_comes(space: Namespace) -> None:
    space.apply(
        reading("waits", volume("v", configMap={"name": "comes"})),
        pod(
            "env-waits",
            "echo $K",
            main={"env": [{"name": "K", "valueFrom": {"secretKeyRef": {"name": "comes", "key": "k"}}}]},
        ),
    )
    assert (
        space.event("waits", "FailedMount") == 'MountVolume.SetUp failed for volume "v" : configmap "comes" not found'
    )
    assert space.waiting("env-waits", "CreateContainerConfigError") == 'secret "comes" not found'
    space.apply(config_map("comes", {"k": "here"}), secret("comes", {"k": "there"}))
    assert space.logs("waits") == "== v\n644 k here\n"
    assert space.logs("env-waits") == "there\n"


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("absolute", "/tmp", "error SubPath `/tmp` must not be an absolute path"),
        ("steps", "..", "unable to provision SubPath `..`: must not contain '..'"),
    ],
)
def test_a_bad_subpath_keeps_a_container_from_starting(space: Namespace, name: str, value: str, message: str) -> None:
    space.apply(
        pod(
            name,
            "true",
            main={
                "env": [{"name": "X", "value": value}],
                "volumeMounts": [{"name": "v", "mountPath": "/v", "subPathExpr": "$(X)"}],
            },
            volumes=[volume("v", emptyDir={})],
        )
    )
    assert space.waiting(name, "CreateContainerConfigError") == message
    space.kubectl("delete", "pod", name, "--wait=false")


def test_a_subpath_that_could_not_be_expanded_can_be_put_right(space: Namespace) -> None:
    space.apply(
        pod(
            "expands-later",
            "touch /v/here; find /all -name here",
            main={
                "env": [{"name": "X", "valueFrom": {"fieldRef": {"fieldPath": "metadata.annotations['path']"}}}],
                "volumeMounts": [
                    {"name": "v", "mountPath": "/v", "subPathExpr": "$(X)"},
                    {"name": "v", "mountPath": "/all"},
                ],
            },
            volumes=[volume("v", emptyDir={})],
        )
    )
    assert space.waiting("expands-later", "CreateContainerConfigError") == "missing value for X"
    space.kubectl("annotate", "pod", "expands-later", "path=sub")
    assert space.logs("expands-later") == "/all/sub/here\n"


def test_a_link_in_a_volume_does_not_lead_to_the_node(space: Namespace) -> None:
    space.apply(
        pod(
            "escape",
            [container("cat /v/shadow", volumeMounts=[{"name": "v", "mountPath": "/v", "subPath": "out"}])],
            initContainers=[container("ln -s /etc /v/out", "first", volumeMounts=mounted("v"))],
            volumes=[volume("v", emptyDir={})],
        )
    )
    message = 'failed to prepare subPath for volumeMount "v" of container "main"'
    assert space.waiting("escape", "CreateContainerConfigError") == message
    space.kubectl("delete", "pod", "escape", "--wait=false")


def test_mounts_are_seen_on_the_other_side_as_asked_for(space: Namespace, node: Cluster) -> None:
    node.inside("mkdir", "-p", "/run/pyb-test/p")
    parts = {"name": "p", "mountPath": "/p"}
    space.apply(
        pod(
            "propagation",
            [
                container(
                    "mkdir -p /p/inner && mount -t tmpfs inner /p/inner && touch /p/inner/file && sleep 600",
                    securityContext={"privileged": True},
                    volumeMounts=[{**parts, "mountPropagation": "Bidirectional"}],
                ),
                container("sleep 600", "slave", volumeMounts=[{**parts, "mountPropagation": "HostToContainer"}]),
                container("sleep 600", "private", volumeMounts=[parts]),
            ],
            volumes=[volume("p", hostPath={"path": "/run/pyb-test/p"})],
        )
    )
    space.running("propagation")
    space.until("propagation", "ls /p/inner", "file\n")
    assert node.inside("ls", "/run/pyb-test/p/inner") == "file\n"
    node.inside("mkdir", "/run/pyb-test/p/host")
    node.inside("mount", "-t", "tmpfs", "host", "/run/pyb-test/p/host")
    node.inside("touch", "/run/pyb-test/p/host/file")
    listed = {
        name: space.kubectl("exec", "propagation", "-c", name, "--", "ls", "/p/host")
        for name in ("main", "slave", "private")
    }
    assert listed == {"main": "file\n", "slave": "file\n", "private": ""}
    space.kubectl("delete", "pod", "propagation", "--grace-period=1")
    for name in ("inner", "host"):
        node.inside("umount", f"/run/pyb-test/p/{name}")


def test_a_claim_of_a_folder_of_the_node(space: Namespace, node: Cluster) -> None:
    node.inside("mkdir", "-p", "/run/pyb-test/local")
    hostname = {"key": "kubernetes.io/hostname", "operator": "In", "values": ["node-1"]}
    space.apply(
        {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {"name": "test-local"},
            "spec": {
                "capacity": {"storage": "1Gi"},
                "accessModes": ["ReadWriteOnce"],
                "storageClassName": "none",
                "persistentVolumeReclaimPolicy": "Retain",
                "local": {"path": "/run/pyb-test/local"},
                "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [hostname]}]}},
            },
        },
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": "claim"},
            "spec": {
                "accessModes": ["ReadWriteOnce"],
                "storageClassName": "none",
                "resources": {"requests": {"storage": "1Gi"}},
            },
        },
        pod(
            "claims",
            "echo kept > /v/file; stat -c %g /v",
            main={"volumeMounts": mounted("v")},
            volumes=[volume("v", persistentVolumeClaim={"claimName": "claim"})],
            securityContext={"fsGroup": 4711},
        ),
    )
    assert space.logs("claims") == "4711\n"
    space.kubectl("delete", "pod", "claims")
    assert node.inside("cat", "/run/pyb-test/local/file") == "kept\n"
    space.kubectl("delete", "pvc", "claim")
    node.kubectl("delete", "pv", "test-local")


def test_nothing_of_a_pod_is_left_on_the_node(space: Namespace, node: Cluster) -> None:
    space.apply(
        pod(
            "leaves",
            "sleep 600",
            main={"volumeMounts": [*mounted("e", "t", "s"), {"name": "e", "mountPath": "/sub", "subPath": "x"}]},
            volumes=[
                volume("e", emptyDir={}),
                volume("t", emptyDir={"medium": "Memory"}),
                volume("s", secret={"secretName": "s"}),
            ],
        )
    )
    uid = space.running("leaves")["metadata"]["uid"]
    assert node.inside("grep", "-c", uid, "/proc/mounts") != "0\n"
    space.kubectl("delete", "pod", "leaves")

    def gone() -> bool:
        return uid not in node.inside("cat", "/proc/mounts") + node.inside("ls", "/var/lib/kubelet/pods")

    tools.wait_until(gone, "mounts and folders are gone", 60.0)
