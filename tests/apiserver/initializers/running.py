"""A small real initializer: watches what is not initialized, changes or refuses it, and takes its name off the list."""

from __future__ import annotations

import contextlib
import http.client
import threading
from collections.abc import Callable, Iterator
from typing import Any

from apiserver.client import Client

Change = Callable[[dict[str, Any]], str]
"""Changes an object; what it returns is why the object is refused, if it is."""


class Initializer:
    """Runs until it is stopped."""

    def __init__(self, client: Client, name: str, path: str, change: Change) -> None:
        self._client = client
        self._name = name
        self._path = path
        self._change = change
        self.seen: list[str] = []
        self._connection: http.client.HTTPSConnection | None = None
        self._stopped = False
        self.watching = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        with self._client.watch(f"{self._path}?watch=true&includeUninitialized=true") as events:
            self._connection = events._connection
            self.watching.set()
            try:
                for event in events:
                    if event["type"] in ("ADDED", "MODIFIED"):
                        self._look_at(event["object"])
            except (OSError, ValueError, http.client.HTTPException):
                if not self._stopped:
                    raise

    def _look_at(self, obj: dict[str, Any]) -> None:
        meta = obj["metadata"]
        waiting = meta.get("initializers") or {}
        pending = waiting.get("pending") or []
        if waiting.get("result") or not pending or pending[0]["name"] != self._name:
            return
        self.seen.append(meta["name"])
        refusal = self._change(obj)
        if refusal:
            status = {"status": "Failure", "message": refusal, "reason": "Forbidden", "code": 403}
            meta["initializers"]["result"] = status
        else:
            meta["initializers"]["pending"] = pending[1:]
        namespace = f"/namespaces/{meta['namespace']}" if meta.get("namespace") else ""
        root, _, plural = self._path.rpartition("/")
        answer = self._client.put(f"{root}{namespace}/{plural}/{meta['name']}", obj)
        assert answer.status == 200, answer.body

    def stop(self) -> None:
        """End its watch."""
        self._stopped = True
        if self._connection is not None and self._connection.sock is not None:
            with contextlib.suppress(OSError):
                self._connection.sock.shutdown(2)
        self._thread.join(5)


@contextlib.contextmanager
def initializer(client: Client, name: str, path: str, change: Change) -> Iterator[Initializer]:
    """An initializer that runs for a while."""
    made = Initializer(client, name, path, change)
    assert made.watching.wait(60)
    try:
        yield made
    finally:
        made.stop()
