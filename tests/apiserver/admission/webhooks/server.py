"""A real webhook server: HTTPS on a free port, one function for each path, and a record of what it was asked."""

from __future__ import annotations

import base64
import json
import ssl
import threading
import time
from collections.abc import Callable
from typing import Any

from backends import Answer, Asked, Backend, server_tls

from pybernetes import pki

Review = dict[str, Any]
Answerer = Callable[[dict[str, Any]], "dict[str, Any] | bytes | int"]


class WebhookServer(Backend):
    """Answers reviews. What a path's function returns is the `response`, raw bytes, or a status code."""

    tls: ssl.SSLContext

    def __init__(self, address: str = "127.0.0.1", names: tuple[str, ...] = ("localhost",)) -> None:
        self.authority = pki.create_authority("webhook-ca")
        identity = pki.issue_server(self.authority, "webhook", [*names, address])
        self.paths: dict[str, Answerer] = {}
        self.reviews: list[tuple[str, Review]] = []
        self.released = threading.Event()
        self.client_names: list[str] = []
        super().__init__(self._answer, server_tls(identity, clients=self.authority), address)

    def _answer(self, asked: Asked) -> Answer:
        path, review = asked.path.partition("?")[0], asked.json
        self.reviews.append((path, review["request"]))
        self.client_names.append(str((asked.peer or {}).get("subject", "")))
        answer = self.paths[path](review["request"])
        if isinstance(answer, int):
            return Answer("no", answer)
        if isinstance(answer, dict):
            made = {"kind": "AdmissionReview", "apiVersion": review["apiVersion"]}
            return Answer({**made, "response": {"uid": review["request"]["uid"], **answer}})
        return Answer(answer)

    @property
    def bundle(self) -> str:
        return base64.b64encode(self.authority.certificate_pem).decode()

    def url(self, path: str) -> str:
        return f"{self.origin}{path}"

    def asked(self, path: str) -> list[Review]:
        return [review for called, review in self.reviews if called == path]

    def close(self) -> None:
        self.released.set()
        super().close()


def allow(_: Review) -> dict[str, Any]:
    return {"allowed": True}


def patch(*operations: dict[str, Any]) -> dict[str, Any]:
    """An answer with a patch."""
    encoded = base64.b64encode(json.dumps(list(operations)).encode()).decode()
    return {"allowed": True, "patchType": "JSONPatch", "patch": encoded}


def hanging(server: WebhookServer) -> Answerer:
    """Never answers, until the server is closed."""

    def hang(_: Review) -> dict[str, Any]:
        server.released.wait(60)
        return {"allowed": True}

    return hang


def slow(seconds: float) -> Answerer:
    def wait(_: Review) -> dict[str, Any]:
        time.sleep(seconds)
        return {"allowed": True}

    return wait
