"""InitialResources: containers that ask for nothing ask for what their image has used."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from apiserver.admission.conftest import server_with
from backends import Answer, Asked, Backend, kubeconfig_of
from hypothesis import given
from hypothesis import strategies as st

from pybernetes.api.core.v1 import Container, Pod, PodSpec, ResourceRequirements
from pybernetes.api.meta.v1 import ObjectMeta
from pybernetes.api.resources import RESOURCES
from pybernetes.apiserver.admission import initial_resources
from pybernetes.apiserver.admission.initial_resources import InitialResources, read_configuration
from pybernetes.apiserver.admission.plugin import CREATE, Attributes
from pybernetes.apiserver.admission.usage_history import DAY, UsageHistory, repository
from tools import wait_until

PODS = next(each for each in RESOURCES if each.fullname == "pods")
HEAD = {"apiVersion": "initialresources.admission.k8s.io/v1alpha1", "kind": "Configuration"}
NOW = 1_700_000_000.0
IMAGE = "registry.example:5000/web:1"


def plugin(**configuration: Any) -> InitialResources:
    registry: Any = SimpleNamespace(clock=SimpleNamespace(now=lambda: NOW))
    return InitialResources(registry, {**HEAD, **configuration})


def admitted(using: InitialResources, resources: ResourceRequirements | None = None, namespace: str = "ns") -> Pod:
    containers = [Container(name="c", image=IMAGE, resources=resources)]
    spec = PodSpec(init_containers=[Container(name="i", image=IMAGE)], containers=containers)
    pod = Pod(metadata=ObjectMeta(name="p"), spec=spec)
    using.admit(Attributes(CREATE, PODS, "", namespace, "p", pod, None, None, False, []))
    return pod


def requests(pod: Pod) -> dict[str, Any] | None:
    assert pod.spec
    assert pod.spec.containers
    resources = pod.spec.containers[0].resources
    return resources.requests if resources else None


def used(
    to: InitialResources, cpu: int, samples: int = 40, image: str = IMAGE, namespace: str = "ns", age: int = 1
) -> None:
    for _ in range(samples):
        to.history.record("cpu", image, namespace, cpu, NOW - age * DAY)
        to.history.record("memory", image, namespace, cpu << 20, NOW - age * DAY)


def millis(pod: Pod) -> int:
    found = requests(pod)
    assert found
    return int(found["cpu"].removesuffix("m"))


def test_requests_are_filled_in_and_the_pod_says_so() -> None:
    source = plugin()
    used(source, 100)
    pod = admitted(source)
    assert 100 <= millis(pod) <= 105
    assert pod.metadata
    assert pod.metadata.annotations == {
        initial_resources.ANNOTATION: "Initial Resources plugin set: cpu, memory request for init container i; "
        "cpu, memory request for container c"
    }


@pytest.mark.parametrize(
    ("said", "filled"),
    [
        (ResourceRequirements(requests={"cpu": "1"}), {"cpu", "memory"}),
        (ResourceRequirements(limits={"cpu": "1"}), {"memory"}),
        (ResourceRequirements(requests={"cpu": "1"}, limits={"memory": "1Gi"}), {"cpu"}),
    ],
)
def test_what_is_said_stays(said: ResourceRequirements, filled: set[str]) -> None:
    source = plugin()
    used(source, 100)
    found = requests(admitted(source, said)) or {}
    assert set(found) == filled
    assert found.get("cpu", "1") == "1"


def test_nothing_is_made_up_without_samples() -> None:
    pod = admitted(plugin())
    assert requests(pod) is None
    assert pod.metadata
    assert pod.metadata.annotations is None


@pytest.mark.parametrize(
    ("recorded", "expected"),
    [
        ([{"cpu": 100}, {"cpu": 500, "age": 20}, {"cpu": 900, "namespace": "other"}], 100),
        ([{"cpu": 500, "age": 20}, {"cpu": 900, "namespace": "other"}], 500),
        ([{"cpu": 100, "samples": 3}, {"cpu": 900, "namespace": "other"}], 900),
        ([{"cpu": 700, "image": "registry.example:5000/web:2", "namespace": "other"}], 700),
        ([{"cpu": 100, "samples": 3}], 100),
        ([{"cpu": 100, "age": 40}], None),
        ([{"cpu": 100, "image": "registry.example:5000/other:1"}], None),
    ],
)
def test_the_nearest_samples_count_if_there_are_enough(recorded: list[dict[str, Any]], expected: int | None) -> None:
    source = plugin()
    for each in recorded:
        used(source, **each)
    pod = admitted(source)
    if expected is None:
        assert requests(pod) is None
    else:
        assert expected <= millis(pod) <= expected * 1.06


def test_other_namespaces_do_not_count_if_so_configured() -> None:
    source = plugin(namespaceOnly=True)
    used(source, 900, namespace="other")
    assert requests(admitted(source)) is None
    used(source, 700, image="registry.example:5000/web:2")
    assert 700 <= millis(admitted(source)) <= 740


@given(st.lists(st.integers(1, 10**12), min_size=1, max_size=200), st.integers(1, 100))
def test_a_percentile_is_never_too_low_and_at_most_a_twentieth_too_high(values: list[int], percentile: int) -> None:
    history = UsageHistory()
    for value in values:
        history.record("cpu", "i", "n", value, NOW)
    found, samples = history.percentile("cpu", percentile, "i", None, exact=True, days=1, now=NOW)
    exact = sorted(values)[-(-len(values) * percentile // 100) - 1]
    assert samples == len(values)
    assert exact <= found <= exact * 1.05 + 1


def test_usage_is_taken_from_pod_metrics_and_survives_a_restart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "usage.json"
    source = plugin(historyFile=str(file))
    pod = Pod(metadata=ObjectMeta(name="p"), spec=PodSpec(containers=[Container(name="c", image=IMAGE)]))
    pods = SimpleNamespace(get=lambda namespace, name: pod if (namespace, name) == ("ns", "p") else None)
    monkeypatch.setattr(initial_resources, "lister", lambda *_: pods)
    containers = [{"name": "c", "usage": {"cpu": "123456789n", "memory": "64Mi"}}, {"name": "gone", "usage": {}}]
    items = [
        {"metadata": {"name": "p", "namespace": "ns"}, "containers": containers},
        {"metadata": {"name": "nobody", "namespace": "ns"}, "containers": containers},
        {"metadata": {"name": "p", "namespace": "ns"}, "containers": [{"name": "c", "usage": {"cpu": "nonsense"}}]},
    ]
    for _ in range(30):
        source.record(json.dumps({"kind": "PodMetricsList", "items": items}).encode())
    source.history.save(file)
    again = plugin(historyFile=str(file))
    assert 124 <= millis(admitted(again)) <= 131
    with pytest.raises(ValueError, match="items"):
        source.record(b'{"items": 7}')
    file.write_text("nonsense")
    with pytest.raises(ValueError, match=re.escape(str(file))):
        plugin(historyFile=str(file))


def test_days_beyond_a_month_are_forgotten() -> None:
    history = UsageHistory()
    rng = random.Random(1)
    for day in range(100):
        for _ in range(50):
            history.record("cpu", "i", "n", rng.randrange(1, 10**6), NOW - day * DAY)
    history.forget(NOW)
    assert len(history._days) == 31


@pytest.mark.parametrize(
    ("image", "name"),
    [("web", "web"), ("web:1", "web"), ("r:5000/web", "r:5000/web"), ("r:5000/web:1@sha256:ab", "r:5000/web")],
)
def test_the_name_of_an_image(image: str, name: str) -> None:
    assert repository(image) == name


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"percentile": 0}, "percentile: Invalid value: 0"),
        ({"samplePeriodSeconds": 0}, "samplePeriodSeconds"),
        ({"kubeConfigFile": "/nowhere"}, "no such file: /nowhere"),
        ({"percentil": 5}, "percentil"),
    ],
)
def test_a_bad_configuration_is_refused(change: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ValueError, match=re.escape(complaint)):
        read_configuration({**HEAD, **change})


def test_a_server_learns_from_metrics_and_remembers(tmp_path: Path) -> None:
    namespace = ""

    def metrics(asked: Asked) -> Answer:
        """What one pod uses."""
        if asked.path != "/apis/metrics.k8s.io/v1beta1/pods":
            return Answer({}, 404)
        usage = {"cpu": "250m", "memory": "100Mi"}
        item = {"metadata": {"name": "old", "namespace": namespace}, "containers": [{"name": "a", "usage": usage}]}
        return Answer({"kind": "PodMetricsList", "items": [item]})

    backend = Backend(metrics)
    (tmp_path / "metrics.conf").write_text(json.dumps(kubeconfig_of(backend.origin)))
    history = tmp_path / "usage.json"
    own = {**HEAD, "kubeConfigFile": str(tmp_path / "metrics.conf"), "samplePeriodSeconds": 0.05}
    plugins = [{"name": "InitialResources", "configuration": {**own, "historyFile": str(history)}}]
    document = {"apiVersion": "apiserver.config.k8s.io/v1", "kind": "AdmissionConfiguration", "plugins": plugins}
    (tmp_path / "admission.json").write_text(json.dumps(document))
    flags = (
        "--enable-admission-plugins=InitialResources",
        "--disable-admission-plugins=ServiceAccount",
        f"--admission-control-config-file={tmp_path}/admission.json",
    )
    try:
        with server_with(tmp_path, *flags) as client:
            namespace = client.namespace()
            path = f"/api/v1/namespaces/{namespace}/pods"

            def create(name: str) -> dict[str, Any]:
                body = {"metadata": {"name": name}, "spec": {"containers": [{"name": "a", "image": "web:1"}]}}
                query = "" if name == "old" else "?dryRun=All"
                resources: dict[str, Any] = client.post(path + query, body).json["spec"]["containers"][0]["resources"]
                return resources

            assert create("old") == {}
            found = wait_until(lambda: create("new"), "the image's usage is known")
            assert 250 <= int(found["requests"]["cpu"].removesuffix("m")) <= 263
        assert "web:1" in history.read_text()
    finally:
        backend.close()
