"""Spans in the names of the OpenTelemetry protocol's JSON form: ids in hex, 64-bit numbers as text."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .span import Span, Value
from .tree import Node

INTERNAL, SERVER = 1, 2  # SpanKind
ERROR = 2  # StatusCode


def of_trees(roots: Iterable[Node]) -> list[dict[str, Any]]:
    """All spans of the trees: each tree is one trace, every span but its root has its parent."""
    found = []
    for root in roots:
        for node in root.walk():
            parent = node.parent.span.id if node.parent else ""
            links = [(root.span.trace, each.span.id) for each in node.links]
            found.append(of_span(node.span, root.span.trace, parent, links))
    return found


def of_span(span: Span, trace: str, parent: str, links: Iterable[tuple[str, str]]) -> dict[str, Any]:
    """One span."""
    attributes: dict[str, Value] = {"service.name": span.service, **span.attributes}
    for name, revisions in (("pybernetes.causes", span.causes), ("pybernetes.revisions", span.revisions)):
        if revisions:
            attributes[name] = ",".join(map(str, revisions))
    result: dict[str, Any] = {
        "traceId": trace,
        "spanId": span.id,
        "parentSpanId": parent,
        "name": span.name,
        "kind": SERVER if "code" in span.attributes else INTERNAL,
        "startTimeUnixNano": str(span.start),
        "endTimeUnixNano": str(max(span.end, 0)),
        "attributes": [{"key": key, "value": _value(value)} for key, value in attributes.items()],
        "events": [
            {
                "timeUnixNano": str(at),
                "name": name,
                "attributes": [{"key": "message", "value": {"stringValue": text}}] if text else [],
            }
            for at, name, text in span.marks
        ],
        "links": [{"traceId": trace, "spanId": other} for trace, other in links],
        "status": {"code": ERROR, "message": span.error} if span.error else {},
    }
    return result


def _value(value: Value) -> dict[str, Any]:
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}
    if isinstance(value, float):
        return {"doubleValue": value}
    return {"stringValue": value}
