"""Managed fields of create, update and patch: the manager of a request owns the fields that it changes."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import msgspec

from ..base import Kind
from . import created, entries
from .compare import compare
from .entries import UPDATE, Managers
from .items import NoIdentity
from .kinds import node_of
from .node import Node
from .objects import Object, changed_part, entries_of, has_uid, plain, without_entries, zero
from .ownership import give, up_to_date
from .resetfields import Exclude, Filter
from .versions import Convert, Versions, builtin

FIELD_MANAGER_MAX_LENGTH = 128


def record_update(
    new: Object | Kind,
    old: Object | Kind | None,
    *,
    manager: str,
    api_version: str,
    now: str,
    node: Node | None = None,
    subresource: str = "",
    reset_fields: Filter | None = None,
    convert: Convert | None = None,
    structs: bool = False,
) -> list[Any]:
    """The managed fields of `new`, whose writer changed it from `old`, or created it if there is none.

    A Struct gets Structs, and so does a plain object with `structs`, else plain entries; a Struct needs no `node`. The
    entries that `new` holds are those its writer sent; they count if they can be read.
    """
    sent = entries_of(new)
    if (
        old is None
        and not sent
        and isinstance(new, Kind)
        and (reset_fields is None or isinstance(reset_fields, Exclude))
    ):
        return created.entries(new, manager or "unknown", api_version, subresource, now, reset_fields)
    if node is None:
        node = node_of(type(new))
    managers = _known(entries_of(old), sent, subresource, node.map is not None and node.map.builtin)
    if not managers and old is not None and has_uid(old):
        # No apply yet, or a request to reset; ownership starts again with the next apply.
        return []
    if convert is None and isinstance(new, Kind):
        convert = builtin(type(new).__name__)
    versions = Versions(api_version, node, convert)

    def whole() -> tuple[Object, Object]:
        before = zero(node, api_version) if old is None else plain(old, node, api_version)
        return before, plain(new, node, api_version)

    try:
        parts = whole() if old is None else changed_part(old, new, node, api_version)
        managers = up_to_date(managers, versions, lambda: whole()[0])
        who = entries.identity(manager, UPDATE, api_version, subresource)
        give(managers, who, compare(*parts, node), versions, whole, now, reset_fields)
    except NoIdentity:
        # What cannot be described is stored without a description.
        return []
    return entries.encode(managers, plain=isinstance(new, dict) and not structs)


def same_but_times(new: Object | Kind, old: Object | Kind) -> bool:
    """Whether a write changed nothing but the times of managed fields; such a write need not be stored."""
    if entries.without_times(entries_of(new)) != entries.without_times(entries_of(old)):
        return False
    return bool(without_entries(new) == without_entries(old))


@lru_cache(maxsize=1024)
def manager_name(field_manager: str, user_agent: str) -> str:
    """The manager of a request: what it calls itself, else its user agent up to the slash."""
    if field_manager:
        return field_manager
    name = "".join(char for char in user_agent.partition("/")[0] if char.isprintable())
    return name.encode()[:FIELD_MANAGER_MAX_LENGTH].decode(errors="ignore")


def _known(live: list[Any] | None, sent: list[Any] | None, subresource: str, builtin: bool) -> Managers:
    """The managers to go on with: those the writer sent, if it may and did and they can be read, else those of live."""
    if not subresource:
        if entries.is_reset(sent, builtin):
            return {}
        managers = _readable(sent)
        if managers:
            return managers
    return _readable(live)


def _readable(found: list[Any] | None) -> Managers:
    try:
        return entries.decode(found)
    except (entries.Malformed, msgspec.ValidationError):
        return {}
