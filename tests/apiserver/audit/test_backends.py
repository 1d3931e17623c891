"""Where events go: files that are put aside, and webhooks that are sent batches."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest
from apiserver.client import Client as ApiClient
from backends import Answer, Asked, Backend, kubeconfig_of

from pybernetes.apiserver.audit.batching import Batching, BatchSettings
from pybernetes.apiserver.audit.event import Event, encode, legacy_line, new_event
from pybernetes.apiserver.audit.log_backend import LogBackend, RotatingFile
from pybernetes.apiserver.audit.setup import _limited
from pybernetes.apiserver.options import parse
from pybernetes.apiserver.user import User
from tools import api_server, wait_until

DAY = 24 * 3600.0
START = datetime(2026, 1, 1, tzinfo=UTC).timestamp()
MEGABYTE = b"x" * (1024 * 1024 - 1) + b"\n"


def test_a_large_file_is_put_aside_and_old_ones_go(tmp_path: Path) -> None:
    now = [START]
    file = RotatingFile(tmp_path / "audit.log", megabytes=1, backups=2, clock=lambda: now[0])
    for _ in range(5):
        file.write(MEGABYTE)
        now[0] += 1.0
    assert sorted(each.name for each in tmp_path.iterdir()) == [
        "audit-2026-01-01T00-00-03.000.log",
        "audit-2026-01-01T00-00-04.000.log",
        "audit.log",
    ]
    assert (tmp_path / "audit.log").stat().st_size == len(MEGABYTE)


def test_files_go_when_they_are_old(tmp_path: Path) -> None:
    now = [START]
    file = RotatingFile(tmp_path / "audit.log", megabytes=1, days=2, clock=lambda: now[0])
    for _ in range(5):
        file.write(MEGABYTE)
        now[0] += DAY
    assert len(list(tmp_path.iterdir())) == 4  # today's, and those put aside within two days


def test_old_files_are_compressed(tmp_path: Path) -> None:
    file = RotatingFile(tmp_path / "audit.log", megabytes=1, compress=True, clock=lambda: START)
    file.write(MEGABYTE)
    file.write(b"next\n")
    file.close()
    packed = tmp_path / "audit-2026-01-01T00-00-00.000.log.gz"
    assert gzip.decompress(packed.read_bytes()) == MEGABYTE
    assert packed.stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "audit.log").read_bytes() == b"next\n"


def test_a_file_that_cannot_be_put_aside_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = RotatingFile(tmp_path / "audit.log", megabytes=1, clock=lambda: START)
    backend = LogBackend(file)
    assert backend.write([MEGABYTE.rstrip()])

    def refuse(*_: object) -> None:
        raise PermissionError("read-only")

    monkeypatch.setattr(Path, "rename", refuse)
    assert not backend.write([b"lost"])
    monkeypatch.undo()
    assert backend.write([b"next"])
    assert (tmp_path / "audit.log").read_bytes() == b"next\n"


def test_a_file_is_continued_after_a_restart(tmp_path: Path) -> None:
    for line in (b"a\n", b"b\n"):
        file = RotatingFile(tmp_path / "audit.log", megabytes=1)
        file.write(line)
        file.close()
    assert (tmp_path / "audit.log").read_bytes() == b"a\nb\n"


class Taker:
    """A backend that remembers."""

    def __init__(self) -> None:
        self.batches: list[list[bytes]] = []
        self.four = asyncio.Event()

    async def send(self, events: Sequence[bytes]) -> bool:
        self.batches.append(list(events))
        if sum(map(len, self.batches)) == 4:
            self.four.set()
        return True

    async def close(self) -> None:
        pass


def settings(**changes: object) -> BatchSettings:
    return msgspec.structs.replace(BatchSettings(max_wait=0.05, throttle=False), **changes)


async def test_events_are_sent_together_when_they_are_enough_or_have_waited() -> None:
    taker = Taker()
    batching = Batching(taker, settings(max_size=3), "test")
    running = asyncio.create_task(batching.run())
    for each in (b"1", b"2", b"3", b"4"):
        batching.add(each)
    async with asyncio.timeout(30):
        await taker.four.wait()
    assert taker.batches == [[b"1", b"2", b"3"], [b"4"]]
    running.cancel()


async def test_no_more_bytes_are_sent_at_once_than_may_be() -> None:
    taker = Taker()
    batching = Batching(taker, settings(max_bytes=3), "test")
    for each in (b"1", b"22", b"4444", b"1"):
        batching.add(each)
    await batching.close()
    assert taker.batches == [[b"1", b"22"], [b"4444"], [b"1"]]


async def test_what_finds_no_room_is_dropped_and_the_rest_is_sent_at_the_end() -> None:
    taker = Taker()
    batching = Batching(taker, settings(buffer_size=2), "test")
    for each in (b"1", b"2", b"3"):
        batching.add(each)
    assert batching.dropped == 1
    await batching.close()
    assert taker.batches == [[b"1", b"2"]]


def event() -> Event:
    made = new_event("Metadata", "id", "/x", "get", User("jane", groups=("a", "b")))
    made.stage = "ResponseComplete"
    made.request_received_timestamp = "2026-01-01T00:00:00.000000Z"
    return made


def test_the_line_of_old() -> None:
    assert legacy_line(event()) == (
        '2026-01-01T00:00:00.000000Z AUDIT: id="id" stage="ResponseComplete" ip="<unknown>" method="get" '
        'user="jane" groups="\\"a\\",\\"b\\"" as="<self>" asgroups="<lookup>" user-agent="" namespace="<none>" '
        'uri="/x" response="<deferred>"'
    )


def test_an_event_that_is_too_large_loses_its_objects_or_is_dropped() -> None:
    large = event()
    large.response_object = msgspec.Raw(b'"' + b"x" * 1000 + b'"')
    assert b"xxx" in (_limited(large, encode, 0, "log") or b"")
    small = _limited(large, encode, 500, "log")
    assert small is not None
    assert b"xxx" not in small
    assert b'"audit.k8s.io/truncated":"true"' in small
    assert _limited(large, encode, 10, "log") is None


@pytest.mark.parametrize(
    ("flags", "problem"),
    [
        (["--audit-log-path=x", "--audit-log-mode=now"], "invalid audit log mode now"),
        (["--audit-log-path=x", "--audit-log-format=xml"], "invalid audit log format xml"),
        (["--audit-log-path=x", "--audit-log-maxage=-1"], "--audit-log-maxage -1 can't be a negative number"),
        (["--audit-log-path=x", "--audit-log-mode=batch", "--audit-log-batch-max-size=0"], "max batch size 0"),
        (["--audit-log-path=x", "--audit-log-version=v2"], "invalid group version"),
    ],
)
def test_flags_that_do_not_fit_are_refused(capsys: pytest.CaptureFixture[str], flags: list[str], problem: str) -> None:
    with pytest.raises(SystemExit):
        parse(["--etcd-servers=memory://", *flags])
    assert problem in capsys.readouterr().err


def test_a_webhook_gets_the_events_although_it_failed_twice(tmp_path: Path) -> None:
    events: list[dict[str, Any]] = []
    failures: list[int] = []

    def receive(asked: Asked) -> Answer:
        body = asked.json
        assert (body["kind"], body["apiVersion"]) == ("EventList", "audit.k8s.io/v1")
        assert all("kind" not in each and "apiVersion" not in each for each in body["items"])
        if len(failures) < 2:
            failures.append((503, 403)[len(failures)])  # whatever it says, it is asked again
            return Answer(status=failures[-1])
        events.extend(body["items"])
        return Answer()

    receiver = Backend(receive)
    kubeconfig = tmp_path / "webhook.kubeconfig"
    kubeconfig.write_text(json.dumps(kubeconfig_of(f"{receiver.origin}/audit")))
    policy = tmp_path / "policy.yaml"
    policy.write_text(
        "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: Metadata, omitStages: [RequestReceived]}]"
    )
    flags = (
        f"--audit-policy-file={policy}",
        f"--audit-webhook-config-file={kubeconfig}",
        "--audit-webhook-batch-max-wait=100ms",
        "--audit-webhook-initial-backoff=100ms",
    )
    try:
        with api_server(tmp_path / "server", *flags) as server:
            ApiClient(server).get("/api/v1/pods", User_Agent="sent")
            wait_until(lambda: "sent" in [each.get("userAgent") for each in events], "the event has arrived")
            ApiClient(server).get("/api/v1/nodes", User_Agent="last")
        assert "last" in [each.get("userAgent") for each in events]  # what waits is sent before the end
        assert failures == [503, 403]
    finally:
        receiver.close()
