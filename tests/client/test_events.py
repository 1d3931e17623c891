"""Events tell users what happened, without flooding the server."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from pybernetes.api.core.v1 import Event, Namespace, Pod
from pybernetes.api.meta.v1 import ObjectMeta
from pybernetes.client.client import Client
from pybernetes.client.clock import FakeClock, JumpingClock
from pybernetes.client.events import Correlated, Correlator, EventBroadcaster, reference_to

Connect = Callable[[], Client]


class Stage:
    """A correlator, and events for it."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.correlator = Correlator(self.clock)
        self.made = 0

    def tell(self, message: str, reason: str = "Failed", pod: str = "a", type: str = "Warning") -> Correlated:
        self.made += 1
        reference = reference_to(Pod(metadata=ObjectMeta(name=pod, namespace="n", uid=f"uid-{pod}")))
        event = Event(
            metadata=ObjectMeta(name=f"{pod}.{self.made}", namespace="n"),
            involved_object=reference,
            reason=reason,
            message=message,
            count=1,
            type=type,
            first_timestamp="first",
            last_timestamp=f"t{self.made}",
        )
        return self.correlator.correlate(event)


def test_the_same_event_again_is_a_count_on_the_first_one() -> None:
    stage = Stage()
    assert stage.tell("no").patch is None
    again = stage.tell("no")
    assert again.patch == {"count": 2, "lastTimestamp": "t2", "message": "no"}
    assert again.event.metadata is not None
    assert again.event.metadata.name == "a.1"
    assert stage.tell("no").patch == {"count": 3, "lastTimestamp": "t3", "message": "no"}
    assert stage.tell("no", pod="b").patch is None
    assert stage.tell("no", reason="Other").patch is None


def test_from_the_tenth_message_on_similar_events_are_combined() -> None:
    stage = Stage()
    results = [stage.tell(f"message {number}") for number in range(12)]
    assert [result.patch is None for result in results] == [True] * 10 + [False] * 2
    assert results[9].event.message == "(combined from similar events): message 9"
    assert results[11].patch == {
        "count": 3,
        "lastTimestamp": "t12",
        "message": "(combined from similar events): message 11",
    }


def test_after_ten_quiet_minutes_events_are_separate_again() -> None:
    stage = Stage()
    for number in range(12):
        stage.tell(f"message {number}")
    stage.clock.advance(601)
    assert stage.tell("another").event.message == "another"


def test_more_than_25_events_about_one_object_are_dropped_but_for_one_every_five_minutes() -> None:
    stage = Stage()
    dropped = [stage.tell("no").dropped for _ in range(30)]
    assert dropped == [False] * 25 + [True] * 5
    assert not stage.tell("no", pod="b").dropped
    stage.clock.advance(301)
    assert not stage.tell("no").dropped
    assert stage.tell("no").dropped


async def test_events_reach_the_server_and_repeated_ones_are_counted(connect: Connect, namespace: str) -> None:
    async with connect() as client:
        await client.create(Namespace(metadata=ObjectMeta(name=namespace)))
        broadcaster = EventBroadcaster(client, JumpingClock(), host="here")
        running = asyncio.create_task(broadcaster.run())
        recorder = broadcaster.recorder("test-controller")
        pod = Pod(metadata=ObjectMeta(name="a", namespace=namespace, uid="u"))
        for _ in range(3):
            recorder.event(pod, "Normal", "Created", "made it", {"x": "y"})
        await broadcaster.flush()
        (event,) = (await client.list(Event, namespace)).items
        assert (event.count, event.reason, event.message, event.type) == (3, "Created", "made it", "Normal")
        assert (event.source.component, event.source.host) == ("test-controller", "here")
        assert (event.reporting_component, event.reporting_instance) == ("test-controller", "here")
        assert (event.involved_object.kind, event.involved_object.uid) == ("Pod", "u")
        assert event.metadata.annotations == {"x": "y"}
        # It expires, or is deleted: it comes back with its count.
        await client.delete(Event, event.metadata.name, namespace)
        recorder.event(pod, "Normal", "Created", "made it")
        # What the server refuses is given up, and the next one is sent.
        recorder.event(Pod(metadata=ObjectMeta(name="a", namespace="no-such-namespace")), "Normal", "Created", "x")
        recorder.event(pod, "Normal", "Started", "runs")
        await broadcaster.flush()
        found = {event.reason: event.count for event in (await client.list(Event, namespace)).items}
        assert found == {"Created": 4, "Started": 1}
        running.cancel()


async def test_too_many_events_are_dropped_without_waiting(connect: Connect, namespace: str) -> None:
    async with connect() as client:
        broadcaster = EventBroadcaster(client, JumpingClock())
        pod = Pod(metadata=ObjectMeta(name="a", namespace=namespace))
        for number in range(1500):
            broadcaster.recorder("x").event(pod, "Normal", "Created", str(number))
