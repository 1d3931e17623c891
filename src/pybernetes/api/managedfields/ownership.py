"""How a change moves fields from one manager to another."""

from __future__ import annotations

from collections.abc import Callable

from . import entries
from .compare import Comparison, compare
from .entries import Identity, Managers, Owned
from .fieldset import EMPTY, Set
from .objects import STRIPPED, Object
from .owned import reconcile
from .resetfields import Filter
from .versions import Versions

Objects = Callable[[], tuple[Object, Object]]
"""The whole object before and after, made only if a manager speaks another version."""


def up_to_date(managers: Managers, versions: Versions, live: Callable[[], Object]) -> Managers:
    """The managers whose versions exist, with their fields as the schema of today has them."""
    result: Managers = {}
    for who, owned in managers.items():
        if owned.api_version == versions.api_version:
            node = versions.node
        else:
            found = versions.at(live(), owned.api_version)
            if found is None:
                continue
            node = found[1]
        result[who] = owned.with_fields(reconcile(owned.fields, node))
    return result


def take(
    managers: Managers,
    change: Comparison,
    versions: Versions,
    objects: Objects,
    keep: Filter | None,
    but: Identity | None,
) -> dict[Identity, Set]:
    """Take removed fields from all managers but one; returns the fields of others that changed, which stay theirs."""
    changes = {versions.api_version: change}
    conflicts = {}
    for who, owned in list(managers.items()):
        if who == but:
            continue
        if owned.api_version not in changes:
            old, new = objects()
            before, after = versions.at(old, owned.api_version), versions.at(new, owned.api_version)
            if before is None or after is None:
                del managers[who]
                continue
            changes[owned.api_version] = compare(before[0], after[0], before[1]).filtered(keep)
        here = changes[owned.api_version]
        changed = owned.fields & (here.modified | here.added)
        if changed:
            conflicts[who] = changed
        managers[who] = owned.with_fields(owned.fields - here.removed)
    return conflicts


def drop(managers: Managers, lost: dict[Identity, Set]) -> None:
    """Take these fields from their managers; who owns nothing is gone."""
    for who, fields in lost.items():
        managers[who] = managers[who].with_fields(managers[who].fields - fields)
    for who in [who for who, owned in managers.items() if not owned.fields]:
        del managers[who]


def give(
    managers: Managers,
    who: Identity,
    change: Comparison,
    versions: Versions,
    objects: Objects,
    now: str,
    keep: Filter | None,
) -> None:
    """Move what changed to who changed it."""
    change = change.filtered(keep)
    drop(managers, take(managers, change, versions, objects, keep, None))
    fields = (change.modified | change.added) - STRIPPED
    if fields:
        previous = managers[who].fields if who in managers else EMPTY
        managers[who] = Owned(fields | previous, versions.api_version, now)
    entries.cap(managers)
