"""Whether an applied configuration fits its schema, in upstream's words.

Upstream prints values the way Go prints its own wrappers of them; the words are kept because people search for them.
"""

from __future__ import annotations

from typing import Any

from ..gocompat import goprint
from . import paths
from .items import NoIdentity, element
from .node import BOOLEAN, LIST, MAP, NUMERIC, STRING, UNTYPED_SCALAR, List, Map, Node, shape
from .paths import Path, field

Problem = tuple[str, str]


def problems(value: Any, node: Node) -> str:
    """All errors in one text; empty if there are none."""
    found: list[Problem] = []
    _check(value, node, (), found)
    texts = [f"{path}: {text}" if path else text for path, text in found]
    return "\n".join(["errors:", *("  " + text for text in texts)]) if len(texts) > 1 else "".join(texts)


def _check(value: Any, node: Node, path: Path, found: list[Problem]) -> None:
    if value is None:
        return
    what = shape(node, value)
    if what == MAP:
        assert node.map is not None
        if isinstance(value, dict):
            _check_map(value, node.map, path, found)
        else:
            found.append((paths.show(path), f"expected map, got &{{{goprint.plain(value)}}}"))
    elif what == LIST:
        assert node.list is not None
        if isinstance(value, list):
            _check_list(value, node.list, path, found)
        else:
            found.append((paths.show(path), f"expected list, got &{{{goprint.plain(value)}}}"))
    else:
        text = _scalar(value, node.scalar)
        if text:
            found.append((paths.show(path), text))


def _check_map(value: dict[str, Any], kind: Map, path: Path, found: list[Problem]) -> None:
    for key, item in value.items():
        child = kind.child(key)
        if child is None:
            found.append((paths.show((*path, field(key))), "field not declared in schema"))
            return
        _check(item, child, (*path, field(key)), found)


def _check_list(value: list[Any], kind: List, path: Path, found: list[Problem]) -> None:
    seen = set()
    for at, item in enumerate(value):
        if kind.atomic:
            name = f"i:{at}"
        else:
            try:
                name = element(kind, item)
            except NoIdentity as problem:
                found.append((paths.show(path), f"element {at}: {problem}"))
                return
            if name in seen:
                found.append((paths.show(path), f"duplicate entries for key {paths.show((name,))}"))
            seen.add(name)
        _check(item, kind.element, (*path, name), found)


def _scalar(value: Any, kind: str | None) -> str:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if kind == NUMERIC and not number:
        return f"expected numeric (int or float), got {goprint.type_of(value)}"
    if kind == STRING and not isinstance(value, str):
        return f"expected string, got &value.valueUnstructured{{Value:{goprint.syntax(value)}}}"
    if kind == BOOLEAN and not isinstance(value, bool):
        return f"expected boolean, got &{{{goprint.plain(value)}}}"
    if kind == UNTYPED_SCALAR and isinstance(value, dict | list):
        return f"expected any scalar, got &{{{goprint.plain(value)}}}"
    return ""
