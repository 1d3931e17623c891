"""`metadata.managedFields` as a table: who owns which fields since when.

An entry is named by its manager, operation and subresource; an updater also by the version it spoke, an applier not,
because its next configuration replaces the last one whatever the version.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import msgspec

from ..gocompat.quote import quote
from ..meta.v1.objectmeta import ManagedFieldsEntry
from . import fieldset
from .fieldset import Set

APPLY, UPDATE = "Apply", "Update"
MAX_UPDATERS = 10
"""More entries of updates than this are merged, oldest first; upstream's number."""
ANCIENT = "ancient-changes"


class Identity(NamedTuple):
    """The identity of an entry."""

    manager: str
    operation: str
    api_version: str
    subresource: str

    def __str__(self) -> str:
        """As conflicts name it."""
        text = quote(self.manager)
        if self.subresource:
            text += f" with subresource {quote(self.subresource)}"
        return f"{text} using {self.api_version}" if self.operation == UPDATE else text


def identity(manager: str, operation: str, api_version: str, subresource: str) -> Identity:
    """The name of the entry of a request."""
    return Identity(manager or "unknown", operation, "" if operation == APPLY else api_version, subresource)


@dataclass(frozen=True, slots=True)
class Owned:
    """The fields of one manager. `source` is the entry this was read from, as long as it still says the same."""

    fields: Set
    api_version: str
    time: str | None = None
    source: Any = None

    def with_fields(self, fields: Set) -> Owned:
        """The same manager with other fields."""
        return self if fields == self.fields else Owned(fields, self.api_version, self.time)


Managers = dict[Identity, Owned]


class Malformed(ValueError):
    """Entries that cannot be read; says why in upstream's words."""


def decode(entries: Iterable[Any] | None) -> Managers:
    """The table of entries, given as Structs or as plain JSON."""
    managers: Managers = {}
    for at, source in enumerate(entries or ()):
        entry = _entry(source)
        if entry.operation not in (APPLY, UPDATE):
            raise Malformed("operation must be `Apply` or `Update`")
        if not entry.api_version:
            raise Malformed("apiVersion must not be empty")
        if not entry.fields_type:
            raise Malformed(f"missing fieldsType in managed fields entry {at}")
        if entry.fields_type != "FieldsV1":
            raise Malformed(f"invalid fieldsType {quote(entry.fields_type)} in managed fields entry {at}")
        try:
            fields = fieldset.decode(entry.fields_v_1)
        except ValueError as problem:
            raise Malformed(f"error decoding versioned set: error decoding set: {problem}") from None
        version = "" if entry.operation == APPLY else entry.api_version
        name = Identity(entry.manager or "", entry.operation, version, entry.subresource or "")
        managers[name] = Owned(fields, entry.api_version, entry.time, source)
    return managers


def encode(managers: Managers, plain: bool) -> list[Any]:
    """The entries in upstream's order: appliers, updaters, each by age; plain JSON or Structs."""
    ordered = sorted(
        managers.items(),
        key=lambda item: (
            item[0].operation,
            item[1].time or "",
            item[0].manager,
            item[1].api_version,
            item[0].subresource,
        ),
    )
    return [_encode(name, owned, plain) for name, owned in ordered]


def _encode(name: Identity, owned: Owned, plain: bool) -> Any:
    if owned.source is not None and isinstance(owned.source, dict) == plain:
        return owned.source
    data = fieldset.encode(owned.fields)
    if not plain:
        return ManagedFieldsEntry(
            manager=name.manager,
            operation=name.operation,
            api_version=owned.api_version,
            time=owned.time,
            fields_type="FieldsV1",
            fields_v_1=msgspec.Raw(data),
            subresource=name.subresource or None,
        )
    entry = {"manager": name.manager, "operation": name.operation, "apiVersion": owned.api_version}
    if owned.time is not None:
        entry["time"] = owned.time
    entry |= {"fieldsType": "FieldsV1", "fieldsV1": msgspec.json.decode(data)}
    if name.subresource:
        entry["subresource"] = name.subresource
    return entry


def is_reset(entries: list[Any] | None, builtin: bool) -> bool:
    """Whether these entries ask to forget all owners: one empty entry, or none in a list (of built-in kinds only)."""
    if not entries:
        return builtin and entries is not None
    return len(entries) == 1 and _entry(entries[0]) == ManagedFieldsEntry()


def cap(managers: Managers) -> None:
    """Merge the oldest updaters of each version into one until there are few enough."""
    updaters = [name for name in managers if name.operation == UPDATE]
    excess = len(updaters) - MAX_UPDATERS
    if excess <= 0:
        return
    updaters.sort(key=lambda name: (managers[name].time or "", name))
    first: dict[str, Identity] = {}
    for name in updaters:
        if not excess:
            return
        owned = managers[name]
        bucket = Identity(ANCIENT, UPDATE, owned.api_version, "")
        if owned.api_version not in first:
            first[owned.api_version] = name
            continue
        if bucket not in managers:
            managers[bucket] = managers.pop(first[owned.api_version])
        managers[bucket] = Owned(owned.fields | managers[bucket].fields, owned.api_version, owned.time)
        if name != bucket:
            del managers[name]
        excess -= 1


def without_times(entries: list[Any] | None) -> list[Any]:
    """The entries as they compare when time does not count."""
    return [
        (entry.manager, entry.operation, entry.api_version, entry.subresource, fieldset.decode(entry.fields_v_1))
        for entry in map(_entry, entries or ())
    ]


def _entry(source: Any) -> ManagedFieldsEntry:
    if isinstance(source, ManagedFieldsEntry):
        return source
    return msgspec.convert(source, ManagedFieldsEntry)
