"""An object in the versions its managers speak."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from .. import scheme
from .kinds import complete, node_of
from .node import Node
from .objects import Object

Convert = Callable[[Object, str], tuple[Object, Node] | None]
"""The object in another version with that version's node, nothing if there is no such version."""


class Versions:
    """The version of the request, and the way to others.

    Without a way there are no others, and managers that speak them are forgotten, as upstream forgets versions that
    it does not serve.
    """

    def __init__(self, api_version: str, node: Node, convert: Convert | None = None) -> None:
        self.api_version = api_version
        self._convert = convert
        self._nodes = {api_version: node}

    @property
    def node(self) -> Node:
        """The node of the request's version."""
        return self._nodes[self.api_version]

    def at(self, obj: Object, version: str) -> tuple[Object, Node] | None:
        """The object, which says its version, in this one."""
        if obj["apiVersion"] == version:
            return obj, self._nodes[version]
        found = self._convert(obj, version) if self._convert is not None else None
        if found is None:
            return None
        converted, node = found
        self._nodes.setdefault(version, node)
        return complete({**converted, "apiVersion": version}, node), node


def builtin(kind: str) -> Convert:
    """The way between the versions of a built-in kind. Versions of other groups do not count, as upstream has it."""

    def convert(obj: Object, version: str) -> tuple[Object, Node] | None:
        group, name = scheme.split_api_version(version)
        source = scheme.resource_for_kind(*scheme.split_api_version(obj["apiVersion"]), kind)
        target = scheme.resource_for_kind(group, name, kind)
        if source is None or target is None or source.group != target.group:
            return None
        value = msgspec.convert(obj, source.type)
        return msgspec.to_builtins(scheme.convert(value, source, target)), node_of(target.type)

    return convert
