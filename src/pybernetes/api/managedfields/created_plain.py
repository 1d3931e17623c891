"""The same as `created` for objects of plain values, by nodes instead of classes: what the creator of an object owns.

Functions are compiled from a schema's nodes once; what comes out is what `compare` finds between nothing and the value.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from json.encoder import encode_basestring
from typing import Any

import msgspec

from ..meta.v1.objectmeta import ManagedFieldsEntry, ObjectMeta
from . import created, paths
from .items import NoIdentity, element
from .node import List, Map, Node
from .objects import STRIPPED

Writer = Callable[[Any], str]
"""From a value that was not there before to the JSON text of what is inside its fields."""

_BELOW_METADATA = frozenset(path[1:] for path in STRIPPED if len(path) > 1)


class CreatedFields:
    """The fields of new objects of one schema."""

    def __init__(self, node: Node, without: frozenset[str] = frozenset()) -> None:
        self._node = node
        self._without = without
        self._metadata = created.struct_writer(ObjectMeta, _BELOW_METADATA)
        self._writers: dict[int, Writer] = {}
        self._top: dict[str, tuple[str, Writer] | None] = {}

    def entries(
        self, metadata: ObjectMeta, content: Mapping[str, Any], manager: str, api_version: str, now: str
    ) -> list[ManagedFieldsEntry]:
        """The one entry of the creator; none if it owns nothing, or what it sent cannot be described."""
        rows = []
        try:
            for key, value in content.items():
                if key not in self._top:
                    self._top[key] = self._top_field(key)
                top = self._top[key]
                if top is not None:
                    rows.append(f"{top[0]}{{{top[1](value)}}}")
            inside = self._metadata(metadata)
        except NoIdentity:
            return []
        if inside:
            rows.append(f'"f:metadata":{{{inside}}}')
        if not rows:
            return []
        rows.sort()
        return [
            ManagedFieldsEntry(
                manager=manager or "unknown",
                operation="Update",
                api_version=api_version,
                time=now,
                fields_type="FieldsV1",
                fields_v_1=msgspec.Raw(f"{{{','.join(rows)}}}".encode()),
            )
        ]

    def _top_field(self, key: str) -> tuple[str, Writer] | None:
        child = self._node.map.child(key) if self._node.map is not None else None
        if child is None or key in self._without:
            return None
        return f"{encode_basestring(paths.field(key))}:", self._writer(child)

    def _writer(self, node: Node) -> Writer:
        known = self._writers.get(id(node))
        if known is not None:
            return known
        # Known before it is made: a node may contain itself.
        self._writers[id(node)] = lambda value: made(value)
        maps = self._map(node.map) if node.map is not None and not node.map.atomic else _nothing
        lists = self._list(node.list) if node.list is not None and not node.list.atomic else _nothing

        def made(value: Any) -> str:
            if type(value) is dict:
                return maps(value) if value else ""
            if type(value) is list:
                return lists(value) if value else ""
            return ""

        if maps is _nothing and lists is _nothing:
            made = _nothing
        self._writers[id(node)] = made
        return made

    def _map(self, kind: Map) -> Writer:
        names: dict[str, tuple[str, Writer]] = {}
        other = self._writer(kind.element) if kind.element is not None else None
        for key, field in kind.fields.items():
            names[key] = (f"{encode_basestring(paths.field(key))}:", self._writer(field.node))

        def write(value: dict[str, Any]) -> str:
            text = '".":{}'
            for key in sorted(value):
                known = names.get(key)
                if known is not None:
                    inner = known[1]
                    text += f",{known[0]}{{}}" if inner is _nothing else f",{known[0]}{{{inner(value[key])}}}"
                elif other is not None:
                    text += f",{encode_basestring('f:' + key)}:{{{other(value[key])}}}"
            return text if len(text) > 6 else ""

        return write

    def _list(self, kind: List) -> Writer:
        inner = self._writer(kind.element)

        def write(value: list[Any]) -> str:
            found: dict[str, str] = {}
            for item in value:
                name = element(kind, item)
                # Duplicate items are one field.
                found[name] = "" if name in found else inner(item)
            ordered = sorted(found, key=paths.order)
            return '".":{},' + ",".join([f"{encode_basestring(name)}:{{{found[name]}}}" for name in ordered])

        return write


def _nothing(value: Any) -> str:
    return ""
