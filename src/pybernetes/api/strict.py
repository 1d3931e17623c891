"""From the bytes of a request to a kind, and what is wrong with them.

Three things must come out right and none may cost the normal request anything: fields nobody knows are reported
(`fieldValidation=Strict`), warned about (`Warn`) or ignored (`Ignore`); keys given twice likewise; and a value of the
wrong type is refused in the words of Go's decoder, which clients and their users know.

The fast path is the compiled decoder, which refuses unknown fields and wrong types. It does not see a key given twice,
so the number of quotes in the body is compared with the number in the object written back; only if they differ is the
body read again, key by key. After any refusal the slow path walks the body with the class's fields at hand, collects
what upstream would say, drops what is unknown, and accepts what Go accepts: null for anything.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Sequence
from math import isfinite
from typing import Any, Final, NamedTuple, TypeVar

import msgspec

from . import gojson
from .base import Struct
from .errors import BadRequest
from .gojson import Number, Pairs, SyntaxProblem
from .gotypes import go_field, go_name
from .normalize import CANONICAL, normalizer
from .quantity import ERR_FORMAT
from .quote import quote
from .schema import ANY, LIST, MAP, STRUCT, FieldInfo, fields_by_wire

STRICT: Final = "Strict"
WARN: Final = "Warn"
IGNORE: Final = "Ignore"

MAX_PROBLEMS: Final = 100
"""More unknown or repeated fields than these are not listed."""

T = TypeVar("T", bound=Struct)

_encode = msgspec.json.Encoder().encode


class DecodeError(ValueError):
    """A body that cannot become the kind; its words are Go's, without the kind's name in front."""


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


def convert(cls: type[T], value: Any, walk: Walk | None = None) -> tuple[T, list[str]]:
    """The same for a decoded JSON value, such as the outcome of a patch; `DecodeError` if it does not fit the class.

    `walk` says in whose words.
    """
    return _convert(cls, _walk(cls, value, walk))


def read(cls: type[Any], value: Any) -> tuple[Any, list[str]]:
    """A JSON value that fits a class, without the nulls, and its unknown or repeated fields; `DecodeError` if none."""
    walk = _walk(cls, value)
    if walk.error is not None:
        raise DecodeError(walk.error)
    return walk.value, walk.problems


def check_kind(obj: Any, cls: type[Struct], api_version: str, body: bytes = b"") -> None:
    """Refuse an object whose kind or apiVersion is not the path's; what it leaves out is the path's.

    `body` is where it came from, for the message.
    """
    why = kind_mismatch(obj, cls, api_version)
    if not why:
        return
    if why.startswith("unexpected GroupVersion"):
        raise BadRequest(_unrecognized(cls, body, why))
    if why.startswith("the API version"):
        raise BadRequest(why)
    raise BadRequest(_cannot_be_handled(obj, cls, api_version, why))


def kind_mismatch(obj: Any, cls: type[Struct], api_version: str) -> str:
    """Why an object is not of the kind and version of the path; empty if it is."""
    kind, version = obj.kind or cls.__name__, (obj.api_version or api_version).removeprefix("/")
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
    return f"the API version in the data ({version}) does not match the expected API version ({api_version})"


_EVERYWHERE = frozenset(("List", "Status", "DeleteOptions", "ListOptions", "PatchOptions", "WatchEvent"))
"""Kinds that every group and version knows."""


def not_an_object(value: Any) -> str:
    """What Go says about JSON that is no object where a kind is looked for."""
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
    if named.get("kind") not in (None, "", cls.__name__):  # its fields are none of ours
        check_kind(_Named(named["kind"], named.get("apiVersion")), cls, api_version, body)
    try:
        return _convert(cls, _walk(cls, value if value is not None else Pairs()))
    except DecodeError as error:
        raise BadRequest(
            _cannot_be_handled(_Named(named.get("kind"), named.get("apiVersion")), cls, api_version, str(error))
        ) from None


class _Named(NamedTuple):
    """What an object says it is."""

    kind: str | None
    api_version: str | None


def _walk(cls: type[Struct], value: Any, walk: Walk | None = None) -> Walk:
    walk = walk or Walk()
    try:
        if not isinstance(value, (Pairs, dict)):
            walk.error = f"json: cannot unmarshal {gojson.word(value)} into Go value of type {go_name(cls)}"
        else:
            walk.value = walk.struct(value, cls, "", ())
    except RecursionError:
        raise DecodeError(gojson.TOO_DEEP) from None
    return walk


def _convert(cls: type[T], walk: Walk) -> tuple[T, list[str]]:
    if walk.error is not None:
        raise DecodeError(walk.error)
    try:
        obj = msgspec.convert(walk.value, cls)
        normalizer(cls)(obj)
    except ValueError as error:  # what the walk lets through and the class does not: a gap in the walk
        raise DecodeError(str(error)) from None
    return obj, walk.problems


# --- repeated keys

_COMMON_NULL = b'"creationTimestamp":null'  # clients send it in every object and every template


def may_repeat(body: bytes, obj: Struct) -> bool:
    """Whether a key may be there twice: False is certain, True only a suspicion.

    Every quote of the body is in the object written back, but for keys given twice, keys of nulls, and quotes inside
    of text that were escaped the long way.
    """
    quotes = body.count(b'"') - 2 * body.count(_COMMON_NULL)
    return quotes != _encode(obj).count(b'"') or b"\\u0022" in body


# --- the slow walk

Stack = tuple[tuple[type[Struct], FieldInfo], ...]
"""The fields on the way to a value, each with its class."""


class Walk:
    """Reads a value against a class: collects problems, the first error, and a value that fits."""

    def __init__(self) -> None:
        self.value: Any = None
        self.problems: list[str] = []
        self.error: str | None = None

    def struct(self, pairs: Any, cls: type[Struct], path: str, stack: Stack) -> dict[str, Any]:
        known = fields_by_wire(cls)
        result: dict[str, Any] = {}
        seen: set[str] = set()
        for key, value in pairs if type(pairs) is Pairs else pairs.items():
            info = known.get(key)
            at = f"{path}.{key}" if path else key
            if info is None:
                self.problem("unknown field", at)
                continue
            if key in seen:
                self.problem("duplicate field", at)
            seen.add(key)
            if value is None:
                result.pop(key, None)
            else:
                result[key] = self.read(value, info, at, (*stack, (cls, info)))
        return result

    def read(self, value: Any, info: FieldInfo, path: str, stack: Stack, depth: int = 0) -> Any:
        """A value that is not null; `depth` says in how many lists and maps of the last field in the stack it is."""
        kind = info.kind
        if info.format in _CUSTOM:
            return self.custom(value, info.format or "", stack)
        if kind == STRUCT and info.struct is not None:
            if isinstance(value, (Pairs, dict)):
                return self.struct(value, info.struct, path, stack)
        elif kind == LIST and info.items is not None:
            if type(value) is list:
                items = info.items
                return [self.element(each, items, f"{path}[{n}]", stack, depth + 1) for n, each in enumerate(value)]
        elif kind == MAP and info.items is not None:
            if isinstance(value, (Pairs, dict)):
                return self.map(value, info.items, path, stack, depth + 1)
        elif kind == ANY:
            return _union(value, info) if info.variants else gojson.plain(value)
        elif kind == "string":
            if info.format == "byte":
                if type(value) in (str, list):
                    return self.bytes(value, stack, depth)
            elif type(value) is str:
                return value
        elif kind == "bool":
            if type(value) is bool:
                return value
        elif kind == "int":
            if type(value) is int:
                bits = 31 if info.format == "int32" else 63
                if -(1 << bits) <= value < 1 << bits:
                    return value
        elif kind == "float" and type(value) in (int, float, Number):
            number = gojson.as_float(value)
            if isfinite(number):
                return number
        return self.wrong(value, stack, depth)

    def element(self, value: Any, info: FieldInfo, path: str, stack: Stack, depth: int) -> Any:
        """A value in a list or map, where null is the zero of the type."""
        if value is None:
            return _ZERO.get(info.format or "", _ZERO.get(info.kind))
        return self.read(value, info, path, stack, depth)

    def map(self, pairs: Any, items: FieldInfo, path: str, stack: Stack, depth: int) -> dict[str, Any]:
        result: dict[str, Any] = {}
        for key, value in pairs if type(pairs) is Pairs else pairs.items():
            if key in result:
                self.problem("duplicate field", f"{path}.{key}")
            if value is None and items.format in _TIMES:  # no time at all, which JSON has no text for
                continue
            result[key] = self.element(value, items, f"{path}.{key}", stack, depth)
        return result

    def custom(self, value: Any, format: str, stack: Stack) -> Any:
        """Types that read themselves: what they refuse ends the reading, whatever was found before."""
        if format == "quantity":
            if type(value) is Number:
                value = str(value)
            if type(value) not in (str, int, float):
                raise DecodeError(ERR_FORMAT)
        elif format == "int-or-string":
            if type(value) not in (str, int) or (type(value) is int and not -(1 << 31) <= value < 1 << 31):
                raise DecodeError(f"json: cannot unmarshal {_value_word(value)} into {self.where(stack)} of type int32")
        elif type(value) is not str:
            raise DecodeError(f"json: cannot unmarshal {gojson.word(value)} into {self.where(stack)} of type string")
        try:
            return CANONICAL[format](value)
        except ValueError as error:
            raise DecodeError(str(error)) from None

    def bytes(self, value: str | list[Any], stack: Stack, depth: int) -> str:
        """Bytes are text in base 64, and Go takes a list of numbers as well."""
        try:
            if isinstance(value, str):
                return str(CANONICAL["byte"](value))
            return b64encode(bytes(self.byte(each, stack, depth + 1) for each in value)).decode()
        except ValueError as error:
            if self.error is None:
                self.error = str(error)
            return ""

    def byte(self, value: Any, stack: Stack, depth: int) -> int:
        if type(value) is int and 0 <= value < 256:
            return value
        if value is not None:
            self.wrong(value, stack, depth)
        return 0

    def problem(self, what: str, path: str) -> None:
        text = f"{what} {quote(path)}"
        if len(self.problems) < MAX_PROBLEMS and text not in self.problems:
            self.problems.append(text)

    def wrong(self, value: Any, stack: Stack, depth: int) -> None:
        """The first wrong type is remembered; reading goes on, for something worse may follow."""
        if self.error is None:
            go_type = go_field(*stack[-1]).types[depth]
            found = _value_word(value) if go_type in _NUMBERS else gojson.word(value)
            self.error = f"json: cannot unmarshal {found} into {self.where(stack)} of type {go_type}"

    def where(self, stack: Stack) -> str:
        """The field, as Go's decoder calls it."""
        names = [name for cls, info in stack for name in (*go_field(cls, info).embedded, info.wire)]
        return f"Go struct field {stack[-1][0].__name__}.{'.'.join(names)}"


def _union(value: Any, info: FieldInfo) -> Any:
    """A value of several types, which reads itself: nobody is told of unknown fields in it, errors end the reading.

    What is none of its types counts as nothing said, unless one of them is a flag.
    """
    struct = next(each.struct for each in info.variants if each.struct is not None)
    others = {each.kind: each for each in info.variants}
    if isinstance(value, (Pairs, dict)):
        return _alone(struct, value)
    if type(value) is list and LIST in others:
        items = others[LIST].items
        return [_alone(struct, each) if items and items.struct else _text(each) for each in value]
    if "bool" not in others:
        return []
    if type(value) is not bool:
        raise DecodeError("boolean or JSON schema expected")
    return value


def _alone(cls: type[Struct], value: Any) -> Any:
    walk = _walk(cls, value if value is not None else {})
    if walk.error is not None:
        raise DecodeError(walk.error)
    return walk.value


def _text(value: Any) -> str:
    if type(value) is str or value is None:
        return value or ""
    raise DecodeError(f"json: cannot unmarshal {gojson.word(value)} into Go value of type string")


_NUMBERS = frozenset({"int32", "int64", "float64", "uint8"})
_TIMES = frozenset({"date-time", "micro-time"})
_CUSTOM = frozenset({"quantity", "int-or-string", "duration", *_TIMES})
_ZERO: dict[str, Any] = {
    "string": "",
    "int": 0,
    "bool": False,
    "float": 0.0,
    STRUCT: {},
    LIST: [],
    MAP: {},
    "quantity": "0",
    "int-or-string": 0,
}


def _value_word(value: Any) -> str:
    word = gojson.word(value)
    return f"number {value}" if word == "number" else word


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
    """The message for a body of which not even the kind can be told."""
    return f"the object provided is unrecognized (must be of type {kind}): {why} ({_summary(body)})"


def _summary(body: bytes) -> str:
    if not body:
        return "<empty>"
    text = body[:30].decode("utf-8", "replace") if body[:1] == b"{" else body[:30].hex()
    return f"{text} ..." if len(body) > 30 else text
