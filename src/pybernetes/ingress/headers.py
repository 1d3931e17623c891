"""Filters headers of a request on its way to an endpoint, and of a response on its way to a client (pure).

Headers keep their order and case. What belongs to one connection alone stays behind, with all that `Connection` names.
What tells the endpoint of the client is ours to say: a client's own X-Forwarded-* is not believed.
"""

from __future__ import annotations

import os
from collections.abc import Iterable

Pairs = list[tuple[bytes, bytes]]

_OF_THE_CONNECTION = frozenset(
    (b"connection", b"keep-alive", b"proxy-connection", b"te", b"trailer", b"transfer-encoding", b"upgrade")
)
_SAID_BY_US = frozenset(
    (
        *(b"host", b"expect", b"content-length", b"x-real-ip", b"x-scheme", b"forwarded", b"x-original-forwarded-for"),
        *(f"x-forwarded-{name}".encode() for name in ("for", "host", "port", "proto", "scheme", "prefix", "server")),
    )
)
_NOT_TO_ENDPOINTS = _OF_THE_CONNECTION | _SAID_BY_US
_NOT_TO_CLIENTS = _OF_THE_CONNECTION | {b"content-length"}


class Client:
    """The client's address and how it came here, for forwarding headers."""

    __slots__ = ("address", "port", "secure")

    def __init__(self, address: str, port: int, secure: bool) -> None:
        self.address, self.port, self.secure = address, port, secure


def named_in_connection(values: Iterable[bytes]) -> frozenset[bytes]:
    """The headers that `Connection` says are of this connection alone."""
    return frozenset(each.strip().lower() for value in values for each in value.split(b",")) - {b"close", b"keep-alive"}


def request_head(
    method: bytes,
    target: bytes,
    pairs: Pairs,
    *,
    host: bytes,
    client: Client,
    upstream_host: str = "",
    prefix: str = "",
    framing: bytes = b"",
    upgrade: bytes = b"",
) -> bytes:
    """The head that an endpoint gets; `framing` is the line that says how long the body is."""
    local = named_in_connection(value for name, value in pairs if name.lower() == b"connection")
    lines = [b"%b %b HTTP/1.1\r\nHost: %b\r\n" % (method, target, upstream_host.encode() or host)]
    forwarded, request_id = [], False
    for name, value in pairs:
        key = name.lower()
        if key == b"x-forwarded-for":
            forwarded.append(value)
        # Programs that make variables of headers do not distinguish _ from -: sending both is an attempt to confuse
        # them.
        if key in _NOT_TO_ENDPOINTS or key in local or b"_" in key:
            continue
        request_id = request_id or key == b"x-request-id"
        lines.append(b"%b: %b\r\n" % (name, value))
    scheme, address = b"https" if client.secure else b"http", client.address.encode()
    lines.append(
        b"X-Request-ID: %b\r\n" % os.urandom(16).hex().encode() if not request_id else b""
    )  # fmt: skip
    lines.append(
        b"X-Real-IP: %b\r\nX-Forwarded-For: %b\r\nX-Forwarded-Host: %b\r\nX-Forwarded-Port: %d\r\n"
        b"X-Forwarded-Proto: %b\r\nX-Forwarded-Scheme: %b\r\nX-Scheme: %b\r\n"
        % (address, address, host, client.port, scheme, scheme, scheme)
    )
    if forwarded:
        lines.append(b"X-Original-Forwarded-For: %b\r\n" % b", ".join(forwarded))
    if prefix:
        lines.append(b"X-Forwarded-Prefix: %b\r\n" % prefix.encode())
    if upgrade:
        lines.append(b"Connection: Upgrade\r\nUpgrade: %b\r\n" % upgrade)
    lines.append(framing)
    lines.append(b"\r\n")
    return b"".join(lines)


def answer_head(status: int, reason: bytes, pairs: Pairs, framing: bytes, upgrade: bytes = b"") -> bytes:
    """The head that a client gets."""
    local = named_in_connection(value for name, value in pairs if name.lower() == b"connection")
    lines = [b"HTTP/1.1 %d %b\r\n" % (status, reason)]
    for name, value in pairs:
        key = name.lower()
        if key not in _NOT_TO_CLIENTS and key not in local:
            lines.append(b"%b: %b\r\n" % (name, value))
    if upgrade:
        lines.append(b"Connection: Upgrade\r\nUpgrade: %b\r\n" % upgrade)
    lines.append(framing)
    lines.append(b"\r\n")
    return b"".join(lines)
