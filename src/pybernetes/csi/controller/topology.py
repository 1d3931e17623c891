"""Where a new volume must be reachable, in the driver's terms: the selected node, or the nodes of the class."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import Any

from pybernetes.api.core.v1 import Node
from pybernetes.api.storage.v1 import CSINode, StorageClass
from pybernetes.csi import v1


def keys_of(node: CSINode | None, driver: str) -> list[str] | None:
    """The topology keys of a driver on a node; None if it is not there."""
    for each in (node.spec.drivers if node is not None and node.spec else None) or ():
        if each.name == driver:
            return list(each.topology_keys or ())
    return None


def segments(node: Node, keys: Iterable[str]) -> dict[str, str] | None:
    """A node's values of the keys; None while one is missing."""
    labels = (node.metadata.labels if node.metadata else None) or {}
    found = {key: labels[key] for key in keys if key in labels}
    return found if len(found) == len(list(keys)) else None


def allowed(found: StorageClass) -> list[dict[str, str]]:
    """The segments that `allowedTopologies` of a class name."""
    made: list[dict[str, str]] = []
    for term in found.allowed_topologies or ():
        expressions = term.match_label_expressions or ()
        for values in itertools.product(*(each.values or () for each in expressions)):
            made.append({each.key or "": value for each, value in zip(expressions, values, strict=True)})
    return made


def requirement(
    selected: dict[str, str] | None, everywhere: Iterable[dict[str, str]], wanted: list[dict[str, str]], *, strict: bool
) -> Any:
    """The TopologyRequirement: the selected node's first; `strict`, nothing else; None if there is nothing to say."""
    requisite = wanted or _unique(everywhere)
    if selected is not None and strict:
        requisite = [selected]
    if selected is not None and selected not in requisite:
        requisite = [selected, *requisite]
    if not requisite:
        return None
    preferred = sorted(requisite, key=lambda each: (each != selected, sorted(each.items())))
    return v1.TopologyRequirement(
        requisite=[v1.Topology(segments=each) for each in requisite],
        preferred=[v1.Topology(segments=each) for each in preferred],
    )


def _unique(found: Iterable[dict[str, str]]) -> list[dict[str, str]]:
    made: list[dict[str, str]] = []
    for each in found:
        if each and each not in made:
            made.append(each)
    return made
