"""Whether the runtime is there, as the node tells it: one that is gone, one that hangs, one that comes back."""

from __future__ import annotations

import asyncio
from typing import Any

from pybernetes.client.clock import FakeClock
from pybernetes.cri import v1 as cri
from pybernetes.cri.errors import CRIError
from pybernetes.kubelet.runtime.state import EVERY, RuntimeState


class FakeRuntime:
    """One that answers, hangs (while `answering` is unset) or is gone."""

    def __init__(self) -> None:
        self.answering = asyncio.Event()
        self.answering.set()
        self.gone = False
        self.asked = 0
        self.told_version = "1.6"

    async def version(self) -> Any:
        return cri.VersionResponse(runtime_name="containerd", runtime_version=self.told_version)

    async def status(self) -> Any:
        self.asked += 1
        if self.gone:
            raise CRIError("Unavailable", "connection refused")
        await self.answering.wait()
        conditions = [cri.RuntimeCondition(type=each, status=True) for each in ("RuntimeReady", "NetworkReady")]
        return cri.StatusResponse(status=cri.RuntimeStatus(conditions=conditions))


async def turn() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


async def test_a_runtime_that_hangs_is_down_after_half_a_minute_and_its_return_is_reported_at_once() -> None:
    clock, runtime, told = FakeClock(), FakeRuntime(), []
    state = RuntimeState(runtime, clock, lambda: told.append(state.runtime_problem()))  # type: ignore[arg-type]
    task = asyncio.create_task(state.run())
    await turn()
    assert told == [""]
    runtime.answering.clear()
    clock.advance(EVERY)
    await turn()
    assert (runtime.asked, state.runtime_problem()) == (2, "")
    clock.advance(31 - EVERY)
    await turn()
    assert state.runtime_problem() == "container runtime is down"
    runtime.answering.set()
    await turn()
    assert told == ["", ""]
    assert state.node_version == "containerd://1.6"
    task.cancel()


async def test_the_version_of_a_runtime_that_was_upgraded_is_noticed() -> None:
    clock, runtime = FakeClock(), FakeRuntime()
    state = RuntimeState(runtime, clock, lambda: None)  # type: ignore[arg-type]
    await state.look()
    runtime.told_version = "2.0"
    await state.look()
    assert state.node_version == "containerd://2.0"


async def test_a_runtime_that_is_gone_for_a_moment_is_not_down() -> None:
    clock, runtime, told = FakeClock(), FakeRuntime(), []
    state = RuntimeState(runtime, clock, lambda: told.append(state.runtime_problem()))  # type: ignore[arg-type]
    task = asyncio.create_task(state.run())
    await turn()
    runtime.gone = True
    for _ in range(3):
        clock.advance(EVERY)
        await turn()
    assert (runtime.asked, state.runtime_problem()) == (4, "")
    runtime.gone = False
    clock.advance(EVERY)
    await turn()
    assert (runtime.asked, told) == (5, [""])
    task.cancel()
