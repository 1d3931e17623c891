"""Recordings of a cluster: the file, whose changes are decisions, and what counts as a difference."""

from __future__ import annotations

import argparse
import asyncio
import gzip
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest

from pybernetes.api.errors import ResourceExpired
from pybernetes.cluster import recording
from pybernetes.cluster.commands import record
from pybernetes.cluster.recording import Change, Recording, RecordingError, Replayed, attribute, differences, merged
from pybernetes.net.http import Response
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


class Server:
    """A stand-in for the API server: one change and one span per poll; keeps the spans of the last poll only."""

    def __init__(self, refusal: Callable[[int], Exception | None] = lambda poll: None, left_out: int = 0) -> None:
        self.transport = self
        self.after: list[int] = []
        """The revision that each poll asked for."""
        self._refusal = refusal
        self._left_out = left_out
        self._revision = 5

    async def request(self, method: str, target: str) -> Response:
        if "/trace/spans" in target:
            span = Span("t", "s", "", "patch pods", "apiserver", 0, 1, {"agent": "kubectl/v1"}, [], [self._revision])
            head, none = msgspec.json.encode({"next": self._revision}), msgspec.json.encode({"spans": []})
            return Response(b"\n".join((head, msgspec.json.encode({"spans": [span]}), none)))
        if "?" not in target:
            return Response(msgspec.json.encode({"revision": 5, "leftOut": self._left_out, "entries": []}))
        self.after.append(int(target.partition("=")[2]))
        if error := self._refusal(len(self.after)):
            raise error
        self._revision += 1 + self._left_out
        change = {"revision": self._revision - self._left_out, "key": POD, "value": pod()}
        answer = {"revision": self._revision, "now": 1.0, "leftOut": self._left_out, "changes": [change]}
        return Response(msgspec.json.encode(answer))


def recorded(server: Server, monkeypatch: pytest.MonkeyPatch, script: str) -> tuple[record.Follower, int]:
    """Record a Python script; its exit code."""
    monkeypatch.setattr(record, "LOOK", 0.01)
    arguments = argparse.Namespace(kubeconfig=None, within=None, quiet_for=30.0, timeout=0.1)

    async def run() -> tuple[record.Follower, int]:
        follower = await record.begin(cast(Any, server))
        return follower, await record.follow(follower, arguments, [sys.executable, "-c", script])

    return asyncio.run(run())


def test_changes_and_spans_are_read_while_the_command_runs_and_the_wait_after_it_is_bounded(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    ended = tmp_path / "ended"

    def note(poll: int) -> None:
        if poll >= 5:
            ended.touch()  # the command ends after the fifth poll

    server = Server(note)
    script = f"""
import os, time
for _ in range(1000):
    if os.path.exists({str(ended)!r}):
        raise SystemExit(7)
    time.sleep(0.01)
"""
    follower, code = recorded(server, monkeypatch, script)
    assert (code, follower.problem, follower.missing()) == (7, "", "")
    assert [each.revision for each in follower.made.changes] == list(range(6, 6 + len(server.after)))
    written = {revision for span in follower.spans for revision in span.revisions}
    assert written >= {each.revision for each in follower.made.changes[1:]}  # the first one came before the reader


def test_a_failed_poll_is_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    server = Server(lambda poll: ConnectionRefusedError("refused") if poll in (2, 3) else None)
    follower, code = recorded(server, monkeypatch, "raise SystemExit(7)")
    assert (code, follower.problem) == (7, "")
    assert server.after[1:4] == [6, 6, 6]
    assert len(follower.made.changes) == len(server.after) - 2


@pytest.mark.parametrize(
    ("error", "problem"),
    [
        (ResourceExpired("compacted"), "no longer has the changes after revision 6"),
        (ConnectionRefusedError("refused"), "no answer from the API server for 0 s: refused"),
    ],
)
def test_a_recording_that_cannot_go_on_keeps_what_it_has_and_the_exit_code(
    monkeypatch: pytest.MonkeyPatch, error: Exception, problem: str
) -> None:
    monkeypatch.setattr(record, "PATIENCE", 0.05)
    follower, code = recorded(
        Server(lambda poll: error if poll > 1 else None),
        monkeypatch,
        "import time; time.sleep(0.1); raise SystemExit(7)",
    )
    assert code == 7
    assert problem in follower.problem
    assert [each.revision for each in follower.made.changes] == [6]


def test_values_that_are_left_out_are_read_once_and_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    server = Server(left_out=2)
    follower, _ = recorded(server, monkeypatch, "pass")
    assert server.after == [5 + 3 * poll for poll in range(len(server.after))]
    assert follower.missing().startswith(f"Not in the recording: 2 objects and {2 * len(server.after)} changes")
