"""Versions: `semver('1.2.3')`, `isSemver`."""

from __future__ import annotations

import re

from ...gocompat.quote import quote
from ..functions import Library, function, method
from ..types import BOOL, INT, STRING, Type
from ..values import UINT_MAX, EvaluationError, Opaque

SEMVER = Type("object", "kubernetes.Semver", fields={})
TYPES = {SEMVER.name: SEMVER}


class SemverValue(Opaque):
    """A version; build metadata says nothing about the order."""

    __slots__ = ("build", "numbers", "pre")
    cel_type = SEMVER

    def __init__(self, numbers: tuple[int, int, int], pre: tuple[str, ...], build: tuple[str, ...]) -> None:
        self.numbers = numbers
        self.pre = pre
        self.build = build

    def compare(self, other: SemverValue) -> int:
        """-1, 0 or 1."""
        if self.numbers != other.numbers:
            return 1 if self.numbers > other.numbers else -1
        if not self.pre or not other.pre:
            return bool(other.pre) - bool(self.pre)
        for one, two in zip(self.pre, other.pre, strict=False):
            if one != two:
                return _compare_parts(one, two)
        return (len(self.pre) > len(other.pre)) - (len(self.pre) < len(other.pre))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SemverValue) and self.compare(other) == 0

    def __hash__(self) -> int:
        return hash((self.numbers, self.pre))


def _compare_parts(one: str, two: str) -> int:
    if one.isdigit() and two.isdigit():
        first, second = (len(one), one), (len(two), two)  # neither has leading zeros
        return (first > second) - (first < second)
    if one.isdigit() != two.isdigit():
        return -1 if one.isdigit() else 1
    return 1 if one > two else -1


_DIGITS_OF_UINT = 20
_WORD = re.compile(r"[0-9A-Za-z-]+", re.ASCII)


def _number(text: str, name: str) -> int:
    if not text.isascii() or (text and not text.isdigit()):
        raise EvaluationError(f"Invalid character(s) found in {name.lower()} number {quote(text)}")
    if len(text) > 1 and text[0] == "0":
        raise EvaluationError(f"{name} number must not contain leading zeroes {quote(text)}")
    if not text:
        raise EvaluationError('strconv.ParseUint: parsing "": invalid syntax')
    if len(text) > _DIGITS_OF_UINT or int(text) > UINT_MAX:
        raise EvaluationError(f"strconv.ParseUint: parsing {quote(text)}: value out of range")
    return int(text)


def _parse(text: str) -> SemverValue:
    if not text:
        raise EvaluationError("Version string empty")
    parts = text.split(".", 2)
    if len(parts) != 3:
        raise EvaluationError("No Major.Minor.Patch elements found")
    major, minor = _number(parts[0], "Major"), _number(parts[1], "Minor")
    rest, plus, build_text = parts[2].partition("+")
    patch_text, dash, pre_text = rest.partition("-")
    patch = _number(patch_text, "Patch")
    pre = tuple(pre_text.split(".")) if dash else ()
    for part in pre:
        if not part:
            raise EvaluationError("Prerelease is empty")
        if part.isdigit() and len(part) > 1 and part[0] == "0":
            raise EvaluationError(f"Numeric PreRelease version must not contain leading zeroes {quote(part)}")
        if not _WORD.fullmatch(part):
            raise EvaluationError(f"Invalid character(s) found in prerelease {quote(part)}")
    build = tuple(build_text.split(".")) if plus else ()
    for part in build:
        if not part:
            raise EvaluationError("Build meta data is empty")
        if not _WORD.fullmatch(part):
            raise EvaluationError(f"Invalid character(s) found in build meta data {quote(part)}")
    return SemverValue((major, minor, patch), pre, build)


def parse_semver(text: str) -> SemverValue:
    """The version that a text stands for. Raises EvaluationError."""
    return _parse(text)


def _normalized(text: str) -> SemverValue:
    parts = text.removeprefix("v").split(".", 2)
    for index, part in enumerate(parts):
        if len(part) > 1:
            stripped = part.lstrip("0")
            parts[index] = stripped if stripped[:1].isdigit() else "0" + stripped
    if len(parts) < 3:
        if "+" in parts[-1] or "-" in parts[-1]:
            raise EvaluationError("short version cannot contain PreRelease/Build meta data")
        parts += ["0"] * (3 - len(parts))
    return _parse(".".join(parts))


def _read(text: str, normalize: bool = False) -> SemverValue:
    return _normalized(text) if normalize else _parse(text)


def _is(text: str, normalize: bool = False) -> bool:
    try:
        _read(text, normalize)
    except EvaluationError:
        return False
    return True


LIBRARY: Library = {
    "semver": [
        function("string_to_semver", (STRING,), SEMVER, _read),
        function("string_bool_to_semver", (STRING, BOOL), SEMVER, _read),
    ],
    "isSemver": [
        function("is_semver_string", (STRING,), BOOL, _is),
        function("is_semver_string_bool", (STRING, BOOL), BOOL, _is),
    ],
    "isGreaterThan": [method("semver_is_greater_than", (SEMVER, SEMVER), BOOL, lambda a, b: a.compare(b) > 0)],
    "isLessThan": [method("semver_is_less_than", (SEMVER, SEMVER), BOOL, lambda a, b: a.compare(b) < 0)],
    "compareTo": [method("semver_compare_to", (SEMVER, SEMVER), INT, SemverValue.compare)],
    "major": [method("semver_major", (SEMVER,), INT, lambda version: version.numbers[0])],
    "minor": [method("semver_minor", (SEMVER,), INT, lambda version: version.numbers[1])],
    "patch": [method("semver_patch", (SEMVER,), INT, lambda version: version.numbers[2])],
}
