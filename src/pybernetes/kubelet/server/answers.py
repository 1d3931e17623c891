"""Answers in the forms of upstream's kubelet: plain text, or JSON."""

from __future__ import annotations

from pybernetes.net.http import Response

TEXT = "text/plain; charset=utf-8"


class Refused(Exception):
    """Ends a request with a status and a text."""

    def __init__(self, status: int, text: str, headers: list[tuple[str, str]] | None = None) -> None:
        super().__init__(text)
        self.status = status
        self.headers = headers or []


def text(body: str, status: int = 200, headers: list[tuple[str, str]] | None = None) -> Response:
    """Plain text."""
    return Response(body.encode(), status, TEXT, headers or [])


def json(body: bytes) -> Response:
    """JSON."""
    return Response(body, 200, "application/json", [])
