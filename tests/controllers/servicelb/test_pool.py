"""Addresses of the pool, and who has which."""

from __future__ import annotations

import ipaddress

import pytest

from pybernetes.client.keys import Key
from pybernetes.controllers.servicelb.pool import Pool, PoolError, parse_ranges

A, B, C = (Key("default", name) for name in "abc")


def ip(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    return ipaddress.ip_address(text)


def pool(*ranges: str) -> Pool:
    return Pool(parse_ranges(ranges))


def texts(made: Pool, key: Key) -> list[str]:
    return [str(each) for each in made.of(key)]


def test_a_network_does_not_give_its_own_and_its_broadcast_address() -> None:
    made = pool("192.0.2.0/30")
    made.allocate(A, [4], None, False)
    made.allocate(B, [4], None, False)
    assert (texts(made, A), texts(made, B)) == (["192.0.2.1"], ["192.0.2.2"])
    with pytest.raises(PoolError, match="no free IPv4 address"):
        made.allocate(C, [4], None, False)
    assert made.of(C) == []


def test_the_next_range_is_used_when_the_first_is_taken() -> None:
    made = pool("192.0.2.9", "192.0.2.20-192.0.2.21")
    for key in (A, B, C):
        made.allocate(key, [4], None, False)
    assert [texts(made, key)[0] for key in (A, B, C)] == ["192.0.2.9", "192.0.2.20", "192.0.2.21"]


def test_an_address_that_is_given_back_is_given_again() -> None:
    made = pool("192.0.2.9")
    made.allocate(A, [4], None, False)
    assert made.release(A)
    assert not made.release(A)
    made.allocate(B, [4], None, False)
    assert texts(made, B) == ["192.0.2.9"]


def test_a_wanted_address_is_given_if_it_is_free_and_in_the_pool() -> None:
    made = pool("192.0.2.0/28")
    assert made.allocate(A, [4], ip("192.0.2.7"), False)
    assert texts(made, A) == ["192.0.2.7"]
    with pytest.raises(PoolError, match=r"192.0.2.7 belongs to the Service default/a"):
        made.allocate(B, [4], ip("192.0.2.7"), False)
    with pytest.raises(PoolError, match=r"192.0.2.70 is not in the load balancer pool \(192.0.2.1-192.0.2.14\)"):
        made.allocate(B, [4], ip("192.0.2.70"), False)
    with pytest.raises(PoolError, match="of none of the Service's IP families"):
        made.allocate(B, [6], ip("192.0.2.8"), False)


def test_a_service_moves_to_the_address_it_wants_later_and_its_old_one_is_free() -> None:
    made = pool("192.0.2.0/28")
    made.allocate(A, [4], None, False)
    made.allocate(A, [4], ip("192.0.2.7"), False)
    made.allocate(B, [4], None, False)
    assert (texts(made, A), texts(made, B)) == (["192.0.2.7"], ["192.0.2.1"])


def test_each_family_of_a_service_gets_an_address_in_its_order() -> None:
    made = pool("192.0.2.0/28", "fd00:5::/64")
    made.allocate(A, [6, 4], None, True)
    assert texts(made, A) == ["fd00:5::1", "192.0.2.1"]


def test_a_family_that_the_pool_lacks_is_left_out_unless_both_are_required() -> None:
    made = pool("192.0.2.0/28")
    made.allocate(A, [6, 4], None, False)
    assert texts(made, A) == ["192.0.2.1"]
    with pytest.raises(PoolError, match="no range of the load balancer pool is for IPv6"):
        made.allocate(B, [4, 6], None, True)
    with pytest.raises(PoolError, match="is for IPv6"):
        made.allocate(C, [6], None, False)


def test_when_one_family_is_exhausted_nothing_is_taken_of_the_other() -> None:
    made = pool("192.0.2.0/28", "fd00:5::5")
    made.allocate(A, [6], None, False)
    with pytest.raises(PoolError):
        made.allocate(B, [4, 6], None, True)
    made.allocate(C, [4], None, False)
    assert texts(made, C) == ["192.0.2.1"]


def test_addresses_in_the_status_of_services_are_kept_once() -> None:
    made = pool("192.0.2.0/28")
    assert made.keep(A, ip("192.0.2.3"))
    assert not made.keep(B, ip("192.0.2.3"))
    assert not made.keep(A, ip("192.0.2.4"))
    assert not made.keep(B, ip("198.51.100.1"))
    assert not made.allocate(A, [4], None, False)
    assert texts(made, A) == ["192.0.2.3"]


@pytest.mark.parametrize(
    ("ranges", "what"),
    [
        (["nonsense"], "'nonsense' is neither"),
        (["192.0.2.9-192.0.2.1"], "neither"),
        (["192.0.2.9-fd00::1"], "neither"),
        (["192.0.2.1/24"], "neither"),
        (["127.0.0.0/8"], "that other machines can reach"),
        (["224.0.0.1"], "that other machines can reach"),
        (["192.0.2.0/24", "192.0.2.7"], "192.0.2.7 overlaps 192.0.2.1-192.0.2.254"),
    ],
)
def test_ranges_that_cannot_be_are_refused(ranges: list[str], what: str) -> None:
    with pytest.raises(ValueError, match=what):
        parse_ranges(ranges)
