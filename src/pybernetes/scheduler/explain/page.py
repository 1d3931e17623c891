"""`/debug/why?namespace=NAMESPACE&name=NAME` of the scheduler's server, for who may get the path `/debug/why`."""

from __future__ import annotations

from urllib.parse import parse_qs

import msgspec

from pybernetes.api.gocompat.quote import quote
from pybernetes.client.health import Page

from ..scheduler import Scheduler
from .memory import Memory

PATH = "/debug/why"
_JSON = "application/json"


def page(scheduler: Scheduler, memory: Memory) -> Page:
    """The page about the pods of a scheduler."""

    async def answer(path: str, query: str) -> tuple[str, str, bytes]:
        fields = parse_qs(query)
        namespace, name = fields.get("namespace", ["default"])[-1], fields.get("name", [""])[-1]
        if not name:
            return _problem("400 Bad Request", "name is required: /debug/why?namespace=NAMESPACE&name=NAME")
        if not scheduler.started.is_set():
            return _problem("503 Service Unavailable", "this scheduler does not lead, or has not started yet")
        from .report import why

        report = why(scheduler, memory, namespace, name)
        if report is None:
            return _problem(
                "404 Not Found", f"pod {quote(name)} not found in namespace {quote(namespace)}, or it has ended"
            )
        return "200 OK", _JSON, msgspec.json.encode(report)

    return answer


def _problem(status: str, message: str) -> tuple[str, str, bytes]:
    code, _, reason = status.partition(" ")
    body = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message,
        "reason": reason.replace(" ", ""),
        "code": int(code),
    }
    return status, _JSON, msgspec.json.encode(body)
