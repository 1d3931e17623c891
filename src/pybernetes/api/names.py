"""Which names are allowed where.

Every check returns a list of upstream's messages, empty if the value is fine, so that a validator can put them into
field errors. Valid values are the normal case and cost one regular expression.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from typing import Final

from .randomness import Stock

DNS1123_LABEL_MAX: Final = 63
DNS1123_SUBDOMAIN_MAX: Final = 253
DNS1035_LABEL_MAX: Final = 63
LABEL_MAX: Final = 63
PORT_NAME_MAX: Final = 15
MAX_ID: Final = (1 << 31) - 1

_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = rf"{_LABEL}(\.{_LABEL})*"
_UNDERSCORED = "_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?"
_UNDERSCORED_SUBDOMAIN = rf"{_UNDERSCORED}(\.{_UNDERSCORED})*"
_WILDCARD = rf"\*\.{_SUBDOMAIN}"
_DNS1035 = "[a-z]([-a-z0-9]*[a-z0-9])?"
_QUALIFIED = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_LABEL_VALUE = f"({_QUALIFIED})?"
_C_IDENTIFIER = "[A-Za-z_][A-Za-z0-9_]*"
_ENV = "[-._a-zA-Z][-._a-zA-Z0-9]*"
_CONFIG_KEY = "[-._a-zA-Z0-9]+"
_PERCENT = "[0-9]+%"
_HEADER = "[-A-Za-z0-9]+"
_HTTP_PATH = r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+"

_is_label = re.compile(_LABEL).fullmatch
_is_subdomain = re.compile(_SUBDOMAIN).fullmatch
_is_underscored_subdomain = re.compile(_UNDERSCORED_SUBDOMAIN).fullmatch
_is_wildcard = re.compile(_WILDCARD).fullmatch
_is_dns1035 = re.compile(_DNS1035).fullmatch
_is_qualified = re.compile(_QUALIFIED).fullmatch
_is_label_value = re.compile(_LABEL_VALUE).fullmatch
_is_c_identifier = re.compile(_C_IDENTIFIER).fullmatch
_is_env = re.compile(_ENV).fullmatch
_is_config_key = re.compile(_CONFIG_KEY).fullmatch
_is_percent = re.compile(_PERCENT).fullmatch
_is_header = re.compile(_HEADER).fullmatch
_is_http_path = re.compile(_HTTP_PATH).fullmatch
_is_port_name = re.compile("[-a-z0-9]+").fullmatch
_has_letter = re.compile("[a-z]").search
_is_decimal = re.compile("0|-?[1-9][0-9]*").fullmatch


def regex_error(message: str, pattern: str, *examples: str) -> str:
    """A message with the pattern and examples the way upstream strings them together."""
    if not examples:
        return f"{message} (regex used for validation is '{pattern}')"
    listed = " or ".join(f"'{example}', " for example in examples)
    return f"{message} (e.g. {listed}regex used for validation is '{pattern}')"


def max_length_error(length: int) -> str:
    """Too many characters for a DNS name."""
    return f"must be no more than {length} characters"


def range_error(low: int, high: int) -> str:
    """Outside low..high."""
    return f"must be between {low} and {high}, inclusive"


def _max_bytes_error(length: int) -> str:
    return f"must be no more than {length} bytes"


def is_dns1123_label(value: str) -> list[str]:
    """Names of namespaces, containers, most parts of DNS names."""
    problems = [max_length_error(DNS1123_LABEL_MAX)] if _size(value) > DNS1123_LABEL_MAX else []
    if not _is_label(value):
        if _is_subdomain(value):
            problems.append("must not contain dots")
        else:
            problems.append(
                regex_error(
                    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', "
                    "and must start and end with an alphanumeric character",
                    _LABEL,
                    "my-name",
                    "123-abc",
                )
            )
    return problems


_SUBDOMAIN_ERROR = regex_error(
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', "
    "and must start and end with an alphanumeric character",
    _SUBDOMAIN,
    "example.com",
)


def is_dns1123_subdomain(value: str) -> list[str]:
    """Names of most objects."""
    good = _is_subdomain(value)
    if good and len(value) <= DNS1123_SUBDOMAIN_MAX:
        return []
    problems = [max_length_error(DNS1123_SUBDOMAIN_MAX)] if _size(value) > DNS1123_SUBDOMAIN_MAX else []
    return problems if good else [*problems, _SUBDOMAIN_ERROR]


def is_dns1123_subdomain_with_underscore(value: str) -> list[str]:
    """DNS search domains may have underscores."""
    problems = [max_length_error(DNS1123_SUBDOMAIN_MAX)] if _size(value) > DNS1123_SUBDOMAIN_MAX else []
    if not _is_underscored_subdomain(value):
        message = (
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '_', '-' or '.', "
            "and must start and end with an alphanumeric character"
        )
        problems.append(regex_error(message, _UNDERSCORED_SUBDOMAIN, "example.com"))
    return problems


def is_wildcard_dns1123_subdomain(value: str) -> list[str]:
    """Hosts of an Ingress: `*.example.com`."""
    problems = [max_length_error(DNS1123_SUBDOMAIN_MAX)] if _size(value) > DNS1123_SUBDOMAIN_MAX else []
    if not _is_wildcard(value):
        message = (
            "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must "
            "consist of lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character"
        )
        problems.append(regex_error(message, _WILDCARD, "*.example.com"))
    return problems


def is_dns1035_label(value: str) -> list[str]:
    """Names that become host names of old: they begin with a letter."""
    problems = [max_length_error(DNS1035_LABEL_MAX)] if _size(value) > DNS1035_LABEL_MAX else []
    if not _is_dns1035(value):
        message = (
            "a DNS-1035 label must consist of lower case alphanumeric characters or '-', "
            "start with an alphabetic character, and end with an alphanumeric character"
        )
        problems.append(regex_error(message, _DNS1035, "my-name", "abc-123"))
    return problems


_QUALIFIED_ERROR = regex_error(
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character",
    _QUALIFIED,
    "MyName",
    "my.name",
    "123-abc",
)


def is_qualified_name(value: str) -> list[str]:
    """Keys of labels and annotations: a name with an optional DNS subdomain and a slash before it."""
    prefix, slash, name = value.partition("/")
    if not slash:
        name = value
        if len(name) <= LABEL_MAX and _is_qualified(name):
            return []
    elif "/" in name:
        suffix = " with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        return [f"a valid label key {_QUALIFIED_ERROR}{suffix}"]
    problems: list[str] = []
    if slash:
        if not prefix:
            problems.append("prefix part must be non-empty")
        else:
            if _size(prefix) > DNS1123_SUBDOMAIN_MAX:
                problems.append(f"prefix part {_max_bytes_error(DNS1123_SUBDOMAIN_MAX)}")
            if not _is_subdomain(prefix):
                problems.append(f"prefix part {_SUBDOMAIN_ERROR}")
    if not name:
        problems.append("name part must be non-empty")
    elif _size(name) > LABEL_MAX:
        problems.append(f"name part {_max_bytes_error(LABEL_MAX)}")
    if not _is_qualified(name):
        problems.append(f"name part {_QUALIFIED_ERROR}")
    return problems


is_label_key = is_qualified_name


def is_label_value(value: str) -> list[str]:
    """Values of labels; empty is fine."""
    problems = [_max_bytes_error(LABEL_MAX)] if _size(value) > LABEL_MAX else []
    if not _is_label_value(value):
        message = (
            "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', "
            "and must start and end with an alphanumeric character"
        )
        problems.append(regex_error(message, _LABEL_VALUE, "MyValue", "my_value", "12345"))
    return problems


def is_c_identifier(value: str) -> list[str]:
    """Names of environment variables in the strict old sense."""
    if _is_c_identifier(value):
        return []
    message = (
        "a valid C identifier must start with alphabetic character or '_', "
        "followed by a string of alphanumeric characters or '_'"
    )
    return [regex_error(message, _C_IDENTIFIER, "my_name", "MY_NAME", "MyName")]


def is_env_var_name(value: str) -> list[str]:
    """Names of environment variables, the strict rule."""
    problems: list[str] = []
    if not _is_env(value):
        message = (
            "a valid environment variable name must consist of alphabetic characters, digits, '_', '-', or '.', "
            "and must not start with a digit"
        )
        problems.append(regex_error(message, _ENV, "my.env-name", "MY_ENV.NAME", "MyEnvName1"))
    return problems + _chdir(value)


def is_relaxed_env_var_name(value: str) -> list[str]:
    """Names of environment variables, the rule in force: printable ASCII without `=`."""
    problems: list[str] = []
    if not value:
        problems.append("environment variable name must be non-empty")
    if not (value.isascii() and value.isprintable()) or "=" in value:
        problems.append(
            "a valid environment variable name must consist only of printable ASCII characters other than '='"
        )
    return problems


def is_config_map_key(value: str) -> list[str]:
    """Keys of ConfigMaps and Secrets: they become file names."""
    problems = [max_length_error(DNS1123_SUBDOMAIN_MAX)] if _size(value) > DNS1123_SUBDOMAIN_MAX else []
    if not _is_config_key(value):
        message = "a valid config key must consist of alphanumeric characters, '-', '_' or '.'"
        problems.append(regex_error(message, _CONFIG_KEY, "key.name", "KEY_NAME", "key-name"))
    return problems + _chdir(value)


def is_percent(value: str) -> list[str]:
    """A whole number and a percent sign."""
    if _is_percent(value):
        return []
    message = "a valid percent string must be a numeric string followed by an ending '%'"
    return [regex_error(message, _PERCENT, "1%", "93%")]


def is_http_header_name(value: str) -> list[str]:
    """Names of headers in probes."""
    if _is_header(value):
        return []
    message = "a valid HTTP header must consist of alphanumeric characters or '-'"
    return [regex_error(message, _HEADER, "X-Header-Name")]


def is_http_path(value: str) -> list[str]:
    """The path part of a domain-prefixed path."""
    return [] if _is_http_path(value) else [regex_error("Invalid path", _HTTP_PATH)]


def is_port_number(port: int) -> list[str]:
    """1 to 65535."""
    return [] if 1 <= port <= 65535 else [range_error(1, 65535)]


def is_in_range(value: int, low: int, high: int) -> list[str]:
    """low to high."""
    return [] if low <= value <= high else [range_error(low, high)]


def is_user_id(value: int) -> list[str]:
    """0 to 2^31-1."""
    return is_in_range(value, 0, MAX_ID)


is_group_id = is_user_id


def is_port_name(value: str) -> list[str]:
    """Names of ports: IANA service names."""
    problems = [max_length_error(PORT_NAME_MAX)] if _size(value) > PORT_NAME_MAX else []
    if not _is_port_name(value):
        problems.append("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)")
    if not _has_letter(value):
        problems.append("must contain at least one letter (a-z)")
    if "--" in value:
        problems.append("must not contain consecutive hyphens")
    if value.startswith("-") or value.endswith("-"):
        problems.append("must not begin or end with a hyphen")
    return problems


def is_path_segment_name(value: str) -> list[str]:
    """Names of objects that may be nearly anything, but must fit between two slashes of a URL."""
    if value in (".", ".."):
        return [f"may not be '{value}'"]
    return is_path_segment_prefix(value)


def is_path_segment_prefix(value: str) -> list[str]:
    """The beginning of such a name."""
    return [f"may not contain '{part}'" for part in ("/", "%") if part in value]


def is_decimal_integer(value: str) -> list[str]:
    """A whole number in canonical form."""
    if not value:
        return ["must be non-empty"]
    return [] if _is_decimal(value) else ["must be a valid decimal integer in canonical form"]


NameCheck = Callable[[str, bool], list[str]]
"""Checks a name, or the beginning of one (`generateName`) if the second argument is true."""


def name_is_dns_subdomain(name: str, prefix: bool) -> list[str]:
    """The rule for names of most kinds."""
    if len(name) <= DNS1123_SUBDOMAIN_MAX and _is_subdomain(name):  # good as a whole, and so as a beginning
        return []
    return is_dns1123_subdomain(_mask_trailing_dash(name) if prefix else name)


def name_is_long_name(name: str, prefix: bool) -> list[str]:
    """The same rule in newer words, for kinds where only the whole name counts, whatever it was generated from."""
    if prefix:
        return is_path_segment_prefix(name)
    old = max_length_error(DNS1123_SUBDOMAIN_MAX)
    return [_max_bytes_error(DNS1123_SUBDOMAIN_MAX) if each == old else each for each in is_dns1123_subdomain(name)]


def name_is_dns_label(name: str, prefix: bool) -> list[str]:
    """The rule for names of namespaces and services."""
    return is_dns1123_label(_mask_trailing_dash(name) if prefix else name)


def name_is_dns1035_label(name: str, prefix: bool) -> list[str]:
    """The stricter old rule for services."""
    return is_dns1035_label(_mask_trailing_dash(name) if prefix else name)


def name_is_path_segment(name: str, prefix: bool) -> list[str]:
    """The rule for RBAC and other kinds whose names have colons."""
    return is_path_segment_prefix(name) if prefix else is_path_segment_name(name)


ALPHABET: Final = "bcdfghjklmnpqrstvwxz2456789"
"""No vowels and no digits that look like them: no words come out."""
GENERATED_LENGTH: Final = 5
MAX_GENERATED_BASE: Final = 63 - GENERATED_LENGTH
_PAIRS: Final = [first + second for first in ALPHABET for second in ALPHABET]


def _suffixes(count: int) -> list[str]:
    pairs, letters = random.choices(_PAIRS, k=2 * count), random.choices(ALPHABET, k=count)
    return [first + second + last for first, second, last in zip(pairs, pairs[count:], letters, strict=False)]


_next_suffix = Stock(_suffixes).take


def generate_name(base: str) -> str:
    """A name from a `generateName`: as much of it as leaves room for five random letters."""
    return base[:MAX_GENERATED_BASE] + _next_suffix()


def safe_encode(text: str) -> str:
    """A hash's text in the letters of generated names."""
    return "".join(ALPHABET[ord(char) % len(ALPHABET)] for char in text)


def _mask_trailing_dash(name: str) -> str:
    # Random letters follow; upstream replaces the last two characters, so `a.-` passes as `aa` would.
    return name[:-2] + "a" if len(name) > 1 and name.endswith("-") else name


def _size(value: str) -> int:
    """Length in bytes, which is what limits are about."""
    return len(value) if value.isascii() else len(value.encode("utf-8", "surrogatepass"))


def _chdir(value: str) -> list[str]:
    if value in (".", ".."):
        return [f"must not be '{value}'"]
    return ["must not start with '..'"] if value.startswith("..") else []
