"""Custom resources from bytes, in one pass."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import UNSET

from pybernetes.api.apiextensions.v1 import JSONSchemaProps
from pybernetes.api.meta.v1.objectmeta import ObjectMeta
from pybernetes.api.structural.objects import TYPE_META, CustomObject


class Shell:
    """The outermost layer of an object as a Struct, so that one pass over the bytes gives typed metadata and the rest.

    Objects with other fields than the schema's are read another way.
    """

    def __init__(self, schema: JSONSchemaProps | None) -> None:
        names = [name for name in (schema.properties or {} if schema else {}) if name not in TYPE_META]
        fields = [(f"p{index}", Any, msgspec.field(default=UNSET, name=name)) for index, name in enumerate(names)]
        head = [
            ("kind", str | None, None),
            ("api_version", str | None, msgspec.field(default=None, name="apiVersion")),
            ("metadata", ObjectMeta, msgspec.field(default_factory=ObjectMeta)),
        ]
        self._class = msgspec.defstruct(
            "Shell", [*head, *fields], forbid_unknown_fields=True, omit_defaults=True, gc=False
        )
        self._decode = msgspec.json.Decoder(self._class).decode
        self._fields = [(f"p{index}", name) for index, name in enumerate(names)]

    def parse(self, raw: bytes) -> Any:
        """The outermost layer, or None if the object does not fit."""
        try:
            return self._decode(raw)
        except (ValueError, RecursionError):
            return None

    def open(self, shell: Any) -> CustomObject:
        """The object of a layer."""
        content = {}
        for field, name in self._fields:
            value = getattr(shell, field)
            if value is not UNSET:
                content[name] = value
        return CustomObject(shell.kind, shell.api_version, shell.metadata, content)
