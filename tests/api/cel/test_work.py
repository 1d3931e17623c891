"""Expressions that are cheap for upstream's accounting and would take all memory, or hours."""

from __future__ import annotations

import itertools

import pytest

from pybernetes.api.cel import types as t
from pybernetes.api.cel.environment import Environment
from pybernetes.api.cel.values import CostLimitExceeded

ENVIRONMENT = Environment({"o": t.DYN}, bindings=True)
TIMES = 22
"""Doublings: four million elements. More would not end without the limit."""


def doubled(first: str, step: str, last: str) -> str:
    """`first`, of which `step` makes something TIMES times, each from what was made before it; `last` uses the end."""
    names = [f"v{number}" for number in range(TIMES + 1)]
    made = last.replace("@", names[-1])
    for before, name in reversed(list(itertools.pairwise(names))):
        made = f"cel.bind({name}, {step.replace('@', before)}, {made})"
    return f"cel.bind({names[0]}, {first}, {made})"


PAIRS = ("[[1, 1], [1, 1]]", "[[@[0], @[0]], [@[1], @[1]]]")
LONG = "cel.bind(a, lists.range(5000).map(i, 'a').join(''), {})"
COSTLY = {
    "lists put together": doubled("[1, 2]", "@ + @", "size(@) > 0"),
    "lists of unknown type": doubled("dyn([1, 2])", "@ + @", "size(@) > 0"),
    "flatten": "cel.bind(a, lists.range(2000), a.map(i, a).flatten().size() > 0)",
    "flatten to a depth": doubled("[1, 1]", "[@, @]", "dyn(@).flatten(50).size() > 0"),
    "replace": LONG.format("a.replace('a', a).size() > 0"),
    "join": LONG.format("lists.range(5000).map(i, a).join().size() > 0"),
    "format": LONG.format("a.replace('a', '%s').format(a.split('').map(i, a)).size() > 0"),
    "format of a nested list": doubled("[1, 1]", "[@, @]", "'%s'.format([@]).size() > 0"),
    "equal": doubled(*PAIRS, "@[0] == @[1]"),
    "equal maps": doubled("{'a': 1}", "{'a': @, 'b': @}", "@ == @"),
    "equal optionals": doubled("[optional.of(1)]", "[optional.of(@), optional.of(@)].map(i, @)", "@ == @"),
    "not equal": doubled(*PAIRS, "@[0] != @[1]"),
    "in": doubled(*PAIRS, "@[0] in [@[1]]"),
    "indexOf": doubled(*PAIRS, "[@[1]].indexOf(@[0]) == 0"),
    "lastIndexOf": doubled(*PAIRS, "[@[1]].lastIndexOf(@[0]) == 0"),
    "sum": doubled("dyn([1, 1])", "dyn([@, @])", "dyn(@).sum() == 0"),
    "distinct": "lists.range(2000).distinct().size() > 0",
    "sets.contains": "cel.bind(a, lists.range(2000), sets.contains(a, a))",
    "sets.equivalent": "cel.bind(a, lists.range(2000), sets.equivalent(a, a))",
    "sets.intersects": "cel.bind(a, lists.range(2000), sets.intersects(a, a.map(i, -i - 1)))",
    "the value": doubled("[1, 1]", "[@, @]", "@"),
}


@pytest.mark.parametrize("expression", COSTLY.values(), ids=COSTLY)
def test_what_takes_much_memory_or_time_is_stopped_before(expression: str) -> None:
    with pytest.raises(CostLimitExceeded) as caught:
        ENVIRONMENT.compile(expression).evaluate({})
    assert caught.value.cost < 10_000_000


@pytest.mark.parametrize(
    ("expression", "value", "cost"),
    [
        ("size(lists.range(50) + lists.range(50))", 100, 124),
        ("size(lists.range(50) + lists.range(51))", 101, 125 + 101),
        ("lists.range(50).map(i, i) == lists.range(50).map(i, i)", True, 1449),
        ("cel.bind(a, lists.range(200), a == a)", True, 243 + 201),
        ("lists.range(600).distinct().size() > 0", True, 721224),
        ("cel.bind(a, lists.range(750), sets.contains(a, a))", True, 564024),
    ],
)
def test_little_work_costs_what_it_costs_upstream_and_more_its_elements(
    expression: str, value: object, cost: int
) -> None:
    assert ENVIRONMENT.compile(expression).evaluate({}) == (value, cost)
