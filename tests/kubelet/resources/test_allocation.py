"""What pods have been allocated, and resizes that must wait."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest
from kubelet.pods import changed, container, pod, resources

from pybernetes.api.core.podrequests import pod_requests
from pybernetes.api.core.v1 import Pod
from pybernetes.client.clock import FakeClock
from pybernetes.kubelet.pod.refusal import PodRefused
from pybernetes.kubelet.resources.allocation import STATE_FILE, AllocationManager


class Node:
    """A node with so many thousandths of a CPU."""

    def __init__(self, root: Path, milli: int = 4000, policy: str = "none") -> None:
        self.pods: dict[str, Pod] = {}
        self.milli = milli
        self.events: list[tuple[str, str, str, str]] = []
        self.clock = FakeClock()
        self.manager = AllocationManager(
            root,
            self.clock,
            active_pods=lambda: list(self.pods.values()),
            admit=self._admit,
            event=lambda pod, *words: self.events.append((pod.metadata.uid, *words)),
            cpu_manager_policy=policy,
        )

    def _admit(self, pod: Pod, others: list[Pod]) -> None:
        total = sum(pod_requests(each, use_status=False)["cpu"].milli_value() for each in (pod, *others))
        if total > self.milli:
            raise PodRefused("OutOfcpu", "Node didn't have enough resource: cpu")

    def add(self, *pods: Pod) -> None:
        for each in pods:
            self.pods[each.metadata.uid] = each
            self.manager.add(each)
        self.manager.save()

    def update(self, pod: Pod) -> list[str]:
        self.pods[pod.metadata.uid] = pod
        self.manager.push(pod.metadata.uid)
        return self.retry()

    def retry(self) -> list[str]:
        return [each.metadata.uid for each in self.manager.retry()]

    def cpu(self, uid: str) -> str:
        return str(self.manager.allocated(self.pods[uid]).spec.containers[0].resources.requests["cpu"])

    def conditions(self, uid: str) -> list[tuple[str | None, str | None, int | None]]:
        return [(each.type, each.reason, each.observed_generation) for each in self.manager.conditions(uid)]


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path)


def _pod(uid: str, cpu: str, **spec: object) -> Pod:
    return pod(uid, container("c", cpu), **spec)


def _resized(subject: Pod, cpu: str) -> Pod:
    return changed(subject, containers=[container("c", cpu)])


def test_a_pod_is_allocated_what_it_asks_for_and_stays_the_same_object(node: Node) -> None:
    node.add(_pod("a", "1"))
    assert node.manager.allocated(node.pods["a"]) is node.pods["a"]


def test_a_refused_pod_is_allocated_nothing(node: Node) -> None:
    with pytest.raises(PodRefused, match="enough resource"):
        node.add(_pod("a", "5"))
    assert node.manager.get("a") is None


def test_a_resize_that_fits_is_allocated_and_begun(node: Node) -> None:
    node.add(_pod("a", "1"))
    assert node.update(_resized(node.pods["a"], "2")) == ["a"]
    assert node.cpu("a") == "2"
    assert node.conditions("a") == [("PodResizeInProgress", None, 2)]
    assert node.events == [
        (
            "a",
            "Normal",
            "ResizeStarted",
            'Pod resize started: {"containers":[{"name":"c","resources":{"requests":{"cpu":"2"}}}],"generation":2}',
        )
    ]


def test_until_it_fits_a_pod_keeps_what_it_has(node: Node) -> None:
    node.add(_pod("a", "1"), _pod("b", "2"))
    assert node.update(_resized(node.pods["a"], "3")) == ["a"]
    assert node.cpu("a") == "1"
    assert node.conditions("a") == [("PodResizePending", "Deferred", 2)]
    assert node.events[0][1:3] == ("Warning", "ResizeDeferred")
    assert node.events[0][3] == (
        'Pod resize OutOfcpu: {"containers":[{"name":"c","resources":{"requests":{"cpu":"3"}}}],"generation":2,'
        '"error":"Node didn\'t have enough resource: cpu"}'
    )
    assert node.retry() == []  # nothing new to say
    assert len(node.events) == 1
    del node.pods["b"]
    assert node.retry() == ["a"]
    assert (node.cpu("a"), node.manager.pending) == ("3", False)


def test_a_resize_that_is_taken_back_waits_no_more(node: Node) -> None:
    node.add(_pod("a", "1"), _pod("b", "3"))
    node.update(_resized(node.pods["a"], "2"))
    assert node.update(_resized(node.pods["a"], "1")) == ["a"]
    assert (node.conditions("a"), node.manager.pending) == ([], False)


def test_a_condition_keeps_its_time_while_it_says_the_same(node: Node) -> None:
    node.add(_pod("a", "1"), _pod("b", "3"))
    node.update(_resized(node.pods["a"], "2"))
    (first,) = node.manager.conditions("a")
    node.clock.advance(60)
    node.update(_resized(node.pods["a"], "3"))
    (second,) = node.manager.conditions("a")
    assert first.last_transition_time == second.last_transition_time
    assert (first.last_probe_time, second.observed_generation) < (second.last_probe_time, 4)


def test_who_frees_goes_first_then_priority_then_guaranteed_then_who_waits_longest(node: Node) -> None:
    guaranteed = [container("c", "=500m", "=1Gi")]
    pods = {
        "frees": _pod("frees", "1500m"),
        "high": _pod("high", "500m", priority=10),
        "guaranteed": pod("guaranteed", *guaranteed),
        "first": _pod("first", "500m"),
        "second": _pod("second", "500m"),
        "filler": _pod("filler", "500m"),
    }
    node.add(*pods.values())
    order = []
    for uid in ("first", "second"):
        node.update(_resized(pods[uid], "1"))
        node.clock.advance(5)
    for uid in ("guaranteed", "high", "frees"):
        subject = changed(pods[uid], containers=[container("c", "=1", "=1Gi")]) if uid == "guaranteed" else None
        node.pods[uid] = subject or _resized(pods[uid], "1" if uid != "frees" else "100m")
        node.manager.push(uid)
    node.manager._fits = lambda pod, others: order.append(pod.metadata.uid)
    node.retry()
    assert order == ["frees", "high", "guaranteed", "first", "second"]


def test_a_static_cpu_policy_makes_resizes_of_guaranteed_pods_infeasible(tmp_path: Path) -> None:
    node = Node(tmp_path, policy="static")
    node.add(pod("a", container("c", "=1", "=1Gi")), _pod("b", "1"))
    node.update(changed(node.pods["a"], containers=[container("c", "=2", "=1Gi")]))
    assert node.conditions("a") == [("PodResizePending", "Infeasible", 2)]
    (condition,) = node.manager.conditions("a")
    message = 'Resize is infeasible for Guaranteed Pods alongside CPU Manager policy "static"'
    assert condition.message == message
    assert node.events[0][2] == "ResizeInfeasible"
    assert not node.manager.pending
    assert node.update(changed(node.pods["a"], containers=[container("c", "=1", "=2Gi")])) == ["a"]
    assert node.update(_resized(node.pods["b"], "2")) == ["b"]


def test_progress_ends_with_an_event_and_errors_are_reported_once(node: Node) -> None:
    node.add(_pod("a", "1"))
    node.update(_resized(node.pods["a"], "2"))
    subject = node.pods["a"]
    for _ in range(2):
        node.manager.note_error(subject, "no")
        node.manager.note_progress(subject, True)
    assert node.conditions("a") == [("PodResizeInProgress", "Error", 2)]
    node.manager.note_progress(subject, False)
    node.manager.note_progress(subject, False)
    assert [each[2] for each in node.events] == ["ResizeStarted", "ResizeError", "ResizeCompleted"]
    assert node.conditions("a") == []


def test_a_restarted_kubelet_goes_on_with_what_was_allocated(tmp_path: Path) -> None:
    before = Node(tmp_path)
    before.add(_pod("a", "1"), _pod("b", "3"))
    before.update(_resized(before.pods["a"], "2"))
    status_conditions = before.manager.conditions("a")
    after = Node(tmp_path)
    wanted = before.pods["a"]
    from pybernetes.api.core.v1 import PodStatus

    wanted.status = PodStatus(conditions=status_conditions)
    after.add(before.pods["b"], wanted)
    assert after.cpu("a") == "1"
    assert after.conditions("a") == [("PodResizePending", "Deferred", 2)]
    assert after.manager.pending
    del after.pods["b"]
    assert after.retry() == ["a"]
    assert after.cpu("a") == "2"
    assert Node(tmp_path).manager.get("a") == after.manager.get("a")  # it is written down before it is acted on


def test_the_checkpoint_is_upstreams(tmp_path: Path) -> None:
    content = (
        r'{"data":"{\"entries\":{\"pod1\":{\"ContainerResources\":{\"container1\":{\"requests\":'
        r'{\"cpu\":\"1Ki\",\"memory\":\"1Ki\"}}}}}}","checksum":1178570812}'
    )
    (tmp_path / STATE_FILE).write_text(content)
    found = Node(tmp_path).manager.get("pod1")
    assert found is not None
    assert found.containers["container1"].requests == {"cpu": "1Ki", "memory": "1Ki"}


@pytest.mark.parametrize("content", ['{"data":"{}","checksum":1}', '{"da', "", "[]"])
def test_a_checkpoint_that_cannot_be_read_is_set_aside(
    tmp_path: Path, content: str, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / STATE_FILE).write_text(content)
    node = Node(tmp_path)
    assert not (tmp_path / STATE_FILE).exists()
    assert (tmp_path / f"{STATE_FILE}.unreadable-1").read_text() == content
    assert "is set aside as allocated_pods_state.unreadable-1" in caplog.text
    node.add(pod("a", container("c", "1")))
    assert (tmp_path / STATE_FILE).exists()


def test_a_full_disk_refuses_no_pod_and_what_they_have_is_written_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    node = Node(tmp_path)
    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", _no_space)
        node.add(pod("a", container("c", "1")))
    assert "No space left on device" in caplog.text
    assert not (tmp_path / STATE_FILE).exists()
    node.add(pod("b", container("c", "1")))
    again = Node(tmp_path)
    assert again.manager.get("a") is not None
    assert again.manager.get("b") is not None


def _no_space(descriptor: int) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_what_the_pod_itself_asks_for_is_allocated_too(node: Node) -> None:
    subject = pod("a", container("c"), resources=resources("1/2", "1Gi/2Gi"))
    node.add(subject)
    bigger = changed(subject, resources=resources("8/8", "1Gi/2Gi"))
    node.update(bigger)
    assert node.manager.allocated(bigger).spec.resources == subject.spec.resources
    assert node.conditions("a") == [("PodResizePending", "Deferred", 2)]


def test_ephemeral_containers_and_other_resources_are_left_alone(node: Node) -> None:
    subject = pod("a", container("c", "1", limits={"example.com/gpu": "1"}))
    node.add(subject)
    node.update(changed(subject, containers=[container("c", "9", limits={"example.com/gpu": "1"})]))
    found = node.manager.allocated(node.pods["a"])
    assert found.spec.containers[0].resources.limits == {"example.com/gpu": "1"}


def test_forgotten_pods_are_forgotten(node: Node) -> None:
    node.add(_pod("a", "1"), _pod("b", "1"))
    node.manager.remove("a")
    node.manager.remove_orphans({"x"})
    assert node.manager.get("a") is None
    assert node.manager.get("b") is None
