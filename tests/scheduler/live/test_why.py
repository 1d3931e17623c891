"""Why a pod is pending, why it is where it is, and what would help: with a real API server, over the real endpoint."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator
from typing import Any

import pytest

import tools
from pybernetes.api.core.v1 import Container, ContainerPort, Node, Pod, ResourceRequirements
from pybernetes.api.core.v1.affinity import (
    Affinity,
    NodeAffinity,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    PodAffinityTerm,
    PodAntiAffinity,
    Taint,
    TopologySpreadConstraint,
)
from pybernetes.api.core.v1.pod import PodSchedulingGate
from pybernetes.api.meta.v1 import LabelSelector
from pybernetes.client import component, config
from pybernetes.client.health import HealthServer
from pybernetes.client.transport import Transport
from pybernetes.cluster.cli import main
from pybernetes.scheduler.explain.memory import Memory
from pybernetes.scheduler.explain.page import PATH, page
from pybernetes.scheduler.explain.report import why
from pybernetes.scheduler.explain.text import render
from pybernetes.scheduler.metrics import Metrics


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tools.ApiServer]:
    """An API server with RBAC."""
    with tools.api_server(tmp_path_factory.mktemp("why"), "--authorization-mode=RBAC") as running:
        yield running


def changes(report: dict[str, Any]) -> dict[str, list[str]]:
    return {each["change"]: each["nodes"] for each in report.get("changes", ())}


async def test_a_pending_pod_gets_each_node_s_verdict_and_what_would_help(live: Any) -> None:
    memory = Memory()
    async with live(recorder=memory) as h:
        await h.node("small", cpu="1")
        await h.node("tainted", cpu="8", taints=[Taint(key="dedicated", value="gpu", effect="NoSchedule")])
        await h.node("cordoned", cpu="8", unschedulable=True)
        await h.pod("p", cpu="1500m")
        await h.refused("p")
        report = why(h.scheduler, memory, h.namespace, "p")
        assert report is not None
        assert report["state"] == "Pending"
        assert report["queue"]["where"] == "unschedulable"
        assert report["queue"]["refusedBy"] == ["NodeResourcesFit", "NodeUnschedulable", "TaintToleration"]
        assert {"NodeAdd", "NodeTaintUpdate", "NodeAllocatableUpdate"} < set(report["queue"]["wakes"])
        assert report["attempts"][-1]["message"].startswith("0/3 nodes are available: ")
        refused = {(each["plugin"], *each["reasons"]): each["nodes"] for each in report["nodes"]["refused"]}
        assert refused["NodeResourcesFit", "Insufficient cpu"] == ["small"]
        assert refused["NodeUnschedulable", "node(s) were unschedulable"] == ["cordoned"]
        assert refused["TaintToleration", "node(s) had untolerated taint(s)"] == ["tainted"]
        assert list(changes(report).items()) == [
            ("500m more cpu on small", ["small"]),
            ("ask for 500m less cpu (1)", ["small"]),
            ("uncordon cordoned", ["cordoned"]),
            ("tolerate the taint dedicated=gpu:NoSchedule", ["tainted"]),
            ("remove the taint dedicated=gpu:NoSchedule from tainted", ["tainted"]),
        ]
        text = render(report)
        assert "  small     NodeResourcesFit: Insufficient cpu" in text
        assert "  1. 500m more cpu on small" in text
        # Asking has changed nothing.
        assert h.scheduler.snapshot.node("cordoned").spec.unschedulable
        again = why(h.scheduler, memory, h.namespace, "p")
        assert again is not None
        assert again["changes"] == report["changes"]


async def test_every_reported_change_makes_the_pod_fit(live: Any) -> None:
    memory = Memory()
    async with live(recorder=memory) as h:
        await h.node("n1", cpu="1")
        await h.pod("p", cpu="1500m")
        await h.refused("p")
        (first, *_) = (why(h.scheduler, memory, h.namespace, "p") or {})["changes"]
        assert first["change"] == "500m more cpu on n1"
        node = await h.client.get(Node, "n1")
        node.status.allocatable["cpu"] = "1500m"
        await h.client.update_status(node)
        assert await h.bound("p") == "n1"


async def test_of_many_nodes_the_one_that_lacks_least_comes_first(live: Any) -> None:
    memory = Memory()
    async with live(recorder=memory) as h:
        for number in range(30):
            await h.node(f"n{number:02}", cpu=f"{100 + number}m")
        await h.pod("p", cpu="200m")
        await h.refused("p")
        report = why(h.scheduler, memory, h.namespace, "p") or {}
        found = list(changes(report))
        assert found[:3] == ["71m more cpu on n29", "72m more cpu on n28", "73m more cpu on n27"]
        assert "30 nodes  NodeResourcesFit: Insufficient cpu  n00, n01, n02, n03, n04 and 25 more" in render(report)


def affinity(key: str, value: str) -> Affinity:
    requirement = NodeSelectorRequirement(key=key, operator="In", values=[value])
    term = NodeSelectorTerm(match_expressions=[requirement])
    return Affinity(
        node_affinity=NodeAffinity(
            required_during_scheduling_ignored_during_execution=NodeSelector(node_selector_terms=[term])
        )
    )


ANTI = Affinity(
    pod_anti_affinity=PodAntiAffinity(
        required_during_scheduling_ignored_during_execution=[
            PodAffinityTerm(
                topology_key="kubernetes.io/hostname", label_selector=LabelSelector(match_labels={"app": "web"})
            )
        ]
    )
)


async def test_changes_of_many_kinds(live: Any) -> None:
    memory = Memory()
    async with live(recorder=memory) as h:
        await h.node("n1", cpu="4", labels={"kubernetes.io/hostname": "n1", "zone": "a"})
        port = ContainerPort(container_port=80, host_port=8080)
        await h.pod("first", labels={"app": "web"}, containers=[Container(name="c", image="i", ports=[port])])
        await h.bound("first")
        cases: dict[str, tuple[dict[str, Any], str]] = {
            "selector": ({"node_selector": {"disk": "ssd"}}, "label n1 with disk=ssd"),
            "affinity": ({"affinity": affinity("disk", "nvme")}, "label n1 with disk=nvme"),
            "shy": ({"affinity": ANTI}, "remove the required pod anti-affinity"),
            "port": (
                {"containers": [Container(name="c", image="i", ports=[port])]},
                "do without hostPort 8080",
            ),
            "memory": ({"memory": "9Gi"}, "1Gi more memory on n1"),
            "both": ({"memory": "9Gi", "cpu": "5"}, "1 more cpu and 1Gi more memory on n1"),
            "gpu": ({"example.com/gpu": "2"}, "2 more example.com/gpu on n1"),
        }
        for name, (fields, _) in cases.items():
            await h.pod(name, **fields)
        for name, (_, expected) in cases.items():
            await h.refused(name)
            report = why(h.scheduler, memory, h.namespace, name) or {}
            assert expected in changes(report), (name, report)


async def test_spreading_and_no_single_change(live: Any) -> None:
    memory = Memory()
    async with live(recorder=memory) as h:
        await h.node("n1", cpu="1", labels={"zone": "a"})
        constraint = TopologySpreadConstraint(
            max_skew=1,
            topology_key="zone",
            when_unsatisfiable="DoNotSchedule",
            label_selector=LabelSelector(match_labels={"app": "web"}),
        )
        for name in ("a", "b"):
            await h.pod(name, labels={"app": "web"}, cpu="100m")
            await h.bound(name)
        await h.node("n2", cpu="1m", labels={"zone": "b"})
        await h.pod("spread", labels={"app": "web"}, cpu="100m", topology_spread_constraints=[constraint])
        await h.refused("spread")
        report = why(h.scheduler, memory, h.namespace, "spread") or {}
        change = "make the spreading by zone soft (whenUnsatisfiable: ScheduleAnyway)"
        assert changes(report) == {"99m more cpu on n2": ["n2"], "ask for 99m less cpu (1m)": ["n2"], change: ["n1"]}
        await h.pod("hopeless", cpu="3", node_selector={"disk": "ssd"})
        await h.refused("hopeless")
        report = why(h.scheduler, memory, h.namespace, "hopeless") or {}
        assert report["changes"] == []
        assert {each["plugin"] for each in report["closest"]["refusedBy"]} == {"NodeAffinity", "NodeResourcesFit"}
        assert "No single change would do. Closest is n1, which needs all of this:" in render(report)
        assert report["closest"]["changes"] == ["2200m more cpu on n1", "label n1 with disk=ssd"]
        node = await h.client.get(Node, "n1")
        node.status.allocatable["cpu"] = "3200m"
        node = await h.client.update_status(node)
        node.metadata.labels["disk"] = "ssd"
        await h.client.update(node)
        assert await h.bound("hopeless") == "n1"


async def test_gates_and_clusters_without_nodes(live: Any) -> None:
    memory = Memory()
    async with live(recorder=memory) as h:
        await h.pod("gated", scheduling_gates=[PodSchedulingGate(name="example.com/wait")])
        await h.pod("early")
        await h.until(lambda: h.scheduler.queue.whereabouts(_key(h, "gated"))[0] == "gated")
        report = why(h.scheduler, memory, h.namespace, "gated") or {}
        assert report["queue"]["gatedBy"] == "SchedulingGates"
        assert list(changes(report)) == ["remove the scheduling gate example.com/wait"]
        assert "It is not in the queue: SchedulingGates keeps it out." in render(report)
        await h.refused("early")
        report = why(h.scheduler, memory, h.namespace, "early") or {}
        assert list(changes(report)) == ["add a node: there is none"]
        assert why(h.scheduler, memory, h.namespace, "nobody") is None


def _key(h: Any, name: str) -> Any:
    from pybernetes.client.keys import Key

    return Key(h.namespace, name)


async def test_a_placed_pod_says_why_there_and_not_elsewhere(live: Any) -> None:
    memory = Memory()
    async with live(recorder=memory) as h:
        await h.node("empty", cpu="4")
        await h.node("busy", cpu="4")
        await h.node("no", cpu="4", taints=[Taint(key="x", effect="NoSchedule")])
        await h.pod("load", cpu="3", node_name="busy")
        await h.until(lambda: h.scheduler.snapshot.num_pods == 1)
        await h.pod("p", cpu="500m")
        assert await h.bound("p") == "empty"
        await h.until(lambda: memory.of(_uid(h, "p"))[-1].bound == "")
        report = why(h.scheduler, memory, h.namespace, "p") or {}
        assert (report["state"], report["nodeName"]) == ("Scheduled", "empty")
        (attempt,) = report["attempts"]
        best, second = attempt["scores"]
        assert (best["node"], second["node"]) == ("empty", "busy")
        assert best["total"] > second["total"]
        assert best["plugins"]["NodeResourcesFit"] > second["plugins"]["NodeResourcesFit"]
        total = sum(points * attempt["weights"][plugin] for plugin, points in best["plugins"].items())
        assert total == best["total"]
        assert attempt["refused"] == [{"plugin": "TaintToleration", "nodes": ["no"]}]
        text = render(report)
        assert "Pod " in text
        assert "*empty" in text
        assert "TaintToleration" in text
        report = why(h.scheduler, memory, h.namespace, "load") or {}
        assert report["message"].startswith("nothing is kept")
        assert "Nothing is kept" in render(report)


def _uid(h: Any, name: str) -> str:
    return str(h.scheduler.handlers.pod(_key(h, name)).metadata.uid)


async def test_the_endpoint_and_the_command(live: Any, server: tools.ApiServer, capsys: Any) -> None:
    memory = Memory()
    async with live(recorder=memory) as h:
        await h.node("n1", cpu="1")
        await h.pod("p", cpu="2")
        await h.refused("p")
        health = HealthServer(Metrics().registry, {}, h.client, {PATH: page(h.scheduler, memory)})
        tls = component.component_tls("kube-scheduler", "", "", str(server.folder / "pki" / "ca.crt"))
        port = await health.start("127.0.0.1", 0, tls)
        url = f"https://127.0.0.1:{port}"
        settings = dataclasses.replace(config.load(server.kubeconfig), server=url, insecure_skip_tls_verify=True)
        without_token = dataclasses.replace(settings, client_certificate_data=b"", client_key_data=b"", token="")
        try:
            for who, code, query in (
                (settings, 200, f"namespace={h.namespace}&name=p"),
                (settings, 404, f"namespace={h.namespace}&name=nobody"),
                (settings, 400, ""),
                (without_token, 403, f"namespace={h.namespace}&name=p"),
            ):
                transport = Transport(who)
                response = await transport.http.request("GET", f"{PATH}?{query}", {})
                await transport.close()
                assert response.status == code, query
            import asyncio

            flags = [
                "why",
                f"--kubeconfig={server.kubeconfig}",
                f"--scheduler={url}",
                "--insecure-skip-tls-verify",
                f"--namespace={h.namespace}",
            ]
            assert await asyncio.to_thread(main, [*flags, "pod/p", "-o", "json"]) == 0
            assert json.loads(capsys.readouterr().out)["changes"][0]["change"] == "1 more cpu on n1"
            assert await asyncio.to_thread(main, [*flags, "pod", "p"]) == 0
            assert "  1. 1 more cpu on n1" in capsys.readouterr().out
            assert await asyncio.to_thread(main, [*flags, "pod/nobody"]) == 1
            assert 'pods "nobody" not found' in capsys.readouterr().err
            assert await asyncio.to_thread(main, [*flags, "deployment/p"]) == 1
            assert 'deployments "p" not found' in capsys.readouterr().err
            flags.remove("--insecure-skip-tls-verify")
            assert await asyncio.to_thread(main, [*flags, "pod/p"]) == 0
            assert "The scheduler cannot be asked for more" in capsys.readouterr().out
            assert await asyncio.to_thread(main, [*flags, "widget/p"]) == 1
            assert "the server has no resource 'widget'" in capsys.readouterr().err
        finally:
            await health.stop()


def test_requests_of_several_containers_shrink_together() -> None:
    from pybernetes.api.core.v1 import PodSpec
    from pybernetes.api.meta.v1 import ObjectMeta
    from pybernetes.scheduler.explain.edits import reduced
    from pybernetes.scheduler.framework.podinfo import PodInfo

    containers = [
        Container(name=name, resources=ResourceRequirements(requests={"cpu": cpu}))
        for name, cpu in (("a", "500m"), ("b", "1"))
    ]
    pod = Pod(metadata=ObjectMeta(name="p"), spec=PodSpec(containers=containers))
    smaller = reduced(pod, "cpu", 700)
    assert smaller is not None
    assert PodInfo(smaller).requests["cpu"] == 800
    assert PodInfo(pod).requests["cpu"] == 1500
    assert reduced(pod, "cpu", 1600) is None
