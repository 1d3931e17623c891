"""Parses a request's path: verb, group, version, resource, namespace, name, subresource.

The path alone decides, before anything is looked up, because authorization, audit and metrics need it for requests
that are refused as well:

    /api/v1/namespaces/NS/pods/NAME/SUB            core
    /apis/GROUP/VERSION/namespaces/NS/RES/NAME/SUB  every other group
    /api/v1/watch/...                              the old form of ?watch=true
    anything else                                  not a resource: verb = the method in lower case
"""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import parse_qs, unquote

import msgspec

from pybernetes.api import fields
from pybernetes.api.errors import BadRequest
from pybernetes.api.names import is_path_segment_name

_VERBS = {"GET": "get", "HEAD": "get", "POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
_NAMESPACE_SUBRESOURCES = ("status", "finalize")


class RequestInfo(msgspec.Struct, gc=False):
    """A request, taken apart."""

    path: str
    verb: str
    query: dict[str, str]
    is_resource: bool = False
    group: str = ""
    version: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    parts: tuple[str, ...] = ()
    """The path after the subresource, as in `proxy/some/path`."""
    selectors: Any = None
    """The selectors (`authz.selectors.Selectors`) where they are not in the query: in access reviews.

    False = authorization does not get selectors: the old form of watches did not have them everywhere.
    """

    @property
    def object_name(self) -> str:
        """The name to ask permission for: a list or watch that selects a single object by name is about that one."""
        if self.name or self.verb not in ("list", "watch") or "fieldSelector" not in self.query:
            return self.name
        return _selected_name(self.query["fieldSelector"])

    def flag(self, name: str) -> bool:
        """A query parameter as upstream reads booleans: absent, 0 and false are false, all else is true."""
        value = self.query.get(name)
        return value is not None and value != "0" and value.lower() != "false"


def _selected_name(selector: str) -> str:
    try:
        name = fields.parse(selector).requires("metadata.name") or ""
    except fields.FieldSelectorError:
        return ""
    return "" if is_path_segment_name(name) else name


def lasts(info: RequestInfo) -> bool:
    """Whether a request may take as long as it likes; `timeout` means nothing to it then."""
    return info.verb in _LASTING or info.subresource in _STREAMS


_LASTING = ("watch", "proxy")
_STREAMS = ("attach", "exec", "log", "portforward", "proxy")
_BAD_ESCAPE = re.compile("%(?![0-9a-fA-F]{2})")


def parse_query(text: str) -> dict[str, str]:
    """The first value of each parameter; what is not well formed is passed over."""
    if not text:
        return {}
    if "%" in text or ";" in text:
        text = "&".join([pair for pair in text.split("&") if ";" not in pair and not _BAD_ESCAPE.search(pair)])
    return {name: values[0] for name, values in parse_qs(text, keep_blank_values=True, errors="replace").items()}


def request_info(method: str, path: str, query_string: str) -> RequestInfo:
    """Take a request apart. Raises BadRequest for an invalid path."""
    query = parse_query(query_string)
    if "%" in path:
        if _BAD_ESCAPE.search(path):
            raise BadRequest("the path has a % that is not followed by two hexadecimal digits")
        path = unquote(path, errors="replace")
    parts = path[1:].rstrip("/").split("/")
    if parts[0] == "api" and len(parts) >= 3:
        group, version, rest = "", parts[1], parts[2:]
    elif parts[0] == "apis" and len(parts) >= 4 and parts[1]:
        group, version, rest = parts[1], parts[2], parts[3:]
    else:
        return RequestInfo(path, method.lower(), query)

    verb = _VERBS.get(method, "")
    old_form = rest[0] == "watch" and len(rest) > 1
    if old_form:
        rest = rest[1:]
        verb = "watch" if verb == "get" else ""
        if len(rest) in (2, 4):
            query["fieldSelector"] = f"metadata.name={rest[-1]}"
    info = RequestInfo(path, verb, query, True, group, version, selectors=False if old_form else None)
    if rest[0] == "namespaces" and len(rest) > 1:
        info.namespace = rest[1]
        if len(rest) > 2 and rest[2] not in _NAMESPACE_SUBRESOURCES:
            rest = rest[2:]
    info.resource = rest[0]
    if len(rest) > 1:
        info.name = rest[1]
        if len(rest) > 2:
            info.subresource = rest[2]
            info.parts = tuple(rest[3:])
    if info.name and not info.subresource and verb == "get" and not query:
        return info
    return _collection(info, verb)


def _collection(info: RequestInfo, verb: str) -> RequestInfo:
    """Lists, watches and collection deletes are GET and DELETE without a name."""
    if verb == "watch":
        info.name = ""
    elif verb == "get" and not info.name:
        info.verb = "watch" if info.flag("watch") else "list"
    elif verb == "delete" and not info.name:
        info.verb = "deletecollection"
    return info
