"""The W3C Trace Context: which trace a request belongs to, and which span of it asks.

A header reads `00-<trace, 32 hex digits>-<span, 16 hex digits>-<flags, 2 hex digits>`; the only flag is 01, recorded.
"""

from __future__ import annotations

import re
import secrets

import msgspec

HEADER = "traceparent"
ENVIRONMENT = "TRACEPARENT"
"""The variable by which a command learns whose trace it belongs to."""
ANNOTATION = "tracing.k8s.io/traceparent"
"""Where an object names the span that made it (KEP-5915). Understood, and never written by us."""
LENGTH = 55  # characters of a header of version 00
_FORM = re.compile(r"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?")
_NO_TRACE, _NO_SPAN = "0" * 32, "0" * 16
_SAMPLED = 1


class SpanContext(msgspec.Struct, frozen=True, gc=False):
    """A span, as others refer to it."""

    trace: str
    span: str
    sampled: bool = True


def parse(header: str) -> SpanContext | None:
    """Parse a `traceparent` header; None if it is invalid, or of the invalid version ff."""
    found = _FORM.fullmatch(header.strip())
    if found is None:
        return None
    version, trace, span, flags, more = found.groups()
    if version == "ff" or (version == "00" and more) or trace == _NO_TRACE or span == _NO_SPAN:
        return None
    return SpanContext(trace, span, bool(int(flags, 16) & _SAMPLED))


def format_header(trace: str, span: str, *, sampled: bool = True) -> str:
    """The header by which a request names the span that it is made by."""
    return f"00-{trace}-{span}-{'01' if sampled else '00'}"


def new_trace() -> str:
    """The id of a new trace."""
    return secrets.token_hex(16)


def new_span() -> str:
    """The id of a span, for those who make few: a recorder counts."""
    return secrets.token_hex(8)
