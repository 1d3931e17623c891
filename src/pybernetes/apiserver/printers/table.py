"""Makes a Table out of encoded objects: meta.k8s.io/v1 and its twin v1beta1.

The Table is put together from bytes: only the cells are computed, the objects of the rows are copied as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Final

import msgspec

from pybernetes.api import field
from pybernetes.api.errors import BadRequest
from pybernetes.api.resources import Resource
from pybernetes.api.times import Clock, SystemClock

from ..output import partial_metadata
from .default import DEFAULT
from .lookup import find
from .printer import Printer

if TYPE_CHECKING:
    from ..output import ListMeta

_CLOCK: Final = SystemClock()
_INITIAL_EVENTS_END: Final = "k8s.io/initial-events-end"

_encode = msgspec.json.Encoder().encode


class _Metadata(msgspec.Struct, rename="camel", gc=False):
    resource_version: str = ""
    annotations: dict[str, str] | None = None


class _Object(msgspec.Struct, gc=False):
    metadata: _Metadata


_object = msgspec.json.Decoder(_Object).decode


def render(
    resource: Resource,
    raws: Sequence[bytes],
    *,
    version: str,
    include_object: str,
    meta: ListMeta | None,
    columns: bool,
    clock: Clock = _CLOCK,
) -> bytes:
    """The JSON of a Table. `meta` is a list's; a single object (`meta` is None) gives its own resourceVersion."""
    included = _included(include_object, version)
    printer, decode = find(resource)
    compute, conditions, now = printer.cells, printer.conditions, clock.now()
    rows: list[bytes] = []
    for raw in raws:
        obj = decode(raw)
        noted = conditions(obj) if conditions else ()
        rows.append(
            b'{"cells":%b,%b"object":%b}'
            % (_encode(compute(obj, now)), b'"conditions":%b,' % _encode(noted) if noted else b"", included(raw))
        )
    return b'{"kind":"Table","apiVersion":"meta.k8s.io/%b","metadata":%b,"columnDefinitions":%b,"rows":%b}' % (
        version.encode(),
        _encode(meta) if meta is not None else _own_metadata(raws[0]),
        _columns(printer) if columns else b"null",
        # A nil list upstream, where the default table is not made by a printer; to a client both are empty.
        b"null" if not rows and printer is DEFAULT else b"[%b]" % b",".join(rows),
    )


def _included(include_object: str, version: str) -> Callable[[bytes], bytes]:
    match include_object:
        case "" | "Metadata":
            return lambda raw: partial_metadata(raw, version)
        case "Object":
            return lambda raw: raw
        case "None":
            return lambda raw: partial_metadata(raw, version) if _ends_initial_events(raw) else b"null"
    error = field.invalid("includeObject", include_object, "must be 'Metadata', 'Object', 'None', or empty")
    raise BadRequest(f"Unable to convert to Table as requested: {error.message()}")


def _ends_initial_events(raw: bytes) -> bool:
    """Whether this is the bookmark after a watch's first objects: its mark is an annotation, so it must be sent."""
    if _INITIAL_EVENTS_END.encode() not in raw:
        return False
    return (_object(raw).metadata.annotations or {}).get(_INITIAL_EVENTS_END) == "true"


def _own_metadata(raw: bytes) -> bytes:
    version = _object(raw).metadata.resource_version
    return b'{"resourceVersion":%b}' % _encode(version) if version else b"{}"


@cache
def _columns(printer: Printer) -> bytes:
    return _encode(printer.columns)
