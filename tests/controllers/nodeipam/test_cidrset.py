"""Parts of networks."""

from __future__ import annotations

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pybernetes.controllers.nodeipam.allocator import RangeAllocator
from pybernetes.controllers.nodeipam.cidrset import CIDRError, CIDRSet
from pybernetes.controllers.nodeipam.settings import Settings, settings
from pybernetes.controllers.options import Options

net = ipaddress.ip_network


def take(cidrs: CIDRSet, count: int) -> list[str]:
    return [str(cidrs.allocate()) for _ in range(count)]


@pytest.mark.parametrize(
    ("network", "prefix", "first", "size"),
    [
        ("10.244.0.0/16", 24, ["10.244.0.0/24", "10.244.1.0/24", "10.244.2.0/24"], 256),
        ("127.123.234.0/28", 30, ["127.123.234.0/30", "127.123.234.4/30", "127.123.234.8/30"], 4),
        ("fd00:10::/56", 64, ["fd00:10::/64", "fd00:10:0:1::/64", "fd00:10:0:2::/64"], 256),
        ("beef:1234::/60", 76, ["beef:1234::/76", "beef:1234:0:0:10::/76", "beef:1234:0:0:20::/76"], 65536),
        ("2001:db8:1234::/48", 49, ["2001:db8:1234::/49", "2001:db8:1234:8000::/49"], 2),
    ],
)
def test_parts_are_given_in_order(network: str, prefix: int, first: list[str], size: int) -> None:
    cidrs = CIDRSet(net(network), prefix)
    assert take(cidrs, len(first)) == first
    assert (cidrs.size, cidrs.used) == (size, len(first))


def test_when_all_are_taken_there_are_none() -> None:
    cidrs = CIDRSet(net("10.0.0.0/30"), 32)
    take(cidrs, 4)
    with pytest.raises(CIDRError, match="no remaining CIDRs left"):
        cidrs.allocate()
    cidrs.release(net("10.0.0.2/32"))
    assert take(cidrs, 1) == ["10.0.0.2/32"]


def test_a_part_that_is_given_back_rests_until_all_others_were_given() -> None:
    cidrs = CIDRSet(net("10.0.0.0/30"), 32)
    take(cidrs, 1)
    cidrs.release(net("10.0.0.0/32"))
    assert take(cidrs, 4) == ["10.0.0.1/32", "10.0.0.2/32", "10.0.0.3/32", "10.0.0.0/32"]


@pytest.mark.parametrize(
    ("network", "taken"),
    [
        ("10.0.0.0/8", 16),  # larger than ours
        ("10.244.0.0/20", 16),
        ("10.244.4.0/22", 4),
        ("10.244.3.0/24", 1),
        ("10.244.3.128/25", 1),  # a part of a part
    ],
)
def test_a_range_takes_all_parts_that_it_touches_once(network: str, taken: int) -> None:
    cidrs = CIDRSet(net("10.244.0.0/20"), 24)
    assert cidrs.occupy(net(network)) == taken
    assert cidrs.occupy(net(network)) == 0
    assert cidrs.used == taken
    assert cidrs.release(net(network)) == taken
    assert cidrs.release(net(network)) == 0
    assert cidrs.used == 0


@pytest.mark.parametrize("network", ["10.245.0.0/24", "fd00::/64", "192.168.0.0/16"])
def test_a_range_of_others_is_refused(network: str) -> None:
    with pytest.raises(CIDRError, match="out the range"):
        CIDRSet(net("10.244.0.0/20"), 24).occupy(net(network))


@pytest.mark.parametrize(("network", "prefix"), [("10.0.0.0/24", 16), ("10.0.0.0/24", 33), ("fd00::/40", 64)])
def test_sizes_that_do_not_fit_are_refused(network: str, prefix: int) -> None:
    with pytest.raises(CIDRError):
        CIDRSet(net(network), prefix)


@given(st.lists(st.one_of(st.none(), st.integers(0, 7)), max_size=40))
def test_nothing_is_given_twice(steps: list[int | None]) -> None:
    cidrs = CIDRSet(net("10.0.0.0/29"), 32)
    mine: set[str] = set()
    for step in steps:
        if step is None and len(mine) < 8:
            got = str(cidrs.allocate())
            assert got not in mine
            mine.add(got)
        elif step is not None:
            text = f"10.0.0.{step}/32"
            assert cidrs.release(net(text)) == (text in mine)
            mine.discard(text)
        assert cidrs.used == len(mine)


def test_service_ranges_are_not_for_pods() -> None:
    ours = Settings(((net("10.0.0.0/16"), 24),), (net("10.0.0.0/24"), net("fd00::/108")))
    allocator = RangeAllocator(ours)
    assert allocator.allocate() == ["10.0.1.0/24"]
    allocator.release(["10.0.0.0/24"])
    assert allocator.sets[0].used == 2


def test_two_networks_give_both_or_nothing() -> None:
    allocator = RangeAllocator(Settings(((net("10.0.0.0/24"), 26), (net("fd00::/63"), 64)), ()))
    assert [allocator.allocate() for _ in range(2)] == [
        ["10.0.0.0/26", "fd00::/64"],
        ["10.0.0.64/26", "fd00:0:0:1::/64"],
    ]
    with pytest.raises(CIDRError, match="at idx:1"):
        allocator.allocate()
    assert allocator.sets[0].used == 2


def flags(**given: object) -> Settings:
    return settings(Options(allocate_node_cidrs=True, **given))  # type: ignore[arg-type]


def test_flags() -> None:
    four, six = net("10.0.0.0/16"), net("fd00::/56")
    assert flags(cluster_cidr="10.0.0.0/16").ranges == ((four, 24),)
    assert flags(cluster_cidr="fd00::/56").ranges == ((six, 64),)
    assert flags(cluster_cidr="10.0.0.0/16", node_cidr_mask_size=26).ranges == ((four, 26),)
    assert flags(cluster_cidr="fd00::/56", node_cidr_mask_size_ipv6=60).ranges == ((six, 60),)
    both = flags(cluster_cidr="fd00::/56,10.0.0.0/16", node_cidr_mask_size_ipv4=25)
    assert both.ranges == ((six, 64), (four, 25))
    assert flags(cluster_cidr="10.0.0.0/16", service_cluster_ip_range="10.1.0.0/16").services == (net("10.1.0.0/16"),)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "Must specify --cluster-cidr"),
        ({"cluster_cidr": "10.0.0.0"}, "invalid CIDR address: 10.0.0.0"),
        ({"cluster_cidr": "10.0.0.0/16,10.1.0.0/16"}, "not configured as dual stack"),
        ({"cluster_cidr": "10.0.0.0/16,fd00::/56,10.1.0.0/16"}, "more than max allowed of 2"),
        ({"cluster_cidr": "10.0.0.0/16,fd00::/56", "node_cidr_mask_size": 24}, "not allowed with dual-stack"),
        (
            {"cluster_cidr": "10.0.0.0/16", "node_cidr_mask_size": 24, "node_cidr_mask_size_ipv4": 24},
            "is not allowed if",
        ),
        ({"cluster_cidr": "10.0.0.0/16", "node_cidr_mask_size_ipv6": 64}, "single-stack IPv4 cluster"),
        ({"cluster_cidr": "fd00::/56", "node_cidr_mask_size_ipv4": 24}, "single-stack IPv6 cluster"),
        ({"cluster_cidr": "10.0.0.0/16", "cidr_allocator_type": "CloudAllocator"}, "cloud provider is not configured"),
        ({"cluster_cidr": "10.0.0.0/16", "cidr_allocator_type": "Magic"}, "invalid CIDR allocator type: Magic"),
        (
            {"cluster_cidr": "10.0.0.0/16", "service_cluster_ip_range": "10.1.0.0/16,10.2.0.0/16"},
            "are not dualstack",
        ),
    ],
)
def test_flags_that_contradict_each_other(given: dict[str, object], message: str) -> None:
    with pytest.raises(CIDRError, match=message):
        flags(**given)
