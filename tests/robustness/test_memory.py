"""Churn without end: memory and the file reach a plateau. 10 minutes by `--soak`; PYB_SOAK_SECONDS for another time."""

from __future__ import annotations

import os
import random
import threading
import time
from pathlib import Path

import pytest
from robustness.harness import CONFIGMAPS, Server, Session, running

SECONDS = float(os.environ.get("PYB_SOAK_SECONDS", "600"))
MB = 1 << 20


def churn(server: Server, number: int, stop: threading.Event) -> None:
    """Create, change and delete; the connection is a new one now and then."""
    numbers = random.Random(number)
    names: list[str] = []
    while not stop.is_set():
        with server.session() as session:
            for _ in range(200):
                _write(session, numbers, names, number)
                if stop.is_set():
                    return


def _write(session: Session, numbers: random.Random, names: list[str], number: int) -> None:
    data = {"x": "x" * numbers.choice((10, 1000, 20_000))}
    if len(names) < 50:
        name = f"soak-{number}-{numbers.randrange(10**12):x}"
        assert session("POST", CONFIGMAPS, {"metadata": {"name": name}, "data": data}).status == 201
        names.append(name)
    elif numbers.random() < 0.3:
        assert session("DELETE", f"{CONFIGMAPS}/{names.pop(numbers.randrange(50))}").status == 200
    else:
        path = f"{CONFIGMAPS}/{numbers.choice(names)}"
        assert session("PATCH", path, {"data": data}, Content_Type="application/merge-patch+json").status == 200


def come_and_go(server: Server, number: int, stop: threading.Event) -> None:
    """Watch for a moment, list, leave."""
    numbers = random.Random(number)
    while not stop.is_set():
        with server.session() as session:
            events = session.events(f"{CONFIGMAPS}?watch=true&timeoutSeconds=3")
            for _ in range(numbers.randrange(300)):
                next(events, None)
        assert server.request("GET", CONFIGMAPS).status == 200
        assert server.request("GET", f"/api/v1/namespaces/n{numbers.randrange(10**9)}/pods/none").status == 404


@pytest.mark.soak
def test_memory_and_file_reach_a_plateau(tmp_path: Path, pki: Path) -> None:
    path = tmp_path / "store.db"
    server = Server(tmp_path / "server", pki, f"sqlite:///{path}", "--etcd-compaction-interval=5s", "--event-ttl=10s")
    stop = threading.Event()
    faults: list[BaseException] = []

    def guarded(work: object, number: int) -> None:
        try:
            work(server, number, stop)  # type: ignore[operator]
        except BaseException as error:
            if not stop.is_set():
                faults.append(error)
            raise

    samples: list[tuple[float, float, float, int]] = []
    with running(server):
        threads = [threading.Thread(target=guarded, args=(churn, number)) for number in range(3)]
        threads += [threading.Thread(target=guarded, args=(come_and_go, number)) for number in range(3)]
        for thread in threads:
            thread.start()
        begun = time.monotonic()
        try:
            while (now := time.monotonic() - begun) < SECONDS and not faults:
                stop.wait(min(5.0, SECONDS / 20))
                size = sum(each.stat().st_size for each in tmp_path.glob("store.db*"))
                revision = int(server.metric("apiserver_storage_revision"))
                samples.append((now, server.memory() / MB, size / MB, revision))
        finally:
            stop.set()
            for thread in threads:
                thread.join(30)
        assert not faults, faults
    for sample in samples[:: max(1, len(samples) // 20)]:
        print("{:5.0f} s  {:6.1f} MB resident  {:6.1f} MB on disk  revision {}".format(*sample))
    assert samples[-1][3] > samples[0][3] + 20 * SECONDS, "hardly anything was written"
    third = len(samples) // 3
    middle, last = samples[third : 2 * third], samples[2 * third :]
    assert max(each[1] for each in last) < max(each[1] for each in middle) * 1.1 + 5, "memory grows"
    assert max(each[2] for each in last) < max(each[2] for each in middle) * 1.1 + 5, "the file grows"
