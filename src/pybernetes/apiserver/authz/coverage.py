"""Computes the permissions that one set of PolicyRules lacks to cover another: the base of every escalation check.

A rule is the product of its groups, resources, names and verbs, so a Role of a few kilobytes can ask for millions of
permissions. None of them is looked at one by one: each held rule is a bit, each value of a wanted rule has the set of
held rules that grant it, and values with the same set are treated as one. A permission is held if one held rule grants
all of its values. What is missing is written out up to a limit and counted beyond it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

import msgspec

from pybernetes.api.gocompat.quote import quote
from pybernetes.api.rbac.v1 import PolicyRule

MAX_MISSING: Final = 2000
"""Missing permissions that are written out; more are only counted."""
MAX_COMBINATIONS: Final = 250_000
"""Combinations of different sets of held rules in all wanted rules (50 ms); only rules made for it come near this."""

_ANY: Final = "*"


class TooManyCombinations(Exception):
    """It would take too long to find out whether a rule is covered."""


class Missing(NamedTuple):
    """The permissions that the held rules do not grant."""

    rules: list[PolicyRule]
    """Each for one verb on one thing."""
    more: int
    """How many are missing besides."""


class _Values:
    """The held rules (as bits) by one of their lists of values."""

    def __init__(self) -> None:
        self.by_value: dict[str, int] = {}

    def add(self, values: Iterable[str] | None, bit: int) -> None:
        for value in values or ():
            self.by_value[value] = self.by_value.get(value, 0) | bit

    def granting(self, value: str) -> int:
        """The held rules with this value or with `*`."""
        return self.by_value.get(value, 0) | self.by_value.get(_ANY, 0)


class Held:
    """The rules that a user has, indexed by what they grant."""

    def __init__(self, rules: Sequence[PolicyRule]) -> None:
        self._verbs, self._groups, self._resources = _Values(), _Values(), _Values()
        self._names, self._urls, self._url_prefixes = _Values(), _Values(), _Values()
        self._any_name = 0
        for number, rule in enumerate(rules):
            bit = 1 << number
            self._verbs.add(rule.verbs, bit)
            self._groups.add(rule.api_groups, bit)
            self._resources.add(rule.resources, bit)
            self._names.add(rule.resource_names, bit)
            if not rule.resource_names:
                self._any_name |= bit
                self._urls.add(rule.non_resource_urls, bit)
                self._url_prefixes.add((u.rstrip("*") for u in rule.non_resource_urls or () if u.endswith("*")), bit)
        self._prefix_lengths = sorted({len(prefix) for prefix in self._url_prefixes.by_value})

    def verb(self, verb: str) -> int:
        return self._verbs.granting(verb)

    def group(self, group: str) -> int:
        return self._groups.granting(group)

    def resource(self, resource: str) -> int:
        """Also granted by all resources with the same subresource."""
        found = self._resources.granting(resource)
        _, slash, subresource = resource.partition("/")
        return found | self._resources.by_value.get(f"*/{subresource}", 0) if slash else found

    def name(self, name: str | None) -> int:
        """`None` = all names."""
        return self._any_name if name is None else self._any_name | self._names.by_value.get(name, 0)

    def url(self, url: str) -> int:
        found = self._urls.by_value.get(url, 0)
        for length in self._prefix_lengths:
            if length > len(url):
                break
            found |= self._url_prefixes.by_value.get(url[:length], 0)
        return found


class _Block(NamedTuple):
    """Permissions that are missing: every combination of these places (by their numbers in the rule)."""

    places: tuple[list[int], ...]

    @property
    def size(self) -> int:
        size = 1
        for each in self.places:
            size *= len(each)
        return size

    def combinations(self, limit: int) -> list[tuple[int, ...]]:
        """The first of them; without the limit there could be more than memory has room for."""
        found: list[tuple[int, ...]] = [()]
        for each in self.places:
            found = [(*before, number) for before in found for number in each][:limit]
        return found


def missing(held: Sequence[PolicyRule], wanted: Iterable[PolicyRule], limit: int = MAX_MISSING) -> Missing:
    """The parts of the wanted rules that the held rules do not grant. Raises TooManyCombinations."""
    has = Held(held)
    gaps = _Gaps()
    rules: list[PolicyRule] = []
    more = 0
    for rule in wanted:
        if rule.api_groups and rule.resources and rule.verbs:
            groups, resources, verbs = rule.api_groups, rule.resources, rule.verbs
            names: Sequence[str | None] = rule.resource_names or [None]
            blocks = gaps.find(
                [has.group(each) for each in groups],
                [has.resource(each) for each in resources],
                [has.verb(each) for each in verbs],
                [has.name(each) for each in names],
            )
            found, left = _written(blocks, limit - len(rules))
            more += left
            for group, resource, verb, name in found:
                part = PolicyRule(verbs=[verbs[verb]], api_groups=[groups[group]], resources=[resources[resource]])
                if (only := names[name]) is not None:
                    part.resource_names = [only]
                rules.append(part)
        if rule.non_resource_urls and rule.verbs:
            urls, verbs = rule.non_resource_urls, rule.verbs
            blocks = gaps.find([has.url(each) for each in urls], [has.verb(each) for each in verbs])
            found, left = _written(blocks, limit - len(rules))
            more += left
            rules += [PolicyRule(verbs=[verbs[verb]], non_resource_urls=[urls[url]]) for url, verb in found]
    return Missing(rules, more)


class _Gaps:
    """Finds combinations that no held rule grants, within a number of steps for all rules together."""

    def __init__(self) -> None:
        self._left = MAX_COMBINATIONS

    def find(self, *granting: list[int]) -> list[_Block]:
        """Each list has, for each value of one field, the held rules that grant it."""
        classes: list[dict[int, list[int]]] = []
        whole, size = -1, 1
        for masks in granting:
            by_mask: dict[int, list[int]] = {}
            for number, mask in enumerate(masks):
                by_mask.setdefault(mask, []).append(number)
            for mask in by_mask:
                whole &= mask
            classes.append(by_mask)
            size *= len(by_mask)
        if whole:  # one held rule grants everything
            return []
        self._left -= size
        if self._left < 0:
            raise TooManyCombinations
        found: list[tuple[int, tuple[list[int], ...]]] = [(-1, ())]
        for by_mask in classes:
            found = [(had & mask, (*places, where)) for had, places in found for mask, where in by_mask.items()]
        return [_Block(places) for had, places in found if not had]


def _written(blocks: Iterable[_Block], limit: int) -> tuple[list[tuple[int, ...]], int]:
    """The combinations in the order of the rule up to a limit, and how many there are besides."""
    found: list[tuple[int, ...]] = []
    size = 0
    for block in blocks:
        size += block.size
        if len(found) < limit:
            found += block.combinations(limit - len(found))
    found.sort()
    return found, size - len(found)


def describe(lacking: Missing) -> list[str]:
    """Missing permissions, put together again by resource; sorted, in upstream's words."""
    simple: dict[tuple[str, str, str | None], PolicyRule] = {}
    other: list[PolicyRule] = []
    for rule in lacking.rules:
        if rule.non_resource_urls:
            other.append(rule)
            continue
        names = rule.resource_names
        key = ((rule.api_groups or [""])[0], (rule.resources or [""])[0], names[0] if names else None)
        found = simple.get(key)
        if found is None:
            simple[key] = msgspec.structs.replace(rule, verbs=list(rule.verbs or ()))
        else:
            found.verbs += rule.verbs or ()  # type: ignore[operator]  # a list: set above
    lines = sorted({_text(rule) for rule in [*other, *simple.values()]})
    return [*lines, f"... and {lacking.more} more"] if lacking.more else lines


def _text(rule: PolicyRule) -> str:
    parts = (
        ("APIGroups", rule.api_groups),
        ("Resources", rule.resources),
        ("NonResourceURLs", rule.non_resource_urls),
        ("ResourceNames", rule.resource_names),
        ("Verbs", rule.verbs),
    )
    return "{" + ", ".join(f"{name}:{quoted_list(values)}" for name, values in parts if values) + "}"


def quoted_list(values: Iterable[str]) -> str:
    """A list of texts as Go prints it with %q."""
    return "[" + " ".join(quote(value) for value in values) + "]"
