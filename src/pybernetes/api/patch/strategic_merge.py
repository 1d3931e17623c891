"""Strategic merge patch: a JSON merge patch that knows which lists are sets of named things.

A plain merge patch replaces lists as a whole. Here the kind says, field by field, whether a list is merged and by
which key, and the patch may hold directives:

    $patch: replace | delete                 in a map: for the map itself; in an item of a list: for the list or item
    $retainKeys: [..]                        every other key of the map goes
    $deleteFromPrimitiveList/<field>: [..]   these scalars leave the list
    $setElementOrder/<field>: [..]           the order of the merged list

The inputs are plain wire values and stay as they are; the result shares with them what no directive touched.
The words of errors are upstream's; its answer to a patch that does not fit is often 500, ours is a bad request, because
the client made the mistake.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from .. import schema
from ..base import Struct
from ..errors import BadRequest, PatchNotApplicable
from ..gocompat import goprint, quote

_DIRECTIVE = "$patch"
_RETAIN_KEYS = "$retainKeys"
_DELETE_FROM = "$deleteFromPrimitiveList"
_ELEMENT_ORDER = "$setElementOrder"

_Map = dict[str, Any]
_List = list[Any]


def strategic_merge(original: _Map, patch: _Map, cls: type[Struct]) -> _Map:
    """The object of kind `cls` after the patch; `original` and `patch` are not changed."""
    return _merge_map(original, patch, _Type(cls))


class _Type(NamedTuple):
    """The type of a place in the object: a struct's class, or another kind of type."""

    struct: type[Struct] | None
    kind: str = "struct"

    def field(self, key: str) -> tuple[_Type, _Type, str, str]:
        """The type of a field, of its items if it is a list, its patch strategy and its merge key."""
        if self.struct is None:
            raise BadRequest(f"merging an object in json but data type is not struct, instead is: {self.kind}")
        info = schema.fields_by_wire(self.struct).get(key)
        if info is None:
            name = self.struct.__name__
            raise BadRequest(f"unable to find api field in struct {name} for the json field {quote.quote(key)}")
        strategies = [strategy for strategy in (info.patch_strategy or "").split(",") if strategy != "retainKeys"]
        return (
            _Type.of(info),
            _Type.of(info.items) if info.items is not None else _Type(None, info.kind),
            strategies[0] if strategies else "",
            info.patch_merge_key or "",
        )

    @classmethod
    def of(cls, info: schema.FieldInfo) -> _Type:
        """The type of a field."""
        return cls(info.struct, info.kind)


def _merge_map(original: _Map, patch: _Map, kind: _Type) -> _Map:
    if _DIRECTIVE in patch:
        return _obey(patch[_DIRECTIVE], patch)
    result, patch = dict(original), dict(patch)
    if _RETAIN_KEYS in patch:
        result = _retain_keys(result, patch)
    # Before the fields themselves: an order covers its list, merged and all, so that list must not be merged again.
    for key in [key for key in patch if key.startswith(_ELEMENT_ORDER)]:
        _merge_ordered(result, patch, key, kind)
    for key, value in patch.items():
        deletes = key.startswith(_DELETE_FROM)
        name = _target(key, _DELETE_FROM, "invalid patch format of primitive list") if deletes else key
        if value is None:
            result.pop(name, None)
        elif name in result and type(result[name]) is type(value):
            result[name] = _merge_value(result[name], value, name, kind, deletes)
        elif not deletes:
            _set(result, name, _without_nulls(value))
    return result


def _merge_value(original: Any, patch: Any, name: str, kind: _Type, deletes: bool) -> Any:
    if isinstance(patch, dict):
        field, _, strategy, _ = kind.field(name)
        return patch if strategy == "replace" else _merge_map(original, patch, field)
    if isinstance(patch, list):
        _, item, strategy, merge_key = kind.field(name)
        return _merge_list(original, patch, item, merge_key, deletes) if strategy == "merge" or deletes else patch
    return patch


def _obey(directive: Any, patch: _Map) -> _Map:
    if directive == "replace":
        return {key: value for key, value in patch.items() if key != _DIRECTIVE}
    if directive == "delete":
        return {}
    raise _unknown_directive(directive, patch)


def _retain_keys(original: _Map, patch: _Map) -> _Map:
    keys = patch.pop(_RETAIN_KEYS)
    if not isinstance(keys, list):
        raise BadRequest("invalid patch format of retainKeys")
    for key, value in patch.items():
        if value is not None and key not in keys and not key.startswith((_DELETE_FROM, _ELEMENT_ORDER)):
            raise BadRequest("invalid patch format of retainKeys")
    return {key: value for key, value in original.items() if key in keys}


def _merge_ordered(result: _Map, patch: _Map, directive: str, kind: _Type) -> None:
    """Merge one list in the order the patch asks for, and take it out of the patch."""
    order = _expect_list(patch.pop(directive))
    name = _target(directive, _ELEMENT_ORDER, "invalid patch format of setElementOrder list")
    original = _expect_list(result[name]) if name in result else None
    changes = _expect_list(patch[name]) if name in patch else None
    _, item, strategy, merge_key = kind.field(name)
    _check_order(changes or [], order, merge_key)
    if original is not None and changes is not None:
        merged = _merge_list(original, changes, item, merge_key, False) if strategy == "merge" else changes
    elif changes is not None:
        merged = _without_directives(changes)
    elif original is not None:
        merged = original
    else:
        return
    _element_type(original or [], changes or [])
    result[name] = _arrange(merged, order, original or [], merge_key)
    patch.pop(name, None)


def _check_order(changes: _List, order: _List, merge_key: str) -> None:
    """Every item of the patch must be in the order, and in that order."""
    if not changes or not order:
        return
    at = 0
    for item in changes:
        if merge_key and _expect_map(item).get(_DIRECTIVE) == "delete":
            continue
        if at < len(order) and _is_directive(item):
            continue
        while at < len(order) and _name(order[at], merge_key) != _name(item, merge_key):
            at += 1
        if at == len(order):
            have, want = goprint.plain(changes), goprint.plain(order)
            raise BadRequest(f"The order in patch list:\n{have}\n doesn't match {_ELEMENT_ORDER} list:\n{want}\n")
        at += 1


def _merge_list(original: _List, patch: _List, item: _Type, merge_key: str, deletes: bool) -> _List:
    if not original and not patch:
        return original
    if _element_type(original, patch) is not dict:
        if deletes:
            gone = set(map(_identity, patch))
            return [value for value in original if _identity(value) not in gone]
        merged = list({_identity(value): value for value in [*original, *patch]}.values())
        return _arrange(merged, patch, original, merge_key)
    if not merge_key:
        raise BadRequest(f"cannot merge lists without merge key for {item.kind}")
    original, patch = _obey_items(original, patch, merge_key)
    merged = list(original)
    places = _places([other.get(merge_key) for other in original])
    for change in patch:
        at = places.setdefault(_identity(_key_of(change, merge_key)), len(merged))
        if at == len(merged):
            merged.append(change)
        else:
            merged[at] = _merge_map(merged[at], change, item)
    return _arrange(merged, patch, original, merge_key)


def _obey_items(original: _List, patch: _List, merge_key: str) -> tuple[_List, _List]:
    """Carry out the directives among the items: what is left of the list, and of the patch."""
    plain, replace = [], False
    for item in patch:
        if _DIRECTIVE not in item:
            plain.append(item)
            continue
        directive = item[_DIRECTIVE]
        if directive == "delete":
            gone = _identity(_key_of(item, merge_key))
            original = [other for other in original if _identity(other.get(merge_key)) != gone]
        elif directive == "replace":
            replace = True
        elif directive == "merge":
            raise BadRequest("merging lists cannot yet be specified in the patch")
        else:
            raise _unknown_directive(directive, item)
    return (plain, []) if replace else (original, plain)


def _arrange(merged: _List, order: _List, live: _List, merge_key: str) -> _List:
    """Items named by `order` in that order; the others keep their place among them as far as `live` shows it."""
    for at, item in enumerate(order if merge_key else ()):
        if not isinstance(item, dict):
            raise BadRequest(f"value for key {at} is not a map")
    wanted, seen = _places(_keys_of(order, merge_key)), _places(_keys_of(live, merge_key))
    items = [(_identity(key), item) for key, item in zip(_keys_of(merged, merge_key), merged, strict=True)]
    named = sorted((each for each in items if each[0] in wanted), key=lambda each: wanted[each[0]])
    others = sorted((each for each in items if each[0] not in wanted), key=lambda each: seen.get(each[0], -1))
    result: _List = []
    others.reverse()
    for identity, item in named:
        here = seen.get(identity, -1)
        while others and 0 <= seen.get(others[-1][0], -1) < here:
            result.append(others.pop()[1])
        result.append(item)
    return result + [item for _, item in reversed(others)]


def _keys_of(items: _List, merge_key: str) -> _List:
    """The identities of the items: the merge key of maps, scalars themselves."""
    return [_key_of(item, merge_key) for item in items] if merge_key else items


def _name(item: Any, merge_key: str) -> Any:
    return _identity(_key_of(item, merge_key) if merge_key else item)


def _places(keys: _List) -> dict[Any, int]:
    """Where each key is first."""
    return {_identity(key): at for at, key in reversed(list(enumerate(keys)))}


def _element_type(*lists: _List) -> type:
    """The one type of all items."""
    types = list(dict.fromkeys(type(item) for items in lists for item in items))
    if not types:
        raise BadRequest("no elements in any of the given slices")
    if types[0] is list:
        raise PatchNotApplicable("lists of lists are not supported")
    if len(types) > 1:
        raise BadRequest(f"list element types are not identical: {goprint.plain(list(lists))}")
    return types[0]


def _set(result: _Map, name: str, value: Any) -> None:
    if isinstance(value, dict) and _DIRECTIVE in value:
        result.pop(name, None)
    else:
        result[name] = _without_directives(value)


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nulls(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [_without_nulls(item) for item in value]
    return value


def _without_directives(value: Any) -> Any:
    """The value without the maps that carry `$patch`: there is nothing to replace or delete yet."""
    if isinstance(value, dict):
        return {key: _without_directives(item) for key, item in value.items() if not _is_directive(item)}
    if isinstance(value, list):
        return [_without_directives(item) for item in value if not _is_directive(item)]
    return value


def _is_directive(value: Any) -> bool:
    return isinstance(value, dict) and _DIRECTIVE in value


def _target(key: str, prefix: str, malformed: str) -> str:
    head, slash, name = key.partition("/")
    if head != prefix or not slash:
        raise BadRequest(malformed)
    return name


def _key_of(item: Any, merge_key: str) -> Any:
    if merge_key not in _expect_map(item):
        raise BadRequest(f"map: {goprint.plain(item)} does not contain declared merge key: {merge_key}")
    return item[merge_key]


def _identity(value: Any) -> Any:
    # In Python 1 == True == 1.0; in JSON these are three things.
    return (type(value), quote.json(value) if isinstance(value, dict | list) else value)


def _expect_list(value: Any) -> _List:
    if not isinstance(value, list):
        raise BadRequest(f"expected a []interface {{}}, but received a {_kind(value)}")
    return value


def _expect_map(value: Any) -> _Map:
    if not isinstance(value, dict):
        raise BadRequest(f"expected a map[string]interface {{}}, but received a {_kind(value)}")
    return value


def _kind(value: Any) -> str:
    return "%!s(<nil>)" if value is None else goprint.type_of(value)


def _unknown_directive(directive: Any, patch: _Map) -> BadRequest:
    shown = directive if isinstance(directive, str) else f"%!s({goprint.type_of(directive)}={goprint.plain(directive)})"
    return BadRequest(f"unknown patch type: {shown} in map: {goprint.plain(patch)}")
