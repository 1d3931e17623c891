"""The differences between kinds on their way to the store.

The verbs are the same for every kind; a `Strategy` answers the questions in which kinds differ. The base class gives
upstream's usual answers: the status belongs to the status subresource, a change of anything else but metadata and
status counts as a new generation where the kind has one, an update needs no resourceVersion and creates nothing.

Defaults and validation are pure functions of the kind and live beside it, in `api/<group>/defaults.py` (`DEFAULTS`)
and `api/<group>/validation.py` (`CREATE`, `UPDATE`, `STATUS_UPDATE`), dicts keyed by kind. They are imported when the
first request for the kind arrives.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from pybernetes.api import names, schema
from pybernetes.api.base import Struct
from pybernetes.api.equality import semantically_equal
from pybernetes.api.field import FieldError
from pybernetes.api.gocompat import goencoder
from pybernetes.api.meta.v1 import DeleteOptions
from pybernetes.api.resources import Resource

if TYPE_CHECKING:
    from .registry import Registry


class Context(msgspec.Struct, gc=False):
    """The request of a write: its user and options."""

    registry: Registry
    user: Any
    now: str
    """The time of the request, as `metadata.creationTimestamp` shows it."""
    namespace: str = ""
    dry_run: bool = False
    field_manager: str = ""
    warnings: list[str] = []
    subresource: str = ""
    reservation: Reservation | None = None
    """The reservation of `Strategy.reserve` for the update under way."""
    group: str = ""
    """The API group of the request; that of the stored kind may be another (Events have two)."""
    name: str = ""
    """The name in the path; a POST has none."""
    options: Any = None
    """The options of the request, for admission."""
    annotations: dict[str, str] | None = None
    """Annotations for the audit log, where the request is recorded."""
    verb: str = ""
    """The verb of the request, as authorization uses it."""
    large: bool = False
    """Whether the object is so large that work on it is done beside the event loop (`verbs.large`)."""
    refused: list[FieldError] = []
    """Errors of `Strategy.guard`, which validation reports with its own."""


class Reservation(Protocol):
    """Resources that a strategy took outside the object itself, to be kept if the write succeeds and released if
    not."""

    async def commit(self) -> None: ...

    async def rollback(self) -> None: ...


Prepare = Callable[[Any, Any, Context], None]
ValidateUpdate = Callable[[Any, Any, Context], list[FieldError]]


class Strategy:
    """How one resource is created, updated and deleted."""

    allow_create_on_update = False
    allow_unconditional_update = True
    has_generation = False
    returns_deleted = False
    """Whether a delete answers with the object instead of a Status."""
    covers_metadata = True
    """Whether the kind's validation, where it has one, looks at the metadata."""
    collects_garbage = True
    """Whether a delete can wait for dependents, or leave them behind; nothing depends on what cannot."""
    reserves = False
    """Whether `reserve` has anything to do."""
    guards = False
    """Whether `guard` has anything to do."""
    costly = False
    """Whether validation may take so long that it is done beside the event loop, however small the object is."""
    graceful = False
    """Whether deletion waits for the kubelet to confirm it."""

    def __init__(self, resource: Resource) -> None:
        self.resource = resource
        kind = resource.kind
        self._default = defaults_of(resource)
        self._create = _table(resource, "validation", "CREATE").get(kind)
        self.checks_metadata = self._create is not None and self.covers_metadata
        """Whether the kind's own rules cover what every new object must fulfil."""
        self._update = _table(resource, "validation", "UPDATE").get(kind)
        self._status_update = _table(resource, "validation", "STATUS_UPDATE").get(kind)
        self.has_status = any(sub.name == "status" for sub in resource.subresources)

    # -- create -------------------------------------------------------------------------------------------------

    def default(self, obj: Any) -> None:
        """Fill in what the client left out, down to the zero values that are always there."""
        if self._default:
            self._default(obj)
        goencoder.fill(obj)

    def prepare_for_create(self, obj: Any, context: Context) -> None:
        """Drop what a client may not set on a new object."""
        if self.has_status:
            obj.status = None
        if self.has_generation:
            obj.metadata.generation = 1

    def generate_name(self, base: str) -> str:
        """The name of a new object that gives the beginning of one."""
        return names.generate_name(base)

    def validate(self, obj: Any, context: Context) -> list[FieldError]:
        """Validation errors of a new object."""
        return self._create(obj) if self._create else []

    def warnings_on_create(self, obj: Any, context: Context) -> list[str]:
        """Warnings about the new object."""
        return []

    # -- update -------------------------------------------------------------------------------------------------

    def prepare_for_update(self, new: Any, old: Any, context: Context) -> None:
        """Keep what this request may not change."""
        if self.has_status:
            new.status = old.status
        if self.has_generation and self.changed(new, old):
            new.metadata.generation = (old.metadata.generation or 0) + 1

    def changed(self, new: Any, old: Any) -> bool:
        """Whether the update asks for something else than before."""
        cls: type[Struct] = type(new)
        return any(
            not semantically_equal(getattr(new, field.name), getattr(old, field.name), field)
            for field in schema.fields(cls)
            if field.name not in ("kind", "api_version", "metadata", "status")
        )

    def validate_update(self, new: Any, old: Any, context: Context) -> list[FieldError]:
        """Validation errors of the change."""
        return self._update(new, old) if self._update else self.validate(new, context)

    def warnings_on_update(self, new: Any, old: Any, context: Context) -> list[str]:
        """Warnings about the change."""
        return self.warnings_on_create(new, context)

    def prepare_for_status_update(self, new: Any, old: Any, context: Context) -> None:
        """Keep everything but the status, and the metadata that stays writable there."""
        for name in new.__struct_fields__:
            if name not in ("kind", "api_version", "metadata", "status"):
                setattr(new, name, getattr(old, name))

    def validate_status_update(self, new: Any, old: Any, context: Context) -> list[FieldError]:
        """Validation errors of the new status."""
        return self._status_update(new, old) if self._status_update else []

    def rules(self, subresource: str) -> tuple[Prepare, ValidateUpdate]:
        """How an update through a subresource is prepared and validated; kinds with more than a status add theirs."""
        if subresource == "status":
            return self.prepare_for_status_update, self.validate_status_update
        return self.prepare_for_update, self.validate_update

    # -- delete -------------------------------------------------------------------------------------------------

    def held(self, obj: Any) -> bool:
        """Whether something keeps an object that is to be deleted."""
        return bool(obj.metadata.finalizers)

    def mark(self, obj: Any) -> None:
        """Show in the object that its deletion has begun; the timestamp is set already."""

    def grace_period(self, obj: Any, wanted: int | None) -> int:
        """For graceful kinds: how many seconds the deletion may take; 0 = at once."""
        return 0

    def check_delete(self, obj: Any) -> None:
        """Raise if the object has to stay for good."""

    def default_propagation(self) -> str:
        """The default propagation policy: Background, or Orphan for a few old kinds."""
        return "Background"

    def warnings_on_delete(self, options: DeleteOptions) -> list[str]:
        """Warnings about a deletion."""
        return []

    async def guard(self, new: Any, old: Any | None, context: Context) -> None:
        """Refuse what the user may not write although they may write the kind. Called after mutating admission."""

    # -- beside the object --------------------------------------------------------------------------------------

    async def reserve(self, new: Any | None, old: Any | None, context: Context) -> Reservation | None:
        """Take what the object needs elsewhere (addresses, ports), and write it into the object.

        Called before the object is validated; None on either side = no object.
        """
        return None


def defaults_of(resource: Resource) -> Callable[[Any], object] | None:
    """The defaulting function of a kind."""
    return _table(resource, "defaults", "DEFAULTS").get(resource.kind)


def _table(resource: Resource, module: str, name: str) -> dict[str, Callable[..., Any]]:
    """A group's dict of functions by kind; a group without the module has none."""
    package = resource.package
    try:
        found = import_module(f"pybernetes.api.{package}.{module}")
    except ModuleNotFoundError as error:
        if error.name != f"pybernetes.api.{package}.{module}":
            raise
        return {}
    table: dict[str, Callable[..., Any]] = getattr(found, name, {})
    return table
