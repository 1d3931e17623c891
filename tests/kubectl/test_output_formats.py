"""Odd corners of output formats, as upstream's kubectl v1.36.4 printed them of the same objects."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import kubectl_static
import pytest

from pybernetes.kubectl import main as kubectl


def _config_map(name: str, **data: str) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "default", "labels": {"a.b/c": name, "only": "one"}}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def _pod(name: str, *images: str) -> dict[str, Any]:
    resources = {"requests": {"cpu": "100m"}}
    containers = [{"name": f"c{at}", "image": image, "resources": resources} for at, image in enumerate(images)]
    metadata = {"name": name, "namespace": "default", "labels": {"only": "one"}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": containers}}


OBJECTS = [
    _config_map("c10", k="1"),
    _config_map("c2", k="2"),
    _config_map("b", k="x"),
    _pod("p1", "nginx", "busybox"),
    _pod("p2", "nginx"),
    _pod("p3"),
]
PRINTED = {
    "get cm --sort-by=.metadata.name -o name": ("configmap/b\nconfigmap/c10\nconfigmap/c2\n"),
    "get cm --sort-by=.data.k -o name": ("configmap/c10\nconfigmap/c2\nconfigmap/b\n"),
    "get cm -o \"jsonpath={.items[*].metadata.labels['a\\.b/c']}\"": ("c10 c2 b"),
    "get cm -o \"jsonpath={.items[*]['metadata.name']}\"": ("c10 c2 b"),
    "get cm -o \"jsonpath={.items[0].metadata['name','namespace']}\"": ("c10 default"),
    "get pods -o custom-columns=N:.metadata.name,I:.spec.containers[1].image": (
        "N     I\np1    busybox\nerror: array index out of bounds: index 1, length 1\n"
    ),
    "get pods -o custom-columns=I:.spec.containers[*].image,X:.nothing --no-headers": (
        "nginx,busybox   <none>\nnginx           <none>\n<none>          <none>\n"
    ),
    "label pod p1 only- --dry-run=client -o yaml": (
        "apiVersion: v1\n"
        "kind: Pod\n"
        "metadata:\n"
        "  labels: {}\n"
        "  name: p1\n"
        "  namespace: default\n"
        "spec:\n"
        "  containers:\n"
        "  - image: nginx\n"
        "    name: c0\n"
        "    resources:\n"
        "      requests:\n"
        "        cpu: 100m\n"
        "  - image: busybox\n"
        "    name: c1\n"
        "    resources:\n"
        "      requests:\n"
        "        cpu: 100m\n"
    ),
    "get cm -o 'go-template={{\\}}'": (
        'error: error parsing template {{\\}}, template: output:1: unexpected "\\\\" in command\n'
    ),
    "describe pod p2": (
        "Name:         p2\n"
        "Namespace:    default\n"
        "Node:         <none>\n"
        "Labels:       only=one\n"
        "Annotations:  <none>\n"
        "Status:       \n"
        "IP:           \n"
        "IPs:          <none>\n"
        "Containers:\n"
        "  c0:\n"
        "    Image:      nginx\n"
        "    Port:       <none>\n"
        "    Host Port:  <none>\n"
        "    Requests:\n"
        "      cpu:        100m\n"
        "    Environment:  <none>\n"
        "    Mounts:       <none>\n"
        "Volumes:          <none>\n"
        "QoS Class:        Burstable\n"
        "Node-Selectors:   <none>\n"
        "Tolerations:      <none>\n"
        "Events:           <none>\n"
    ),
    'patch cm b --type=json -p \'[{"op":"add","path":"/x/z","value":"1"}]\' --dry-run=client': (
        'error: add operation does not apply: doc is missing path: "/x/z": missing value\n'
    ),
    "set env pod/p1 A- --dry-run=client -o name": (""),
    "api-resources --api-group=node.k8s.io -o json": (
        "{\n"
        '    "kind": "APIResourceList",\n'
        '    "apiVersion": "v1",\n'
        '    "groupVersion": "",\n'
        '    "resources": [\n'
        "        {\n"
        '            "name": "runtimeclasses",\n'
        '            "singularName": "runtimeclass",\n'
        '            "namespaced": false,\n'
        '            "group": "node.k8s.io",\n'
        '            "version": "v1",\n'
        '            "kind": "RuntimeClass",\n'
        '            "verbs": [\n'
        '                "create",\n'
        '                "delete",\n'
        '                "deletecollection",\n'
        '                "get",\n'
        '                "list",\n'
        '                "patch",\n'
        '                "update",\n'
        '                "watch"\n'
        "            ]\n"
        "        }\n"
        "    ]\n"
        "}\n"
    ),
    "expose pod p1 --port=80 --selector=a=b --dry-run=client -o name": ("service/p1\n"),
}


@pytest.mark.parametrize("command", PRINTED)
def test_formats_print_what_upstreams_print(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("KUBECONFIG", "/dev/null")
    with kubectl_static.serve(OBJECTS) as server:
        kubectl.main([f"--server={server}", *shlex.split(command)])
    captured = capsys.readouterr()
    assert captured.out + captured.err == PRINTED[command]
