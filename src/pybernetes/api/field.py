"""Where a field is and what is wrong with it.

A validator walks an object with a `Path` and collects `FieldError`s in a plain list; `errors.Invalid` turns the list
into one Status. A walk over a valid object is the normal case, so a `Path` is only a pair (parent, last element) and
becomes text when an error needs it.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence, Set
from typing import Any, Final

import msgspec

from .base import Struct
from .gocompat.quote import json, number, quote

NOT_FOUND: Final = "FieldValueNotFound"
REQUIRED: Final = "FieldValueRequired"
DUPLICATE: Final = "FieldValueDuplicate"
INVALID: Final = "FieldValueInvalid"
NOT_SUPPORTED: Final = "FieldValueNotSupported"
FORBIDDEN: Final = "FieldValueForbidden"
TOO_LONG: Final = "FieldValueTooLong"
TOO_SHORT: Final = "FieldValueTooShort"
TOO_MANY: Final = "FieldValueTooMany"
TOO_FEW: Final = "FieldValueTooFew"
INTERNAL: Final = "InternalError"
TYPE_INVALID: Final = "FieldValueTypeInvalid"

MAX_REPEATED: Final = 200
"""Errors that are the same for every pair of elements; more of them say nothing new."""

OMIT: Final = object()
"""As a value: say what is wrong without printing the value."""

_TITLES = {
    NOT_FOUND: "Not found",
    REQUIRED: "Required value",
    DUPLICATE: "Duplicate value",
    INVALID: "Invalid value",
    NOT_SUPPORTED: "Unsupported value",
    FORBIDDEN: "Forbidden",
    TOO_LONG: "Too long",
    TOO_SHORT: "Too short",
    TOO_MANY: "Too many",
    TOO_FEW: "Too few",
    INTERNAL: "Internal error",
    TYPE_INVALID: "Invalid value",
}
_WITHOUT_VALUE = frozenset({REQUIRED, FORBIDDEN, TOO_LONG, TOO_SHORT, INTERNAL})


_new = object.__new__


class Path:
    """The way from a root to a field: `Path("spec").child("containers").index(0)` reads `spec.containers[0]`."""

    __slots__ = ("_element", "_parent")

    # An element is a name (str), an index (int) or a key (1-tuple of str): the type tells how it is printed.
    _element: str | int | tuple[str]
    _parent: Path | None

    def __init__(self, name: str, *more: str) -> None:
        self._parent = None
        self._element = name
        if more:
            for each in (name, *more[:-1]):
                self._parent = _below(self._parent, each)
            self._element = more[-1]

    # Validation makes dozens of paths for an object with nothing wrong, so these two do not call anything.

    def child(self, name: str, *more: str) -> Path:
        """The field (or nested field) of this one."""
        path = _new(Path)
        path._parent = self
        path._element = name
        for each in more:
            path = _below(path, each)
        return path

    def index(self, index: int) -> Path:
        """The element of this list."""
        path = _new(Path)
        path._parent = self
        path._element = index
        return path

    def key(self, key: str) -> Path:
        """The value under a key of this map."""
        return _below(self, (key,))

    def __str__(self) -> str:
        parts: list[str] = []
        path: Path | None = self
        while path is not None:
            element, parent = path._element, path._parent
            if type(element) is tuple:
                parts.append(f"[{element[0]}]")
            elif type(element) is int:
                parts.append(f"[{element}]")
            elif not element:
                parts.append("[]")  # as upstream prints a name that is empty
            else:
                parts.append(f".{element}" if parent is not None else str(element))
            path = parent
        return "".join(reversed(parts))

    def __repr__(self) -> str:
        return f"Path({str(self)!r})"


def _below(parent: Path | None, element: str | int | tuple[str]) -> Path:
    path = _new(Path)
    path._parent = parent
    path._element = element
    return path


class FieldError:
    """One thing wrong with one field; `type` is the cause's reason on the wire."""

    __slots__ = ("detail", "field", "type", "value")

    def __init__(self, type: str, field: Path | str | None, value: Any, detail: str) -> None:
        self.type = type
        self.field = "<nil>" if field is None else str(field)
        self.value = value
        self.detail = detail

    def body(self) -> str:
        """The error without the field: the message of a cause."""
        text = _TITLES[self.type]
        if self.type not in _WITHOUT_VALUE and self.value is not OMIT:
            # Enumerations are types of their own in Go, and what is no plain string is printed as JSON.
            printed = json if self.type is NOT_SUPPORTED and isinstance(self.value, str) else _printed
            text = f"{text}: {printed(self.value)}"
        return f"{text}: {self.detail}" if self.detail else text

    def message(self) -> str:
        """Field and what is wrong with it: `spec.replicas: Invalid value: -1: must be ...`."""
        return f"{self.field}: {self.body()}"

    def cause(self) -> dict[str, str]:
        """The entry in `details.causes` of a Status."""
        cause = {"reason": self.type, "message": self.body()}
        if self.field:
            cause["field"] = self.field
        return cause

    __str__ = message

    def __repr__(self) -> str:
        return f"FieldError({self.type}, {self.message()!r})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, FieldError):
            return NotImplemented
        return self.type == other.type and self.message() == other.message()

    def __hash__(self) -> int:
        return hash((self.type, self.message()))


def aggregate(errors: Sequence[FieldError]) -> str:
    """All messages as one text: alone as it is, several between brackets, repetitions once."""
    messages = list(dict.fromkeys(error.message() for error in errors))
    return messages[0] if len(messages) == 1 else f"[{', '.join(messages)}]"


def bounded(errors: Sequence[FieldError], length: int) -> Sequence[FieldError]:
    """The first errors, and no more than fit into a length with their messages; at least one."""
    for index, error in enumerate(errors):
        length -= len(error.field) + len(error.body())
        if length < 0:
            return errors[: max(index, 1)]
    return errors


def repeated(values: Iterable[Hashable]) -> set[int]:
    """The indexes of values that were there before, earlier in the list."""
    seen: set[Hashable] = set()
    found: set[int] = set()
    for index, value in enumerate(values):
        if value in seen:
            found.add(index)
        seen.add(value)
    return found


def required(field: Path | str | None, detail: str = "") -> FieldError:
    """A value that must be there is not."""
    return FieldError(REQUIRED, field, "", detail)


def invalid(field: Path | str | None, value: Any, detail: str) -> FieldError:
    """A malformed value: does not match, out of bounds."""
    return FieldError(INVALID, field, value, detail)


def type_invalid(field: Path | str | None, value: Any, detail: str) -> FieldError:
    """A value whose type is not the schema's."""
    return FieldError(TYPE_INVALID, field, value, detail)


def not_supported(field: Path | str | None, value: Any, supported: Iterable[str]) -> FieldError:
    """A value outside an enumeration; a set of supported values is printed sorted, a list in its own order."""
    values = sorted(supported) if isinstance(supported, Set) else supported
    listed = ", ".join(quote(str(each)) for each in values)
    return FieldError(NOT_SUPPORTED, field, value, f"supported values: {listed}" if listed else "")


def not_found(field: Path | str | None, value: Any) -> FieldError:
    """A value that refers to something that is not there."""
    return FieldError(NOT_FOUND, field, value, "")


def duplicate(field: Path | str | None, value: Any) -> FieldError:
    """A value that must be unique and is not."""
    return FieldError(DUPLICATE, field, value, "")


def forbidden(field: Path | str | None, detail: str) -> FieldError:
    """A well-formed value that the circumstances do not permit."""
    return FieldError(FORBIDDEN, field, "", detail)


def too_long(field: Path | str | None, value: Any, max_length: int) -> FieldError:
    """More bytes than allowed; the value itself is not printed, and neither is a negative limit."""
    return FieldError(TOO_LONG, field, OMIT, _limit("may not be more than", max_length, "byte", "value is too long"))


too_long_max_length = too_long


def too_long_characters(field: Path | str | None, value: Any, max_length: int) -> FieldError:
    """More characters than allowed."""
    detail = _limit("may not be more than", max_length, "character", "value is too long")
    return FieldError(TOO_LONG, field, OMIT, detail)


def too_short(field: Path | str | None, value: Any, min_length: int) -> FieldError:
    """Fewer characters than needed."""
    detail = _limit("must be at least", min_length, "character", "value is too short")
    return FieldError(TOO_SHORT, field, value, detail)


def too_many(field: Path | str | None, actual: int, maximum: int) -> FieldError:
    """More items than allowed; a negative actual number is not printed."""
    detail = _limit("must have at most", maximum, "item", "has too many items")
    return FieldError(TOO_MANY, field, actual if actual >= 0 else OMIT, detail)


def too_few(field: Path | str | None, actual: int, minimum: int) -> FieldError:
    """Fewer items than needed."""
    return FieldError(TOO_FEW, field, actual, _limit("must have at least", minimum, "item", "has too few items"))


def internal(field: Path | str | None, error: object) -> FieldError:
    """Something failed that is not the user's doing."""
    return FieldError(INTERNAL, field, OMIT, str(error))


def _limit(words: str, limit: int, unit: str, otherwise: str) -> str:
    if limit < 0:
        return otherwise
    return f"{words} {limit} {unit if limit == 1 else unit + 's'}"


def _printed(value: Any) -> str:
    if isinstance(value, str):
        return quote(str(value))
    if value is True or value is False:
        return "true" if value else "false"
    if isinstance(value, float):
        return number(value)
    if isinstance(value, Struct):
        from .gocompat.goencoder import encode  # knows every kind; needed only to complain

        value = msgspec.json.decode(encode(value), type=type(value))
    try:
        return json(value)
    except TypeError:  # not JSON: its own text is better than nothing
        return str(value)
