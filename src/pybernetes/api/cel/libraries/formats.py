"""Named formats: `format.dns1123Label().validate(name)`."""

from __future__ import annotations

from collections.abc import Callable

from ... import names
from ...apiextensions.formats import has_format
from ..functions import Library, function, method
from ..types import STRING, Type, list_of, optional_of
from ..values import NONE, Opaque, Optional
from .urls import uri_problem

FORMAT = Type("object", "kubernetes.NamedFormat", fields={})
TYPES = {FORMAT.name: FORMAT}
_STRINGS = list_of(STRING)


class FormatValue(Opaque):
    """A format and the longest expression it may be checked with."""

    __slots__ = ("max_regex_size", "name", "problems")
    cel_type = FORMAT

    def __init__(self, name: str, problems: Callable[[str], list[str]], max_regex_size: int) -> None:
        self.name = name
        self.problems = problems
        self.max_regex_size = max_regex_size

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FormatValue) and self.name == other.name

    def __hash__(self) -> int:
        return hash(self.name)


def _formatted(format: str, message: str) -> Callable[[str], list[str]]:
    return lambda text: [] if has_format(text, format) else [message]


def _uri(text: str) -> list[str]:
    problem = uri_problem(text)
    return [problem] if problem else []


FORMATS = {
    "dns1123Label": FormatValue("DNS1123Label", lambda text: names.name_is_dns_label(text, False), 30),
    "dns1123Subdomain": FormatValue("DNS1123Subdomain", lambda text: names.name_is_dns_subdomain(text, False), 60),
    "dns1035Label": FormatValue("DNS1035Label", lambda text: names.name_is_dns1035_label(text, False), 30),
    "qualifiedName": FormatValue("QualifiedName", names.is_qualified_name, 60),
    "dns1123LabelPrefix": FormatValue("DNS1123LabelPrefix", lambda text: names.name_is_dns_label(text, True), 30),
    "dns1123SubdomainPrefix": FormatValue(
        "DNS1123SubdomainPrefix", lambda text: names.name_is_dns_subdomain(text, True), 60
    ),
    "dns1035LabelPrefix": FormatValue("DNS1035LabelPrefix", lambda text: names.name_is_dns1035_label(text, True), 30),
    "labelValue": FormatValue("LabelValue", names.is_label_value, 40),
    "uri": FormatValue("URI", _uri, 1000),
    "uuid": FormatValue("uuid", _formatted("uuid", "does not match the UUID format"), 70),
    "byte": FormatValue("byte", _formatted("byte", "invalid base64"), 84),
    "date": FormatValue("date", _formatted("date", "invalid date"), 116),
    "datetime": FormatValue("datetime", _formatted("date-time", "invalid datetime"), 116),
}


def _validate(format: FormatValue, text: str) -> Optional:
    problems = format.problems(text)
    return Optional(True, problems) if problems else NONE


def _constant(format: FormatValue) -> Callable[[], FormatValue]:
    return lambda: format


def _named(name: str) -> Optional:
    found = FORMATS.get(name)
    return NONE if found is None else Optional(True, found)


LIBRARY: Library = {
    "validate": [method("format-validate", (FORMAT, STRING), optional_of(_STRINGS), _validate)],
    "format.named": [function("format-named", (STRING,), optional_of(FORMAT), _named)],
}
LIBRARY |= {
    f"format.{name}": [function(f"format.{name}", (), FORMAT, _constant(value))] for name, value in FORMATS.items()
}
