"""The sets, maps and chains of one IP version's table, and what of them the kernel does not have yet (pure)."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from .chains import Expressions
from .facts import Range

Element = bytes | Range


@dataclass(slots=True)
class Content:
    """The table of one IP version; `before` has the kernel's content for each name that was touched."""

    sets: dict[str, str] = field(default_factory=dict)
    """Names and kinds."""
    elements: dict[str, Counter[Element]] = field(default_factory=dict)
    verdicts: dict[str, dict[bytes, str]] = field(default_factory=dict)
    """Map, address, chain."""
    chains: dict[str, list[Expressions]] = field(default_factory=dict)
    touched_sets: dict[str, str | None] = field(default_factory=dict)
    touched_elements: dict[tuple[str, Element], bool] = field(default_factory=dict)
    touched_verdicts: dict[tuple[str, bytes], str] = field(default_factory=dict)
    touched_chains: dict[str, bool] = field(default_factory=dict)

    def count(self, name: str, element: Element, by: int) -> None:
        """Adds to how many have an element: two pods may have an address for a moment."""
        found = self.elements.setdefault(name, Counter())
        had = found[element] > 0
        found[element] += by
        has = found[element] > 0
        if not has:
            del found[element]
        if had != has:
            self.touched_elements.setdefault((name, element), had)

    def add_set(self, name: str, kind: str) -> None:
        self.touched_sets.setdefault(name, self.sets.get(name))
        self.sets[name] = kind

    def remove_set(self, name: str) -> None:
        self.touched_sets.setdefault(name, self.sets.pop(name, None))
        self.sets.pop(name, None)
        for element in self.elements.pop(name, ()):
            self.touched_elements.setdefault((name, element), True)

    def set_verdict(self, name: str, address: bytes, chain: str) -> None:
        found = self.verdicts.setdefault(name, {})
        before = found.get(address, "")
        if before != chain:
            self.touched_verdicts.setdefault((name, address), before)
            if chain:
                found[address] = chain
            else:
                del found[address]

    def set_chain(self, name: str, rules: list[Expressions] | None) -> None:
        if self.chains.get(name) == rules:
            return
        self.touched_chains.setdefault(name, name in self.chains)
        if rules is None:
            self.chains.pop(name, None)
        else:
            self.chains[name] = rules

    def committed(self) -> None:
        """The kernel has it all."""
        for each in (self.touched_sets, self.touched_elements, self.touched_verdicts, self.touched_chains):
            each.clear()
