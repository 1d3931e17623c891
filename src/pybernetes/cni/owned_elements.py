"""Tables of nftables whose maps and sets have elements that belong to containers.

The rules of such a table are the same for all pods; a pod is some elements, each with a comment that says whose it is.
So a pod comes and goes with one small batch, and DEL and GC find what is left of forgotten pods.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from pybernetes.network.nftables import expressions as e
from pybernetes.network.nftables.batch import Batch
from pybernetes.network.nftables.client import Nftables
from pybernetes.network.nftables.objects import Chain, Element, Set, Table, element

from .iptables import turn


@dataclass(frozen=True)
class Layout:
    """A table, its sets and maps, its chains with their rules."""

    table: Table
    sets: Sequence[Set]
    chains: Sequence[tuple[Chain, Sequence[Sequence[bytes]]]]


Elements = Mapping[str, Sequence[Element]]
"""By set; comments do not count."""


def owner(network: str, container_id: str) -> str:
    """The comment of a container's elements: the network and the container by digests, which are short enough."""
    return f"{_digest(network)} {_digest(container_id)}"


def put(layout: Layout, comment: str, elements: Elements) -> None:
    """Makes the table if it is missing, and these the elements of an owner. Keys that others have become his."""
    with turn(), Nftables() as kernel:
        batch = Batch()
        if layout.table not in kernel.tables():
            _make(batch, layout)
        else:
            wanted = {(name, each.key, each.key_end) for name, some in elements.items() for each in some}
            _delete(batch, kernel, layout, lambda name, each: _same(each, comment, wanted, name))
        for name, some in elements.items():
            made = [
                element(each.key, e.value(each.data) if each.data else b"", key_end=each.key_end, comment=comment)
                for each in some
            ]
            batch.add_elements(layout.table, name, made)
        kernel.commit(batch)


def remove(layout: Layout, gone: Callable[[str], bool]) -> None:
    """Deletes the elements whose comment names an owner that is gone."""
    with turn(), Nftables() as kernel:
        if layout.table in kernel.tables():
            batch = Batch()
            _delete(batch, kernel, layout, lambda _, each: gone(each.comment))
            kernel.commit(batch)


def sweep(layout: Layout, network: str, valid: set[str]) -> None:
    """Deletes the elements of containers of a network that are not valid any longer."""
    prefix = f"{_digest(network)} "
    good = {_digest(each) for each in valid}
    remove(layout, lambda comment: comment.startswith(prefix) and comment.removeprefix(prefix) not in good)


def missing(layout: Layout, comment: str, elements: Elements) -> str:
    """The first element of an owner that is missing, as a message; empty if all are there."""
    with Nftables() as kernel:
        if layout.table not in kernel.tables():
            return f"table {layout.table} not found"
        for name, some in elements.items():
            found = {(each.key, each.data, each.key_end, each.comment) for each in kernel.elements(layout.table, name)}
            for each in some:
                if (each.key, each.data, each.key_end, comment) not in found:
                    return f"element {each.key.hex()} of {layout.table} {name} not found"
    return ""


def _make(batch: Batch, layout: Layout) -> None:
    batch.add_table(layout.table)
    for each in layout.sets:
        batch.add_set(layout.table, each)
    for chain, _ in layout.chains:
        batch.add_chain(layout.table, chain)
    for chain, rules in layout.chains:
        for rule in rules:
            batch.add_rule(layout.table, chain.name, rule)


def _delete(batch: Batch, kernel: Nftables, layout: Layout, which: Callable[[str, Element], bool]) -> None:
    for each in layout.sets:
        found = [one for one in kernel.elements(layout.table, each.name) if which(each.name, one)]
        batch.delete_elements(layout.table, each.name, [element(one.key, key_end=one.key_end) for one in found])


def _same(each: Element, comment: str, wanted: set[tuple[str, bytes, bytes]], name: str) -> bool:
    return each.comment == comment or (name, each.key, each.key_end) in wanted


def _digest(text: str) -> str:
    return hashlib.sha512(text.encode()).hexdigest()[:24]
