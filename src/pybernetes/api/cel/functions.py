"""Functions: a name and its overloads, each with types and an implementation in Python."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from . import types as t
from .values import Duration, EvaluationError, Optional, Timestamp, UInt, type_of

Implementation = Callable[..., Any]


class Overload:
    """One way to call a function. The first of `args` is the target if `member`."""

    __slots__ = ("args", "function", "generic", "id", "impl", "member", "result")

    def __init__(
        self, id: str, args: tuple[t.Type, ...], result: t.Type, impl: Implementation, member: bool = False
    ) -> None:
        self.id = id
        self.args = args
        self.result = result
        self.impl = impl
        self.member = member
        self.generic = any(map(_has_params, (*args, result)))
        self.function = ""


Library = dict[str, list[Overload]]


def _has_params(type: t.Type) -> bool:
    return type.kind == "param" or any(map(_has_params, type.params))


def function(id: str, args: Iterable[t.Type], result: t.Type, impl: Implementation) -> Overload:
    """An overload called as `f(args)`."""
    return Overload(id, tuple(args), result, impl)


def method(id: str, args: Iterable[t.Type], result: t.Type, impl: Implementation) -> Overload:
    """An overload called as `args[0].f(args[1:])`."""
    return Overload(id, tuple(args), result, impl, member=True)


def merged(libraries: Iterable[Library]) -> Library:
    """All functions of several libraries; overloads of one name stand beside each other."""
    found: Library = {}
    for library in libraries:
        for name, overloads in library.items():
            found[name] = found.get(name, []) + overloads
            for overload in overloads:
                overload.function = name
    return found


def _accepts(type: t.Type, value: Any) -> bool:
    check = _CHECKS.get(type.kind)
    if check is not None:
        return check(value)
    if type.kind == "opaque" and type.name == "optional_type":
        return isinstance(value, Optional)
    return getattr(value, "cel_type", None) is not None and value.cel_type.name == type.name


_CHECKS: dict[str, Callable[[Any], bool]] = {
    "dyn": lambda value: True,
    "any": lambda value: True,
    "param": lambda value: True,
    "error": lambda value: True,
    "bool": lambda value: type(value) is bool,
    "int": lambda value: type(value) is int,
    "uint": lambda value: type(value) is UInt,
    "double": lambda value: type(value) is float,
    "string": lambda value: type(value) is str,
    "bytes": lambda value: type(value) is bytes,
    "null_type": lambda value: value is None,
    "list": lambda value: isinstance(value, list),
    "map": lambda value: isinstance(value, dict),
    "timestamp": lambda value: type(value) is Timestamp,
    "duration": lambda value: type(value) is Duration,
    "type": lambda value: isinstance(value, t.Type),
}


def is_certain(overload: Overload, types: list[t.Type]) -> bool:
    """Whether the static types leave no doubt that this overload fits at run time."""
    return all(_certain(declared, found) for declared, found in zip(overload.args, types, strict=True))


def _certain(declared: t.Type, found: t.Type) -> bool:
    return declared.kind in ("param", "dyn") or (declared.kind == found.kind and declared.name == found.name)


def choose(name: str, overloads: list[Overload], values: tuple[Any, ...]) -> Overload:
    """The overload that fits values whose types were not known before."""
    for overload in overloads:
        if all(map(_accepts, overload.args, values)):
            return overload
    raise no_such_overload(name, values, bool(overloads) and overloads[0].member)


def no_such_overload(name: str, values: tuple[Any, ...], member: bool = False) -> EvaluationError:
    """The error of a call that fits no overload."""
    names = [type_of(value).name for value in values]
    if name[0] in "_!-@":
        return EvaluationError("no such overload")
    if member:
        return EvaluationError(f"no such overload: {names[0]}.{name}({', '.join(names[1:])})")
    return EvaluationError(f"no such overload: {name}({', '.join(names)})")
