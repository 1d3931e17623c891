"""Answers, put together from bytes: one object, a list, a Status, in the form that was negotiated."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from pybernetes.api.errors import APIError
from pybernetes.api.resources import Resource

from .http import Request, Response
from .negotiation import JSON, YAML, Format

OBJECT_TRANSFORMS = ("Table", "PartialObjectMetadata")
LIST_TRANSFORMS = ("Table", "PartialObjectMetadataList")


class ListMeta(msgspec.Struct, omit_defaults=True, rename="camel", gc=False):
    """The metadata of a list."""

    resource_version: str = ""
    continue_: str = msgspec.field(default="", name="continue")
    remaining_item_count: int | None = None


class _OnlyMetadata(msgspec.Struct, gc=False):
    metadata: msgspec.Raw


_metadata = msgspec.json.Decoder(_OnlyMetadata).decode
_encode = msgspec.json.Encoder().encode


def write(raw: bytes, form: Format, status: int = 200) -> Response:
    """JSON bytes as an answer."""
    if form.media == YAML:
        from .yaml import json_to_yaml

        return Response(json_to_yaml(raw), status, YAML)
    if form.pretty:
        return Response(msgspec.json.format(raw, indent=2) + b"\n", status, JSON)
    return Response(raw, status)


def answer(request: Request, resource: Resource, raw: bytes, form: Format, status: int = 200) -> Response:
    """One object."""
    if form.transform == "Table":
        raw = table(request, resource, [raw], form, None)
    elif form.transform == "PartialObjectMetadata":
        raw = partial_metadata(raw, form.version)
    return write(raw, form, status)


def answer_list(request: Request, resource: Resource, raws: Sequence[bytes], meta: ListMeta, form: Format) -> Response:
    """A list of objects."""
    if form.transform == "Table":
        return write(table(request, resource, raws, form, meta), form)
    if form.transform == "PartialObjectMetadataList":
        items = [partial_metadata(raw, form.version) for raw in raws]
        head = b'{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/%b","metadata":' % form.version.encode()
        return write(b'%b%b,"items":[%b]}' % (head, _encode(meta), b",".join(items)), form)
    head = b'{"kind":"%b","apiVersion":"%b","metadata":%b,"items":[' % (
        resource.list_kind.encode(),
        resource.api_version.encode(),
        _encode(meta),
    )
    return write(b"%b%b]}" % (head, join_items(resource, raws)), form)


def join_items(resource: Resource, raws: Sequence[bytes]) -> bytes:
    """The items of a list, which carry no kind and apiVersion of their own."""
    if not raws:
        return b""
    cut = len(b'{"kind":"%b","apiVersion":"%b",' % (resource.kind.encode(), resource.api_version.encode()))
    return b"{" + b",{".join([raw[cut:] for raw in raws])


def partial_metadata(raw: bytes, version: str) -> bytes:
    """An object reduced to its metadata."""
    return b'{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/%b","metadata":%b}' % (
        version.encode(),
        _metadata(raw).metadata,
    )


def table(
    request: Request,
    resource: Resource,
    raws: Sequence[bytes],
    form: Format,
    meta: ListMeta | None,
    *,
    head: bool = True,
) -> bytes:
    """Objects as a Table; `meta` is None for a single object, whose resourceVersion the Table takes over."""
    from .printers.table import render

    include = request.info.query.get("includeObject", "Metadata") or "Metadata"
    return render(resource, raws, version=form.version, include_object=include, meta=meta, columns=head)


def error_response(error: APIError) -> Response:
    """A failure as a Status."""
    headers = [("Retry-After", str(error.retry_after))] if error.retry_after else None
    return Response(_encode(error.status()), error.code, headers=headers)


Encode = Callable[[bytes], bytes]


def event_encoder(request: Request, resource: Resource, form: Format) -> Encode:
    """How the object of a watch event is written. A Table carries its columns in the first event only."""
    if form.transform == "Table":
        first = True

        def row(raw: bytes) -> bytes:
            nonlocal first
            head, first = first, False
            return table(request, resource, [raw], form, None, head=head)

        return row
    if form.transform == "PartialObjectMetadata":
        return lambda raw: partial_metadata(raw, form.version)
    return lambda raw: raw
