"""One event of the audit log, in upstream's form."""

from __future__ import annotations

from typing import Any

import msgspec

from ..user import User
from .flags import API_VERSION

_AGENT = 1024  # characters of a User-Agent; upstream's


class UserInfo(msgspec.Struct, omit_defaults=True):
    """The user of the request."""

    username: str = ""
    uid: str = ""
    groups: list[str] = []
    extra: dict[str, list[str]] = {}


class ObjectReference(msgspec.Struct, rename="camel", omit_defaults=True):
    """The object of the request."""

    resource: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""
    api_group: str = ""
    api_version: str = ""
    resource_version: str = ""
    subresource: str = ""


class Event(msgspec.Struct, rename="camel", omit_defaults=True):
    """Something that happened to a request. Fields that are always there have no default."""

    kind: str
    api_version: str
    level: str
    audit_id: str = msgspec.field(name="auditID")
    stage: str
    request_uri: str = msgspec.field(name="requestURI")
    verb: str
    user: UserInfo
    impersonated_user: UserInfo | None = None
    authentication_metadata: dict[str, str] | None = None
    source_ips: list[str] = msgspec.field(default_factory=list, name="sourceIPs")
    user_agent: str = ""
    object_ref: ObjectReference | None = None
    response_status: dict[str, Any] | None = None
    request_object: msgspec.Raw | None = None
    response_object: msgspec.Raw | None = None
    request_received_timestamp: str = msgspec.field(default="", name="requestReceivedTimestamp")
    stage_timestamp: str = ""
    annotations: dict[str, str] = {}


def encode(event: Event) -> bytes:
    """An event as it is written."""
    if len(event.annotations) > 1:
        event = msgspec.structs.replace(event, annotations=dict(sorted(event.annotations.items())))
    return msgspec.json.encode(event)


def new_event(level: str, audit_id: str, uri: str, verb: str, user: User | None) -> Event:
    """An event about a request that has just come in."""
    return Event("Event", API_VERSION, level, audit_id, "", uri, verb, user_info(user))


def user_info(user: User | None) -> UserInfo:
    """A user as events show them."""
    return UserInfo(user.name, user.uid, list(user.groups), user.extra) if user is not None else UserInfo()


def agent(text: str) -> str:
    """A User-Agent of bearable length."""
    return text if len(text) <= _AGENT else f"{text[:_AGENT]}...TRUNCATED"


def legacy_line(event: Event) -> str:
    """The one-line format of old."""
    from pybernetes.api.gocompat.quote import quote

    user = event.user
    groups = ",".join(map(quote, user.groups)) if user.username and user.groups else "<none>"
    other = event.impersonated_user
    as_groups = ",".join(map(quote, other.groups)) if other and other.groups else "<lookup>"
    namespace = event.object_ref.namespace if event.object_ref else ""
    code = event.response_status["code"] if event.response_status else "<deferred>"
    pairs = (
        ("id", event.audit_id),
        ("stage", event.stage),
        ("ip", event.source_ips[0] if event.source_ips else "<unknown>"),
        ("method", event.verb),
        ("user", user.username or "<none>"),
        ("groups", groups),
        ("as", other.username if other else "<self>"),
        ("asgroups", as_groups),
        ("user-agent", event.user_agent),
        ("namespace", namespace or "<none>"),
        ("uri", event.request_uri),
    )
    text = " ".join(f"{name}={quote(value)}" for name, value in pairs)
    return f'{event.request_received_timestamp} AUDIT: {text} response="{code}"'
