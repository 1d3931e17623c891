"""Collects the facts about one request, and makes its audit events."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from pybernetes.api.times import rfc3339_micro
from pybernetes.net.http import Request, Response
from pybernetes.net.messages import as_utf8

from ..negotiation import JSON, YAML
from ..pipeline.respond import YamlResponse
from ..requestinfo import lasts
from ..user import User
from .event import Event, ObjectReference, agent, new_event, user_info
from .objects import as_decoded, as_sent, kind_at
from .policy import LEVELS, REQUEST, REQUEST_RESPONSE, Recorded

Sink = Callable[[Event], bool]
"""Takes an event; false if it could not be kept and the request must fail for it."""

DECISION, ALLOWED = "authorization.k8s.io/decision", "allow"
"""The authorizers' decision, among a request's annotations."""
_CLOSED_EARLY = {"metadata": {}, "status": "Success", "message": "Connection closed early", "code": 200}


class _Meta(msgspec.Struct, rename="camel"):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""


class _Named(msgspec.Struct, rename="camel"):
    kind: str = ""
    api_version: str = ""
    metadata: _Meta | None = None


_decode_named = msgspec.json.Decoder(_Named).decode


class Recorder:
    """The audit record of one request; filters and verbs tell it what they find out."""

    __slots__ = ("_clock", "_passed_on", "_recorded", "_request", "_sink", "_started", "annotations", "event")

    def __init__(self, request: Request, recorded: Recorded, sink: Sink, clock: Callable[[], float]) -> None:
        info = request.info
        uri = f"{request.path}?{request.query_string}" if request.query_string else request.path
        event = self.event = new_event(LEVELS[recorded.level], request.audit_id, uri, info.verb, request.user)
        event.source_ips = _source_ips(request)
        event.user_agent = agent(as_utf8(request.headers.get("user-agent", "")))
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
        self._passed_on = False

    def received(self) -> bool:
        """The request is here."""
        return self._emit("RequestReceived", self.event.request_received_timestamp)

    def impersonated(self, user: User, constraint: str) -> None:
        """Record the impersonated user."""
        self.event.impersonated_user = user_info(user)
        if constraint:
            self.event.authentication_metadata = {"impersonationConstraint": constraint}

    def passed_on(self) -> None:
        """Another server is to answer: what the two tell each other is not for this log."""
        self._passed_on = True

    def started(self, status: int) -> None:
        """An answer that takes long has begun."""
        if not self._started:
            self._started = True
            self._describe_request()
            self.event.response_status = {"metadata": {}, "code": status}
            self._emit("ResponseStarted")

    def complete(self, response: Response | None, *, refused: bool = False) -> None:
        """The answer is made, or a long one has ended; `refused` is an answer that an error of ours was made into."""
        event = self.event
        if not self._started:
            self._describe_request(response)
        if response is not None and self._passed_on and not refused:
            event.response_status = {"metadata": {}, "code": response.status}
        elif response is not None:
            self._describe_response(response)
        if response is not None:
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
        """The request was not authenticated; record it without a user."""
        self._describe_response(response)
        self._emit("ResponseStarted")

    # -- what the events hold

    def _emit(self, stage: str, when: str = "") -> bool:
        if stage in self._recorded.omit_stages:
            return True
        self.event.stage = stage
        self.event.stage_timestamp = when or rfc3339_micro(self._clock())
        return self._sink(self.event)

    def _describe_request(self, response: Response | None = None) -> None:
        request, event = self._request, self.event
        verb = request.info.verb
        if not request.body or not request.info.is_resource or self._passed_on:
            return
        if response is not None and _unread(response):
            return
        if self.annotations.get(DECISION) != ALLOWED:  # the body was not read
            return
        try:
            body = as_sent(request)
            if verb in ("create", "update") and event.object_ref is not None:
                _complete(event.object_ref, body, kind_at(request))
        except Exception:  # what is no object, or not of this kind, was refused and is not recorded
            return
        if self._recorded.level >= REQUEST:
            whole = body if verb in ("patch", "delete", "deletecollection") else as_decoded(request, body)
            event.request_object = msgspec.Raw(self._without_managed_fields(whole))

    def _describe_response(self, response: Response) -> None:
        event = self.event
        body: bytes = response.json if isinstance(response, YamlResponse) else response.body
        status: dict[str, Any] = {"metadata": {}, "code": response.status}
        is_json = response.content_type.startswith((JSON, YAML)) and body.lstrip()[:1] == b"{"
        if response.status == 406:  # no form was agreed on, so upstream takes it for no object
            is_json = False
        if is_json and b'"Status"' in body[:64]:
            said = msgspec.json.decode(body)
            if said.get("kind") == "Status":
                kept = {key: value for key, value in said.items() if key not in ("kind", "apiVersion", "code")}
                status = {**kept, "code": response.status}
        event.response_status = status
        if self._recorded.level >= REQUEST_RESPONSE and is_json and _is_object(body):
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
    """The addresses of the client: those that forwarding headers claim, and the connection's."""
    peer = request.connection.peer_address
    forwarded, real = request.first("x-forwarded-for"), request.first("x-real-ip")
    if not forwarded and not real:
        return [peer] if peer else []
    from pybernetes.api.addresses import parse_ip

    found = [str(each) for each in map(parse_ip, map(str.strip, forwarded.split(","))) if each is not None]
    address = parse_ip(real)
    if address is not None and str(address) not in found:
        found.append(str(address))
    if peer and found[-1:] != [peer]:
        found.append(peer)
    return found


def _complete(reference: ObjectReference, body: bytes, wanted: tuple[str, str] | None) -> None:
    """Tell what the body says of its object. Raises ValueError if it is of another kind."""
    named = _decode_named(body)
    if wanted is not None and (named.api_version or wanted[0], named.kind or wanted[1]) != wanted:
        raise ValueError("an object of another kind")
    meta = named.metadata
    if meta is not None:
        reference.namespace = reference.namespace or meta.namespace
        reference.name = reference.name or meta.name
        reference.uid = reference.uid or meta.uid
        reference.resource_version = reference.resource_version or meta.resource_version


def _unread(response: Response) -> bool:
    """Whether the response shows that the body was never read: no such path or method, or an unsupported form."""
    if response.status == 404:
        return response.content_type.startswith("text/plain")
    return response.status in (405, 406, 415)


def _is_object(body: bytes) -> bool:
    """Whether it is an object of the API: resources, their lists, Statuses and discovery, and no other document."""
    try:
        return bool(_decode_named(body).kind)
    except msgspec.MsgspecError:
        return False
