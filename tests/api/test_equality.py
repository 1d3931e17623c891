"""What counts as a change."""

from __future__ import annotations

import pytest

from pybernetes.api.core.v1.compute import ResourceRequirements
from pybernetes.api.core.v1.container import Container
from pybernetes.api.core.v1.env import ResourceFieldSelector
from pybernetes.api.core.v1.persistentvolumeclaim import PersistentVolumeClaimSpec
from pybernetes.api.core.v1.pod import PodSpec
from pybernetes.api.core.v1.probe import Probe
from pybernetes.api.core.v1.service import ServicePort
from pybernetes.api.equality import semantically_equal
from pybernetes.api.networking.v1 import NetworkPolicyPort


@pytest.mark.parametrize(
    ("one", "other", "equal"),
    [
        (None, [], True),
        (None, {}, True),
        (None, "", True),
        ([], None, True),
        (None, 0, False),
        (None, False, False),
        (None, ["a"], False),
        (["a"], None, False),
        ({"a": None}, {"a": {}}, True),
        ({"a": "1"}, {"a": "2"}, False),
        ({"a": "1"}, {"b": "1"}, False),
        ([1, 2], [2, 1], False),
        ([{"a": []}], [{"a": None}], True),
        (PodSpec(), PodSpec(node_selector={}), True),
        (PodSpec(), PodSpec(host_network=True), False),
        (PodSpec(containers=[Container(name="a")]), PodSpec(containers=[Container(name="a", args=[])]), True),
        (PodSpec(containers=[Container(name="a")]), PodSpec(containers=[Container(name="b", args=[])]), False),
        (PodSpec(), Container(), False),
        (None, PodSpec(), False),
        (PodSpec(), PodSpec(host_network=False), True),
        (PodSpec(), PodSpec(host_users=False), False),
        (PodSpec(), PodSpec(priority=0), False),
        (Probe(), Probe(initial_delay_seconds=0), True),
        (PersistentVolumeClaimSpec(), PersistentVolumeClaimSpec(volume_name=""), True),
        (PersistentVolumeClaimSpec(), PersistentVolumeClaimSpec(storage_class_name=""), False),
        (ServicePort(), ServicePort(target_port=0), True),
        (ServicePort(), ServicePort(target_port=""), False),
        (NetworkPolicyPort(), NetworkPolicyPort(port=0), False),
        (ResourceRequirements(limits={"cpu": "1"}), ResourceRequirements(limits={"cpu": "1000m"}), True),
        (ResourceRequirements(limits={"cpu": "1"}), ResourceRequirements(limits={"cpu": "1001m"}), False),
        (ResourceFieldSelector(divisor="1k"), ResourceFieldSelector(divisor="1000"), True),
    ],
)
def test_absent_and_empty_mean_the_same(one: object, other: object, equal: bool) -> None:
    assert semantically_equal(one, other) is equal
