"""Writers that record their responses, and a watch that records its events.

Each writer has names of its own, so it knows what must be there: exactly what was acknowledged, and of the one write
that was under way when the server died, all or nothing.
"""

from __future__ import annotations

import http.client
import itertools
import random
import threading
from dataclasses import dataclass, field
from typing import Any

from robustness.harness import CONFIGMAPS, Server

from tools import wait_until

GONE = (OSError, http.client.HTTPException)
"""What a client sees when its server dies."""

Object = dict[str, Any]


@dataclass
class Pending:
    """A write whose answer never came."""

    name: str
    data: dict[str, str] | None


@dataclass
class Writer:
    """Creates, replaces, patches and deletes its own ConfigMaps until told to stop or the server goes away."""

    server: Server
    prefix: str
    random: random.Random
    known: dict[str, Object] = field(default_factory=dict)
    """What was acknowledged last, by name."""
    pending: Pending | None = None
    acknowledged: list[int] = field(default_factory=list)
    """The revisions of the acknowledged writes."""
    faults: list[str] = field(default_factory=list)
    floor: int = 0
    """New revisions are greater."""

    def __post_init__(self) -> None:
        self._numbers = itertools.count()

    def work(self, stop: threading.Event) -> None:
        """Write until the server is gone."""
        try:
            with self.server.session() as session:
                while not stop.is_set() and not self.pending:
                    self._one(session)
        except GONE:
            pass
        except BaseException as error:
            self.faults.append(f"{type(error).__name__}: {error}")
            raise

    def _data(self) -> dict[str, str]:
        number = str(next(self._numbers))
        return {"one": number, "two": number, "bulk": number * self.random.choice((1, 200, 4000))}

    def _one(self, session: Any) -> None:
        present = sorted(self.known)
        action = self.random.choice(("create", "put", "patch", "delete")) if present else "create"
        if action == "create":
            name = f"{self.prefix}-{self.random.randrange(10**12):x}"
            data: dict[str, str] | None = self._data()
            request = ("POST", CONFIGMAPS, {"metadata": {"name": name}, "data": data})
        else:
            name = self.random.choice(present)
            path = f"{CONFIGMAPS}/{name}"
            data = None if action == "delete" else self._data()
            request = {
                "put": ("PUT", path, {**self.known[name], "data": data}),
                "patch": ("PATCH", path, {"data": data}),
                "delete": ("DELETE", path, None),
            }[action]
        self.pending = Pending(name, data)
        headers = {"Content_Type": "application/merge-patch+json"} if action == "patch" else {}
        answer = session(*request, **headers)
        if answer.status == 503:
            assert answer.json["reason"] == "ServiceUnavailable", answer.body
            return  # unknown, as when the connection breaks
        assert answer.status in (200, 201), (request, answer)
        self.pending = None
        if action == "delete":
            del self.known[name]
            return
        found = answer.json
        assert found["data"] == data
        revision = int(found["metadata"]["resourceVersion"])
        assert revision > self.floor, f"revision {revision} came after {self.floor}"
        self.floor = revision
        self.known[name] = found
        self.acknowledged.append(revision)

    def verify(self, found: dict[str, Object]) -> None:
        """Everything acknowledged is there as it was, the pending write all or nothing; go on from what is there."""
        mine = {name: each for name, each in found.items() if name.startswith(self.prefix + "-")}
        pending, self.pending = self.pending, None
        expected = dict(self.known)
        if pending:
            before, now = expected.pop(pending.name, None), mine.pop(pending.name, None)
            if now is not None and now != before:
                assert now["data"] == pending.data, f"half a write: {now}"
                assert before is None or now["metadata"]["uid"] == before["metadata"]["uid"]
            assert now is not None or before is None or pending.data is None, f"{pending.name} is lost"
            self.known.pop(pending.name, None)
            if now is not None:
                self.known[pending.name] = now
        assert mine == expected


class Watcher:
    """One watch of all ConfigMaps, resumed from the last revision it saw."""

    def __init__(self, server: Server, revision: int) -> None:
        self.server = server
        self.revision = revision
        self.events: list[tuple[str, Object]] = []
        self.resumed = 0
        self.faults: list[str] = []
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                with self.server.session(timeout=20) as session:
                    for event in session.events(f"{CONFIGMAPS}?watch=true&resourceVersion={self.revision}"):
                        self._take(event)
                        if self._stop.is_set():
                            return
            except GONE:
                self.resumed += 1
                self._stop.wait(0.02)
            except BaseException as error:
                self.faults.append(f"{type(error).__name__}: {error}")
                raise

    def _take(self, event: Object) -> None:
        assert event["type"] in ("ADDED", "MODIFIED", "DELETED"), event
        revision = int(event["object"]["metadata"]["resourceVersion"])
        assert revision > self.revision, f"{revision} after {self.revision}: repeated or out of order"
        self.events.append((event["type"], event["object"]))
        self.revision = revision

    def finish(self, revision: int) -> None:
        """Wait until it has seen everything up to a revision, and stop."""
        wait_until(
            lambda: self.faults or self.revision >= revision, f"the watch reaches {revision}, is {self.revision}"
        )
        self._stop.set()
        assert not self.faults, self.faults

    def folded(self) -> dict[str, Object]:
        """The state that the events add up to; each must fit the state before it."""
        state: dict[str, Object] = {}
        for kind, each in self.events:
            name = each["metadata"]["name"]
            assert (kind == "ADDED") == (name not in state), f"{kind} of {name}"
            if kind == "DELETED":
                del state[name]
            else:
                state[name] = each
        return state


class Crowd:
    """Several writers and a watch against one server, in rounds."""

    def __init__(self, server: Server, count: int, seed: int) -> None:
        self.server = server
        self.random = random.Random(seed)
        self.writers = [Writer(server, f"w{number}", random.Random(seed + number)) for number in range(count)]
        _, revision = self.listed()
        self.watcher = Watcher(server, revision)
        self._threads: list[threading.Thread] = []
        self._stop = threading.Event()

    def listed(self) -> tuple[dict[str, Object], int]:
        """Everything that is there, by name, and its revision."""
        answer = self.server.request("GET", CONFIGMAPS)
        assert answer.status == 200, answer
        found = {each["metadata"]["name"]: each for each in answer.json["items"]}
        head = {"kind": "ConfigMap", "apiVersion": "v1"}
        return {name: {**head, **each} for name, each in found.items()}, int(answer.json["metadata"]["resourceVersion"])

    def begin(self) -> None:
        """Let the writers write."""
        self._stop.clear()
        self._threads = [threading.Thread(target=each.work, args=(self._stop,), daemon=True) for each in self.writers]
        for thread in self._threads:
            thread.start()

    def end(self) -> None:
        """Make them stop, if the server has not."""
        self._stop.set()
        for thread in self._threads:
            thread.join(30)
            assert not thread.is_alive()
        faults = [fault for each in self.writers for fault in each.faults]
        assert not faults, faults

    def verify(self) -> None:
        """After a restart, or whenever the writers rest."""
        found, revision = self.listed()
        highest = max((each.floor for each in self.writers), default=0)
        assert revision >= max(highest, self.watcher.revision), "the store went back"
        for writer in self.writers:
            writer.verify(found)
            writer.floor = revision

    def finish(self) -> None:
        """The watch saw every acknowledged write once, and what it saw adds up to what is there."""
        found, _ = self.listed()
        marker = self.server.request("POST", CONFIGMAPS, {"metadata": {"name": "last"}})
        assert marker.status == 201, marker
        self.watcher.finish(int(marker.json["metadata"]["resourceVersion"]))
        seen = [int(each["metadata"]["resourceVersion"]) for _, each in self.watcher.events]
        assert len(seen) == len(set(seen))
        missed = {revision for each in self.writers for revision in each.acknowledged} - set(seen)
        assert not missed, f"the watch missed {sorted(missed)}"
        folded = self.watcher.folded()
        assert folded.pop("last") == marker.json
        assert folded == {name: each for name, each in found.items() if name.startswith("w")}
        assert sum(len(each.acknowledged) for each in self.writers) > 0
