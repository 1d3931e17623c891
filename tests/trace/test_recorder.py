"""Spans of a process: what they belong to, what wakes them, what is dropped."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from pybernetes.api.core.v1 import Pod
from pybernetes.api.meta.v1 import ObjectMeta
from pybernetes.client.clock import SystemClock
from pybernetes.client.codec import List
from pybernetes.client.informer import Informer
from pybernetes.client.keys import Key
from pybernetes.client.watch import Event, Watch
from pybernetes.client.workqueue import WorkQueue
from pybernetes.trace import context, recorder
from pybernetes.trace.recorder import CURRENT, Recorder


@pytest.fixture
def recording() -> Iterator[Recorder]:
    before = recorder.RECORDER
    yield recorder.start("test")
    recorder.RECORDER = before


def test_nothing_is_recorded_unless_started() -> None:
    assert recorder.RECORDER is None
    with recorder.span("work") as span:
        assert recorder.header() == ""
        span.set("a", 1)
        span.mark("b")
        span.done("c")
    assert CURRENT.get() is None


def test_a_request_names_the_span_that_makes_it(recording: Recorder) -> None:
    with recorder.span("outer") as outer, recorder.span("inner") as inner:
        assert outer.span is not None
        assert inner.span is not None
        found = context.parse(recorder.header())
        assert found == context.SpanContext(outer.span.trace, inner.span.id)
        assert inner.span.parent == outer.span.id
    assert [span.name for span in recording.take()] == ["inner", "outer"]
    assert recording.open == {}


def test_a_span_tells_of_its_failure(recording: Recorder) -> None:
    with pytest.raises(ValueError, match="no"), recorder.span("work"):
        raise ValueError("no")
    assert recording.take()[0].error == "no"


def test_work_of_which_nothing_came_is_dropped_and_hands_on_its_causes(recording: Recorder) -> None:
    with recorder.span("idle", [7, 8]) as idle:
        idle.done("default/web")
    assert recording.take() == []
    assert idle.span is not None
    with recorder.span("next", [idle.span]) as following:
        recorder.header()
    assert following.span is not None
    assert (following.span.causes, following.span.parent) == ([7, 8], "")


def test_a_dropped_span_is_kept_if_a_task_of_it_makes_a_request_later(recording: Recorder) -> None:
    async def run() -> None:
        go = asyncio.Event()

        async def later() -> None:
            await go.wait()
            recorder.header()

        with recorder.span("work") as span:
            task = asyncio.create_task(later())
            span.done("x")
        assert recording.finished == []
        go.set()
        await task

    asyncio.run(run())
    assert [span.name for span in recording.take()] == ["work"]


def test_no_more_spans_wait_than_the_limit(recording: Recorder) -> None:
    recording.limit = 2
    for _ in range(3):
        with recorder.span("work"):
            pass
    assert (len(recording.take()), recording.dropped) == (2, 1)


def test_causes_of_a_queued_item_are_merged_and_survive_delays(recording: Recorder) -> None:
    async def run() -> None:
        queue: WorkQueue[str] = WorkQueue("test", SystemClock())
        for revision in (4, 4, 5):
            CURRENT.set(revision)
            queue.add("web")
        CURRENT.set(6)
        queue.add_after("late", 0.01)
        CURRENT.set(None)
        assert await queue.get() == "web"
        assert queue.causes("web") == [4, 5]
        queue.done("web")
        assert queue.causes("web") == []
        assert await asyncio.wait_for(queue.get(), 5) == "late"
        assert queue.causes("late") == [6]

    asyncio.run(run())


def test_what_an_informer_delivers_is_caused_by_the_revision_that_brought_it(recording: Recorder) -> None:
    """In the list after a restart, too: what a killed controller left undone has the cause that it had."""

    def pod(revision: int) -> Pod:
        return Pod(metadata=ObjectMeta(name="web", namespace="default", resource_version=str(revision)))

    async def run() -> list[object]:
        causes: list[object] = []
        informer: Informer[Pod] = Informer("pods", Nowhere(), SystemClock())
        informer.add_handler(
            lambda obj: causes.append(CURRENT.get()),
            lambda old, new: causes.append(CURRENT.get()),
            lambda obj: causes.append(CURRENT.get()),
        )
        informer._replace({Key("default", "web"): pod(7)}, "9")
        informer._apply(Event("MODIFIED", pod(8)))
        informer._apply(Event("DELETED", pod(10)))
        assert CURRENT.get() is None
        return causes

    assert asyncio.run(run()) == [7, 8, 10]


class Nowhere:
    """A source that is not asked."""

    async def list(self, *, limit: int, continue_token: str) -> List[Pod]:
        raise AssertionError

    def watch(self, *, resource_version: str, timeout_seconds: int, send_initial_events: bool) -> Watch[Pod]:
        raise AssertionError
