"""Configuration files of components: a kind and a version, decoded strictly, complaints in upstream's words.

Syntax errors are reported together (unknown fields, keys given twice, at any depth). The content is validated
by the reader of each file, which also adds the file's name to errors.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, ClassVar, NamedTuple, TypeVar

import msgspec

from . import strict
from .base import Struct
from .gocompat import gojson
from .gocompat.quote import quote

T = TypeVar("T", bound=Struct)

NO_KIND = "couldn't get version/kind; json parse error: "


class ConfigError(ValueError):
    """A file that is no valid configuration."""


class Section(Struct):
    """A part of a configuration. Unlike a kind's, its fields may have values that stand for what is absent."""

    go_package: ClassVar[str] = "v1"
    """Where Go has the type of the same name, for its words."""


class Scheme(NamedTuple):
    """The kinds and versions that a reader accepts."""

    kinds: Collection[tuple[str, str]]
    """Versions (with their group) and kinds."""
    name: str
    """Upstream's name of it in errors."""


def load(data: bytes, cls: type[T], scheme: Scheme) -> T:
    """The object in a YAML or JSON file; `ConfigError` if it is of another kind, or not strictly one of this."""
    value, repeated = parse(data)
    check_type(value, data, scheme)
    found, problems = decode(cls, value)
    if repeated or problems:
        raise ConfigError(strict.strict_decoding_error([*repeated, *problems]))
    return found


def parse(data: bytes) -> tuple[Any, list[str]]:
    """A file's value with `gojson.Pairs` for objects, and what to say about keys that YAML had twice."""
    repeated: list[str] = []
    if not data.lstrip().startswith(b"{"):
        from .yaml import YAMLProblem, yaml_to_json

        try:
            data, lines = yaml_to_json(data)
        except YAMLProblem as problem:
            raise ConfigError(str(problem)) from None
        repeated = ["\n  ".join(("yaml: unmarshal errors:", *lines))] if lines else []
    try:
        return gojson.loads(data), repeated
    except gojson.SyntaxProblem as problem:
        raise ConfigError(f"{NO_KIND}{problem}") from None


def named_type(value: Any) -> tuple[str, str]:
    """The version and kind that a file's value names, empty where it names none."""
    if value is not None and type(value) is not gojson.Pairs:
        raise ConfigError(f"{NO_KIND}{strict.not_an_object(value)}")
    found = dict(value or ())
    for name in ("apiVersion", "kind"):
        each = found.get(name)
        if each is not None and type(each) is not str:
            why = f"json: cannot unmarshal {gojson.word(each)} into Go struct field .{name} of type string"
            raise ConfigError(f"{NO_KIND}{why}")
    return found.get("apiVersion") or "", found.get("kind") or ""


def check_type(value: Any, data: bytes, scheme: Scheme) -> tuple[str, str]:
    """The version and kind of a file's value, which must be among those of the scheme."""
    version, kind = named_type(value)
    text = data.decode("utf-8", "replace")
    if not kind:
        raise ConfigError(f"Object 'Kind' is missing in '{text}'")
    if not version:
        raise ConfigError(f"Object 'apiVersion' is missing in '{text}'")
    if (version, kind) not in scheme.kinds:
        raise not_registered(version, kind, scheme)
    return version, kind


def not_registered(version: str, kind: str, scheme: Scheme) -> ConfigError:
    """The error for an unknown version and kind."""
    if version.count("/") > 1:
        return ConfigError(f"unexpected GroupVersion string: {version}")
    return ConfigError(f'no kind {quote(kind)} is registered for version {quote(version)} in scheme "{scheme.name}"')


def decode(cls: type[T], value: Any) -> tuple[T, list[str]]:
    """The value as a class, and its unknown or repeated fields; `ConfigError` if a type is wrong."""
    try:
        plain, problems = strict.read(cls, value)
        return msgspec.convert(plain, cls), problems
    except ValueError as error:
        raise ConfigError(str(error)) from None
