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
    containers = [{"name": f"c{at}", "image": image} for at, image in enumerate(images)]
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
        "  - image: busybox\n"
        "    name: c1\n"
    ),
    "get cm -o 'go-template={{\\}}'": (
        'error: error parsing template {{\\}}, template: output:1: unexpected "\\\\" in command\n'
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
