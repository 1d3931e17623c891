"""Faults on demand: each rule happens to the requests that it names, and to no other."""

from __future__ import annotations

import ssl
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from testing.manifests import config_map, deployment

from pybernetes.api import errors
from pybernetes.testing.cluster import Cluster

BROKEN = (ConnectionError, ssl.SSLError)


@pytest.fixture(scope="module")
def shared() -> Iterator[Cluster]:
    """A cluster for the tests of this module; each uses objects of its own and clears its rules."""
    with Cluster() as cluster:
        yield cluster


@pytest.fixture
def cluster(shared: Cluster) -> Iterator[Cluster]:
    """The shared cluster without rules."""
    yield shared
    shared.faults.clear()


def test_a_request_is_refused_as_often_as_the_rule_says(cluster: Cluster) -> None:
    cluster.client.create(config_map("refused"))
    fault = cluster.faults.refuse(409, verbs="patch", resources="configmaps", names="refused", skip=1, times=2)
    for expected in (None, errors.Conflict, errors.Conflict, None):
        if expected is None:
            cluster.client.patch("configmaps", "refused", {"data": {"a": "b"}})
        else:
            with pytest.raises(expected):
                cluster.client.patch("configmaps", "refused", {"data": {"a": "c"}})
    assert cluster.client.get("configmaps", "refused")["data"] == {"a": "b"}
    assert fault.hits == 2


@pytest.mark.parametrize(
    ("status", "error"),
    [(410, errors.ResourceExpired), (429, errors.TooManyRequests), (500, errors.InternalError), (504, errors.Timeout)],
)
def test_an_answer_is_the_error_that_upstream_has_for_the_code(
    cluster: Cluster, status: int, error: type[errors.APIError]
) -> None:
    with cluster.faults.refuse(status, resources="secrets"), pytest.raises(error):
        cluster.client.list("secrets")
    cluster.client.list("secrets")


def test_a_lost_answer_is_of_a_write_that_was_done_and_a_dropped_one_of_none(cluster: Cluster) -> None:
    with cluster.faults.lose(verbs="create", resources="configmaps"), pytest.raises(BROKEN):
        cluster.client.create(config_map("lost"))
    with cluster.faults.drop(verbs="create", resources="configmaps"), pytest.raises(BROKEN):
        cluster.client.create(config_map("dropped"))
    assert cluster.client.get("configmaps", "lost")
    with pytest.raises(errors.NotFound):
        cluster.client.get("configmaps", "dropped")


def test_a_duplicate_is_done_twice(cluster: Cluster) -> None:
    with cluster.faults.duplicate(verbs="create", resources="configmaps"), pytest.raises(errors.AlreadyExists):
        cluster.client.create(config_map("twice"))
    assert cluster.client.get("configmaps", "twice")


def test_a_delay_is_of_the_cluster_s_time(cluster: Cluster) -> None:
    before = cluster.clock.now()
    with cluster.faults.delay(0.1, verbs="get", resources="configmaps"):
        cluster.client.get("configmaps", "kube-root-ca.crt")
    assert cluster.clock.now() - before >= 0.1


def test_a_component_that_hears_nothing_catches_up_when_it_does(cluster: Cluster) -> None:
    """A stale cache: the scheduler does not hear of new pods."""
    client = cluster.client
    with cluster.faults.hold(user_agents="kube-scheduler*", verbs="watch", resources="pods"):
        client.create(deployment("stale", 1))
        client.wait_for("deployments", "stale", lambda each: each["status"].get("unavailableReplicas") == 1)
        cluster.settle()
        assert [pod["spec"].get("nodeName") for pod in client.list("pods", labels="app=stale")] == [None]
    client.wait_for("deployments", "stale", "Available")


def test_watches_end_and_what_they_missed_is_listed_again(cluster: Cluster) -> None:
    assert cluster.faults.end_watches(user_agents="kube-controller-manager*", resources="deployments.apps") == 1
    expired = cluster.faults.expire_watches(user_agents="kube-scheduler*", resources="pods")
    cluster.client.create(deployment("again", 1))
    cluster.clock.advance(30)
    cluster.client.wait_for("deployments", "again", "Available")
    assert expired.hits == 1


def test_a_stopped_scheduler_binds_nothing_until_it_is_started(cluster: Cluster) -> None:
    cluster.stop_component("kube-scheduler")
    assert cluster.components["kube-scheduler"] is False
    cluster.client.create(deployment("waiting", 1))
    cluster.clock.advance(60)
    assert cluster.client.get("deployments", "waiting")["status"]["unavailableReplicas"] == 1
    cluster.start_component("kube-scheduler")
    cluster.client.wait_for("deployments", "waiting", "Available")
    with pytest.raises(Exception, match="there is no component 'etcd'; there are kube-controller-manager"):
        cluster.stop_component("etcd")


def test_pods_keep_their_addresses_when_the_nodes_start_again(cluster: Cluster) -> None:
    """The one without an address is listed first; it must not get that of the other, which is seen later."""
    client = cluster.client
    pod = {"apiVersion": "v1", "kind": "Pod", "spec": {"containers": [{"name": "c", "image": "x"}]}}
    client.create({**pod, "metadata": {"name": "zz-address"}})
    client.wait_for("pods", "zz-address")
    cluster.stop_component("simulated-nodes")
    client.create({**pod, "metadata": {"name": "aa-address"}})
    client.wait_for("pods", "aa-address", "PodScheduled")
    cluster.start_component("simulated-nodes")
    client.wait_for("pods", "aa-address")
    pods = client.list("pods", all_namespaces=True)
    addresses = [each["status"].get("podIP") for each in pods]
    assert len(set(addresses)) == len(pods), addresses


def test_a_new_api_server_has_all_that_was_written_and_the_controllers_go_on(cluster: Cluster) -> None:
    cluster.client.create(config_map("kept"))
    cluster.restart_api_server()
    assert cluster.client.get("configmaps", "kept")
    cluster.client.create(deployment("after", 1))
    cluster.clock.advance(60)
    cluster.client.wait_for("deployments", "after", "Available")


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ({"action": "explode"}, "Invalid enum value 'explode'"),
        ({"action": "drop", "verb": "get"}, "unknown field verb"),
        ({"action": "refuse", "status": 200}, "faults[0].status: 200 is none of 400, 401"),
        ({"action": "delay", "seconds": -1}, "faults[0].seconds: -1 is not between 0 and 86400"),
        ({"action": "drop", "probability": 2}, "faults[0].probability: 2 is not between 0 and 1"),
        ([{"action": "drop", "name": "a"}] * 2, "the name 'a' is there twice"),
        ("nothing", "not a list of rules"),
    ],
)
def test_a_rule_that_cannot_be_is_refused_with_its_field(cluster: Cluster, rule: object, message: str) -> None:
    with pytest.raises(ValueError) as error:  # noqa: PT011
        cluster.faults._post(rule)
    assert message in str(error.value)
    assert cluster.faults.list() == []


def test_rules_come_from_a_file_and_from_the_command_line(cluster: Cluster, tmp_path: Path) -> None:
    file = tmp_path / "faults.yaml"
    file.write_text("faults:\n- {action: refuse, name: busy, status: 409, resources: [configmaps], verbs: [create]}\n")

    def fault(*words: str) -> str:
        argv = [sys.executable, "-P", "-m", "pybernetes", "fault", *words, f"--kubeconfig={cluster.kubeconfig}"]
        done = subprocess.run(argv, capture_output=True, text=True, timeout=60)
        return done.stdout + done.stderr

    assert "busy" in fault("apply", str(file))
    with pytest.raises(errors.AlreadyExists):
        cluster.client.create(config_map("by-file"))
    assert "fault-1  delay" in fault("add", "delay", "--seconds=1.5", "--verb=get", "--resource=pods")
    lines = fault("list").splitlines()
    assert lines[1].split()[:4] == ["busy", "refuse", "1", "1"]
    assert "status=409" in lines[1]
    assert "seconds=1.5" in lines[2]
    assert fault("clear", "nothing") == 'pyb: faults "nothing" not found\n'
    assert fault("clear").splitlines() == ["NAME  ACTION  HITS  OF  RULE"]


def test_a_node_that_is_off_is_not_ready_until_it_is_on_again(cluster: Cluster) -> None:
    client = cluster.client
    name = client.list("nodes")[0]["metadata"]["name"]
    with cluster.faults.node(name, off=True):
        cluster.clock.advance(60)
        client.wait_for("nodes", name, "Ready=Unknown")
    cluster.clock.advance(30)
    client.wait_for("nodes", name, "Ready")
    with cluster.faults.node(name, pressure="DiskPressure"):
        client.wait_for("nodes", name, "DiskPressure")
    client.wait_for("nodes", name, "DiskPressure=False")
    with pytest.raises(ValueError, match="off, not_ready, pressure"):
        cluster.faults.node(name)
