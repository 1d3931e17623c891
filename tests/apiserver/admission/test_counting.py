"""What is counted of admission: every plugin that was asked, by how long it took and whether it refused."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Any

import pytest
from apiserver.admission.test_plugins import attributes

from pybernetes.api.errors import BadRequest
from pybernetes.apiserver.admission import plugin as module
from pybernetes.apiserver.admission.plugin import CREATE, Attributes, Chain, Plugin

PLUGIN = "apiserver_admission_controller_admission_duration_seconds"
STEP = "apiserver_admission_step_admission_duration_seconds"


class Timed(Plugin):
    """Takes as long, waits and rejects as configured."""

    def __init__(self, name: str, clock: Clock) -> None:
        self.name = name
        self.clock = clock
        self.seconds = 0.0
        self.waits = self.refuses = False

    def admit(self, attributes: Attributes) -> Awaitable[None] | None:
        if self.waits:
            return self.later()
        self.now()
        return None

    async def later(self) -> None:
        await asyncio.sleep(0)
        self.now()

    def now(self) -> None:
        self.clock.time += self.seconds
        if self.refuses:
            raise BadRequest("no")


class Clock:
    time = 0.0

    def __call__(self) -> float:
        return self.time


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(module, "perf_counter", clock)
    return clock


def counted(chain: Chain) -> dict[tuple[str, ...], tuple[float, list[float]]]:
    """The sum and the buckets' counts by (metric, labels...)."""
    found: dict[tuple[str, ...], tuple[float, list[float]]] = {}
    for family in chain.collect():
        for sample in family.samples:
            labels = (family.name, *(value for name, value in sample.labels.items() if name != "le"))
            total, buckets = found.get(labels, (0.0, []))
            if sample.name.endswith("_sum"):
                total = round(sample.value, 6)
            elif sample.name.endswith("_bucket"):
                buckets = [*buckets, sample.value]
            found[labels] = (total, buckets)
    return found


@pytest.mark.parametrize("waits", [False, True])
async def test_every_plugin_is_counted_by_time_and_outcome(clock: Clock, waits: bool) -> None:
    first, second = Timed("First", clock), Timed("Second", clock)
    plugins: list[Any] = [first, second]
    chain = Chain(plugins)
    first.seconds, second.seconds, second.waits = 0.001, 0.002, waits
    for _ in range(3):
        await chain.admit(attributes(CREATE, "pods"))
    second.seconds = 0.3
    await chain.admit(attributes(CREATE, "pods"))
    second.refuses = True
    with pytest.raises(BadRequest):
        await chain.admit(attributes(CREATE, "pods"))
    quick, slow = [3, 3, 3, 4, 4, 4, 4], [0, 0, 0, 1, 1, 1, 1]
    expected = {
        (PLUGIN, "First", "admit", CREATE, "false"): (0.005, [5] * 7),
        (PLUGIN, "Second", "admit", CREATE, "false"): (0.306, quick),
        (PLUGIN, "Second", "admit", CREATE, "true"): (0.3, slow),
        (STEP, "admit", CREATE, "false"): (0.31, quick),
        (STEP, "admit", CREATE, "true"): (0.301, slow),
    }
    assert counted(chain) == expected
    assert counted(chain) == expected  # asking does not count again


async def test_many_requests_are_counted_as_each_would_be(clock: Clock) -> None:
    first, second = Timed("First", clock), Timed("Second", clock)
    plugins: list[Any] = [first, second]
    chain = Chain(plugins)
    first.seconds, second.seconds = 0.001, 0.002
    for _ in range(1000):
        await chain.admit(attributes(CREATE, "pods"))
    found = counted(chain)
    assert found[PLUGIN, "First", "admit", CREATE, "false"] == (1.0, [1000] * 7)
    assert found[PLUGIN, "Second", "admit", CREATE, "false"] == (2.0, [1000] * 7)
    assert found[STEP, "admit", CREATE, "false"] == (3.0, [1000] * 7)


async def test_a_disabled_plugin_is_not_called_but_counted_until_it_is_enabled(clock: Clock) -> None:
    first, sleeper, last = (Timed(name, clock) for name in ("First", "Sleeper", "Last"))
    plugins: list[Any] = [first, sleeper, last]
    chain = Chain(plugins)
    first.seconds, sleeper.seconds, last.seconds = 0.001, 0.002, 0.001
    sleeper.disabled = True
    await chain.admit(attributes(CREATE, "pods"))
    last.refuses = True
    with pytest.raises(BadRequest):
        await chain.admit(attributes(CREATE, "pods"))
    last.refuses = False
    sleeper.disabled = False
    sleeper.enabled()
    await chain.admit(attributes(CREATE, "pods"))
    found = counted(chain)
    assert found[PLUGIN, "First", "admit", CREATE, "false"] == (0.003, [3] * 7)
    assert found[PLUGIN, "Sleeper", "admit", CREATE, "false"] == (0.002, [3] * 7)
    assert found[PLUGIN, "Last", "admit", CREATE, "false"] == (0.002, [2] * 7)
    assert found[PLUGIN, "Last", "admit", CREATE, "true"] == (0.001, [1] * 7)
    assert found[STEP, "admit", CREATE, "false"] == (0.006, [2] * 7)


async def test_a_request_that_waits_while_a_plugin_is_enabled_is_counted(clock: Clock) -> None:
    waiter, sleeper = Timed("Waiter", clock), Timed("Sleeper", clock)
    plugins: list[Any] = [waiter, sleeper]
    chain = Chain(plugins)
    waiter.seconds, waiter.waits, sleeper.disabled = 0.001, True, True
    request = asyncio.create_task(chain.admit(attributes(CREATE, "pods")))
    await asyncio.sleep(0)
    sleeper.disabled = False
    sleeper.enabled()
    await request
    found = counted(chain)
    assert found[PLUGIN, "Waiter", "admit", CREATE, "false"] == (0.001, [1] * 7)
    assert found[PLUGIN, "Sleeper", "admit", CREATE, "false"] == (0.0, [1] * 7)
