"""Puts the content of the policy tables into the kernel, each time in one batch, and notices when it is changed there.

The tables stay when the process ends, and a new one takes the place of the old in one batch: no packet passes unjudged.
"""

from __future__ import annotations

from collections.abc import Iterable

from pybernetes.network.nftables import expressions as e
from pybernetes.network.nftables.batch import Batch
from pybernetes.network.nftables.client import Nftables
from pybernetes.network.nftables.objects import Chain, element, value_elements

from . import chains
from .chains import BLOCKS, GUARDED, Family
from .content import Content, Element
from .state import PolicyState


class Kernel:
    """The tables of policies."""

    def __init__(self, nftables: Nftables, families: Iterable[Family] = chains.FAMILIES) -> None:
        self._nft = nftables
        self._families = tuple(families)

    def watch(self) -> int:
        """A descriptor that is readable when another program may have changed something."""
        return self._nft.watch()

    def disturbed(self) -> bool:
        """Whether another program changed one of the tables since the last call, as far as the kernel can say."""
        changes = self._nft.changes()
        return changes is None or any(family.table in changes for family in self._families)

    def replace(self, state: PolicyState) -> None:
        """Makes all tables anew."""
        batch = Batch()
        for family in self._families:
            batch.replace_table(family.table)
            family.add_base(batch)
            content = state.content[family.name]
            _add_sets(batch, family, content, content.sets)
            for name in content.chains:
                batch.add_chain(family.table, Chain(name))
            for name, rules in content.chains.items():
                for rule in rules:
                    batch.add_rule(family.table, name, rule)
            for name, found in content.elements.items():
                batch.add_elements(family.table, name, _elements(_intervals(content, name), family, found))
            for name, verdicts in content.verdicts.items():
                batch.add_elements(family.table, name, [_verdict(*each) for each in verdicts.items()])
        self._nft.commit_in_parts(batch)
        state.committed()

    def update(self, state: PolicyState) -> None:
        """Makes the changes since the last commit."""
        batch = Batch()
        for family in self._families:
            _change(batch, family, state.content[family.name])
        self._nft.commit(batch)
        state.committed()

    def remove(self) -> None:
        """Removes the tables."""
        batch = Batch()
        for family in self._families:
            batch.add_table(family.table)
            batch.delete_table(family.table)
        self._nft.commit(batch)


def _change(batch: Batch, family: Family, content: Content) -> None:
    table = family.table
    new_sets = [name for name, before in content.touched_sets.items() if before is None and name in content.sets]
    old_sets = [
        name for name, before in content.touched_sets.items() if before is not None and name not in content.sets
    ]
    _add_sets(batch, family, content, new_sets)
    for name, before in content.touched_chains.items():
        if not before and name in content.chains:
            batch.add_chain(table, Chain(name))
    removed: dict[str, list[Element]] = {}
    added: dict[str, list[Element]] = {}
    for (name, each), had in content.touched_elements.items():
        found = content.elements.get(name)
        has = found is not None and each in found
        if had and not has and name not in old_sets:
            removed.setdefault(name, []).append(each)
        elif has and not had:
            added.setdefault(name, []).append(each)
    for name, some in removed.items():
        batch.delete_elements(table, name, _elements(_intervals(content, name), family, some))
    for name, some in added.items():
        batch.add_elements(table, name, _elements(_intervals(content, name), family, some))
    for name, before in content.touched_chains.items():
        if before:
            batch.flush_chain(table, name)
        for rule in content.chains.get(name, ()):
            batch.add_rule(table, name, rule)
    for (name, address), chain in content.touched_verdicts.items():
        now = content.verdicts.get(name, {}).get(address, "")
        if now == chain:
            continue
        if chain:
            batch.delete_elements(table, name, [element(address)])
        if now:
            batch.add_elements(table, name, [_verdict(address, now)])
    for name, before in content.touched_chains.items():
        if before and name not in content.chains:
            batch.delete_chain(table, name)
    for name in old_sets:
        batch.delete_set(table, name)


def _add_sets(batch: Batch, family: Family, content: Content, names: Iterable[str]) -> None:
    for name in names:
        batch.add_set(family.table, family.set(name, content.sets[name]))


def _intervals(content: Content, name: str) -> bool:
    return name == GUARDED or content.sets.get(name) == BLOCKS


def _elements(intervals: bool, family: Family, found: Iterable[Element]) -> list[bytes]:
    if not intervals:
        return value_elements([(each, b"") for each in found if isinstance(each, bytes)])
    made = []
    for each in found:
        first, last = each[0], each[1]
        assert isinstance(first, bytes)
        assert isinstance(last, bytes)
        made.append(element(first))
        if last != b"\xff" * family.length:  # the end is the first address behind it
            after = (int.from_bytes(last, "big") + 1).to_bytes(family.length, "big")
            made.append(element(after, interval_end=True))
    return made


def _verdict(address: bytes, chain: str) -> bytes:
    return element(address, e.verdict_value(e.GOTO, chain))
