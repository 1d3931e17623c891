"""`kubectl top` prints what upstream's kubectl v1.36.4 printed of the same metrics."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import kubectl_static
import pytest

from pybernetes.kubectl import main as kubectl


def _node(name: str, cpu: str, memory: str, swap: int | None = None) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name},
        "status": {
            "capacity": {"cpu": cpu, "memory": memory},
            "allocatable": {"cpu": "1500m", "memory": memory},
            "nodeInfo": {"swap": {"capacity": swap}} if swap else {},
        },
    }


def _metrics(kind: str, name: str, namespace: str | None = None, **rest: Any) -> dict[str, Any]:
    metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
    return {"apiVersion": "metrics.k8s.io/v1beta1", "kind": kind, "metadata": metadata, "window": "10s", **rest}


def _container(name: str, cpu: str, memory: str, swap: str) -> dict[str, Any]:
    return {"name": name, "usage": {"cpu": cpu, "memory": memory, "swap": swap}}


OBJECTS = [
    _node("a", "2", "4Gi", swap=2**30),
    _node("b", "4", "8Gi"),
    _node("c", "1", "1Gi"),
    _metrics("NodeMetrics", "b", usage={"cpu": "123456n", "memory": "1000Ki"}),
    _metrics("NodeMetrics", "a", usage={"cpu": "1", "memory": "2Gi", "swap": "512Mi"}),
    _metrics(
        "PodMetrics",
        "web",
        "x",
        containers=[_container("main", "250m", "64Mi", "1Mi"), _container("aside", "10m", "128Mi", "0")],
    ),
    _metrics(
        "PodMetrics", "db", "y", containers=[_container("z", "1500u", "1Gi", "2Mi"), _container("a", "3", "1Ki", "0")]
    ),
]
PRINTED = {
    "top node --show-swap": (
        "NAME   CPU(cores)   CPU(%)      MEMORY(bytes)   MEMORY(%)   SWAP(bytes)   SWAP(%)     \n"
        "a      1000m        66%         2048Mi          50%         512Mi         50%         \n"
        "b      1m           0%          0Mi             0%          <unknown>     <unknown>   \n"
        "c      <unknown>    <unknown>   <unknown>       <unknown>   <unknown>     <unknown>   \n"
    ),
    "top node --sort-by=memory --no-headers": (
        "a     1000m       66%         2048Mi      50%         \n"
        "b     1m          0%          0Mi         0%          \n"
        "c     <unknown>   <unknown>   <unknown>   <unknown>   \n"
    ),
    "top node a --show-swap --show-capacity": (
        "NAME   CPU(cores)   CPU(%)   MEMORY(bytes)   MEMORY(%)   SWAP(bytes)   SWAP(%)   \n"
        "a      1000m        50%      2048Mi          50%         512Mi         50%       \n"
    ),
    "top node nope": ('Error from server (NotFound): nodes "nope" not found\n'),
    "top pod -A": (
        "NAMESPACE   NAME   CPU(cores)   MEMORY(bytes)   \n"
        "x           web    260m         192Mi           \n"
        "y           db     3002m        1024Mi          \n"
    ),
    "top pod -A --containers --sort-by=cpu": (
        "NAMESPACE   POD   NAME    CPU(cores)   MEMORY(bytes)   \n"
        "y           db    a       3000m        0Mi             \n"
        "y           db    z       2m           1024Mi          \n"
        "x           web   main    250m         64Mi            \n"
        "x           web   aside   10m          128Mi           \n"
    ),
    "top pod -A --show-swap --containers --sum": (
        "NAMESPACE   POD   NAME    CPU(cores)   MEMORY(bytes)   SWAP(bytes)   \n"
        "x           web   aside   10m          128Mi           0Mi           \n"
        "x           web   main    250m         64Mi            1Mi           \n"
        "y           db    a       3000m        0Mi             0Mi           \n"
        "y           db    z       2m           1024Mi          2Mi           \n"
        "                                       ________        ________      \n"
        "                                       3262m           1216Mi        3Mi   \n"
    ),
    "top pod -n x --sum --no-headers": (
        "web   260m       192Mi      \n      ________   ________   \n      260m       192Mi      \n"
    ),
    "top pod nope -n x": ('Error from server (NotFound): pods "nope" not found\n'),
    "top pod -n zz": ("No resources found in zz namespace.\n"),
}


@pytest.mark.parametrize("command", PRINTED)
def test_metrics_are_printed_as_upstream_prints_them(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("KUBECONFIG", "/dev/null")
    with kubectl_static.serve(OBJECTS) as server:
        code = kubectl.main([f"--server={server}", *command.split()])
    captured = capsys.readouterr()
    assert captured.out + captured.err == PRINTED[command]
    assert code == int("Error" in PRINTED[command] or "error" in PRINTED[command])
