"""Names are judged with upstream's rules and words."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from pybernetes.api import names

SUBDOMAIN = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    r"'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
LABEL = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with "
    "an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)

FINE: list[tuple[Callable[[str], list[str]], list[str]]] = [
    (names.is_dns1123_label, ["a", "a-b", "1", "a" * 63]),
    (names.is_dns1123_subdomain, ["a", "a.b-c.1", "a" * 253]),
    (names.is_dns1035_label, ["a", "a1", "a-b"]),
    (names.is_wildcard_dns1123_subdomain, ["*.example.com"]),
    (names.is_dns1123_subdomain_with_underscore, ["_a.b_c"]),
    (names.is_qualified_name, ["a", "A_b.c", "example.com/a", "1"]),
    (names.is_label_value, ["", "a", "A.b_c-d", "a" * 63]),
    (names.is_c_identifier, ["_a", "A1"]),
    (names.is_env_var_name, ["a.b-c", "_"]),
    (names.is_relaxed_env_var_name, ["1 a!", "-"]),
    (names.is_config_map_key, ["a.b", ".a", "A_B"]),
    (names.is_percent, ["1%", "100%"]),
    (names.is_http_header_name, ["X-A"]),
    (names.is_port_name, ["http", "a-1"]),
    (names.is_path_segment_name, ["system:node", "a b"]),
    (names.is_decimal_integer, ["0", "-1", "10"]),
]


@pytest.mark.parametrize(("check", "values"), FINE, ids=lambda each: getattr(each, "__name__", ""))
def test_good_names_have_no_problems(check: Callable[[str], list[str]], values: list[str]) -> None:
    assert [check(value) for value in values] == [[]] * len(values)


@pytest.mark.parametrize(
    ("check", "value", "problems"),
    [
        (names.is_dns1123_label, "A", [LABEL]),
        (names.is_dns1123_label, "a\n", [LABEL]),
        (names.is_dns1123_label, "a.b", ["must not contain dots"]),
        (names.is_dns1123_label, "a" * 64, ["must be no more than 63 characters"]),
        (names.is_dns1123_subdomain, "A", [SUBDOMAIN]),
        (names.is_dns1123_subdomain, "", [SUBDOMAIN]),
        (names.is_dns1123_subdomain, "a" * 254, ["must be no more than 253 characters"]),
        (names.is_qualified_name, "/a", ["prefix part must be non-empty"]),
        (names.is_qualified_name, "A/a", [f"prefix part {SUBDOMAIN}"]),
        (names.is_qualified_name, "a" * 64, ["name part must be no more than 63 bytes"]),
        (names.is_label_value, "a" * 64, ["must be no more than 63 bytes"]),
        (names.is_config_map_key, "..", ["must not be '..'"]),
        (names.is_config_map_key, "..a", ["must not start with '..'"]),
        (names.is_relaxed_env_var_name, "", ["environment variable name must be non-empty"]),
        (names.is_port_name, "80", ["must contain at least one letter (a-z)"]),
        (names.is_port_name, "a--b", ["must not contain consecutive hyphens"]),
        (names.is_port_name, "-a", ["must not begin or end with a hyphen"]),
        (
            names.is_port_name,
            "A" * 16,
            [
                "must be no more than 15 characters",
                "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)",
                "must contain at least one letter (a-z)",
            ],
        ),
        (names.is_path_segment_name, "..", ["may not be '..'"]),
        (names.is_path_segment_name, "a/b%", ["may not contain '/'", "may not contain '%'"]),
        (names.is_decimal_integer, "01", ["must be a valid decimal integer in canonical form"]),
        (
            names.is_percent,
            "1",
            [
                "a valid percent string must be a numeric string followed by an ending '%' "
                "(e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')"
            ],
        ),
    ],
)
def test_bad_names_are_explained_in_upstreams_words(
    check: Callable[[str], list[str]], value: str, problems: list[str]
) -> None:
    assert check(value) == problems


def test_a_name_of_two_slashes_and_an_empty_one_have_their_own_words() -> None:
    assert names.is_qualified_name("a/b/c")[0].endswith(
        " with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
    )
    assert names.is_qualified_name("")[0] == "name part must be non-empty"


def test_numbers_are_checked_against_their_range() -> None:
    assert names.is_port_number(1) == names.is_port_number(65535) == []
    assert names.is_port_number(0) == ["must be between 1 and 65535, inclusive"]
    assert names.is_user_id(-1) == ["must be between 0 and 2147483647, inclusive"]


def test_the_beginning_of_a_name_may_end_with_a_dash() -> None:
    assert names.name_is_dns_subdomain("web-", True) == []
    assert names.name_is_dns_subdomain("web-", False) != []
    assert names.name_is_dns_label("-", True) != []


def test_generated_names_have_five_letters_from_the_alphabet_and_fit() -> None:
    name = names.generate_name("web-")
    assert name.startswith("web-")
    assert len(name) == 9
    assert set(name[4:]) <= set("bcdfghjklmnpqrstvwxz2456789")
    assert len(names.generate_name("a" * 100)) == 63
    assert len({names.generate_name("") for _ in range(100)}) > 90
