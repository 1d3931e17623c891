"""Hostile input: odd text, numbers and JSON, and objects of a kind with such values in them.

Three sources, from narrow to broad:

    single(cls)      for every field that can be reached from a class, documents with odd values in this field only
    mutated(base)    a good document with a few of its values replaced, removed or added
    documents(cls)   documents with many fields of a class, mostly of the right type, all of them odd
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from copy import deepcopy
from typing import Any

from hypothesis import strategies as st

from pybernetes.api.base import Struct
from pybernetes.api.gocompat import gojson
from pybernetes.api.schema import ANY, LIST, STRUCT, FieldInfo, fields

TEXTS = (
    "",
    " ",
    "a",
    "A-b",
    "-",
    ".",
    "..",
    "/",
    "a/b",
    "a/b/c",
    "*",
    "%",
    "100%",
    "-1%",
    "101%",
    "0",
    "-0",
    "1e400",
    "9" * 5000,
    "-" + "9" * 30,
    "1Ei",
    "0.0000000000000000001",
    "0x1",
    "1_000",
    "²",
    "٣",
    "x" * 300,
    "NaN",
    "inf",
    "null",
    "true",
    "\0",
    "a\0b",
    "\n",
    "a\nb",
    "\r\n",
    "\t",
    "\x7f",
    "\x85",
    "\u2028",
    "é",
    "e\u0301",
    "日本語",
    "\u202eabc",
    "\u200f",
    "\ufeff",
    "\ufffd",
    "\uffff",
    "\U0001d4b3",
    "👩‍👩‍👧",
    "İ",
    "ß",
    "2020-01-01T00:00:00Z",
    "0000-00-00T00:00:00Z",
    "0001-01-01T00:00:00Z",
    "9999-12-31T23:59:59.999999999+23:59",
    "10000-01-01T00:00:00Z",
    "2020-02-30T00:00:00Z",
    "1h",
    "-1h",
    "1000000h",
    "999999999999h",
    "* * * * *",
    "@every 1h",
    "*/0 * * * *",
    "TZ=UTC * * * * *",
    "TZ=../../etc/passwd * * * * *",
    "10.0.0.1",
    "10.0.0.0/8",
    "010.0.0.1",
    "::1",
    "::ffff:1.2.3.4",
    "fe80::1%eth0",
    "1.2.3.4/33",
    "::/129",
    "256.0.0.1",
    "http://[::1",
    "https://a:b@c:99999/d?e#f",
    "https://%zz",
    "https://[a]b",
    "==",
    "YQ==",
    "YQ",
    "$(x)",
    "{}",
    "[",
    "(",
    "(?P<",
    "a{1,99999}",
    "[[:alpha:]]",
    "\\",
    "'",
    '"',
    "-----BEGIN CERTIFICATE-----\nYQ==\n-----END CERTIFICATE-----\n",
    "-----BEGIN CERTIFICATE REQUEST-----",
    "nginx:",
    "nginx@sha256:0",
    "UPPER/case:tag",
    "requests.cpu",
    "hugepages-",
    "hugepages-1Mi",
    "hugepages-0",
    "kubernetes.io/x",
    "cpu",
    "memory",
    "a=b",
    "a in (b)",
    "metadata.name",
    "$patch",
    "k:{}",
)
"""Text that some reader somewhere takes for something."""

SURROGATES = ("\ud800", "a\udfffb", "\udc00\ud800")
"""Not text at all; in JSON they can be written as escapes, which Go reads as replacement characters."""

INTEGERS = (0, -1, 1, 2, 63, 80, 443, 65535, 65536, -(2**31), 2**31 - 1, 2**31, -(2**63), 2**63 - 1, 2**63, 10**40)
NUMBERS = (*INTEGERS, 0.5, -0.0, 1e-320, 1e308, 1.5e300)
LITERALS = (b"1e999", b"-1E+400", b"1.0", b"0.10", b"-0", b"1" + b"0" * 5000, b"NaN", b"Infinity", b"01", b"+1", b".5")
"""Numbers as bytes: those that are JSON but no float, and those that are not JSON."""

texts = st.one_of(
    st.sampled_from(TEXTS),
    st.text(max_size=8),
    st.text("abz019-./:*%=,()!\0\n é👩", max_size=12),
)
wild_texts = st.one_of(texts, st.sampled_from(SURROGATES))
integers = st.one_of(st.sampled_from(INTEGERS), st.integers(-(2**70), 2**70))
numbers = st.one_of(integers, st.sampled_from(NUMBERS), st.floats(allow_nan=False, allow_infinity=False))
scalars = st.one_of(st.none(), st.booleans(), numbers, wild_texts)
values = st.recursive(
    scalars,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(wild_texts, inner, max_size=3)),
    max_leaves=6,
)
"""Any JSON, and text that is none."""

wild_bytes = st.one_of(
    st.binary(max_size=64),
    st.sampled_from([*LITERALS, b"", b"\xef\xbb\xbf{}", b'"\\ud800"', b'{"a":"\\u0000"}', b'{"a":"\xff"}']),
    st.sampled_from([b"[", b'{"a":', b"{", b"- ", b"[{", b"{a: "]).flatmap(
        lambda part: st.sampled_from([10, 300, 1100, 5000, 100_000]).map(lambda count: part * count)
    ),
    values.map(lambda value: encode(value)),
)
"""Bodies: broken, deep, or JSON."""


def encode(value: Any) -> bytes:
    """JSON; what is no text becomes an escape."""
    return json.dumps(value).encode()


def received(value: Any) -> Any:
    """A value as it comes out of the server's decoder."""
    return gojson.plain(gojson.loads(encode(value)))


# -- objects of a class ------------------------------------------------------------------------------------------


def fitting(info: FieldInfo, depth: int = 4) -> st.SearchStrategy[Any]:
    """Values of a field's type."""
    match info.kind:
        case "string" if info.enum:
            return st.one_of(st.sampled_from(info.enum), texts)
        case "string" if info.format in ("int-or-string", "quantity"):
            return st.one_of(st.integers(-(2**31), 2**31 - 1), st.sampled_from(("1", "100m", "5%")), texts)
        case "string" if info.format in ("date-time", "micro-time"):
            return st.one_of(st.sampled_from(("2020-01-01T00:00:00Z", "0001-01-01T00:00:00Z")), texts)
        case "string":
            return texts
        case "int":
            bits = 31 if info.format == "int32" else 63
            good = [number for number in INTEGERS if -(1 << bits) <= number < 1 << bits]
            return st.one_of(st.sampled_from(good), st.integers(-(1 << bits), (1 << bits) - 1))
        case "bool":
            return st.booleans()
        case "float":
            return st.floats(allow_nan=False, allow_infinity=False)
        case "list" if info.items is not None:
            inner = fitting(info.items, depth - 1)
            return st.lists(inner, max_size=2) if depth > 0 else st.just([])
        case "map" if info.items is not None:
            inner = fitting(info.items, depth - 1)
            return st.dictionaries(texts, inner, max_size=2) if depth > 0 else st.just({})
        case "struct" if info.struct is not None:
            return documents(info.struct, depth - 1) if depth > 0 else st.just({})
    return values


@st.composite
def documents(draw: st.DrawFn, cls: type[Struct], depth: int = 5) -> dict[str, Any]:
    """Documents with some of a class's fields; rarely with a value of the wrong type."""
    known = [info for info in fields(cls) if info.wire not in ("kind", "apiVersion")]
    chosen = draw(st.lists(st.sampled_from(known), max_size=5, unique=True)) if known else []
    result = {}
    for info in chosen:
        wrong = draw(st.integers(0, 30)) == 30
        result[info.wire] = draw(values if wrong else fitting(info, depth))
    return result


# -- good objects, spoiled ---------------------------------------------------------------------------------------


@st.composite
def mutated(draw: st.DrawFn, base: dict[str, Any], cls: type[Struct]) -> dict[str, Any]:
    """A copy of a good document with one to four changes below any of its values."""
    document = deepcopy(base)
    for _ in range(draw(st.integers(1, 4))):
        info, place = FieldInfo("", "", STRUCT, struct=cls), document
        while True:
            below = _below(info, place)
            if not below:
                break
            key, info = draw(st.sampled_from(below))
            inner = place[key] if isinstance(place, list) else place.get(key)
            if not isinstance(inner, (dict, list)) or draw(st.integers(0, 5)) == 5:
                _change(draw, place, key, info)
                break
            place = inner
    return document


def _below(info: FieldInfo, place: Any) -> list[tuple[Any, FieldInfo]]:
    if isinstance(place, dict) and info.struct is not None:
        known = [(each.wire, each) for each in fields(info.struct) if each.wire not in ("kind", "apiVersion")]
        present = [pair for pair in known if pair[0] in place]
        return present * 3 + known
    items = info.items or FieldInfo("", "", ANY)
    if isinstance(place, dict):
        return [(key, items) for key in (*place, "added")]
    if isinstance(place, list):
        return [(index, items) for index in range(len(place))]
    return []


def _change(draw: st.DrawFn, place: Any, key: Any, info: FieldInfo) -> None:
    match draw(st.integers(0, 9)):
        case 0:
            if isinstance(place, dict):
                place.pop(key, None)
            else:
                del place[key]
        case 1:
            place[key] = draw(values)
        case 2 if isinstance(place, list):
            place.insert(key, deepcopy(place[key]))
        case 3 if isinstance(place, dict):
            place[draw(texts)] = draw(values)
        case _:
            place[key] = draw(fitting(info))


# -- every field by itself ---------------------------------------------------------------------------------------


def single(cls: type[Struct]) -> Iterator[tuple[str, list[Any]]]:
    """Every field of every class below a class once, by the shortest way: its path, and documents with only it."""
    seen = {cls}
    todo: list[tuple[type[Struct], tuple[str, ...]]] = [(cls, ())]
    while todo:
        owner, way = todo.pop(0)
        for info in fields(owner):
            here = (*way, info.wire)
            yield ".".join(here), [_nested(here, value) for value in odd(info)]
            inner = info
            while inner.items is not None:
                here = (*here, _ITEM if inner.kind == LIST else _VALUE)
                inner = inner.items
            if inner.struct is not None and inner.struct not in seen:
                seen.add(inner.struct)
                todo.append((inner.struct, here))


_ITEM, _VALUE = "[]", "{}"


def odd(info: FieldInfo) -> list[Any]:
    """Odd values of a field's type, and one of each other type."""
    wrong = [True, 1, 0.5, "x", [], {}, [{}], {"a": {}}, [[]], [None], {"a": None}, None]
    match info.kind:
        case "string":
            return [*TEXTS, *info.enum, *wrong]
        case "int" | "float":
            return [*NUMBERS, *wrong]
        case "list" | "map" if info.items is not None:
            inner = [*_zeros(info.items), *(TEXTS if info.items.kind == "string" else ())]
            if info.kind == LIST:
                return [*([each] for each in inner), *([each, each] for each in inner[:3]), *wrong]
            return [*({"k": each} for each in inner), *({text: each} for text in TEXTS for each in inner[:1]), *wrong]
    return wrong


def _zeros(info: FieldInfo) -> list[Any]:
    match info.kind:
        case "string":
            return ["a", *info.enum[:1]]
        case "int" | "float":
            return [0, -1]
        case "bool":
            return [False]
        case "list":
            return [[]]
    return [{}]


def _nested(way: tuple[str, ...], value: Any) -> Any:
    """The value at the end of a way."""
    for step in reversed(way):
        value = [value] if step == _ITEM else {"k" if step == _VALUE else step: value}
    return value


def graft(base: Any, document: Any) -> Any:
    """A copy of a good document with the values of another put in; lists are met item by item."""
    if isinstance(base, dict) and isinstance(document, dict):
        return {**base, **{key: graft(base.get(key), value) for key, value in document.items()}}
    if isinstance(base, list) and isinstance(document, list) and base and document:
        return [graft(base[0], document[0]), *base[1:]]
    return deepcopy(document)
