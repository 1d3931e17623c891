"""Answers, put together from bytes: one object, a list, a Status, in the form that was negotiated."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from pybernetes.api import scheme
from pybernetes.api.errors import APIError, NotAcceptable, PathNotFound
from pybernetes.api.resources import Resource
from pybernetes.net.http import Request, Response
from pybernetes.net.messages import NOSNIFF

from ..large_objects import beside_loop, collecting_later
from ..negotiation import JSON, YAML, Format, output_format, wants_pretty
from ..partial_metadata import ListMeta, partial_metadata

TRANSFORMS = ("Table", "PartialObjectMetadata", "PartialObjectMetadataList")
"""The kinds that objects and lists can be converted to; whether one fits is checked with the response."""


_encode = msgspec.json.Encoder().encode


LONG_YAML = 16 << 10
"""Bytes of JSON that take 5 ms to be written as YAML; longer answers are written beside the event loop."""


class YamlResponse(Response):
    """An answer in YAML that remembers what it was made from, for those who would have to read it again.

    The body of a long one is empty until `complete` has written it.
    """

    json: bytes = b""

    async def complete(self) -> None:
        """Write the body beside the event loop: 3,000 pods take two seconds."""
        if not self.body:
            from pybernetes.api.yaml import json_to_yaml

            with collecting_later:
                self.body = await beside_loop(lambda: json_to_yaml(self.json))


def write(raw: bytes, form: Format, status: int = 200) -> Response:
    """JSON bytes as an answer; a long one in YAML is to be completed (`YamlResponse`).

    Upstream ends a line of JSON, but not an indented document.
    """
    if form.media == YAML:
        if len(raw) > LONG_YAML:
            return YamlResponse(b"", status, YAML, json=raw)
        from pybernetes.api.yaml import json_to_yaml

        return YamlResponse(json_to_yaml(raw), status, YAML, json=raw)
    if form.pretty:
        return Response(msgspec.json.format(raw, indent=2), status, JSON)
    return Response(raw + b"\n", status)


def answer(request: Request, resource: Resource, raw: bytes, form: Format, status: int = 200) -> Response:
    """One object."""
    if not form.transform:
        return write(raw, form, status)
    if form.transform == "Table":
        return write(table(request, resource, [raw], form, None), form, status)
    if form.transform == "PartialObjectMetadata":
        return write(partial_metadata(raw, form.version), form, status)
    raise _misfit(resource, form, f"not a list (*{resource.package}.{resource.kind})")


def answer_list(request: Request, resource: Resource, raws: Sequence[bytes], meta: ListMeta, form: Format) -> Response:
    """A list of objects."""
    if form.transform == "Table":
        return write(table(request, resource, raws, form, meta), form)
    if form.transform == "PartialObjectMetadataList":
        items = [partial_metadata(raw, form.version) for raw in raws]
        head = b'{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/%b","metadata":' % form.version.encode()
        # Upstream has null here instead of an empty list.
        joined = b"[%b]" % b",".join(items) if items else b"null"
        return write(b'%b%b,"items":%b}' % (head, _encode(meta), joined), form)
    if form.transform:
        raise _misfit(resource, form, f"a list (*{_go_list(resource)})")
    head = b'{"kind":"%b","apiVersion":"%b","metadata":%b,"items":[' % (
        resource.list_kind.encode(),
        resource.api_version.encode(),
        _encode(meta),
    )
    if not meta.continue_ and resource.package == "unstructured":
        head = head.replace(b'"metadata":{', b'"metadata":{"continue":"",', 1)
    return write(b"%b%b]}" % (head, join_items(resource, raws)), form)


def join_items(resource: Resource, raws: Sequence[bytes]) -> bytes:
    """The items of a list, which carry no kind and apiVersion of their own."""
    if not raws:
        return b""
    if resource.package == "unstructured":  # of custom resources each item says what it is
        return b",".join(raws)
    cut = len(b'{"kind":"%b","apiVersion":"%b",' % (resource.kind.encode(), resource.api_version.encode()))
    return b"{" + b",{".join([raw[cut:] for raw in raws])


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
    from ..printers.table import render

    include = request.info.query.get("includeObject", "Metadata") or "Metadata"
    return render(resource, raws, version=form.version, include_object=include, meta=meta, columns=head)


def error_response(error: APIError, request: Request | None = None) -> Response:
    """A failure as a Status, in the form the request asks for if that can be had."""
    if isinstance(error, PathNotFound) and request is not None and not _in_built_in_group(request.path):
        return Response(b"404 page not found\n", 404, "text/plain; charset=utf-8", [NOSNIFF])
    form = Format()
    if request is not None and request.info is not None:
        try:
            form = output_format(request.headers, request.info.query)
        except NotAcceptable:
            form = Format(pretty=wants_pretty(request.headers, request.info.query))
    response = write(_encode(error.status()), form, error.code)
    if error.retry_after or error.headers:
        retry = [("Retry-After", str(error.retry_after))] if error.retry_after else []
        response.headers = [*retry, *error.headers]
    return response


def _in_built_in_group(path: str) -> bool:
    """Whether a path belongs to something that is always there, which speaks of what it lacks in a Status."""
    first, _, rest = path[1:].partition("/")
    group = rest.partition("/")[0]
    return first in ("api", "version") or (first == "apis" and group != "" and scheme.group(group) is not None)


def _go_list(resource: Resource) -> str:
    custom = resource.package == "unstructured"
    return "unstructured.UnstructuredList" if custom else f"{resource.package}.{resource.list_kind}"


def _misfit(resource: Resource, form: Format, what: str) -> NotAcceptable:
    error = NotAcceptable(())
    error.message = f"you requested {form.transform}, but the requested object is {what}"
    return error


Encode = Callable[[bytes], bytes]


def event_encoder(request: Request, resource: Resource, form: Format) -> Encode:
    """How the object of a watch event is written. A Table carries its columns in the first event only.

    Raises BadRequest if the client says what no Table can show.
    """
    if form.transform == "Table":
        table(request, resource, [], form, ListMeta(""))
        first = True

        def row(raw: bytes) -> bytes:
            nonlocal first
            head, first = first, False
            return table(request, resource, [raw], form, None, head=head)

        return row
    if form.transform == "PartialObjectMetadata":
        return lambda raw: partial_metadata(raw, form.version)
    return lambda raw: raw
