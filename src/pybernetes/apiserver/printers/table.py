"""Makes a Table out of encoded objects: meta.k8s.io/v1 and its twin v1beta1.

The Table is put together from bytes: only the cells are computed, the objects of the rows are copied as they are. An
object whose cells cannot be computed has its name and `<unknown>` in its row; the others are shown as ever.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

import msgspec

from pybernetes.api import field
from pybernetes.api.errors import BadRequest
from pybernetes.api.resources import Resource
from pybernetes.api.times import Clock, SystemClock

from ..partial_metadata import partial_metadata
from . import duration
from .default import DEFAULT
from .lookup import Found, find, find_subresource

if TYPE_CHECKING:
    from pybernetes.api.meta.v1 import ObjectMeta

    from ..partial_metadata import ListMeta

log = logging.getLogger(__name__)

_CLOCK: Final = SystemClock()
_INITIAL_EVENTS_END: Final = "k8s.io/initial-events-end"

_encode = msgspec.json.Encoder().encode


class _Metadata(msgspec.Struct, rename="camel", gc=False):
    name: str = ""
    namespace: str = ""
    resource_version: str = ""
    annotations: dict[str, str] | None = None


class _Object(msgspec.Struct, gc=False):
    metadata: _Metadata
    kind: str = ""


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
    include = _inclusion(include_object, version)
    printer, decode, converted = _find(resource, raws)
    now = clock.now()
    rows: list[tuple[Any, bytes]] = []
    for raw in raws:
        try:
            obj = decode(raw)
            cells, noted = _encode(printer.cells(obj, now)), printer.conditions(obj) if printer.conditions else ()
            shown = include(raw, obj.metadata if converted else None)
            place = printer.order(obj) if printer.order else None
        except Exception:  # whatever the printer makes of it, the other rows are shown
            named = _named(raw)
            log.exception("%s %s/%s cannot be printed", resource.kind, named.namespace, named.name)
            cells = _encode([named.name, *([duration.UNKNOWN] * (len(printer.columns) - 1))])
            noted, shown, place = (), include(raw, None), None
        row = b'{"cells":%b,%b"object":%b}' % (
            cells,
            b'"conditions":%b,' % _encode(noted) if noted else b"",
            shown,
        )
        rows.append((place, row))
    if printer.order is not None:
        rows.sort(key=lambda pair: (pair[0] is None, pair[0]))
    return b'{"kind":"Table","apiVersion":"meta.k8s.io/%b","metadata":%b,"columnDefinitions":%b,"rows":%b}' % (
        version.encode(),
        _encode(meta) if meta is not None else _own_metadata(raws[0]),
        printer.encoded_columns if columns else b"null",
        # A nil list upstream, where the default table is not made by a printer; to a client both are empty.
        b"null" if not rows and printer is DEFAULT else b"[%b]" % b",".join([row for _, row in rows]),
    )


def _find(resource: Resource, raws: Sequence[bytes]) -> Found:
    """By the resource, unless the objects are of another kind: those of a subresource."""
    if raws:
        kind = _object(raws[0]).kind
        if kind != resource.kind:
            return find_subresource(kind)
    if resource.package == "unstructured":
        custom: Found = resource.custom.printed  # type: ignore[attr-defined]
        return custom
    return find(resource)


def _inclusion(include_object: str, version: str) -> Callable[[bytes, ObjectMeta | None], bytes]:
    """How an object is shown in its row; metadata is given if it is not that of the bytes."""

    def metadata(raw: bytes, given: ObjectMeta | None) -> bytes:
        return partial_metadata(raw if given is None else b'{"metadata":%b}' % _encode(given), version)

    match include_object:
        case "" | "Metadata":
            return metadata
        case "Object":
            return lambda raw, _: raw
        case "None":
            return lambda raw, given: metadata(raw, given) if _ends_initial_events(raw) else b"null"
    error = field.invalid("includeObject", include_object, "must be 'Metadata', 'Object', 'None', or empty")
    raise BadRequest(f"Unable to convert to Table as requested: {error}")


def _ends_initial_events(raw: bytes) -> bool:
    """Whether this is the bookmark after a watch's first objects: its mark is an annotation, so it must be sent."""
    if _INITIAL_EVENTS_END.encode() not in raw:
        return False
    return (_object(raw).metadata.annotations or {}).get(_INITIAL_EVENTS_END) == "true"


def _named(raw: bytes) -> _Metadata:
    """The metadata of an object that cannot be printed."""
    try:
        return _object(raw).metadata
    except ValueError:
        return _Metadata("<unknown>")


def _own_metadata(raw: bytes) -> bytes:
    version = _object(raw).metadata.resource_version
    return b'{"resourceVersion":%b}' % _encode(version) if version else b"{}"
