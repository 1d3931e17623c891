"""What is known of one request so far, and the events that are made of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from pybernetes.api import scheme, zeros
from pybernetes.api.resources import Resource, Subresource
from pybernetes.api.times import rfc3339_micro
from pybernetes.net.http import Request, Response

from ..authn.user import User
from ..bodies import as_json
from ..registry.strategy import defaults_of
from ..requestinfo import lasts
from .event import Event, ObjectReference, agent, new_event, user_info
from .policy import LEVELS, REQUEST, REQUEST_RESPONSE, Recorded

Sink = Callable[[Event], bool]
"""Takes an event; false if it could not be kept and the request must fail for it."""

DECISION, ALLOWED = "authorization.k8s.io/decision", "allow"
"""What the authorizers have said of a request, among its annotations."""
_CLOSED_EARLY = {"metadata": {}, "status": "Success", "message": "Connection closed early", "code": 200}


class _Meta(msgspec.Struct, rename="camel"):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""


class _Named(msgspec.Struct):
    metadata: _Meta | None = None


_decode_named = msgspec.json.Decoder(_Named).decode


class Recorder:
    """The audit record of one request; filters and verbs tell it what they find out."""

    __slots__ = ("_clock", "_recorded", "_request", "_sink", "_started", "annotations", "event")

    def __init__(self, request: Request, recorded: Recorded, sink: Sink, clock: Callable[[], float]) -> None:
        info = request.info
        uri = f"{request.path}?{request.query_string}" if request.query_string else request.path
        event = self.event = new_event(LEVELS[recorded.level], request.audit_id, uri, info.verb, request.user)
        event.source_ips = _source_ips(request)
        event.user_agent = agent(request.headers.get("user-agent", ""))
        event.request_received_timestamp = rfc3339_micro(clock())
        if info.is_resource:
            event.object_ref = ObjectReference(
                resource=info.resource,
                namespace=info.namespace,
                name=info.object_name,
                api_group=info.group,
                api_version=info.version,
                subresource=info.subresource,
            )
        self.annotations: dict[str, str] = event.annotations
        self._request = request
        self._recorded = recorded
        self._sink = sink
        self._clock = clock
        self._started = False

    def received(self) -> bool:
        """The request is here."""
        return self._emit("RequestReceived", self.event.request_received_timestamp)

    def impersonated(self, user: User, constraint: str) -> None:
        """The request goes on as somebody else."""
        self.event.impersonated_user = user_info(user)
        if constraint:
            self.event.authentication_metadata = {"impersonationConstraint": constraint}

    def started(self, status: int) -> None:
        """An answer that takes long has begun."""
        if not self._started:
            self._started = True
            self._describe_request()
            self.event.response_status = {"metadata": {}, "code": status}
            self._emit("ResponseStarted")

    def complete(self, response: Response | None) -> None:
        """The answer is made, or a long one has ended."""
        event = self.event
        if not self._started:
            self._describe_request()
        if response is not None:
            self._describe_response(response)
            if not self._started and lasts(self._request.info):  # it would have lasted, had it not been refused
                self._emit("ResponseStarted")
        elif event.response_status is None:
            event.response_status = _CLOSED_EARLY
        self._emit("ResponseComplete")

    def failed(self, error: BaseException) -> None:
        """Something went wrong in the server itself."""
        message = f"APIServer panic'd: {type(error).__name__}"
        status = {"metadata": {}, "status": "Failure", "message": message, "reason": "InternalError", "code": 500}
        self.event.response_status = status
        self._emit("Panic")

    def unauthenticated(self, response: Response) -> None:
        """Nobody known has sent the request; this is all there is to say about it."""
        self._describe_response(response)
        self._emit("ResponseStarted")

    # -- what the events hold

    def _emit(self, stage: str, when: str = "") -> bool:
        if stage in self._recorded.omit_stages:
            return True
        self.event.stage = stage
        self.event.stage_timestamp = when or rfc3339_micro(self._clock())
        return self._sink(self.event)

    def _describe_request(self) -> None:
        request, event = self._request, self.event
        verb = request.info.verb
        if not request.body or not request.info.is_resource:
            return
        if self.annotations.get(DECISION) != ALLOWED:  # nobody has looked at what was sent
            return
        try:
            body = _json(request)
            if verb in ("create", "update") and event.object_ref is not None:
                _complete(event.object_ref, body)
        except Exception:  # what is no object was refused, and is not recorded
            return
        if self._recorded.level >= REQUEST:
            whole = body if verb in ("patch", "delete", "deletecollection") else _as_decoded(request, body)
            event.request_object = msgspec.Raw(self._without_managed_fields(whole))

    def _describe_response(self, response: Response) -> None:
        event, body = self.event, response.body
        status: dict[str, Any] = {"metadata": {}, "code": response.status}
        is_json = response.content_type.startswith("application/json") and body.lstrip()[:1] == b"{"
        if is_json and b'"Status"' in body[:64]:
            said = msgspec.json.decode(body)
            if said.get("kind") == "Status":
                kept = {key: value for key, value in said.items() if key not in ("kind", "apiVersion", "code")}
                status = {**kept, "code": response.status}
        event.response_status = status
        if self._recorded.level >= REQUEST_RESPONSE and is_json and self._request.info.is_resource:
            event.response_object = msgspec.Raw(self._without_managed_fields(msgspec.json.format(body, indent=-1)))

    def _without_managed_fields(self, body: bytes) -> bytes:
        if not self._recorded.omit_managed_fields or b'"managedFields"' not in body:
            return body
        value = msgspec.json.decode(body)
        rows = [each.get("object") for each in value.get("rows") or () if isinstance(each, dict)]
        for each in (value, *(value.get("items") or ()), *rows):
            if isinstance(each, dict) and isinstance(each.get("metadata"), dict):
                each["metadata"].pop("managedFields", None)
        return msgspec.json.encode(value)


def _source_ips(request: Request) -> list[str]:
    """Who forwarded the request for whom, as far as they say, and who is connected to us."""
    parts = [each.strip() for each in request.first("x-forwarded-for").split(",")]
    found = [each for each in parts if _is_address(each)]
    real, peer = request.first("x-real-ip"), request.connection.peer_address
    if _is_address(real) and real not in found:
        found.append(real)
    if peer and found[-1:] != [peer]:
        found.append(peer)
    return found


def _is_address(text: str) -> bool:
    import ipaddress

    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def _json(request: Request) -> bytes:
    info = request.info
    if info.verb == "patch":
        from pybernetes.api.yaml import yaml_to_json

        is_yaml = "yaml" in request.headers.get("content-type", "")
        return msgspec.json.format(yaml_to_json(request.body)[0] if is_yaml else request.body, indent=-1)
    resource = scheme.resource(info.group, info.version, info.resource)
    kind, version = (resource.kind, resource.api_version) if resource else ("", "")
    body, _ = as_json(request, kind, version)
    return msgspec.json.format(body, indent=-1)


def _complete(reference: ObjectReference, body: bytes) -> None:
    meta = _decode_named(body).metadata
    if meta is not None:
        reference.namespace = reference.namespace or meta.namespace
        reference.name = reference.name or meta.name
        reference.uid = reference.uid or meta.uid
        reference.resource_version = reference.resource_version or meta.resource_version


def _with_kind(subresource: Subresource | None, resource: Resource, body: bytes) -> bytes:
    value = msgspec.json.decode(body)
    if subresource is None or subresource.kind is None or not isinstance(value, dict):
        return body
    group = resource.group if subresource.group is None else subresource.group
    version = subresource.version or resource.version
    own = {"kind": subresource.kind, "apiVersion": f"{group}/{version}" if group else version}
    return msgspec.json.encode({**own, **{name: each for name, each in value.items() if each or name not in own}})


def _as_decoded(request: Request, body: bytes) -> bytes:
    """With its kind, defaults, and the fields that are always there.

    Subresources get their kind; a body that is not strictly its kind stays as it came.
    """
    info = request.info
    resource = scheme.resource(info.group, info.version, info.resource)
    if resource is None:
        return body
    if info.subresource not in ("", "status"):
        return _with_kind(resource.subresource(info.subresource), resource, body)
    try:
        obj = scheme.decoder(resource).decode(body)
        default = defaults_of(resource)
        if default is not None:
            default(obj)
        obj.kind, obj.api_version = resource.kind, resource.api_version
        zeros.fill(obj)
        return zeros.encode(obj)
    except (ValueError, RecursionError):
        return body
