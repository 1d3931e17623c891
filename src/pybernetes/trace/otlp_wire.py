"""Spans as an `ExportTraceServiceRequest` of the OpenTelemetry protocol, version 1, in protobuf.

Written by hand from the published messages, as encoding needs five functions: a process that exports over HTTP loads no
protobuf library. Numbers in comments are those of the fields.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from .otlp import ERROR, INTERNAL, SERVER
from .span import Span, Value

VARINT, FIXED64, BYTES = 0, 1, 2
SCOPE = "pybernetes"
Causes = Callable[[Span], Iterable[tuple[str, str]]]


def request(spans: Iterable[Span], version: str, links: Causes = lambda span: span.links) -> bytes:
    """All spans, grouped by their component; `links` are the other spans that caused one."""
    services: dict[str, list[Span]] = {}
    for span in spans:
        services.setdefault(span.service, []).append(span)
    result = b""
    for service, each in services.items():
        resource = _attribute(1, "service.name", service) + _attribute(1, "service.version", version)
        scope = _text(1, SCOPE) + _text(2, version)
        of_scope = _bytes(1, scope) + b"".join(_bytes(2, _span(span, links(span))) for span in each)
        result += _bytes(1, _bytes(1, resource) + _bytes(2, of_scope))  # ResourceSpans: resource 1, scope_spans 2
    return result


def _span(span: Span, links: Iterable[tuple[str, str]]) -> bytes:
    """trace_id 1, span_id 2, parent_span_id 4, name 5, kind 6, times 7 and 8, attributes 9, events 11, links 13,
    status 15."""
    parts = [_bytes(1, bytes.fromhex(span.trace)), _bytes(2, bytes.fromhex(span.id))]
    if span.parent:
        parts.append(_bytes(4, bytes.fromhex(span.parent)))
    parts += [_text(5, span.name), _number(6, SERVER if "code" in span.attributes else INTERNAL)]
    parts += [_fixed(7, span.start), _fixed(8, max(span.end, span.start))]
    parts += [_attribute(9, key, value) for key, value in span.attributes.items()]
    for name, revisions in (("pybernetes.causes", span.causes), ("pybernetes.revisions", span.revisions)):
        if revisions:
            parts.append(_attribute(9, name, ",".join(map(str, revisions))))
    for at, name, text in span.marks:  # time 1, name 2, attributes 3
        message = _attribute(3, "message", text) if text else b""
        parts.append(_bytes(11, _fixed(1, at) + _text(2, name) + message))
    for trace, other in links:  # trace_id 1, span_id 2
        parts.append(_bytes(13, _bytes(1, bytes.fromhex(trace)) + _bytes(2, bytes.fromhex(other))))
    if span.error:  # message 2, code 3
        parts.append(_bytes(15, _text(2, span.error) + _number(3, ERROR)))
    return b"".join(parts)


def _attribute(field: int, key: str, value: Value) -> bytes:
    """KeyValue: key 1, value 2. AnyValue: text 1, flag 2, number 3, fraction 4."""
    if isinstance(value, bool):
        held = _number(2, int(value))
    elif isinstance(value, int):
        held = _number(3, value)
    elif isinstance(value, float):
        import struct

        held = _key(4, FIXED64) + struct.pack("<d", value)
    else:
        held = _text(1, value)
    return _bytes(field, _text(1, key) + _bytes(2, held))


def _key(field: int, kind: int) -> bytes:
    return _varint(field << 3 | kind)


def _varint(number: int) -> bytes:
    number &= 0xFFFFFFFFFFFFFFFF
    result = bytearray()
    while number > 0x7F:
        result.append(number & 0x7F | 0x80)
        number >>= 7
    result.append(number)
    return bytes(result)


def _number(field: int, value: int) -> bytes:
    return _key(field, VARINT) + _varint(value)


def _fixed(field: int, value: int) -> bytes:
    return _key(field, FIXED64) + value.to_bytes(8, "little")


def _bytes(field: int, value: bytes) -> bytes:
    return _key(field, BYTES) + _varint(len(value)) + value


def _text(field: int, value: str) -> bytes:
    return _bytes(field, value.encode("utf-8", "replace"))
