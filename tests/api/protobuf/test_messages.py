"""Every field of every served kind has a number, and the type that the kind's class says."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from api.protobuf.encoder import MESSAGES, qualified

from pybernetes.api import scheme
from pybernetes.api.base import Struct
from pybernetes.api.meta.v1 import DeleteOptions
from pybernetes.api.resources import Resource
from pybernetes.api.schema import ANY, LIST, MAP, STRUCT, FieldInfo, fields

PLAIN = {"string": "string", "bool": "bool", "float": "double"}
FORMATS = {"byte": "bytes", "fields-v1": "json", "raw-extension": "json"}


def kinds() -> Iterator[tuple[str, type[Struct]]]:
    for resource in scheme.resources():
        yield _message(resource), resource.type
        for sub in resource.subresources:
            if sub.kind is not None:
                api_version = "/".join(filter(None, (sub.group, sub.version))) or resource.api_version
                found = scheme.type_for(api_version, sub.kind)
                if found is not None and not sub.kind.endswith("Options"):  # those are queries
                    group, _, version = api_version.rpartition("/")
                    yield f"{group.partition('.')[0] or 'core'}/{version}.{sub.kind}", found
    yield "meta/v1.DeleteOptions", DeleteOptions


def _message(resource: Resource) -> str:
    return f"{resource.package}/{resource.version}.{resource.kind}"


def numbered(message: str) -> dict[str, tuple[str, str]]:
    """JSON name -> the type, and the message that it is named in."""
    found = {}
    for label, (_, kind) in MESSAGES[message].items():
        if label == ".":
            found |= numbered(qualified(kind, message))
        else:
            found[label] = kind, message
    return found


@pytest.mark.parametrize(("message", "cls"), [pytest.param(*each, id=each[0]) for each in dict(kinds()).items()])
def test_every_field_has_a_number_and_the_right_type(message: str, cls: type[Struct]) -> None:
    check_struct(message, cls, set())


def check_struct(message: str, cls: type[Struct], seen: set[str]) -> None:
    if message in seen:
        return
    seen.add(message)
    assert message.rpartition(".")[2] == cls.__name__
    known = numbered(message)
    for field in fields(cls):
        if field.wire in ("kind", "apiVersion") and field.wire not in known and "api_version" in cls.__struct_fields__:
            continue  # in the envelope
        assert field.wire in known, f"{message} {field.wire}"
        kind, where = known[field.wire]
        check(field, kind, where, f"{message}.{field.wire}", seen)


def check(field: FieldInfo, kind: str, message: str, path: str, seen: set[str]) -> None:
    if kind == "texts":
        assert (field.kind, field.items and field.items.kind) == (LIST, "string"), path
    elif field.kind in (LIST, MAP):
        assert field.items is not None
        assert kind[:2] == ("[]" if field.kind == LIST else "{}"), path
        check(field.items, kind[2:], message, path, seen)
    elif field.kind == STRUCT:
        assert field.struct is not None
        check_struct(qualified(kind, message), field.struct, seen)
    elif kind.startswith("schema-or-"):
        assert field.kind == ANY, path
        for variant in field.variants:
            if variant.struct:
                check_struct("apiextensions/v1.JSONSchemaProps", variant.struct, seen)
    elif field.format:
        assert kind == FORMATS.get(field.format, field.format), path
    elif field.kind == ANY:
        assert kind == "json", path
    else:
        assert kind == PLAIN[field.kind], path


def test_numbers_are_not_used_twice() -> None:
    for message, found in MESSAGES.items():
        numbers = [number for number, _ in found.values()]
        assert len(set(numbers)) == len(numbers), message


def test_every_message_that_is_mentioned_exists() -> None:
    special = {"texts", "json", "quantity", "duration", "date-time", "micro-time", "int-or-string"}
    special |= {"schema-or-bool", "schema-or-list", "schema-or-texts"}
    special |= {"string", "bytes", "bool", "int32", "int64", "double"}
    for message, found in MESSAGES.items():
        for _, kind in found.values():
            element = kind.removeprefix("[]").removeprefix("{}")
            assert element in special or qualified(element, message) in MESSAGES, f"{message}: {kind}"
