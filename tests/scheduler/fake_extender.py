"""A real HTTP extender, small: returns configured results, and records its requests."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from typing import Any

from backends import Answer, Asked, Backend

Verb = Callable[[dict[str, Any]], Any]
"""From the decoded body to what is answered; an int is a status code without a body."""


class FakeExtender(Backend):
    """Serves `POST /scheduler/<verb>`."""

    def __init__(self, verbs: dict[str, Verb], tls: ssl.SSLContext | None = None) -> None:
        self.asked: list[tuple[str, dict[str, Any]]] = []
        self.peers: list[str] = []
        """Common names of the clients' certificates, in order of asking."""
        self._verbs = verbs
        super().__init__(self._answer, tls)
        self.url = f"{self.origin}/scheduler"

    def _answer(self, asked: Asked) -> Answer:
        verb = asked.path.removeprefix("/scheduler/")
        self.asked.append((verb, asked.json))
        subject = (asked.peer or {}).get("subject", ())
        self.peers += [value for part in subject for key, value in part if key == "commonName"]
        made = self._verbs[verb](asked.json) if verb in self._verbs else 404
        return Answer(status=made) if isinstance(made, int) else Answer(made)

    def __enter__(self) -> FakeExtender:
        return self
