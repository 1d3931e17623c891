"""Cost estimates of calls: upstream's figures for CEL's functions and Kubernetes' own, by function and overload."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import ceil
from typing import NamedTuple

from .ast import Literal, Node
from .ranges import MAX, ONE, Range, fixed
from .runtimecosts import (
    AUTHORIZATION_CHECK,
    COMPARABLE,
    LIST_CREATE,
    NAME_FORMAT_REGEX,
    REGEX_FACTOR,
    STRING_FACTOR,
    STRUCT_CREATE,
)
from .types import Type

MAX_FORMAT_SIZE = 64


class Sized(NamedTuple):
    """An argument: where it comes from, its type, how large it can be."""

    path: tuple[str, ...]
    type: Type
    known: Range
    node: Node | None


class CallEstimate(NamedTuple):
    """The cost of a call, and the size of its result."""

    cost: Range
    size: Range | None


Element = Callable[[Sized], "Sized | None"]
Arguments = Sequence[Sized]

_NOMINAL = frozenset(
    [
        "serviceAccount",
        "path",
        "group",
        "resource",
        "subresource",
        "namespace",
        "name",
        "allowed",
        "reason",
        "error",
        "errored",
        "masked",
        "prefixLength",
        "family",
        "isUnspecified",
        "isLoopback",
        "isLinkLocalMulticast",
        "isLinkLocalUnicast",
        "isGlobalUnicast",
        "format.named",
        "sign",
        "asInteger",
        "isInteger",
        "asApproximateFloat",
        "isGreaterThan",
        "isLessThan",
        "compareTo",
        "add",
        "sub",
        "major",
        "minor",
        "patch",
        "getScheme",
        "getHostname",
        "getHost",
        "getPort",
        "getEscapedPath",
        "getQuery",
    ]
)
_TRAVERSING = frozenset(["cidr", "isIP", "isCIDR", "ip", "quantity", "isQuantity", "semver", "isSemver"])
_ELEMENTWISE = frozenset(["isSorted", "sum", "max", "min", "indexOf", "lastIndexOf"])
_ORDERING = frozenset(
    f"{word}_{type}" for word in ("less", "less_equals", "greater", "greater_equals") for type in ("string", "bytes")
)
_UNIT_EQUALITY = frozenset(
    [
        "net.IP",
        "net.CIDR",
        "kubernetes.Quantity",
        "kubernetes.authorization.Authorizer",
        "kubernetes.authorization.PathCheck",
        "kubernetes.authorization.GroupCheck",
        "kubernetes.authorization.ResourceCheck",
        "kubernetes.authorization.Decision",
        "kubernetes.Semver",
    ]
)


def estimate_call(
    function: str, overload: str, target: Sized | None, args: Arguments, element: Element
) -> CallEstimate | None:
    """The estimate, without the cost of the arguments, or None for what costs one."""
    by_overload = _BY_OVERLOAD.get(overload)
    if by_overload is not None:
        found = by_overload(target, args)
        if found is not None:
            return found
    if function in _NOMINAL or overload == "cidr_ip":
        return CallEstimate(ONE, None)
    if function in _TRAVERSING and args:
        return CallEstimate(args[0].known.factor(STRING_FACTOR), None)
    if function in _ELEMENTWISE and target is not None:
        return _elementwise(target, element)
    by_function = _BY_FUNCTION.get(function)
    if by_function is not None:
        return by_function(target, args, overload, element)
    if overload in _ORDERING or overload == "not_equals":
        return _compared(args)
    return None


def _elementwise(target: Sized, element: Element) -> CallEstimate:
    item = element(target)
    if item is None:
        return CallEstimate(target.known.factor(STRING_FACTOR), None)
    each = ONE
    if item.type.kind in ("string", "bytes"):
        each = each.add(item.known.factor(STRING_FACTOR))
    return CallEstimate(target.known.multiply(each), None)


def _compared(args: Arguments) -> CallEstimate:
    smallest = min(args[0].known.max, args[1].known.max)
    return CallEstimate(Range(1 if smallest else 0, smallest).factor(STRING_FACTOR), None)


def _equality(_target: Sized | None, args: Arguments, _overload: str, _element: Element) -> CallEstimate:
    one, other = args
    if one.type.exact(other.type):
        if one.type.name in _UNIT_EQUALITY:
            return CallEstimate(ONE, None)
        if one.type.name == "kubernetes.NamedFormat":
            return CallEstimate(Range(1, MAX_FORMAT_SIZE).factor(STRING_FACTOR), None)
        if one.type.name == "kubernetes.URL":
            most = other.known.max if other.known.max != MAX else 1
            return CallEstimate(Range(1, most).factor(STRING_FACTOR), None)
    return _compared(args)


def _selector(_target: Sized | None, args: Arguments, _overload: str, _element: Element) -> CallEstimate | None:
    if len(args) != 1:
        return None
    length = args[0].known
    requirements = length.factor(0.5).factor(float(LIST_CREATE + STRUCT_CREATE))
    return CallEstimate(fixed(LIST_CREATE).add(length.factor(STRING_FACTOR)).add(requirements), None)


def _same_size_argument(
    _target: Sized | None, args: Arguments, _overload: str, _element: Element
) -> CallEstimate | None:
    return CallEstimate(args[0].known.factor(STRING_FACTOR), args[0].known) if len(args) == 1 else None


def _same_size_target(target: Sized | None, _args: Arguments, _overload: str, _element: Element) -> CallEstimate | None:
    return None if target is None else CallEstimate(target.known.factor(STRING_FACTOR), target.known)


def _replace(target: Sized | None, args: Arguments, _overload: str, _element: Element) -> CallEstimate | None:
    if target is None or len(args) < 2:
        return None
    text, old, new = target.known, args[0].known, args[1].known
    if old.min == 0:  # an empty text is found between all characters
        most, kept_most = min(text.max + 1, MAX), text.max
    elif new.max <= old.min:
        most, kept_most = 0, text.max
    else:
        most, kept_most = ceil(float(text.max) / float(old.min)), 0
    if old.max == 0:
        least, kept_least = min(text.min + 1, MAX), text.min
    elif old.max <= new.min:
        least, kept_least = 0, text.min
    else:
        least, kept_least = ceil(float(text.min) / float(old.max)), 0
    size = Range(least, min(most, MAX)).multiply(new).add(Range(kept_least, kept_most))
    return CallEstimate(text.factor(2 * STRING_FACTOR), size)


def _split(target: Sized | None, args: Arguments, _overload: str, _element: Element) -> CallEstimate | None:
    if target is None:
        return None
    most = target.known.max
    if len(args) > 1 and isinstance(args[1].node, Literal) and type(args[1].node.value) is int:
        most = args[1].node.value % 2**64
    return CallEstimate(target.known.factor(2 * STRING_FACTOR), Range(0, most))


def _join(target: Sized | None, args: Arguments, _overload: str, element: Element) -> CallEstimate | None:
    if target is None:
        return None
    count, size = target.known, fixed(0)
    item = element(target)
    if item is not None:
        size = count.multiply(item.known)
    if args:
        size = size.add(args[0].known.multiply(Range(max(count.min - 1, 0), max(count.max - 1, 0))))
    return CallEstimate(size.factor(STRING_FACTOR), size)


def _find(target: Sized | None, args: Arguments, _overload: str, _element: Element) -> CallEstimate | None:
    if target is None or not args:
        return None
    return CallEstimate(_regex(target.known, args[0].known), Range(0, target.known.max))


def _regex(text: Range, pattern: Range) -> Range:
    return text.add(ONE).factor(STRING_FACTOR).multiply(pattern.factor(REGEX_FACTOR))


def _canonical(_target: Sized | None, args: Arguments, _overload: str, _element: Element) -> CallEstimate | None:
    return CallEstimate(args[0].known.factor(2 * STRING_FACTOR), None) if args else None


def _network(target: Sized | None, args: Arguments, overload: str, _element: Element) -> CallEstimate | None:
    if not args:
        return None
    address = Range(4, 16)
    cost = address.add(address).factor(STRING_FACTOR)
    if "contains_cidr" in overload:
        cost = cost.add(address.factor(STRING_FACTOR)).add(ONE)
    if overload.endswith("_string"):
        cost = cost.add(args[0].known.factor(STRING_FACTOR))
    return CallEstimate(cost, None)


def _validate(_target: Sized | None, args: Arguments, _overload: str, _element: Element) -> CallEstimate | None:
    if not args:
        return None
    return CallEstimate(args[0].known.factor(STRING_FACTOR).factor(NAME_FORMAT_REGEX * REGEX_FACTOR), None)


def _check(_target: Sized | None, _args: Arguments, _overload: str, _element: Element) -> CallEstimate:
    return CallEstimate(fixed(AUTHORIZATION_CHECK), None)


_BY_FUNCTION: dict[str, Callable[[Sized | None, Arguments, str, Element], CallEstimate | None]] = {
    "check": _check,
    "fieldSelector": _selector,
    "labelSelector": _selector,
    "url": _same_size_argument,
    "jsonpatch.escapeKey": _same_size_argument,
    "lowerAscii": _same_size_target,
    "upperAscii": _same_size_target,
    "substring": _same_size_target,
    "trim": _same_size_target,
    "replace": _replace,
    "split": _split,
    "join": _join,
    "find": _find,
    "findAll": _find,
    "ip.isCanonical": _canonical,
    "containsIP": _network,
    "containsCIDR": _network,
    "validate": _validate,
    "_==_": _equality,
}


def _allocating(factor: float, size: Range) -> CallEstimate:
    return CallEstimate(size.factor(factor).add(ONE).add(fixed(LIST_CREATE)), size)


def _literal(argument: Sized, default: int) -> int:
    node = argument.node
    if isinstance(node, Literal) and type(node.value) is int:
        return max(node.value, 0)
    return default


def _slice(target: Sized | None, args: Arguments) -> CallEstimate | None:
    if target is None or len(args) != 2:
        return None
    return _allocating(1, fixed((_literal(args[1], target.known.max) - _literal(args[0], 0)) % 2**64))


def _flatten(target: Sized | None, args: Arguments) -> CallEstimate | None:
    if target is None:
        return None
    return _allocating(float(_literal(args[0], MAX) if args else 1), target.known)


def _squared(factor: float, sized: Sized | None) -> CallEstimate | None:
    return None if sized is None else _allocating(factor, sized.known.multiply(sized.known))


def _sets(factor: float) -> Callable[[Sized | None, Arguments], CallEstimate | None]:
    def estimate(_target: Sized | None, args: Arguments) -> CallEstimate | None:
        return (
            CallEstimate(args[0].known.multiply(args[1].known).factor(factor).add(ONE), None)
            if len(args) == 2
            else None
        )

    return estimate


def _first(args: Arguments) -> CallEstimate:
    return CallEstimate(args[0].known.factor(STRING_FACTOR), None)


_BY_OVERLOAD: dict[str, Callable[[Sized | None, Arguments], CallEstimate | None]] = {
    "string_format": lambda target, args: CallEstimate(target.known.factor(STRING_FACTOR), None) if target else None,
    "string_to_bytes": lambda _, args: CallEstimate(
        args[0].known.factor(STRING_FACTOR), Range(args[0].known.min, args[0].known.max * 4 % 2**64)
    ),
    "bytes_to_string": lambda _, args: CallEstimate(
        args[0].known.factor(STRING_FACTOR), Range(args[0].known.min // 4, args[0].known.max)
    ),
    "strings_quote": lambda _, args: CallEstimate(
        args[0].known.factor(STRING_FACTOR), Range(args[0].known.min + 2, (args[0].known.max * 2 + 2) % 2**64)
    ),
    "starts_with_string": lambda _, args: _first(args),
    "ends_with_string": lambda _, args: _first(args),
    "in_list": lambda _, args: CallEstimate(args[1].known.factor(1), None),
    "matches_string": lambda target, args: CallEstimate(_regex(target.known, args[0].known), None) if target else None,
    "contains_string": lambda target, args: (
        CallEstimate(target.known.factor(STRING_FACTOR).multiply(args[0].known.factor(STRING_FACTOR)), None)
        if target
        else None
    ),
    "list_slice": _slice,
    "lists_range": lambda _, args: _allocating(1, fixed(_literal(args[0], MAX))),
    "list_reverse": lambda target, _: _allocating(1, target.known) if target else None,
    "list_flatten": _flatten,
    "list_flatten_int": _flatten,
    "list_distinct": lambda target, _: _squared(2.0, target),
    "list_sets_contains_list": _sets(1),
    "list_sets_intersects_list": _sets(1),
    "list_sets_equivalent_list": _sets(2),
}


def _sorting(name: str) -> None:
    weight = 2.0 + (STRING_FACTOR if name in ("string", "bytes") else 0.0)
    _BY_OVERLOAD[f"list_{name}_sort"] = lambda target, _: _squared(weight, target)
    _BY_OVERLOAD[f"list_{name}_sortByAssociatedKeys"] = lambda _, args: _squared(weight, args[0])


for _name in COMPARABLE:
    _sorting(_name)
