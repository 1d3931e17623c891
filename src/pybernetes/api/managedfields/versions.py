"""An object in the versions its managers speak."""

from __future__ import annotations

from collections.abc import Callable

from .kinds import complete
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
