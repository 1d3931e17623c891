"""YAML at the edge: the same data as JSON, in the YAML that upstream reads and writes.

The parser is libyaml, which upstream's descends from; what a plain scalar means (`y` is a boolean, `012` is octal,
`1:30` is text, dates are text) is decided here by upstream's rules, because clients have written their files for them.
Only the first document counts. A document whose aliases blow it up is refused before it does.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Sequence
from typing import Any

import yaml

_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_Dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)

_TAG = "tag:yaml.org,2002:"
_PLAIN = "plain"
"""The tag of scalars that came without one and without quotes."""

_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_INTEGER = re.compile(r"([-+]?)(0[xX][0-9a-fA-F]+|0[bB][01]+|0[oO]?[0-7]+|0|[1-9][0-9]*)")
_TRUE = ("true", "True", "TRUE", "y", "Y", "yes", "Yes", "YES", "on", "On", "ON")
_FALSE = ("false", "False", "FALSE", "n", "N", "no", "No", "NO", "off", "Off", "OFF")
_WORDS: dict[str, Any] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys(_TRUE, True),
    **dict.fromkeys(_FALSE, False),
    **dict.fromkeys((f"{sign}{word}" for sign in ("", "+") for word in (".inf", ".Inf", ".INF")), float("inf")),
    **dict.fromkeys(("-.inf", "-.Inf", "-.INF"), float("-inf")),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), float("nan")),
}
_MAX_UNSIGNED = (1 << 64) - 1
_LONG = 22
"""From this length on a decimal number has more than 64 bits; Python refuses to read very long ones."""


_MAX_DEPTH = 1000
"""Python goes no deeper than this."""
_TOO_DEEP = "yaml: exceeded max depth of 10000"


class YAMLProblem(ValueError):
    """A document that cannot be read; the words are upstream's as far as its parser is ours."""


# -- reading ----------------------------------------------------------------------------------------------------


def yaml_to_json(body: bytes) -> tuple[bytes, list[str]]:
    """The first document as JSON with its keys in order, and a line for each key that is given twice.

    Raises YAMLProblem.
    """
    import msgspec  # not needed by kubectl, which starts faster without it

    value, repeated = yaml_to_value(body)
    return msgspec.json.encode(value, order="sorted"), repeated


def yaml_to_value(body: bytes) -> tuple[Any, list[str]]:
    """The first document as JSON data, and a line for each key that is given twice. Raises YAMLProblem."""
    return _read(body, _Reader(), ())


def yaml12_to_value(body: bytes, texts: Sequence[str] = ()) -> Any:
    """The first document by the rules of YAML 1.2, as kustomize reads it: `yes` and `on` are text, and so is each key.

    Below the path `texts` every scalar is text. A key that is given twice is an error. Raises YAMLProblem.
    """
    return _read(body, _ModernReader(), texts)[0]


def _read(body: bytes, reader: _Reader, texts: Sequence[str]) -> tuple[Any, list[str]]:
    try:
        _check_depth(body)
        loader = _Nodes(body)
        try:
            node = loader.get_node() if loader.check_node() else None
        finally:
            loader.dispose()
        _mark_texts(node, texts)
        value = reader.value(node) if node is not None else None
        return value, reader.repeated
    except yaml.YAMLError as error:
        raise YAMLProblem(_words(error)) from error
    except RecursionError as error:
        raise YAMLProblem(_TOO_DEEP) from error


def _check_depth(body: bytes) -> None:
    """Refuse what is nested deeper than we could read: libyaml's nodes are made by recursion in C, without a limit.

    Only an odd document is looked at twice. A block inside of another begins further to the right, or is a list right
    below its key, so that no line is shorter than half of its depth; within a line it takes brackets to go deeper.
    """
    longest = max(map(len, body.split(b"\n")))
    if body.count(b"[") + body.count(b"{") + 2 * longest < _MAX_DEPTH:
        return
    depth = 0
    for event in yaml.parse(body, Loader=_Loader):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > _MAX_DEPTH:
                raise YAMLProblem(_TOO_DEEP)
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        elif isinstance(event, yaml.DocumentEndEvent):
            return


class _Nodes(_Loader):  # type: ignore[misc,valid-type]
    """Reads nodes and leaves open what a plain scalar means."""

    def resolve(self, kind: type[yaml.Node], value: object, implicit: object) -> str:
        if kind is yaml.ScalarNode:
            return _PLAIN if isinstance(implicit, tuple) and implicit[0] else f"{_TAG}str"
        return f"{_TAG}map" if kind is yaml.MappingNode else f"{_TAG}seq"


def _mark_texts(node: yaml.Node | None, path: Sequence[str]) -> None:
    """Makes the scalars of a mapping text, where there is one at the path."""
    for key in path:
        if type(node) is not yaml.MappingNode:
            return
        node = next((value for name, value in node.value if name.value == key), None)
    if path and type(node) is yaml.MappingNode:
        for _, value in node.value:
            if type(value) is yaml.ScalarNode and value.tag == _PLAIN:
                value.tag = f"{_TAG}str"


class _Reader:
    """Makes values of nodes, and counts how many come from aliases."""

    def __init__(self) -> None:
        self.repeated: list[str] = []
        self._seen: set[int] = set()
        self._open: set[int] = set()
        self._visited = 0
        self._aliased = 0
        self._in_alias = 0

    def value(self, node: yaml.Node) -> Any:
        """The value of a node as JSON has it."""
        if type(node) is yaml.ScalarNode:
            self._count()
            return _json_number(_scalar(node))
        identity = id(node)
        if identity in self._open:
            raise YAMLProblem("yaml: anchor value contains itself")
        alias = identity in self._seen
        self._seen.add(identity)
        self._open.add(identity)
        self._in_alias += alias
        self._count()
        try:
            if type(node) is yaml.SequenceNode:
                return [self.value(each) for each in node.value]
            return self._mapping(node)
        finally:
            self._open.discard(identity)
            self._in_alias -= alias

    def _mapping(self, node: yaml.Node) -> dict[str, Any]:
        found: dict[str, Any] = {}
        merged: list[dict[str, Any]] = []
        for key_node, value_node in node.value:
            if key_node.tag == _PLAIN and key_node.value == "<<":
                merged += self._merged(value_node)
                continue
            key = self._key(key_node, value_node)
            value = self.value(value_node)
            if key in found:
                self.repeated.append(f'line {value_node.start_mark.line + 1}: key "{key}" already set in map')
            found[key] = value
        for each in merged:
            found = {**each, **found}
        return found

    def _merged(self, node: yaml.Node) -> list[dict[str, Any]]:
        value = self.value(node)
        values = value if isinstance(value, list) else [value]
        if not all(isinstance(each, dict) for each in values):
            raise YAMLProblem("yaml: map merge requires map or sequence of maps as the value")
        return values

    def _key(self, node: yaml.Node, value_node: yaml.Node) -> str:
        if type(node) is not yaml.ScalarNode:
            raise YAMLProblem("yaml: invalid map key")
        self._count()
        key = _json_number(_scalar(node))
        if key is None:
            value = self.value(value_node)
            shown = f'"{value}"' if isinstance(value, str) else value
            raise YAMLProblem(f"unsupported map key of type: %!s(<nil>), key: <nil>, value: {shown}")
        if isinstance(key, bool):
            return "true" if key else "false"
        return str(key)

    def _count(self) -> None:
        """Upstream's limit: small documents may be nearly all aliases, huge ones hardly."""
        self._visited += 1
        self._aliased += bool(self._in_alias)
        if self._aliased > 100 and self._visited > 1000:
            allowed = 0.99 - 0.89 * min(max(self._visited - 400_000, 0) / 3_600_000, 1.0)
            if self._aliased / self._visited > allowed:
                raise YAMLProblem("yaml: document contains excessive aliasing")


class _ModernReader(_Reader):
    """Reads YAML 1.2, but for numbers, which are as in 1.1; dates become times."""

    def value(self, node: yaml.Node) -> Any:
        if type(node) is yaml.ScalarNode and node.tag == _PLAIN:
            if node.value in _OLD_BOOLEANS:
                self._count()
                return node.value
            if _DATE.fullmatch(node.value):
                self._count()
                return f"{node.value}T00:00:00Z"
        return super().value(node)

    def _mapping(self, node: yaml.Node) -> dict[str, Any]:
        found = super()._mapping(node)
        if self.repeated:
            line, _, rest = self.repeated[0].partition(": key ")
            raise YAMLProblem(
                f"yaml: unmarshal errors:\n  {line}: mapping key {rest.split(' already')[0]} already defined"
            )
        return found

    def _key(self, node: yaml.Node, value_node: yaml.Node) -> str:
        if type(node) is not yaml.ScalarNode:
            raise YAMLProblem("yaml: invalid map key")
        self._count()
        return str(node.value)


_OLD_BOOLEANS = frozenset((*_TRUE[3:], *_FALSE[3:]))
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")


def _scalar(node: yaml.ScalarNode) -> Any:
    text: str = node.value
    if node.tag == _PLAIN:
        return _plain(text)
    kind = node.tag.removeprefix(_TAG)
    if kind == "binary":
        try:
            return base64.b64decode(text, validate=True).decode()
        except (binascii.Error, UnicodeDecodeError) as error:
            raise YAMLProblem("yaml: !!binary value contains invalid base64 data") from error
    wanted: Any = {"int": int, "float": (int, float), "bool": bool, "null": type(None)}.get(kind)
    if wanted is None:
        return text
    value = _plain(text)
    if not isinstance(value, wanted):
        raise YAMLProblem(f"yaml: cannot decode !!str `{text}` as a !!{kind}")
    return value


def _plain(text: str) -> Any:
    """Parse a scalar without quotes."""
    if text in _WORDS:
        return _WORDS[text]
    if text[0] not in "+-.0123456789":
        return text
    bare = text.replace("_", "")
    whole = _INTEGER.fullmatch(bare)
    if whole and (len(bare) < _LONG or bare.lstrip("+-")[0] == "0"):
        sign, digits = whole.groups()
        number = _integer(digits) * (-1 if sign == "-" else 1)
        if -(1 << 63) <= number <= _MAX_UNSIGNED:
            return number
    if _FLOAT.fullmatch(bare):
        real = float(bare)
        return text if real in (float("inf"), float("-inf")) else real
    return text


def _integer(digits: str) -> int:
    if len(digits) > 1 and digits[0] == "0" and digits[1].isdigit():
        return int(digits, 8)
    return int(digits, 0)


def _json_number(value: Any) -> Any:
    """A number as upstream's JSON has it: whole ones without a fraction."""
    if isinstance(value, float):
        if value != value or value in (float("inf"), float("-inf")):
            shown = "NaN" if value != value else "+Inf" if value > 0 else "-Inf"
            raise YAMLProblem(f"json: unsupported value: {shown}")
        if value.is_integer() and abs(value) < 1e21:
            return int(value)
    return value


def _words(error: yaml.YAMLError) -> str:
    problem = getattr(error, "problem", None) or getattr(error, "reason", None) or str(error)
    mark = getattr(error, "problem_mark", None)
    if "undefined alias" in problem:
        return "yaml: unknown anchor referenced"
    return f"yaml: line {mark.line + 1}: {problem}" if mark is not None and mark.line else f"yaml: {problem}"


# -- writing ----------------------------------------------------------------------------------------------------


class _KubernetesDumper(_Dumper):  # type: ignore[misc,valid-type]
    """Text that a reader could take for something else is in double quotes, lines of text stay lines."""

    def ignore_aliases(self, data: object) -> bool:
        return True


def _text(dumper: yaml.Dumper, text: str) -> yaml.Node:
    style = "|" if "\n" in text else '"' if not isinstance(_plain(text), str) or _OTHERS.match(text) else None
    return dumper.represent_scalar(f"{_TAG}str", text, style)


_OTHERS = re.compile(r"[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}|[-+]?[0-9]+(:[0-5]?[0-9])+$")
"""Timestamps and numbers to the base of 60, for readers that know them."""
_KubernetesDumper.add_representer(str, _text)


def json_to_yaml(raw: bytes) -> bytes:
    """JSON as one YAML document, keys sorted.

    The items of a list are written one after the other: libyaml holds the interpreter's lock for as long as it writes,
    and what it needs for a document is many times the document's size.
    """
    import msgspec

    value = msgspec.json.decode(raw)
    if not isinstance(value, dict) or not isinstance(value.get("items"), list) or not value["items"]:
        return _dump(value)
    parts = []
    for key in sorted(value):
        if key == "items":
            parts.append(b"items:\n")
            parts += [_dump([item]) for item in value[key]]
        else:
            parts.append(_dump({key: value[key]}))
    return b"".join(parts)


def _dump(value: Any) -> bytes:
    text: bytes = yaml.dump(
        value, Dumper=_KubernetesDumper, encoding="utf-8", allow_unicode=True, default_flow_style=False
    )
    return text
