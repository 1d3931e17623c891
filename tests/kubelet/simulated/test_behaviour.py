"""What simulated pods shall do: annotations, rules, and what is wrong with them."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any

import pytest

from pybernetes.api.core.v1 import Node, Pod, Probe
from pybernetes.api.meta.v1 import ObjectMeta
from pybernetes.client.codec import decode
from pybernetes.kubelet.simulated.behaviour import PREFIX, behaviour, node_behaviour, read_rules, unknown
from pybernetes.kubelet.simulated.curves import constant
from pybernetes.kubelet.simulated.rules_file import RulesFile
from pybernetes.kubelet.simulated.settings import NodeBehaviour


def pod(annotations: dict[str, str] | None = None, **metadata: Any) -> Pod:
    told = {PREFIX + key: value for key, value in (annotations or {}).items()}
    body = {
        "metadata": {"name": "p", "namespace": "default", "annotations": told, **metadata},
        "spec": {"initContainers": [{"name": "i"}], "containers": [{"name": "a"}, {"name": "b"}]},
    }
    return decode(Pod, json.dumps(body).encode())


def test_by_default_containers_run_for_ever_and_init_containers_and_jobs_end_at_once() -> None:
    assert behaviour(pod(), "a", [])[0].run_for == math.inf
    assert behaviour(pod(), "i", [])[0].run_for == 0
    job = {"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "u", "controller": True}
    assert behaviour(pod(ownerReferences=[job]), "a", [])[0].run_for == 0


def test_annotations_are_for_all_containers_or_for_one() -> None:
    configured = pod(
        {"run-for": "1m30s", "run-for.b": "never", "exit-code": "3", "cpu": "250m", "exit-reason": "OOMKilled"}
    )
    first, problems = behaviour(configured, "a", [])
    assert (first.run_for, first.exit_code, first.cpu, first.reason) == (90, 3, constant(0.25), "OOMKilled")
    assert behaviour(configured, "b", [])[0].run_for == math.inf
    assert problems == []


def test_the_first_rule_that_fits_and_has_a_setting_counts_below_annotations() -> None:
    rules = read_rules(
        {
            "rules": [
                {"namespace": "other", "settings": {"run-for": "1s"}},
                {"name": "p*", "settings": {"run-for": "2s"}},
                {"labels": {"app": "x"}, "settings": {"run-for": "3s", "exit-code": 7}},
            ]
        }
    ).pods
    found = behaviour(pod(labels={"app": "x"}), "a", rules)[0]
    assert (found.run_for, found.exit_code) == (2, 7)
    assert behaviour(pod({"run-for": "4s"}), "a", rules)[0].run_for == 4


@pytest.mark.parametrize(
    ("name", "value"),
    [("run-for", "soon"), ("run-for", "-1s"), ("exit-code", "256"), ("exit-code", "x"), ("memory", "-1"), ("cpu", "?")],
)
def test_an_invalid_setting_is_reported_and_ignored(name: str, value: str) -> None:
    found, problems = behaviour(pod({name: value}), "a", [])
    assert found == behaviour(pod(), "a", [])[0]
    assert len(problems) == 1
    assert problems[0].startswith(f"{PREFIX}{name}: ")


def test_annotations_that_mean_nothing_are_reported() -> None:
    assert unknown(pod({"run-for.a": "1s", "exit-code": "1"})) == []
    assert [each.partition(":")[0] for each in unknown(pod({"run": "1s", "run-for.c": "1s"}))] == [
        f"{PREFIX}run",
        f"{PREFIX}run-for.c",
    ]
    probed = pod({"liveness-probe": "failure", "readiness-probe": "failure", "liveness-probe.b": "failure"})
    assert probed.spec is not None
    assert probed.spec.containers is not None
    probed.spec.containers[0].liveness_probe = Probe()
    assert unknown(probed) == [
        f"{PREFIX}readiness-probe: there is no such probe",
        f"{PREFIX}liveness-probe.b: there is no such probe",
    ]


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ([], "a file of rules has lists `rules` (of pods) and `nodes`, and nothing else"),
        (
            {"rules": [], "more": 1},
            "unknown field 'more': a file of rules has lists `rules` (of pods) and `nodes`, and nothing else",
        ),
        ({"rules": None}, "rules: must be a list"),
        ({"rules": [], "nodes": {"name": "x"}}, "nodes: must be a list"),
        ({"rules": [{"labels": {"a": None}}]}, "rules[0].labels.a: must be text"),
        ({"rules": ["x"]}, "rules[0]: must be an object"),
        ({"rules": [{"selector": {}}]}, "rules[0]: unknown field 'selector'"),
        ({"rules": [{}, {"labels": []}]}, "rules[1].labels: must be an object"),
        ({"rules": [{"labels": {"app": ["x"]}}]}, "rules[0].labels.app: must be text"),
        ({"rules": [{"settings": {"run": "1s"}}]}, "rules[0].settings: there is no setting 'run'"),
        ({"rules": [{"name": 1}]}, "rules[0].name: must be text"),
        ({"nodes": [{"namespace": "x"}]}, "nodes[0]: unknown field 'namespace'"),
        ({"nodes": [{"settings": {"silent": "maybe"}}]}, "nodes[0].settings.silent: must be true or false: 'maybe'"),
        ({"rules": [{"settings": {"ports": {"x": "y"}}}]}, "rules[0].settings.ports: not a port: 'x'"),
    ],
)
def test_a_file_of_rules_is_refused_where_it_is_wrong(content: Any, why: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(why)}$"):
        read_rules(content)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("rules:\n- settings: {run-for: 1s, run-for: 2s}\n", "run-for"),
        ("rules: []\n---\nrules: []\n", "must be one document"),
        ("rules: []\n---\n[\n", "must be one document"),
        ("rules: [\n", "yaml: line"),
        ("rules: 3\n", "rules: must be a list"),
    ],
)
def test_a_file_that_would_not_be_taken_as_it_is_written_is_refused_by_its_name(
    tmp_path: Path, text: str, why: str
) -> None:
    path = tmp_path / "rules.yaml"
    path.write_text(text)
    with pytest.raises(ValueError, match=f"^{re.escape(str(path))}: .*{re.escape(why)}"):
        RulesFile(path).read()


def test_lists_and_objects_are_written_as_such_in_a_file_and_as_text_in_annotations() -> None:
    exec = [{"command": "cat *", "stdout": "x"}, {"exitCode": 3}]
    rules = read_rules({"rules": [{"settings": {"exec": exec, "ports": {"80": "hello"}}}]}).pods
    found = behaviour(pod(), "a", rules)[0]
    assert [(each.pattern, each.stdout, each.exit_code) for each in found.exec] == [("cat *", "x", 0), ("*", "", 3)]
    assert found.ports == {80: "hello"}
    assert behaviour(pod({"exec": json.dumps(exec), "ports": "80: hello"}), "a", [])[0] == found


def test_nodes_have_rules_and_annotations_too() -> None:
    rules = read_rules({"nodes": [{"name": "sim-[12]", "settings": {"silent": True, "not-ready": "no network"}}]}).nodes
    silent = Node(metadata=ObjectMeta(name="sim-1"))
    assert node_behaviour(silent, rules)[0] == NodeBehaviour(silent=True, not_ready="no network")
    awake = Node(metadata=ObjectMeta(name="sim-1", annotations={PREFIX + "silent": "false"}))
    assert node_behaviour(awake, rules)[0].silent is False
    other = Node(metadata=ObjectMeta(name="sim-3", annotations={PREFIX + "pressure": "PIDPressure, MemoryPressure"}))
    assert node_behaviour(other, rules)[0] == NodeBehaviour(pressure=("MemoryPressure", "PIDPressure"))
    wrong = Node(metadata=ObjectMeta(name="sim-3", annotations={PREFIX + "pressure": "Boredom"}))
    assert node_behaviour(wrong, rules) == (
        NodeBehaviour(),
        [f"{PREFIX}pressure: not one of MemoryPressure, DiskPressure, PIDPressure: 'Boredom'"],
    )
