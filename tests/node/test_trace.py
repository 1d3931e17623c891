"""`pyb trace` on a node with our runtime: from the keystroke to the container, one tree without an orphan.

docs/trace.md shows the outline of such a run; the steps in it must be in every run, below each other as they are there.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from node.cluster import Cluster
from node.runtimes import only

import tools
from pybernetes.cluster.images import builtin

BUSYBOX = "busybox:1.35"
SLEEP = "trap 'exit 0' TERM; sleep 1000 & wait"
PAGE = Path(__file__).parents[2] / "docs/trace.md"
pytestmark = [only("embedded"), pytest.mark.skipif(builtin.busybox_program() is None, reason="no static busybox")]


def paths(outline: str) -> set[tuple[str, ...]]:
    """The lines of an outline, each with those above it."""
    found: set[tuple[str, ...]] = set()
    above: list[str] = []
    for line in outline.splitlines():
        text = line.strip()
        depth = (len(line) - len(line.lstrip())) // 2
        above[depth:] = [text]
        found.add(tuple(above))
    return found


def create(name: str, *kubectl: str) -> list[str]:
    words = ["create", "deployment", name, f"--image={BUSYBOX}", "--replicas=2", "--", "sh", "-c", SLEEP]
    return ["--timeout=100s", "--", *kubectl, *words]


def test_a_deployment_is_one_tree_down_to_the_containers(node: Cluster) -> None:
    shown = re.search(r"```outline\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert shown
    text = node.pyb("trace", "--outline", *create("traced", *tools.PYTHON, "kubectl"))
    outline = text.partition("\n\n")[2].replace(f"{tools.PYTHON[0].rpartition('/')[2]}: ", "kubectl: ", 1)
    first, _, rest = outline.partition("\n")
    outline = f"kubectl: kubectl create deployment\n{rest}"
    missing = paths(shown[1]) - paths(outline)
    assert not missing, f"{sorted(missing)}\nin\n{first}\n{outline}"
    node.kubectl("delete", "deployment/traced", "--wait=false")


def test_a_client_that_names_no_trace_is_seen_too_and_no_span_is_an_orphan(node: Cluster) -> None:
    text = node.pyb("trace", "--json", *create("foreign", tools.kubectl()))
    spans: list[dict[str, Any]] = json.loads(text)
    ids = {each["spanId"] for each in spans}
    assert len({each["traceId"] for each in spans}) == 1
    assert [
        each["name"].partition(" create")[0].rpartition("/")[2] for each in spans if each["parentSpanId"] not in ids
    ] == ["kubectl"]
    services = {
        each["value"]["stringValue"] for span in spans for each in span["attributes"] if each["key"] == "service.name"
    }
    assert {
        "apiserver",
        "deployment-controller",
        "replicaset-controller",
        "kube-scheduler",
        "kubelet",
        "runtime",
    } <= services
    starts = [each for each in spans if each["name"] == "CRI StartContainer"]
    assert len(starts) == 2
    for each in spans:
        assert int(each["startTimeUnixNano"]) <= int(each["endTimeUnixNano"])
    page = node.folder / "page.html"
    node.pyb("trace", "--html", str(page), "deployment/foreign")
    assert "CRI StartContainer" in page.read_text()
    node.kubectl("delete", "deployment/foreign", "--wait=false")
