"""Events about pods: what is sent, what becomes a series, and that nothing grows without bounds."""

from __future__ import annotations

from typing import Any

from scheduler.pods import pod

from pybernetes.api import errors
from pybernetes.client.clock import FakeClock
from pybernetes.scheduler import events
from pybernetes.scheduler.events import EventSink


class Server:
    """Notes requests; answers by what is in `answers`, else well."""

    def __init__(self) -> None:
        self.requests: list[tuple[str, str, Any]] = []
        self.answers: list[Exception] = []

    async def call(self, method: str, target: str, body: Any, headers: Any = None) -> None:
        self.requests.append((method, target, body))
        if self.answers:
            raise self.answers.pop(0)


def setting() -> tuple[EventSink, Server, FakeClock]:
    server, clock = Server(), FakeClock()
    return EventSink(server, clock), server, clock  # type: ignore[arg-type]


async def test_the_same_again_is_a_series_that_is_written_once_and_when_it_is_over() -> None:
    sink, server, clock = setting()
    recorder, about = sink.recorder("default-scheduler"), pod("p")
    for number in range(5):
        recorder.event(about, "Warning", "FailedScheduling", f"try {number}")
        clock.advance(10)
        await sink.flush()
    (_, path, first), (method, patched, body) = server.requests
    name = first["metadata"]["name"]
    assert path == "/apis/events.k8s.io/v1/namespaces/default/events"
    assert (first["note"], first["action"], first["regarding"]["name"]) == ("try 0", "Scheduling", "p")
    assert (method, patched) == ("PATCH", f"{path}/{name}")
    assert body["series"]["count"] == 2
    clock.advance(events.FINISH_SECONDS)
    recorder.event(pod("other"), "Normal", "Scheduled", "there", action="Binding")
    await sink.flush()
    assert [(method, body.get("series", {}).get("count")) for method, _, body in server.requests[2:]] == [
        ("PATCH", 5),
        ("POST", None),
    ]


async def test_an_event_that_the_server_has_forgotten_comes_again_with_its_count() -> None:
    sink, server, _ = setting()
    recorder, about = sink.recorder("s"), pod("p")
    recorder.event(about, "Warning", "FailedScheduling", "no")
    await sink.flush()
    server.answers = [errors.NotFound("", "events", "p")]
    recorder.event(about, "Warning", "FailedScheduling", "no")
    await sink.flush()
    assert [method for method, _, _ in server.requests] == ["POST", "PATCH", "POST"]
    assert server.requests[-1][2]["series"]["count"] == 2


async def test_long_words_are_cut_and_long_names_too() -> None:
    sink, server, _ = setting()
    sink.recorder("s").event(pod("n" * 253), "Warning", "FailedScheduling", "x" * 2000)
    await sink.flush()
    sent = server.requests[0][2]
    assert (len(sent["note"]), sent["note"][-5:]) == (1024, "x ...")
    assert len(sent["metadata"]["name"]) == 253


async def test_a_refusal_is_final_and_does_not_hold_up_the_others() -> None:
    sink, server, _ = setting()
    server.answers = [errors.Forbidden("", "events", "p", "because it is being terminated")]
    sink.recorder("s").event(pod("p"), "Normal", "Scheduled", "there")
    sink.recorder("s").event(pod("q"), "Normal", "Scheduled", "there")
    await sink.flush()
    assert len(server.requests) == 2


async def test_what_is_remembered_is_bounded() -> None:
    sink, _, _ = setting()
    for number in range(events.MOST_KNOWN + 500):
        sink.recorder("s").event(pod(f"p{number}"), "Normal", "Scheduled", "there")
    await sink.flush()
    assert len(sink._known) <= events.MOST_KNOWN + 1
