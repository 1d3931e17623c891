"""What the API server does with an object grows no faster than n log n with any of its lists and maps.

Every list and map field of every kind is tried at two sizes, with equal and with different elements, and the work of
every function is counted (`counting.py`), not timed. Fields of one class grow together; in `--soak` each by itself too.
"""

from __future__ import annotations

from typing import Any

import pytest
from costs import counting, growing
from costs.growing import Place
from costs.steps import Steps, attempt, forget
from fuzz.budget import SOAK, effort
from fuzz.journey import STORED
from fuzz.wild import encode

from pybernetes.api.resources import Resource

SMALL, LARGE = 12, 48
IGNORED = 400  # lines or comparisons of one function: less than a third of LARGE squared

FIRST: dict[Any, Resource] = {}
"""The first kind with a class."""
for _resource in STORED:
    for _owner in growing.groups(_resource.type):
        FIRST.setdefault(_owner, _resource)

kinds = pytest.mark.parametrize("resource", STORED, ids=lambda each: f"{each.api_version}/{each.kind}")


@kinds
@effort
def test_work_grows_with_the_size_of_an_object(
    resource: Resource, effort: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = Steps(resource)
    steps.run(steps.way.base())  # what is made once for a kind is made now
    groups = [group for owner, group in growing.groups(resource.type).items() if FIRST[owner] is resource]
    if effort >= SOAK:
        groups += [[place] for group in growing.groups(resource.type).values() for place in group]
    found: list[str] = []
    for group in groups:
        for same in (True, False):
            name = f"{group[0].name} ({len(group)} fields, {'equal' if same else 'different'} elements)"
            found += [f"{name}: {each}" for each in _fast_growing(steps, group, same, monkeypatch)]
    assert not found, "\n".join(found)


def _fast_growing(steps: Steps, group: list[Place], same: bool, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    lines, comparisons, sizes = [], [], []
    for size in (SMALL, LARGE):
        document = growing.reachable(steps.way.base(), group[0])
        for place in group:
            document = growing.grown(document, place, size, same)
        sizes.append(len(encode(document)))
        forget()
        lines.append(counting.work(lambda document=document: steps.run(document, patches=not same)))  # type: ignore[misc]
        with monkeypatch.context() as patch:
            counting.let_encode(patch)
            step = steps.compared(document)
            forget()
            comparisons.append(counting.work(lambda step=step: attempt(step)))  # type: ignore[misc]
    # Fields of one class may be one inside another: then the object itself grows faster than each of them.
    factor = max(LARGE / SMALL, sizes[1] / sizes[0])
    found = counting.fast_growing(lines[0], lines[1], factor, IGNORED)
    return found + counting.fast_growing(comparisons[0], comparisons[1], factor, IGNORED)
