"""Addresses in fields: strict for new values, lenient for what is there."""

from __future__ import annotations

import pytest

from pybernetes.api import addresses

BAD_IP = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"
BAD_CIDR = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"


def details(problems: list[addresses.FieldError]) -> list[str]:
    return [problem.detail for problem in problems]


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ("10.0.0.1", None),
        ("2001:db8::1", None),
        ("", BAD_IP),
        ("10.0.0", BAD_IP),
        ("10.0.0.256", BAD_IP),
        ("fe80::1%eth0", BAD_IP),
        ("010.0.0.1", "must not have leading 0s"),
        ("::ffff:10.0.0.1", "must not be an IPv4-mapped IPv6 address"),
        ("2001:DB8::1", 'must be in canonical form ("2001:db8::1")'),
        ("2001:db8:0:0::1", 'must be in canonical form ("2001:db8::1")'),
    ],
)
def test_a_new_address_is_valid_and_canonical(value: str, problem: str | None) -> None:
    assert details(addresses.is_valid_ip("ip", value)) == ([problem] if problem else [])


def test_an_old_field_keeps_a_value_it_had() -> None:
    assert addresses.is_valid_ip_for_legacy_field("ip", "2001:DB8::1") == []
    assert details(addresses.is_valid_ip_for_legacy_field("ip", "010.0.0.1")) == ["must not have leading 0s"]
    assert addresses.is_valid_ip_for_legacy_field("ip", "010.0.0.1", old=["010.0.0.1"]) == []
    assert addresses.is_valid_ip_for_legacy_field("ip", "010.0.0.1", strict=False) == []


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ("10.0.0.0/8", None),
        ("2001:db8::/64", None),
        ("10.0.0.0", BAD_CIDR),
        ("10.0.0.0/33", BAD_CIDR),
        ("10.0.0.0/-1", BAD_CIDR),
        ("10.0.0.0/08", "must not have leading 0s in IP or prefix length"),
        ("10.0.0.1/8", "must not have bits set beyond the prefix length"),
        ("::ffff:10.0.0.0/104", "must not have an IPv4-mapped IPv6 address"),
        ("2001:DB8::/64", 'must be in canonical form ("2001:db8::/64")'),
    ],
)
def test_a_new_block_is_valid_and_canonical(value: str, problem: str | None) -> None:
    assert details(addresses.is_valid_cidr("cidr", value)) == ([problem] if problem else [])


def test_an_interface_address_keeps_its_host_bits() -> None:
    assert addresses.is_valid_interface_address("a", "10.9.8.7/24") == []
    assert details(addresses.is_valid_interface_address("a", "010.9.8.7/24")) == [
        'must be in canonical form ("10.9.8.7/24")'
    ]


def test_unusual_forms_are_warned_about() -> None:
    assert addresses.warnings_for_ip("ip", "10.0.0.1") == []
    assert addresses.warnings_for_ip("ip", "010.0.0.1") == [
        'ip: non-standard IP address "010.0.0.1" is invalid: use "10.0.0.1"'
    ]
    assert addresses.warnings_for_ip("ip", "::0:1") == [
        'ip: IPv6 address "::0:1" should be in RFC 5952 canonical format ("::1")'
    ]
    assert addresses.warnings_for_cidr("c", "10.0.0.1/8") == [
        'c: CIDR value "10.0.0.1/8" is ambiguous in this context (should be "10.0.0.0/8" or "10.0.0.1/32"?)'
    ]


@pytest.mark.parametrize(
    ("address", "other"),
    [
        ("10.0.0.1", True),
        ("8.8.8.8", True),
        ("2001:db8::1", True),
        ("::ffff:10.0.0.1", True),
        ("64:ff9b::a00:1", True),
        ("127.0.0.1", False),
        ("127.1.2.3", False),
        ("0.0.0.0", False),
        ("255.255.255.255", False),
        ("224.0.0.1", False),
        ("169.254.169.254", False),
        ("::1", False),
        ("::", False),
        ("fe80::1", False),
        ("fe80::1%eth0", False),
        ("ff02::1", False),
        ("::ffff:127.0.0.1", False),
        ("::ffff:7f00:1", False),
        ("0:0:0:0:0:FFFF:7F00:0001", False),
        ("::ffff:0.0.0.0", False),
        ("::ffff:169.254.169.254", False),
        ("::ffff:255.255.255.255", False),
        ("::127.0.0.1", False),
        ("64:ff9b::127.0.0.1", False),
        ("2002:7f00:1::", False),
        ("::ffff:0:127.0.0.1", False),
        ("64:ff9b:1::7f00:1", False),
        ("0177.0.0.1", False),
        ("010.0.0.1", False),
        ("127.000.000.001", False),
        ("::ffff:127.0.0.01", False),
        ("", False),
        ("localhost", False),
    ],
)
def test_the_servers_own_addresses_are_known_however_they_are_written(address: str, other: bool) -> None:
    assert addresses.is_other_machine(address) is other
