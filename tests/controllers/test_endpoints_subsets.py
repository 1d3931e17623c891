"""Endpoints in their oldest form."""

from __future__ import annotations

from pybernetes.api.core.v1.reference import ObjectReference
from pybernetes.api.core.v1.service import EndpointAddress, EndpointPort, EndpointSubset
from pybernetes.controllers.endpoints.subsets import repack, same_subsets, truncate


def subset(ready: list[str], unready: list[str], *ports: int) -> EndpointSubset:
    return EndpointSubset(
        addresses=[EndpointAddress(ip=each) for each in ready] or None,
        not_ready_addresses=[EndpointAddress(ip=each) for each in unready] or None,
        ports=[EndpointPort(port=each, protocol="TCP") for each in ports] or None,
    )


def test_addresses_with_the_same_ports_come_together() -> None:
    packed = repack([subset(["b"], [], 1), subset(["b"], [], 2), subset(["a"], [], 1, 2)])
    assert packed == [subset(["a", "b"], [], 1, 2)]


def test_ports_with_other_addresses_stay_apart() -> None:
    assert repack([subset(["a"], [], 1), subset(["b"], [], 2)]) == [subset(["a"], [], 1), subset(["b"], [], 2)]


def test_an_address_listed_as_ready_and_not_ready_counts_as_not_ready() -> None:
    assert repack([subset(["a"], [], 1), subset([], ["a"], 1)]) == [subset([], ["a"], 1)]
    assert repack([subset([], ["a"], 1), subset(["a"], [], 1)]) == [subset([], ["a"], 1)]


def test_subsets_without_ports_are_kept() -> None:
    assert repack([subset(["b"], []), subset(["a"], [])]) == [subset(["a", "b"], [])]


def test_arrangement_and_revisions_of_targets_do_not_count() -> None:
    one = EndpointSubset(addresses=[EndpointAddress(ip="a", target_ref=ObjectReference(uid="1", resource_version="5"))])
    two = EndpointSubset(addresses=[EndpointAddress(ip="a", target_ref=ObjectReference(uid="1"))])
    assert same_subsets([one], [two])
    assert same_subsets([subset(["a"], [], 1), subset(["a"], [], 2)], [subset(["a"], [], 2, 1)])
    assert not same_subsets([subset(["a"], [], 1)], [subset([], ["a"], 1)])


def test_a_thousand_addresses_fit_and_the_ready_ones_go_first() -> None:
    ready = [f"r{number:04}" for number in range(900)]
    unready = [f"u{number:04}" for number in range(300)]
    (cut,), happened = truncate([subset(ready, unready, 1)])
    assert (len(cut.addresses or ()), len(cut.not_ready_addresses or ()), happened) == (900, 100, True)
    many = [f"r{number:04}" for number in range(1500)]
    (cut,), happened = truncate([subset(many, unready, 1)])
    assert (len(cut.addresses or ()), cut.not_ready_addresses, happened) == (1000, None, True)
    assert truncate([subset(ready, [], 1)]) == ([subset(ready, [], 1)], False)
