"""Strategic merge patches on the client: the patch between two objects, the three-way patch of apply, and merging.

Which lists merge by which key is read from merge_keys.txt, so that the kinds need not be imported. A kind that is not
in it (a custom resource) gets JSON merge patches.
"""

from __future__ import annotations

import os

from pybernetes.kubectl.data import copy

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeAlias

    Map: TypeAlias = dict[str, Any]

_tables: tuple[dict[str, str], dict[str, dict[str, tuple[str, str, str]]]] | None = None
_NOTHING = ("-", "-", "-")


def _load() -> tuple[dict[str, str], dict[str, dict[str, tuple[str, str, str]]]]:
    global _tables
    if _tables is None:
        kinds: dict[str, str] = {}
        fields: dict[str, dict[str, tuple[str, str, str]]] = {}
        with open(os.path.join(os.path.dirname(__file__), "merge_keys.txt")) as file:
            for line in file:
                words = line.split()
                if len(words) == 2:
                    kinds[words[0]] = words[1]
                elif len(words) == 5:
                    fields.setdefault(words[0], {})[words[1]] = (words[2], words[3], words[4])
        _tables = kinds, fields
    return _tables


def type_of(api_version: str, kind: str) -> str | None:
    """The type of a built-in kind, or None."""
    return _load()[0].get(f"{api_version}/{kind}")


def field(cls: str, key: str) -> tuple[str, str, str]:
    """A field's strategy, merge key and type."""
    return _load()[1].get(cls, {}).get(key, _NOTHING)


# -- the patch of apply


def three_way(original: Map, modified: Map, current: Map, cls: str | None) -> Map:
    """The patch that makes `current` match `modified`, and removes what only `original` has."""
    if cls is None:
        return _merge_three(original, modified, current)
    return _three(original, modified, current, cls)


def _merge_three(original: Map, modified: Map, current: Map) -> Map:
    """A JSON merge patch: lists are replaced as a whole."""
    patch: Map = {}
    for key, value in modified.items():
        if key not in current:
            if value is not None:
                patch[key] = copy(value)
        elif isinstance(value, dict) and isinstance(current[key], dict):
            before = original.get(key)
            inner = _merge_three(before if isinstance(before, dict) else {}, value, current[key])
            if inner:
                patch[key] = inner
        elif value != current[key]:
            patch[key] = copy(value)
    for key in original:
        if key not in modified and key in current:
            patch[key] = None
    return patch


def _three(original: Map, modified: Map, current: Map, cls: str) -> Map:
    patch: Map = {}
    for key, value in modified.items():
        strategy, merge_key, child = field(cls, key)
        here = current.get(key)
        before = original.get(key)
        if here is None:
            if value is not None:
                patch[key] = copy(value)
        elif isinstance(value, dict) and isinstance(here, dict):
            inner = _three(before if isinstance(before, dict) else {}, value, here, child)
            if inner:
                if "retainKeys" in strategy:
                    inner["$retainKeys"] = sorted(value)
                patch[key] = inner
        elif isinstance(value, list) and isinstance(here, list) and "merge" in strategy:
            _three_list(patch, key, before if isinstance(before, list) else [], value, here, merge_key, child, strategy)
        elif value != here:
            patch[key] = copy(value)
    for key in original:
        if key not in modified and key in current:
            patch[key] = None
    return patch


def _three_list(
    patch: Map,
    key: str,
    original: list[Any],
    modified: list[Any],
    current: list[Any],
    merge_key: str,
    child: str,
    how: str,
) -> None:
    if merge_key == "-":
        added = [each for each in modified if each not in current]
        gone = [each for each in original if each not in modified and each in current]
        if added:
            patch[key] = added
        if gone:
            patch[f"$deleteFromPrimitiveList/{key}"] = gone
        if added or gone or modified != current:
            patch[f"$setElementOrder/{key}"] = list(modified)
        return
    here = {each.get(merge_key): each for each in current if isinstance(each, dict)}
    before = {each.get(merge_key): each for each in original if isinstance(each, dict)}
    wanted = {each.get(merge_key): each for each in modified if isinstance(each, dict)}
    items: list[Any] = []
    for name, each in wanted.items():
        if name not in here:
            items.append(copy(each))
            continue
        inner = _three(before.get(name) or {}, each, here[name], child)
        if inner:
            if "retainKeys" in how:
                inner["$retainKeys"] = sorted(each)
            inner[merge_key] = name
            items.append(inner)
    for name in before:
        if name not in wanted and name in here:
            items.append({"$patch": "delete", merge_key: name})
    if items or list(here) != list(wanted):
        patch[key] = items
        patch[f"$setElementOrder/{key}"] = [{merge_key: name} for name in wanted]
        if not items:
            del patch[key]


def two_way(before: Map, after: Map, cls: str | None) -> Map:
    """The patch that makes `before` into `after`."""
    return three_way(before, after, before, cls)


def conflicts(patch: Map, changed: Map, cls: str) -> bool:
    """Whether a patch changes something that another one changes in another way (`apply --overwrite=false`)."""
    for key, left in patch.items():
        if key in ("$patch", "$retainKeys") or key not in changed:
            continue
        strategy, merge_key, child = field(cls, key.rpartition("/")[2])
        if _conflict(left, changed[key], strategy, merge_key, child):
            return True
    return False


def _conflict(left: Any, right: Any, strategy: str, merge_key: str, cls: str) -> bool:
    if isinstance(left, dict) and isinstance(right, dict):
        return left.get("$patch") != right.get("$patch") or conflicts(left, right, cls)
    if isinstance(left, list) and isinstance(right, list) and "merge" in strategy:
        if merge_key == "-":
            return False
        others = {each.get(merge_key): each for each in right}
        return any(
            each.get(merge_key) in others and _conflict(each, others[each.get(merge_key)], "", "-", cls)
            for each in left
        )
    return bool(left != right)


def json_merge(target: Any, patch: Any) -> Any:
    """RFC 7386."""
    if not isinstance(patch, dict):
        return copy(patch)
    result = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = json_merge(result.get(key), value)
    return result


def merge(target: Map, patch: Map, cls: str | None) -> Map:
    """The object after a strategic merge patch."""
    if cls is None:
        merged: Map = json_merge(target, patch)
        return merged
    if patch.get("$patch") == "replace":
        return {key: copy(value) for key, value in patch.items() if key != "$patch"}
    if patch.get("$patch") == "delete":
        return {}
    result = dict(target)
    if "$retainKeys" in patch:
        result = {key: value for key, value in result.items() if key in patch["$retainKeys"]}
    for key, value in patch.items():
        if key.startswith("$deleteFromPrimitiveList/"):
            name = key.partition("/")[2]
            result[name] = [each for each in result.get(name) or () if each not in value]
        if key.startswith("$"):
            continue
        strategy, merge_key, child = field(cls, key)
        here = result.get(key)
        if value is None:
            result.pop(key, None)
        elif isinstance(value, dict):
            result[key] = merge(here if isinstance(here, dict) else {}, value, child)
        elif isinstance(value, list) and isinstance(here, list) and "merge" in strategy:
            result[key] = _merge_list(here, value, merge_key, child, patch.get(f"$setElementOrder/{key}"))
        else:
            result[key] = copy(value)
    return result


def _merge_list(here: list[Any], patch: list[Any], merge_key: str, child: str, order: Any) -> list[Any]:
    if merge_key == "-":
        return [*here, *(each for each in patch if each not in here)]
    if any(isinstance(each, dict) and each.get("$patch") == "replace" for each in patch):
        return [copy(each) for each in patch if each.get("$patch") != "replace"]
    result = list(here)
    for each in patch:
        name = each.get(merge_key)
        at = next((index for index, item in enumerate(result) if item.get(merge_key) == name), None)
        if each.get("$patch") == "delete":
            if at is not None:
                del result[at]
        elif at is None:
            result.append({key: copy(value) for key, value in each.items() if not key.startswith("$")})
        else:
            result[at] = merge(result[at], each, child)
    if order:
        places = {entry.get(merge_key): index for index, entry in enumerate(order)}
        result.sort(key=lambda item: places.get(item.get(merge_key), len(places)))
    return result
