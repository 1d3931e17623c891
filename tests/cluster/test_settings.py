"""What a later `up` keeps, changes and refuses."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from pybernetes.cluster.commands import up
from pybernetes.cluster.components import VERBOSITY, Component, with_verbosity
from pybernetes.cluster.errors import ClusterError
from pybernetes.cluster.layout import Record
from pybernetes.cluster.readiness import Probe
from pybernetes.cluster.settings import Decision, Flags, Settings, for_running, for_start

HAD = Record("c", server="https://127.0.0.1:7000", store="sqlite", nodes=2, runtime="embedded")


def test_a_new_cluster_is_made_by_the_flags_and_the_defaults() -> None:
    assert for_start(None, Flags()).settings == Settings(nodes=1, runtime="auto", store="sqlite", port=6443)
    assert for_start(None, Flags(simulated_nodes=5)).settings.nodes == 0
    assert for_start(Record("c"), Flags()).kept == ()  # one that was never ready decides nothing


def test_a_flag_that_is_not_given_keeps_what_the_cluster_had_and_says_so() -> None:
    decision = for_start(HAD, Flags())
    assert decision.settings == Settings(nodes=2, runtime="embedded", store="sqlite", port=7000)
    assert decision.kept == ("--nodes 2", "--runtime embedded", "--store sqlite", "--port 7000")
    assert decision.changed == ()


def test_a_flag_that_differs_is_applied_and_named() -> None:
    decision = for_start(HAD, Flags(nodes=1, port=7001, runtime="containerd", simulated_nodes=3))
    assert (decision.settings.nodes, decision.settings.port, decision.settings.simulated_nodes) == (1, 7001, 3)
    assert decision.kept == ("--store sqlite",)
    assert decision.changed == (
        "--nodes 2 -> 1",
        "--port 7000 -> 7001",
        "--simulated-nodes 0 -> 3",
        "--runtime embedded -> containerd",
    )


@pytest.mark.parametrize("decide", [for_start, for_running])
def test_another_store_is_refused_by_name(decide: object) -> None:
    assert callable(decide)
    with pytest.raises(ClusterError, match="--store memory: cluster 'c' has its objects in sqlite"):
        decide(HAD, Flags(store="memory"))


def test_a_cluster_that_was_in_memory_has_nothing_to_lose_and_may_change_its_store() -> None:
    memory = Record("c", server="https://127.0.0.1:1", store="memory")
    assert for_start(memory, Flags()).settings.store == "memory"
    assert for_start(memory, Flags(store="sqlite")).changed == ("--store memory -> sqlite",)
    etcd = for_start(memory, Flags(store="etcd", etcd_endpoints="http://e:1"))
    assert etcd.settings.etcd_endpoints == "http://e:1"


def test_endpoints_of_etcd_are_kept() -> None:
    had = Record("c", server="https://127.0.0.1:1", store="etcd", etcd_endpoints="http://e:1")
    assert for_start(had, Flags()).settings.etcd_endpoints == "http://e:1"
    assert for_start(had, Flags(etcd_endpoints="http://f:1")).changed == ("--etcd-endpoints http://e:1 -> http://f:1",)


def test_a_running_cluster_changes_its_number_of_nodes_and_nothing_else() -> None:
    assert for_running(HAD, Flags()).changed == ()
    same = Flags(nodes=2, store="sqlite", runtime="auto", port=0, simulated_nodes=0)
    assert for_running(HAD, same).changed == ()
    decision = for_running(HAD, Flags(nodes=3))
    assert (decision.settings.nodes, decision.changed) == (3, ("--nodes 2 -> 3",))


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (Flags(runtime="containerd"), "--runtime containerd: cluster 'c' runs with embedded"),
        (Flags(port=7001), "--port 7001: cluster 'c' runs with 7000"),
        (Flags(simulated_nodes=3), "--simulated-nodes 3: cluster 'c' runs with 0"),
        (Flags(simulation_rules="/r"), "--simulation-rules /r: cluster 'c' runs with none"),
    ],
)
def test_what_a_running_cluster_cannot_change_is_refused_by_name(flags: Flags, words: str) -> None:
    with pytest.raises(ClusterError, match=words):
        for_running(HAD, flags)


@pytest.mark.parametrize("decide", [for_start, for_running])
def test_nodes_keep_their_ip_family_and_a_cluster_without_nodes_may_get_another(
    decide: Callable[..., Decision],
) -> None:
    with pytest.raises(ClusterError, match="--ip-family dual: the nodes of cluster 'c' have pod ranges of ipv4"):
        decide(HAD, Flags(ip_family="dual"))
    assert decide(replace(HAD, ip_family="dual"), Flags()).settings.ip_family == "dual"
    without = replace(HAD, nodes=0)
    assert decide(without, Flags(ip_family="dual", nodes=1)).settings.ip_family == "dual"


def test_a_pool_and_ports_that_were_given_are_kept_and_changed_only_while_the_cluster_is_down() -> None:
    had = Record(
        "c", server="https://127.0.0.1:7000", store="sqlite", nodes=1, load_balancer_pool="192.0.2.0/28",
        ingress_http_port=8081,
    )  # fmt: skip
    decision = for_start(had, Flags())
    assert {"--load-balancer-pool 192.0.2.0/28", "--ingress-http-port 8081"} <= set(decision.kept)
    assert not any("--ingress-https-port" in each for each in decision.kept)
    changed = for_start(had, Flags(load_balancer_pool="192.0.2.9", ingress_https_port=0))
    assert changed.settings.ingress_https_port == 0
    assert set(changed.changed) >= {
        "--load-balancer-pool 192.0.2.0/28 -> 192.0.2.9",
        "--ingress-https-port the usual one -> 0",
    }
    for flags in (Flags(load_balancer_pool="192.0.2.9"), Flags(ingress_http_port=82)):
        with pytest.raises(ClusterError, match="it can change while the cluster is down"):
            for_running(had, flags)


def test_a_pool_that_cannot_be_is_refused_by_up(capsys: pytest.CaptureFixture[str]) -> None:
    for text in ("nonsense", "127.0.0.0/8", "192.0.2.0/24,192.0.2.1"):
        with pytest.raises(SystemExit):
            up.main([f"--load-balancer-pool={text}"])
        assert "load balancer pool" in capsys.readouterr().err


def test_the_verbosity_of_logs_is_kept_and_changes_while_the_cluster_is_down() -> None:
    record = replace(HAD, verbosity=4)
    assert for_start(record, Flags()).settings.verbosity == 4
    assert "-v 4" in for_start(record, Flags()).kept
    assert "-v 4 -> 2" in for_start(record, Flags(verbosity=2)).changed
    with pytest.raises(ClusterError, match=r"-v 5: .* while the cluster is down"):
        for_running(record, Flags(verbosity=5))


def test_components_get_the_verbosity() -> None:
    part = Component("scheduler", "scheduler", ("pyb", "scheduler", VERBOSITY), Probe("127.0.0.1", 1, Path()))
    assert with_verbosity(part, 5).argv == ("pyb", "scheduler", "--v=5")
