"""Recordings of a cluster: the file, whose changes are decisions, and what counts as a difference."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pytest

from pybernetes.cluster import recording
from pybernetes.cluster.recording import Change, Recording, RecordingError, Replayed, attribute, differences, merged
from pybernetes.trace.span import Span

POD = "/registry/pods/default/web"


def pod(node: str = "one", **metadata: Any) -> dict[str, Any]:
    return {"kind": "Pod", "metadata": {"name": "web", **metadata}, "spec": {"nodeName": node}}


def stretch(*changes: Change, **objects: Any) -> Recording:
    return Recording(
        10.0, 20.0, 5, {f"/registry/configmaps/default/{name}": each for name, each in objects.items()}, list(changes)
    )


def test_a_file_is_read_as_it_was_written(tmp_path: Path) -> None:
    made = stretch(Change(11.0, 6, POD, pod(), "kube-scheduler", True), Change(12.0, 7, POD), kept={"metadata": {}})
    for name in ("plain", "compressed.gz"):
        recording.save(made, tmp_path / name)
        assert recording.load(tmp_path / name) == made
        assert (tmp_path / name).stat().st_mode & 0o077 == 0


DAMAGED = gzip.compress(b"{}", mtime=0)[:10] + b"\xff\xff\xff" + bytes(20)
"""A whole header, and then no deflated data."""


@pytest.mark.parametrize("content", [b"", b"no json", b"[]\n", b'{"format": "other"}\n', b"\x1f\x8bbroken", DAMAGED])
def test_what_is_no_recording_is_named(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "file"
    path.write_bytes(content)
    with pytest.raises(RecordingError, match=str(path)):
        recording.load(path)


def test_spans_say_whose_decision_a_change_was_and_when() -> None:
    def span(revision: int, user: str, agent: str) -> Span:
        attributes = {"user": user, "agent": agent}
        return Span("t", str(revision), "", "patch pods", "apiserver", 0, int(3e9), attributes, [], [revision])

    changes = [Change(9.0, revision, POD) for revision in (1, 2, 3, 4)]
    account = "system:serviceaccount:kube-system:replicaset-controller"
    attribute(
        changes,
        [
            span(1, account, "kube-controller-manager/v1"),
            span(2, "system:kube-scheduler", "kube-scheduler/v1"),
            span(3, "jane", "kubectl/v1"),
        ],
    )
    found = [(each.by, each.decision) for each in changes]
    assert found == [("replicaset-controller", True), ("kube-scheduler", True), ("kubectl", False), ("", False)]
    assert [each.at for each in changes] == [3.0, 3.0, 3.0, 9.0]


def test_the_same_but_for_times_and_identities_is_no_difference() -> None:
    then = pod(uid="1", resourceVersion="4", creationTimestamp="2026-01-01T00:00:00Z")
    now = pod(uid="2", resourceVersion="9", creationTimestamp="2027-01-01T00:00:00Z")
    made = stretch(Change(11.0, 6, POD, then, "replicaset-controller", True))
    assert not list(differences(made, Replayed({POD: now}, [Change(0.0, 9, POD, None, "replicaset-controller", True)])))


def test_another_node_a_missing_and_a_further_object_are_shown_with_who_decided() -> None:
    other, third = POD + "-2", POD + "-3"
    made = stretch(
        Change(11.0, 6, POD, pod(), "kube-scheduler", True),
        Change(11.0, 7, other, pod(), "job-controller", True),
    )
    replayed = Replayed({POD: pod("two"), third: pod()}, [Change(0.0, 1, third, None, "cronjob-controller", True)])
    assert list(differences(made, replayed)) == [
        "~ pods/default/web  (kube-scheduler)",
        '    spec.nodeName: "one" -> "two"',
        "- pods/default/web-2  (job-controller)",
        "+ pods/default/web-3  (cronjob-controller)",
    ]


def test_what_came_and_went_is_a_difference_too_and_leases_are_none() -> None:
    made = stretch(
        Change(1.0, 6, POD, pod(), "job-controller", True), Change(1.0, 7, POD, None, "job-controller", True)
    )
    lease = "/registry/leases/kube-node-lease/one"
    shown = list(differences(made, Replayed({lease: {"metadata": {}}}, [])))
    assert shown == ["- pods/default/web, which was deleted again  (job-controller)"]


def test_a_change_is_made_to_what_is_there() -> None:
    before, after = {"a": 1, "b": {"c": 1, "d": 1}, "gone": 1}, {"a": 1, "b": {"c": 2, "d": 1}, "list": [1]}
    assert merged({"a": 7, "b": {"d": 7}, "gone": 1}, before, after) == {"a": 7, "b": {"c": 2, "d": 7}, "list": [1]}
    assert merged({}, {}, {"a": 1}) == {"a": 1}
