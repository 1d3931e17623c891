"""Options of connections to pods, nodes and services, which come as query parameters.

They are kinds only to those who judge them: admission webhooks and policies see a PodExecOptions as they see a Pod.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, TypeVar

import msgspec

from .. import field
from ..base import Struct
from ..field import FieldError, Path
from ..gocompat.quote import quote
from ..times import TimeError, canonical_time
from ..types import Always

INT64 = 1 << 63
_LONG = 40  # digits; what has as many is out of every range, leading zeros or not


class Options(Struct):
    """Options of a connection."""

    kind: str | None = None
    api_version: str | None = None


class PodExecOptions(Options):
    """pods/exec"""

    stdin: bool | None = None
    stdout: bool | None = None
    stderr: bool | None = None
    tty: bool | None = None
    container: str | None = None
    command: Annotated[list[str] | None, Always(None)] = None


class PodAttachOptions(Options):
    """pods/attach"""

    stdin: bool | None = None
    stdout: bool | None = None
    stderr: bool | None = None
    tty: bool | None = None
    container: str | None = None


class PodPortForwardOptions(Options):
    """pods/portforward"""

    ports: list[int] | None = None


class PodProxyOptions(Options):
    """pods/proxy"""

    path: str | None = None


class ServiceProxyOptions(Options):
    """services/proxy"""

    path: str | None = None


class NodeProxyOptions(Options):
    """nodes/proxy"""

    path: str | None = None


class PodLogOptions(Options):
    """pods/log"""

    container: str | None = None
    follow: bool | None = None
    previous: bool | None = None
    since_seconds: int | None = None
    since_time: str | None = None
    timestamps: bool | None = None
    tail_lines: int | None = None
    limit_bytes: int | None = None
    insecure_skip_tls_verify_backend: bool | None = msgspec.field(default=None, name="insecureSkipTLSVerifyBackend")
    stream: str | None = None


OPTIONS: dict[str, type[Options]] = {
    each.__name__: each
    for each in (
        PodExecOptions,
        PodAttachOptions,
        PodPortForwardOptions,
        PodProxyOptions,
        ServiceProxyOptions,
        NodeProxyOptions,
        PodLogOptions,
    )
}

T = TypeVar("T", bound=Options)
_NUMBERS = frozenset(("sinceSeconds", "tailLines", "limitBytes"))
_TEXTS = frozenset(("container", "path", "stream"))


def decode(cls: type[T], query: Mapping[str, Sequence[str]]) -> T:
    """The options of a query. Raises ValueError with upstream's words; what is no option is passed over."""
    made = cls()
    for info in msgspec.structs.fields(cls):
        values = query.get(info.encode_name)
        if values is None or info.name in ("kind", "api_version"):
            continue
        setattr(made, info.name, _value(info.encode_name, list(values)))
    return made


def _value(name: str, values: list[str]) -> Any:
    if name == "command":
        return values
    if name == "ports":
        return [_port(each) for value in values for each in value.split(",")]
    first = values[0] if values else ""
    if name in _TEXTS:
        return first or None
    if name == "sinceTime":
        return _time(first)
    if name in _NUMBERS:
        return _number(first)
    return True if values and first != "0" and first.lower() != "false" else None


def _number(text: str) -> int:
    digits = text[1:] if text[:1] in ("-", "+") else text
    if not (digits.isascii() and digits.isdecimal()):
        raise ValueError(f"strconv.ParseInt: parsing {quote(text)}: invalid syntax")
    number = int(text) if len(digits) < _LONG else INT64
    if not -INT64 <= number < INT64:
        raise ValueError(f"strconv.ParseInt: parsing {quote(text)}: value out of range")
    return number


def _port(text: str) -> int:
    if not (text.isascii() and text.isdecimal()):
        raise ValueError(f"cannot convert to []int32: strconv.ParseUint: parsing {quote(text)}: invalid syntax")
    if len(text) >= _LONG or int(text) > 65535:
        raise ValueError(f"cannot convert to []int32: strconv.ParseUint: parsing {quote(text)}: value out of range")
    return int(text)


def _time(text: str) -> str | None:
    if text in ("", "null"):
        return None
    try:
        return canonical_time(text)
    except TimeError as error:
        raise ValueError(str(error)) from None


def validate_log_options(options: PodLogOptions) -> list[FieldError]:
    """Validate options for logs. Streams cannot be chosen: upstream's PodLogsQuerySplitStreams is off."""
    problems: list[FieldError] = []
    if options.tail_lines is not None and options.tail_lines < 0:
        problems.append(field.invalid(Path("tailLines"), options.tail_lines, "must be greater than or equal to 0"))
    if options.limit_bytes is not None and options.limit_bytes < 1:
        problems.append(field.invalid(Path("limitBytes"), options.limit_bytes, "must be greater than 0"))
    if options.since_seconds is not None and options.since_time is not None:
        text = "at most one of `sinceTime` or `sinceSeconds` may be specified"
        problems.append(field.forbidden("[]", text))  # upstream's path of nothing
    elif options.since_seconds is not None and options.since_seconds < 1:
        problems.append(field.invalid(Path("sinceSeconds"), options.since_seconds, "must be greater than 0"))
    if options.stream is not None:
        problems.append(field.forbidden(Path("stream"), "may not be specified"))
    return problems
