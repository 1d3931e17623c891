"""From the bytes of a request to a kind, and what is wrong with them.

Three things must come out right and none may cost the normal request anything: unknown fields are reported
(`fieldValidation=Strict`), warned about (`Warn`) or ignored (`Ignore`); keys given twice likewise; and a value of the
wrong type is refused in the words of Go's decoder, which clients and their users know.

The fast path is the compiled decoder, which refuses unknown fields and wrong types. It does not see a key given twice,
so the number of quotes in the body is compared with the number in the object written back; only if they differ is the
body read again, key by key. After any refusal the slow path walks the body with the class's fields at hand, collects
what upstream would say, drops what is unknown, and accepts what Go accepts: null for anything.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple, TypeVar

import msgspec

from .base import Struct
from .errors import BadRequest
from .gocompat import gojson
from .gocompat.gojson import Pairs, SyntaxProblem
from .gocompat.quote import quote
from .normalize import normalizer
from .slow_decoder import DecodeError as DecodeError
from .slow_decoder import Walk, walk

STRICT: Final = "Strict"
WARN: Final = "Warn"
IGNORE: Final = "Ignore"

T = TypeVar("T", bound=Struct)

_encode = msgspec.json.Encoder().encode


def decode(
    cls: type[T],
    decoder: msgspec.json.Decoder[T],
    body: bytes,
    api_version: str,
    validation: str = WARN,
    repeated: Sequence[str] = (),
) -> tuple[T, list[str]]:
    """The object in the body and what to warn about; `BadRequest` if it is none, or not strictly one.

    `repeated` tells of keys that the body had twice before it became JSON (it was YAML). `api_version` is the one the
    path stands for, `cls` the class of its kind. Whether the body names another kind is not checked here
    (`check_kind`): the walk below would speak of the wrong fields only if it has to speak at all.
    """
    try:
        obj = decoder.decode(body)
        if not repeated and (validation == IGNORE or not may_repeat(body, obj)):
            normalizer(cls)(obj)
            return obj, []
    except (ValueError, RecursionError):
        pass
    obj, problems = _decode_slowly(cls, body, api_version)
    if not (problems or repeated) or validation == IGNORE:
        return obj, []
    if validation == STRICT:
        if repeated:
            problems = ["\n  ".join(("yaml: unmarshal errors:", *repeated)), *problems]
        raise BadRequest(_cannot_be_handled(obj, cls, api_version, strict_decoding_error(problems)))
    return obj, [*repeated, *problems]


def convert(cls: type[T], value: Any, walker: Walk | None = None) -> tuple[T, list[str]]:
    """The same for a decoded JSON value, such as the outcome of a patch; `DecodeError` if it does not fit the class.

    `walker` says in whose words.
    """
    return _convert(cls, walk(cls, value, walker))


def read(cls: type[Any], value: Any) -> tuple[Any, list[str]]:
    """A JSON value that fits a class, without the nulls, and its unknown or repeated fields; `DecodeError` if none."""
    walked = walk(cls, value)
    if walked.error is not None:
        raise DecodeError(walked.error)
    return walked.value, walked.problems


def check_kind(obj: Any, cls: type[Struct], api_version: str, body: bytes = b"") -> None:
    """Refuse an object whose kind or apiVersion is not the path's; what it leaves out is the path's.

    `body` is where it came from, for the message.
    """
    why = kind_mismatch(obj.kind, obj.api_version, cls, api_version)
    if not why:
        return
    if why.startswith("unexpected GroupVersion"):
        raise BadRequest(_unrecognized(cls, body, why))
    if why.startswith(_OTHER_VERSION):
        raise BadRequest(why)
    raise BadRequest(_cannot_be_handled(obj, cls, api_version, why))


def kind_mismatch(kind: str | None, version: str | None, cls: type[Struct], api_version: str) -> str:
    """Why an object that says these is not of the kind and version of the path; empty if it is."""
    kind, version = kind or cls.__name__, (version or api_version).removeprefix("/")
    if kind == cls.__name__ and version == api_version:
        return ""
    from .scheme import split_api_version, type_for  # the table of everything served, needed only to complain

    if version.count("/") > 1:
        return f"unexpected GroupVersion string: {version}"
    of = kind.removesuffix("List")
    if type_for(version, kind) is None and type_for(version, of) is None and kind not in _EVERYWHERE:
        where = f'for version {quote(version)} in scheme "pkg/api/legacyscheme/scheme.go:30"'
        return f"no kind {quote(kind)} is registered {where}"
    if kind != cls.__name__:
        internal = split_api_version(api_version)[0].partition(".")[0] or "core"
        source = f"{split_api_version(version)[1]}.{kind}"
        return f"converting ({source}) to ({internal}.{cls.__name__}): unknown conversion"
    return f"{_OTHER_VERSION} ({version}) does not match the expected API version ({api_version})"


_OTHER_VERSION = "the API version in the data"
_EVERYWHERE = frozenset(("List", "Status", "DeleteOptions", "ListOptions", "PatchOptions", "WatchEvent"))
"""Kinds that every group and version knows."""


def no_text(document: dict[str, Any], name: str) -> str | None:
    """Go's error for a kind or version that is no string; None if it is one, or is missing."""
    value = document.get(name)
    if value is None or type(value) is str:
        return None
    return f"json: cannot unmarshal {gojson.word(value)} into Go struct field .{name} of type string"


def not_an_object(value: Any) -> str:
    """Go's error for JSON that is no object where a kind is expected."""
    return (
        f"json: cannot unmarshal {gojson.word(value)} into "
        'Go value of type struct { APIVersion string "json:\\"apiVersion,omitempty\\""; '
        'Kind string "json:\\"kind,omitempty\\"" }'
    )


def strict_decoding_error(problems: Iterable[str]) -> str:
    """The one message for all unknown and repeated fields."""
    return f"strict decoding error: {', '.join(problems)}"


def _decode_slowly(cls: type[T], body: bytes, api_version: str) -> tuple[T, list[str]]:
    try:
        value = gojson.loads(body)
    except SyntaxProblem as problem:
        raise BadRequest(_unparsable(cls, body, str(problem))) from None
    if value is not None and type(value) is not Pairs:
        raise BadRequest(_unparsable(cls, body, not_an_object(value)))
    for key, each in value or ():
        if key in ("apiVersion", "kind") and each is not None and type(each) is not str:
            why = f"json: cannot unmarshal {gojson.word(each)} into Go struct field .{key} of type string"
            raise BadRequest(_unparsable(cls, body, why))
    named = dict(value or ())
    said = _Named(named.get("kind"), named.get("apiVersion"))
    if not kind_mismatch(said.kind, said.api_version, cls, api_version).startswith(_OTHER_VERSION):
        check_kind(said, cls, api_version, body)  # its fields are none of ours
    try:
        return _convert(cls, walk(cls, value if value is not None else Pairs()))
    except DecodeError as error:
        raise BadRequest(_cannot_be_handled(said, cls, api_version, str(error))) from None


class _Named(NamedTuple):
    """The kind and version of an object."""

    kind: str | None
    api_version: str | None


def _convert(cls: type[T], walked: Walk) -> tuple[T, list[str]]:
    if walked.error is not None:
        raise DecodeError(walked.error)
    try:
        obj = msgspec.convert(walked.value, cls)
        normalizer(cls)(obj)
    except ValueError as error:  # what the walk lets through and the class does not: a gap in the walk
        raise DecodeError(str(error)) from None
    return obj, walked.problems


# --- repeated keys

_COMMON_NULL = b'"creationTimestamp":null'  # clients send it in every object and every template


def may_repeat(body: bytes, obj: Struct) -> bool:
    """Whether a key may be there twice: False is certain, True only a suspicion.

    Every quote of the body is in the object written back, but for keys given twice, keys of nulls, and quotes inside
    of text that were escaped the long way.
    """
    quotes = body.count(b'"') - 2 * body.count(_COMMON_NULL)
    return quotes != _encode(obj).count(b'"') or b"\\u0022" in body


# --- the words around it


def _cannot_be_handled(obj: Any, cls: type[Struct], api_version: str, why: str) -> str:
    return cannot_be_handled_as(obj.kind or cls.__name__, obj.api_version or api_version, cls.__name__, why)


def cannot_be_handled_as(kind: str, api_version: str, expected: str, why: str) -> str:
    """The message for an object whose kind is known and that is still no object of the expected kind."""
    number = api_version.rpartition("/")[2]
    return f"{kind} in version {quote(number)} cannot be handled as a {expected}: {why}"


def _unparsable(cls: type[Struct], body: bytes, why: str) -> str:
    return _unrecognized(cls, body, f"couldn't get version/kind; json parse error: {why}")


def _unrecognized(cls: type[Struct], body: bytes, why: str) -> str:
    return unrecognized(cls.__name__, body, why)


def unrecognized(kind: str, body: bytes, why: str) -> str:
    """The message for a body without a readable kind."""
    return f"the object provided is unrecognized (must be of type {kind}): {why} ({_summary(body)})"


def _summary(body: bytes) -> str:
    if not body:
        return "<empty>"
    text = body[:30].decode("utf-8", "replace") if body[:1] == b"{" else body[:30].hex()
    return f"{text} ..." if len(body) > 30 else text
