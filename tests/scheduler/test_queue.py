"""Where pods wait, and what brings them back."""

from __future__ import annotations

from typing import Any

import pytest
from scheduler.pods import info, node, pod

from pybernetes.client.clock import FakeClock
from pybernetes.scheduler.framework.events import (
    ASSIGNED_POD_ADD,
    ASSIGNED_POD_DELETE,
    Action,
    ClusterEvent,
    EventWithHint,
    Hint,
    Resource,
)
from pybernetes.scheduler.framework.plugin import PreEnqueuePlugin
from pybernetes.scheduler.framework.podinfo import PodInfo
from pybernetes.scheduler.framework.queued import QueuedPodInfo
from pybernetes.scheduler.framework.status import UNRESOLVABLE, Status
from pybernetes.scheduler.metrics import Metrics
from pybernetes.scheduler.plugins.priority_sort import PrioritySort
from pybernetes.scheduler.plugins.scheduling_gates import SchedulingGates
from pybernetes.scheduler.queue.scheduling_queue import SchedulingQueue

NODE_ADD = ClusterEvent(Resource.NODE, Action.ADD)
NODE_LABEL = ClusterEvent(Resource.NODE, Action.UPDATE_NODE_LABEL)


class Setting:
    """A queue whose plugin A wants to hear of new nodes, B of nodes' labels by a hint, C is PENDING for PVs."""

    def __init__(self, hint: Any = None) -> None:
        self.clock = FakeClock(1_700_000_000.0)
        self.metrics = Metrics()
        gates = SchedulingGates(None, None)
        self.queue = SchedulingQueue(
            self.clock,
            PrioritySort(None, None).sort_key,
            events={
                "default-scheduler": {
                    "A": [EventWithHint(NODE_ADD)],
                    "B": [EventWithHint(NODE_LABEL, hint or (lambda pod, old, new: Hint.SKIP))],
                    "C": [EventWithHint(ClusterEvent(Resource.PERSISTENT_VOLUME, Action.ADD))],
                    "SchedulingGates": gates.events_to_register(),
                }
            },
            pre_enqueues={"default-scheduler": [gates]},
            metrics=self.metrics,
        )

    def popped(self) -> str | None:
        found = self.queue.pop_now()
        return found and found.info.name

    def fail(self, queued: QueuedPodInfo, *plugins: str, pending: tuple[str, ...] = ()) -> None:
        queued.unschedulable_plugins = set(plugins)
        queued.pending_plugins = set(pending)
        self.queue.add_unschedulable(queued)

    def refused(self, name: str, *plugins: str, pending: tuple[str, ...] = (), **more: Any) -> QueuedPodInfo:
        """A pod that was tried once, in vain."""
        self.queue.add(info(name, **more))
        queued = self.queue.pop_now()
        assert queued is not None
        self.fail(queued, *plugins, pending=pending)
        return queued

    def where(self, name: str) -> str:
        key = ("default", name)
        for place in ("active", "backoff", "error_backoff", "unschedulable"):
            if key in getattr(self.queue, place):
                return place
        return "nowhere"


def test_higher_priority_comes_first_then_who_waits_longer() -> None:
    s = Setting()
    for name, priority in (("low", 1), ("high", 10), ("low-later", 1)):
        s.queue.add(info(name, priority=priority))
        s.clock.advance(1)
    assert [s.popped() for _ in range(4)] == ["high", "low", "low-later", None]


def test_a_refused_pod_waits_for_an_event_that_a_plugin_which_refused_it_wants() -> None:
    s = Setting()
    s.refused("p", "A")
    s.clock.advance(100)
    s.queue.move_all(NODE_LABEL, node("n"), node("n"))
    s.queue.move_all(ASSIGNED_POD_DELETE, pod("other", node_name="n"), None)
    assert s.where("p") == "unschedulable"
    s.queue.move_all(NODE_ADD, None, node("n"))
    assert s.where("p") == "active"


@pytest.mark.parametrize(("answer", "place"), [(Hint.SKIP, "unschedulable"), (Hint.QUEUE, "active")])
def test_a_hint_decides_whether_an_event_matters(answer: Hint, place: str) -> None:
    asked = []

    def hint(of: Any, old: Any, new: Any) -> Hint:
        asked.append((of.metadata.name, old.metadata.name, new.metadata.name))
        return answer

    s = Setting(hint)
    s.refused("p", "B")
    s.refused("other", "A")
    s.clock.advance(100)
    s.queue.move_all(NODE_LABEL, node("old"), node("new"))
    assert asked == [("p", "old", "new")]
    assert (s.where("p"), s.where("other")) == (place, "unschedulable")


def test_a_hint_that_raises_wakes_the_pod() -> None:
    def hint(of: Any, old: Any, new: Any) -> Hint:
        raise RuntimeError("no idea")

    s = Setting(hint)
    s.refused("p", "B")
    s.clock.advance(100)
    s.queue.move_all(NODE_LABEL, node("n"), node("n"))
    assert s.where("p") == "active"


def test_back_offs_double_from_one_second_to_ten() -> None:
    s = Setting()
    queued = s.refused("p", "A")
    waits = []
    for _ in range(6):
        began = s.clock.now()
        s.queue.move_all(NODE_ADD, None, node("n"))
        assert s.where("p") == "backoff"
        while s.where("p") == "backoff":
            s.clock.advance(0.5)
        waits.append(s.clock.now() - began)
        assert s.queue.pop_now() is queued
        s.fail(queued, "A")
    # A back-off is over in the window of one second after the one in which it ends.
    assert waits == [2, 3, 5, 9, 11, 11]


@pytest.mark.parametrize("hours", [1, -1])
def test_a_clock_that_is_set_by_an_hour_changes_no_wait(hours: int) -> None:
    s = Setting()
    s.refused("waits", "A")
    failed = s.refused("fails", "A")
    s.queue.move_all(NODE_ADD, None, node("n"))
    s.refused("late", "B")
    s.clock.set(s.clock.now() + 3600 * hours)
    assert {s.where(name) for name in ("waits", "fails")} == {"backoff"}
    s.clock.advance(0.5)
    assert s.where(failed.info.name) == "backoff"
    s.clock.advance(2)
    assert {s.where(name) for name in ("waits", "fails")} == {"active"}
    assert s.where("late") == "unschedulable"
    s.clock.advance(360)
    assert s.where("late") == "active"


def test_with_nothing_else_to_do_pods_are_tried_before_their_back_off_is_over() -> None:
    s = Setting()
    s.refused("p", "A")
    s.queue.move_all(NODE_ADD, None, node("n"))
    s.queue.add(info("fresh"))
    assert s.where("p") == "backoff"
    assert [s.popped(), s.popped(), s.popped()] == ["fresh", "p", None]


def test_pods_that_failed_by_an_error_wait_their_back_off_out_and_need_no_event() -> None:
    s = Setting()
    queued = s.refused("p")
    assert s.where("p") == "error_backoff"
    assert s.popped() is None
    s.clock.advance(2)
    assert s.popped() == "p"
    s.fail(queued)
    s.clock.advance(2)
    assert s.popped() is None  # the second time it is two seconds
    s.clock.advance(1)
    assert s.popped() == "p"


def test_a_refusal_after_errors_starts_its_own_count() -> None:
    s = Setting()
    queued = s.refused("p")
    s.clock.advance(2)
    assert s.popped() == "p"
    s.fail(queued, "A")
    assert (queued.unschedulable_count, queued.consecutive_errors) == (1, 0)


def test_events_of_plugins_that_said_pending_skip_the_back_off() -> None:
    s = Setting()
    s.refused("p", pending=("C",))
    s.queue.move_all(ClusterEvent(Resource.PERSISTENT_VOLUME, Action.ADD), None, object())
    assert s.where("p") == "active"


def test_what_happened_during_an_attempt_counts() -> None:
    s = Setting()
    s.queue.add(info("p"))
    s.queue.add(info("q"))
    first, second = s.queue.pop_now(), None
    assert first is not None
    s.queue.move_all(NODE_ADD, None, node("n"))
    second = s.queue.pop_now()
    assert second is not None
    s.fail(first, "A")
    s.fail(second, "A")
    assert (s.where("p"), s.where("q")) == ("backoff", "unschedulable")
    assert len(s.queue.in_flight) == 0


def test_events_are_not_kept_when_no_pod_is_being_scheduled() -> None:
    s = Setting()
    for number in range(100):
        s.queue.move_all(NODE_ADD, None, node(f"n{number}"))
    assert s.queue.in_flight._events == []
    s.queue.add(info("p"))
    queued = s.queue.pop_now()
    assert queued is not None
    s.fail(queued, "A")
    assert s.where("p") == "unschedulable"


def test_after_five_minutes_a_pod_is_tried_again_whatever_happened() -> None:
    s = Setting()
    queued = s.refused("p", "A")
    s.clock.advance(300)
    assert s.where("p") == "unschedulable"
    s.clock.advance(30)
    assert s.where("p") == "active"
    assert queued.was_flushed_from_unschedulable


def test_no_timer_runs_when_no_pod_waits() -> None:
    s = Setting()
    assert s.clock.timers == 0
    s.refused("p", "A")
    s.queue.delete(pod("p"))
    s.clock.advance(31)
    assert s.clock.timers == 0


def test_a_gated_pod_is_never_tried_until_its_gates_are_gone() -> None:
    from pybernetes.api.core.v1.pod import PodSchedulingGate

    s = Setting()
    gated = pod("p", scheduling_gates=[PodSchedulingGate(name="wait")])
    s.queue.add(PodInfo(gated))
    s.queue.move_all(NODE_ADD, None, node("n"))
    s.clock.advance(1000)
    assert s.popped() is None
    assert 'scheduler_pending_pods{queue="gated"} 1' in s.metrics.registry.render().decode()
    s.queue.update(gated, info("p"))
    assert s.popped() == "p"


class Kept(PreEnqueuePlugin):
    """Keeps pods out that are in `kept`; each event releases those that it names, or may have released any."""

    name = "Kept"

    def __init__(self) -> None:
        super().__init__(None, None)  # type: ignore[arg-type]
        self.kept: set[str] = set()
        self.asked: list[str] = []
        self.tells = True

    def pre_enqueue(self, pod: PodInfo) -> Status | None:
        self.asked.append(pod.name)
        return Status(UNRESOLVABLE, "kept") if pod.name in self.kept else None

    def released(self, event: ClusterEvent, old: Any, new: Any) -> list[tuple[str, str]] | None:
        return [("default", name) for name in ("p1", "p2") if name not in self.kept] if self.tells else None


@pytest.mark.parametrize("tells", [True, False])
def test_only_gated_pods_that_an_event_may_release_are_asked_about(tells: bool) -> None:
    kept, clock = Kept(), FakeClock(1_700_000_000.0)
    kept.kept, kept.tells = {"p1", "p2", "p3"}, tells
    queue = SchedulingQueue(
        clock,
        PrioritySort(None, None).sort_key,
        events={"default-scheduler": {"Kept": [EventWithHint(ASSIGNED_POD_DELETE)]}},
        pre_enqueues={"default-scheduler": [kept]},
    )
    for name in sorted(kept.kept):
        queue.add(info(name))
    kept.asked.clear()
    queue.move_all(ASSIGNED_POD_DELETE, pod("gone"), None)
    assert kept.asked == ([] if tells else ["p1", "p2", "p3"])
    kept.kept.remove("p2")
    queue.move_all(NODE_ADD, None, node("n"))
    assert queue.pop_now() is None, "no plugin that rejected it registered events of nodes"
    queue.move_all(ASSIGNED_POD_DELETE, pod("gone"), None)
    found = queue.pop_now()
    assert found is not None
    assert found.info.name == "p2"
    assert queue.pop_now() is None


def test_an_update_that_matters_wakes_a_pod_and_another_does_not() -> None:
    s = Setting()
    s.queue = SchedulingQueue(
        s.clock,
        PrioritySort(None, None).sort_key,
        events={"default-scheduler": {"A": [EventWithHint(ClusterEvent(Resource.POD, Action.UPDATE_POD_LABEL))]}},
        pre_enqueues={},
    )
    s.refused("p", "A")
    s.clock.advance(100)
    s.queue.update(pod("p"), info("p", nominated="n"))
    assert s.where("p") == "unschedulable"
    s.queue.update(pod("p"), info("p", labels={"a": "b"}))
    assert s.where("p") == "active"


def test_an_update_while_a_pod_is_being_placed_is_an_event_for_it() -> None:
    s = Setting()
    s.queue = SchedulingQueue(
        s.clock,
        PrioritySort(None, None).sort_key,
        events={"default-scheduler": {"A": [EventWithHint(ClusterEvent(Resource.POD, Action.UPDATE_POD_LABEL))]}},
        pre_enqueues={},
    )
    s.queue.add(info("p"))
    queued = s.queue.pop_now()
    assert queued is not None
    s.queue.update(pod("p"), info("p", labels={"a": "b"}))
    s.fail(queued, "A")
    assert s.where("p") == "backoff"


def test_a_deleted_pod_is_nowhere() -> None:
    s = Setting()
    s.queue.add(info("active"))
    s.refused("waiting", "A")
    s.refused("error")
    for name in ("active", "waiting", "error"):
        s.queue.delete(pod(name))
    s.clock.advance(1000)
    assert s.popped() is None


def test_activate_brings_a_pod_from_anywhere() -> None:
    s = Setting()
    s.refused("waiting", "A")
    s.refused("error")
    s.queue.activate([pod("waiting"), pod("error"), pod("unknown")])
    assert {s.popped(), s.popped(), s.popped()} == {"waiting", "error", None}


def test_activating_a_pod_that_is_being_placed_lets_it_come_back_at_once() -> None:
    s = Setting()
    s.queue.add(info("p"))
    queued = s.queue.pop_now()
    assert queued is not None
    s.queue.activate([pod("p")])
    s.fail(queued, "A")
    assert s.where("p") == "backoff"


def test_only_pods_that_the_check_lets_are_moved() -> None:
    s = Setting()
    s.refused("low", "A", priority=1)
    s.refused("high", "A", priority=9)
    s.clock.advance(100)
    s.queue.move_all(NODE_ADD, None, node("n"), lambda each: each.priority <= 5)
    assert (s.where("low"), s.where("high")) == ("active", "unschedulable")


def test_nominations_follow_the_pod() -> None:
    s = Setting()
    s.queue.add(info("p", nominated="n1"))
    nominator = s.queue.nominator
    assert [each.name for each in nominator.on_node("n1")] == ["p"]
    s.queue.update(pod("p", nominated="n1"), info("p", nominated="n2"))
    assert (nominator.on_node("n1"), nominator.node_of("uid-p")) == ((), "n2")
    s.queue.delete(pod("p"))
    assert nominator.nodes() == ()


def test_a_nomination_of_ours_survives_an_update_that_has_not_heard_of_it() -> None:
    s = Setting()
    s.queue.add(info("p"))
    s.queue.nominator.add(info("p"), "n1")
    s.queue.update(pod("p"), info("p", labels={"a": "b"}))
    assert s.queue.nominator.node_of("uid-p") == "n1"
    s.queue.update(pod("p"), info("p", nominated="n2"))
    assert s.queue.nominator.node_of("uid-p") == "n2"


def test_many_unschedulable_pods_cost_nothing_when_events_do_not_concern_them() -> None:
    s = Setting()
    for number in range(300):
        s.refused(f"p{number}", "B")
    asked = 0
    worth = s.queue._worth

    def count(*args: Any) -> int:
        nonlocal asked
        asked += 1
        return worth(*args)

    s.queue._worth = count  # type: ignore[method-assign]
    for _ in range(100):
        s.queue.move_all(ASSIGNED_POD_ADD, None, pod("x", node_name="n"))
        s.queue.move_all(NODE_ADD, None, node("n"))
    assert asked == 0
