"""Server-side apply: a manager says what it wants, and owns exactly that.

What it said last time and says no more is removed, unless another manager owns it too. What others own and it would
change is a conflict, unless it insists.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..base import Kind
from ..errors import BadRequest
from ..scheme import split_api_version
from . import entries, lastapplied
from .compare import compare, same
from .conflict import Conflicts
from .entries import APPLY, UPDATE, Identity, Managers, Owned
from .fieldset import EMPTY, Set
from .items import NoIdentity
from .merge import merge, remove
from .node import Node
from .objects import STRIPPED, Object, entries_of, metadata, plain, with_entries, zero
from .owned import fields_of, with_named
from .ownership import drop, give, take, up_to_date
from .resetfields import Filter
from .validate import problems
from .versions import Convert, Versions, builtin

BEFORE_FIRST_APPLY = "before-first-apply"
"""The manager of all fields of an object that had no managers until now."""


def apply(
    live: Object | Kind | None,
    config: Object,
    *,
    node: Node,
    manager: str,
    api_version: str,
    kind: str,
    now: str,
    force: bool = False,
    subresource: str = "",
    reset_fields: Filter | None = None,
    convert: Convert | None = None,
) -> Object:
    """The object after the configuration was applied, with its managed fields; without `live` it is created.

    Defaults and validation are the caller's: they come after, as for any other write.
    """
    _check_type(config, api_version, kind)
    try:
        managers = entries.decode(entries_of(live))
    except entries.Malformed as problem:
        raise BadRequest(f"failed to decode managed fields: {problem}") from None
    _check(config, node)
    current = zero(node, api_version) if live is None else plain(live, node, api_version)
    current["kind"] = kind
    if convert is None and node.map is not None and node.map.builtin:
        convert = builtin(kind)
    who = entries.identity(manager, APPLY, api_version, subresource)
    request = _Request(config, who, Versions(api_version, node, convert), now, reset_fields)
    try:
        result, owners = request.apply(current, managers, force)
    except NoIdentity:  # the definition of a custom resource may have changed since the object was written
        manager_failure = "failed to create manager for existing fields: failed to convert new object"
        raise BadRequest(f"{manager_failure} ({_named(current)}) to smd typed: {problems(current, node)}") from None
    except Conflicts as conflicts:
        if manager != lastapplied.MANAGER:
            raise conflicts.error() from None
        left = conflicts.without(lastapplied.fields_owned(current, node, api_version))
        if left.found:
            raise left.error() from None
        result, owners = request.apply(current, managers, True)
    if manager == lastapplied.MANAGER:
        result = lastapplied.updated(result, config)
    return with_entries(result, entries.encode(owners, plain=True))


@dataclass(frozen=True)
class _Request:
    config: Object
    who: Identity
    versions: Versions
    now: str
    keep: Filter | None

    def apply(self, live: Object, managers: Managers, force: bool) -> tuple[Object, Managers]:
        """The merged object and its managers; it is `live` itself if nothing changed."""
        node = self.versions.node
        if not managers:
            managers = self._before_first_apply(live)
        managers = up_to_date(managers, self.versions, lambda: live)
        merged = merge(live, self.config, node)
        last = managers.get(self.who)
        fields = fields_of(self.config, node)
        if self.keep is not None:
            fields = self.keep(fields)
        managers[self.who] = Owned(fields, self.versions.api_version)
        # Who says all it said before, in the version it said it in, removes nothing.
        if last is not None and not (last.fields <= fields and last.api_version == self.versions.api_version):
            merged = self._prune(merged, managers, last)
        change = compare(live, merged, node).filtered(self.keep)
        conflicts = take(managers, change, self.versions, lambda: (live, merged), self.keep, self.who)
        if conflicts and not force:
            raise Conflicts(conflicts)
        drop(managers, conflicts)
        unchanged = same(live, merged)
        managers.pop(self.who, None)
        fields -= STRIPPED
        if fields:
            # Who applies what is there already owns it, but since when is not said.
            time = self.now if not unchanged else last.time if last is not None else None
            owned = Owned(fields, self.versions.api_version, time)
            managers[self.who] = last if last is not None and _says_the_same(last, owned) else owned
        return (live if unchanged else merged), managers

    def _before_first_apply(self, live: Object) -> Managers:
        managers: Managers = {}
        nothing = zero(self.versions.node, self.versions.api_version)
        who = entries.identity(BEFORE_FIRST_APPLY, UPDATE, self.versions.api_version, self.who.subresource)
        change = compare(nothing, live, self.versions.node)
        give(managers, who, change, self.versions, lambda: (nothing, live), self.now, self.keep)
        return managers

    def _prune(self, merged: Object, managers: Managers, last: Owned) -> Object:
        """The object without the fields that only this manager applied, last time and not this time."""
        there = self.versions.at(merged, last.api_version)
        if there is None:
            return merged
        whole, node = there
        left = remove(whole, with_named(last.fields, node), node)
        left = self._put_back(whole, left, managers, last.api_version)
        back = self.versions.at(left, last.api_version)
        if back is None:
            return merged
        # Only fields that the manager applied may be removed, even if others have no manager.
        kept = with_named(fields_of(back[0], node), node)
        gone = (with_named(fields_of(whole, node), node) - kept) & with_named(last.fields, node)
        result = self.versions.at(remove(whole, gone, node), self.versions.api_version)
        return result[0] if result is not None else merged

    def _put_back(self, whole: Object, left: Object, managers: Managers, version: str) -> Object:
        """Restore fields that managers still own; the version of the object first, so that it can be converted."""
        owned: dict[str, Set] = {version: EMPTY}
        for each in managers.values():
            owned[each.api_version] = owned.get(each.api_version, EMPTY) | each.fields
        for at, fields in owned.items():
            full, part = self.versions.at(whole, at), self.versions.at(left, at)
            if full is None or part is None:
                continue
            whole, node = full
            kept = with_named(fields_of(part[0], node), node) | with_named(fields, node)
            left = remove(whole, with_named(fields_of(whole, node), node) - kept, node)
        return left


def _says_the_same(last: Owned, owned: Owned) -> bool:
    return (last.fields, last.api_version, last.time) == (owned.fields, owned.api_version, owned.time)


def _check_type(config: Object, api_version: str, kind: str) -> None:
    said, named = config.get("apiVersion"), config.get("kind")
    if (said, named) != (api_version, kind):
        group, version = split_api_version(said) if isinstance(said, str) else ("", "")
        raise BadRequest(f"invalid object type: {group}/{version}, Kind={named if isinstance(named, str) else ''}")


def _check(config: Object, node: Node) -> None:
    if metadata(config).get("managedFields") is not None:
        raise BadRequest("metadata.managedFields must be nil")
    found = problems(config, node)
    if found:
        raise BadRequest(f"failed to create typed patch object ({_named(config)}): {found}")


def _named(obj: Object) -> str:
    group, version = split_api_version(obj["apiVersion"])
    namespace, name = metadata(obj).get("namespace") or "", metadata(obj).get("name") or ""
    return f"{namespace}/{name}; {group}/{version}, Kind={obj['kind']}"
