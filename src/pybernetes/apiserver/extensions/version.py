"""One version of a custom resource: how its objects are read, checked, owned and selected.

Everything is made from the definition when it is first needed and kept as long as the definition stays the same: a
unused kind costs nothing.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import msgspec

from pybernetes.api import strict
from pybernetes.api.apiextensions.schemas import has_rules
from pybernetes.api.apiextensions.v1 import CustomResourceSubresourceScale, JSONSchemaProps
from pybernetes.api.errors import BadRequest, Invalid
from pybernetes.api.field import FieldError, invalid
from pybernetes.api.gocompat import gojson, goprint
from pybernetes.api.managedfields import Node, record_update, resetfields, same_but_times, structural
from pybernetes.api.managedfields import apply as merge
from pybernetes.api.managedfields.created_plain import CreatedFields
from pybernetes.api.meta.v1.objectmeta import ManagedFieldsEntry, ObjectMeta
from pybernetes.api.normalize import normalizer
from pybernetes.api.structural.accepting import Acceptor
from pybernetes.api.structural.checking import Check, compile_check
from pybernetes.api.structural.embedded import Refused
from pybernetes.api.structural.objects import TYPE_META, Content, CustomObject, plain, short_numbers

from ..registry.resource_store import NeedsConversion
from ..registry.selectable import Attributes
from .outline import read_schema
from .scale import split_path
from .shell import Shell

if TYPE_CHECKING:
    from pybernetes.api.structural.rules import Rules

    from ..registry.strategy import Context
    from ..verbs.patch import Patch
    from .resource import CustomResource

_normalize = normalizer(ObjectMeta)
_to_json = msgspec.json.Encoder().encode
_CONVERSIONS = 256  # objects in other versions that are kept while their owners are worked out
_sorted = msgspec.json.Encoder(order="sorted").encode


class CustomVersion:
    """The compiled form of one version of a definition."""

    def __init__(self, resource: CustomResource) -> None:
        assert resource.defined is not None
        self.resource = resource
        self.defined = resource.defined
        self.kind = resource.kind
        self.api_version = resource.api_version
        self.preserves = bool(resource.spec.preserve_unknown_fields)
        self._conversions: dict[tuple[str, bytes], Content | None] = {}
        subresources = self.defined.subresources
        self.has_status = subresources is not None and subresources.status is not None
        self.scale: CustomResourceSubresourceScale | None = subresources.scale if subresources is not None else None

    @cached_property
    def schema(self) -> JSONSchemaProps | None:
        """The schema; read when it is first needed."""
        return read_schema(self.resource.schema)

    # -- what is compiled ---------------------------------------------------------------------------------------

    @cached_property
    def accept(self) -> Acceptor:
        """Takes out what the schema does not know, fills in defaults."""
        return Acceptor(self.schema, self.preserves)

    @cached_property
    def node(self) -> Node:
        """The schema as server-side apply sees it."""
        written = self.resource.schema
        schema = None if written is None else msgspec.json.decode(written).get("openAPIV3Schema")
        return structural.node_of(schema, self.preserves)

    @cached_property
    def _shell(self) -> Shell:
        return Shell(self.schema)

    # -- reading ------------------------------------------------------------------------------------------------

    def decode(self, raw: bytes) -> CustomObject:
        """A stored object; it was accepted when it was written."""
        shell = self._shell.parse(raw)
        return from_document(msgspec.json.decode(raw)) if shell is None else self._shell.open(shell)

    def read(self, body: bytes, validation: str, warnings: list[str], repeated: Sequence[str] = ()) -> CustomObject:
        """The object in a request's body. Raises BadRequest; what may be tolerated becomes a warning."""
        problems: list[str] = []
        obj = None if repeated else self._read_quickly(body, validation)
        if obj is None:
            obj, problems = self._read_slowly(body)
        self._check_version(obj, body)
        try:
            problems += [f'unknown field "{path}"' for path in self.accept(obj.content)]
        except Refused as refused:
            raise BadRequest(self._cannot_be_handled(obj, str(refused))) from None
        if validation == strict.IGNORE or not (problems or repeated):
            return obj
        if validation == strict.STRICT:
            if repeated:
                problems = ["\n  ".join(("yaml: unmarshal errors:", *repeated)), *problems]
            raise BadRequest(self._cannot_be_handled(obj, strict.strict_decoding_error(problems)))
        warnings.extend([*repeated, *problems])
        return obj

    def _read_quickly(self, body: bytes, validation: str) -> CustomObject | None:
        """The object, if nothing is wrong with it so far."""
        shell = self._shell.parse(body)
        if shell is None or not shell.kind or (validation != strict.IGNORE and strict.may_repeat(body, shell)):
            return None
        try:
            _normalize(shell.metadata)
        except ValueError:
            return None
        _drop_empty(shell.metadata)
        return self._shell.open(shell)

    def _read_slowly(self, body: bytes) -> tuple[CustomObject, list[str]]:
        try:
            value = gojson.loads(body)
        except gojson.SyntaxProblem as problem:
            raise BadRequest(self._unparsable(body, str(problem))) from None
        except RecursionError:
            raise BadRequest(self._unparsable(body, gojson.TOO_DEEP)) from None
        if value is not None and type(value) is not gojson.Pairs:
            raise BadRequest(self._unparsable(body, strict.not_an_object(value)))
        document = gojson.plain(value) or {}
        for key in ("apiVersion", "kind"):
            if (wrong := strict.no_text(document, key)) is not None:
                raise BadRequest(self._unparsable(body, wrong))
        if not document.get("kind"):
            why = f"Object 'Kind' is missing in '{body.decode(errors='replace')}'"
            raise BadRequest(strict.unrecognized(self.kind, body, why))
        try:
            obj, unknown = _object(document)
        except strict.DecodeError as error:
            at = document.get("apiVersion") or ""
            raise BadRequest(strict.cannot_be_handled_as(document["kind"], at, self.kind, str(error))) from None
        return obj, [*gojson.duplicates(value), *unknown]

    def _check_version(self, obj: CustomObject, body: bytes) -> None:
        if obj.api_version != self.api_version:
            if obj.api_version and obj.api_version.count("/") > 1:
                why = f"unexpected GroupVersion string: {obj.api_version}"
                raise BadRequest(strict.unrecognized(self.kind, body, why))
            said = f"the API version in the data ({obj.api_version or ''})"
            raise BadRequest(f"{said} does not match the expected API version ({self.api_version})")

    def _unparsable(self, body: bytes, why: str) -> str:
        return strict.unrecognized(self.kind, body, f"couldn't get version/kind; json parse error: {why}")

    def _cannot_be_handled(self, obj: CustomObject, why: str) -> str:
        return strict.cannot_be_handled_as(obj.kind or self.kind, obj.api_version or "", self.kind, why)

    def document(self, obj: CustomObject) -> Content:
        """The object as a client sees it, for a patch to change."""
        return document_of(obj)

    def read_patched(self, patched: Any, patch: Patch, validation: str, warnings: list[str]) -> CustomObject:
        """The object after a patch; errors in it are reported as errors of the patch."""
        if not isinstance(patched, dict):
            raise BadRequest("the patched object is not a JSON object")

        def refused(why: str) -> Invalid:
            shown = _sorted(patched).decode()
            return Invalid("", "", "", [invalid("patch", shown, why)])

        for key in ("apiVersion", "kind"):
            if (wrong := strict.no_text(patched, key)) is not None:
                raise refused(f"couldn't get version/kind; json parse error: {wrong}")
        if not patched.get("kind"):
            raise refused(f"Object 'Kind' is missing in '{_sorted(patched).decode()}'")
        if not patched.get("apiVersion"):
            raise refused(".apiVersion accessor error: must be a string")
        try:
            obj, unknown = _object(patched)
        except strict.DecodeError as error:
            raise refused(str(error)) from None
        obj.content = short_numbers(obj.content)
        try:
            unknown += [f'unknown field "{path}"' for path in self.accept(obj.content)]
        except Refused as error:
            raise refused(str(error)) from None
        problems = [*patch.problems, *unknown]
        if problems and validation == strict.STRICT:
            raise refused(strict.strict_decoding_error(problems))
        if validation == strict.WARN:
            warnings.extend(problem for problem in problems if problem not in warnings)
        return obj

    def check_type(self, obj: CustomObject) -> None:
        """The object is of this kind. Raises Invalid, which names the kind it claims to be."""
        errors: list[FieldError] = []
        if obj.kind != self.kind:
            errors.append(invalid("kind", obj.kind or "", f"must be {self.kind}"))
        if obj.api_version != self.api_version:
            errors.append(invalid("apiVersion", obj.api_version or "", f"must be {self.api_version}"))
        if errors:
            raise Invalid((obj.api_version or "").rpartition("/")[0], obj.kind or "", obj.metadata.name or "", errors)

    def tidy(self, obj: CustomObject) -> None:
        """Bring an object that was stored under another schema into the form of this one."""
        with contextlib.suppress(Refused):
            self.accept(obj.content)
        obj.metadata.generation = obj.metadata.generation or 1

    def trim(self, obj: CustomObject) -> None:
        """Bring an object that comes from another version into the form of this one: nothing is filled in."""
        with contextlib.suppress(Refused):
            self.accept.trim(obj.content)

    # -- checking -----------------------------------------------------------------------------------------------

    @cached_property
    def _check(self) -> Check:
        schema = self.schema
        if schema is not None and (schema.min_properties or schema.max_properties is not None or schema.required):
            # These count the type and the metadata, too.
            named = not set(schema.required or ()) <= {*(schema.properties or ()), *TYPE_META}
            if schema.min_properties or schema.max_properties is not None or named:
                return lambda content: False
        if schema is not None and any(_restricts((schema.properties or {}).get(name)) for name in TYPE_META):
            return lambda content: False
        return compile_check(schema, without=TYPE_META)

    def obeys(self, obj: CustomObject) -> bool:
        """Whether the object surely obeys the schema, lists that are sets or maps included."""
        return self._check(obj.content)

    @cached_property
    def status_schema(self) -> JSONSchemaProps | None:
        """The schema of the status alone."""
        return (self.schema.properties or {}).get("status") if self.schema is not None else None

    @cached_property
    def _check_status(self) -> Check:
        return compile_check(self.status_schema)

    def status_obeys(self, obj: CustomObject) -> bool:
        """Whether the status, if there is one, surely obeys its schema."""
        return "status" not in obj.content or self._check_status(obj.content["status"])

    @cached_property
    def rules(self) -> Rules | None:
        """The rules of `x-kubernetes-validations`; None if there are none."""
        if not has_rules(self.schema):
            return None
        from pybernetes.api.structural.rules import compile_rules

        return compile_rules(self.schema)

    # -- selecting ----------------------------------------------------------------------------------------------

    @cached_property
    def _selected(self) -> list[tuple[str, list[str]]]:
        paths = [(field.json_path or "").removeprefix(".") for field in self.defined.selectable_fields or ()]
        return [(path, path.split(".")) for path in paths]

    @cached_property
    def selectable(self) -> frozenset[str]:
        """The fields that objects can be selected by."""
        return frozenset(("metadata.name", "metadata.namespace", *(name for name, _ in self._selected)))

    def attributes(self, raw: bytes, namespace: str, name: str) -> Attributes:
        """The attributes that selectors use."""
        fields = {"metadata.name": name, "metadata.namespace": namespace}
        if not self._selected:
            return Attributes(_labels(raw).metadata.labels or {}, fields)
        document = msgspec.json.decode(raw)
        for label, path in self._selected:
            value: Any = document
            for part in path:
                value = value.get(part) if isinstance(value, dict) else None
            fields[label] = "" if value is None else goprint.plain(value)
        return Attributes(document["metadata"].get("labels") or {}, fields)

    @cached_property
    def printed(self) -> Any:
        """How objects are shown as a table (`printers.lookup.Found`)."""
        from .printing import found_for

        return found_for(self.defined.additional_printer_columns)

    # -- ownership ----------------------------------------------------------------------------------------------

    def owners(self, new: CustomObject, old: CustomObject | None, context: Context) -> list[Any]:
        """The managed fields after a write that was no apply."""
        if old is None and not new.metadata.managed_fields and not context.subresource:
            return self._created.entries(
                new.metadata, new.content, context.field_manager, self.api_version, context.now
            )
        return record_update(
            _owned(new),
            None if old is None else _owned(old),
            manager=context.field_manager,
            api_version=self.api_version,
            now=context.now,
            node=self.node,
            subresource=context.subresource,
            reset_fields=resetfields.for_custom(self.has_status, context.subresource),
            convert=self._in_version,
            structs=True,
        )

    @cached_property
    def _created(self) -> CreatedFields:
        return CreatedFields(self.node, frozenset({"status"} if self.has_status else ()))

    def apply(self, live: CustomObject | None, config: Content, context: Context, force: bool) -> CustomObject:
        """The object after a configuration was applied to it, with its managed fields."""
        document = merge(
            None if live is None else _owned(live),
            config,
            node=self.node,
            manager=context.field_manager,
            api_version=self.api_version,
            kind=self.kind,
            now=context.now,
            force=force,
            subresource=context.subresource,
            reset_fields=resetfields.for_custom(self.has_status, context.subresource),
            convert=self._in_version,
        )
        try:
            obj, unknown = _object(document)
            obj.content = short_numbers(obj.content)
            unknown += [f'unknown field "{path}"' for path in self.accept(obj.content, keep_nulls=True)]
        except (strict.DecodeError, Refused) as error:
            raise BadRequest(str(error)) from None
        context.warnings.extend(unknown)
        return obj

    @cached_property
    def scale_places(self) -> dict[str, tuple[str, ...] | None]:
        """Where each version keeps its replicas, as the rules of ownership name it."""
        group = self.resource.group
        places: dict[str, tuple[str, ...] | None] = {}
        for version in self.resource.spec.versions or ():
            scale = version.subresources.scale if version.subresources is not None else None
            path = tuple(f"f:{name}" for name in split_path(scale.spec_replicas_path)) if scale is not None else None
            places[f"{group}/{version.name}"] = path
        return places

    def _in_version(self, obj: Content, version: str) -> tuple[Content, Node] | None:
        """An object as managers of another version see it. Raises NeedsConversion if a webhook must be asked."""
        from .resource import resource_of

        group, _, name = version.rpartition("/")
        if group != self.resource.group:
            return None
        found = next((each for each in self.resource.spec.versions or () if each.name == name), None)
        if found is None:
            return None
        other = self if version == self.api_version else self._others.get(name)
        if other is None:
            assert self.resource.outline is not None
            other = self._others[name] = CustomVersion(resource_of(self.resource.outline, found))
        if not self._by_webhook or obj.keys() <= {"apiVersion", "kind"}:
            return {**obj, "apiVersion": version}, other.node
        key = (version, _sorted(obj))
        if key not in self._conversions:
            raise NeedsConversion(obj, version)
        converted = self._conversions[key]
        return None if converted is None else (converted, other.node)

    @cached_property
    def _by_webhook(self) -> bool:
        conversion = self.resource.spec.conversion
        return conversion is not None and conversion.strategy == "Webhook"

    def remember(self, need: NeedsConversion, converted: Content | None) -> None:
        """Keep what a webhook made of an object that owners speak of; None if it could not."""
        if len(self._conversions) >= _CONVERSIONS:
            del self._conversions[next(iter(self._conversions))]
        self._conversions[need.api_version, _sorted(need.document)] = converted

    @cached_property
    def _others(self) -> dict[str, CustomVersion]:
        return {}

    def same(self, new: CustomObject, old: CustomObject) -> bool:
        """Whether nothing changed but the times at which managers last wrote."""
        if new.content != old.content:
            return False
        return same_but_times(_owned(new), _owned(old))


def document_of(obj: CustomObject) -> Content:
    """The object as a client sees it, as plain values of its own."""
    return msgspec.json.decode(_to_json(plain(obj)))  # type: ignore[no-any-return]


def from_document(document: Content) -> CustomObject:
    """An object of plain values that were an object before."""
    return _object(document)[0]


def _object(document: Content) -> tuple[CustomObject, list[str]]:
    """The object of a document, and what is unknown in its metadata. Raises DecodeError."""
    value = document.get("metadata")
    metadata, problems = strict.convert(ObjectMeta, value if value is not None else {})
    _drop_empty(metadata)
    unknown = [problem.replace(' "', ' "metadata.', 1) for problem in problems]
    content = {key: each for key, each in document.items() if key not in TYPE_META}
    return CustomObject(document.get("kind"), document.get("apiVersion"), metadata, content), unknown


def _drop_empty(meta: ObjectMeta) -> None:
    """Remove empty maps and lists of the metadata: they have no field managers, because they are not written."""
    if meta.labels is not None and not meta.labels:
        meta.labels = None
    if meta.annotations is not None and not meta.annotations:
        meta.annotations = None
    if meta.finalizers is not None and not meta.finalizers:
        meta.finalizers = None
    if meta.owner_references is not None and not meta.owner_references:
        meta.owner_references = None


def _owned(obj: CustomObject) -> Content:
    """The object as the rules of ownership take it: plain, but for the entries of owners."""
    meta = obj.metadata
    entries: list[ManagedFieldsEntry] | None = meta.managed_fields
    meta.managed_fields = None
    try:
        metadata = msgspec.to_builtins(meta)
    finally:
        meta.managed_fields = entries
    if entries is not None:
        metadata["managedFields"] = entries
    return {"apiVersion": obj.api_version, "kind": obj.kind, "metadata": metadata, **obj.content}


def _restricts(schema: JSONSchemaProps | None) -> bool:
    """Whether a schema of the type or the metadata says more than that it is there."""
    return schema is not None and schema not in (
        JSONSchemaProps(type="object"),
        JSONSchemaProps(type="string"),
        JSONSchemaProps(type=schema.type, description=schema.description),
    )


class _Metadata(msgspec.Struct, gc=False):
    labels: dict[str, str] | None = None


class _Labels(msgspec.Struct, gc=False):
    metadata: _Metadata


_labels = msgspec.json.Decoder(_Labels).decode
