"""Sends a body through everything that is done to an object between the request and the answer, without a server.

Decoding, conversion, defaults, preparation, validation, warnings, encoding, managed fields, tables and YAML, in the
order of the verbs. Whatever the body is, the outcome is an object or an `APIError` below 500, whose Status can be
written; any other exception is a bug, and is what the tests are after.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import cases
import yaml

from pybernetes.api import managedfields, scheme
from pybernetes.api.errors import APIError, Invalid
from pybernetes.api.field import FieldError
from pybernetes.api.managedfields import resetfields
from pybernetes.api.meta.v1 import ObjectMeta
from pybernetes.api.meta.validation import validate_common_create, validate_common_update
from pybernetes.api.resources import Resource
from pybernetes.api.times import SystemClock
from pybernetes.api.yaml import json_to_yaml, yaml_to_json
from pybernetes.apiserver.admission.plugin import Chain
from pybernetes.apiserver.bodies import decode_json
from pybernetes.apiserver.printers.table import render
from pybernetes.apiserver.registry.registry import Registry, strategy_for
from pybernetes.apiserver.registry.strategy import Context, Strategy
from pybernetes.store.cache import Cache
from pybernetes.store.memory import MemoryStore

STORED = [each for each in scheme.resources() if each.stored]
_APISERVER = Path(__file__).parents[1] / "apiserver"


class Journey:
    """One resource and the way of its objects."""

    def __init__(self, resource: Resource) -> None:
        self.resource = resource
        self.storage = scheme.storage_resource(resource)
        self.strategy: Strategy = strategy_for(self.storage)
        namespace = "fuzz" if resource.namespaced else ""
        self.context = Context(_registry(), cases.USER, cases.NOW, namespace, group=resource.group)

    def base(self) -> dict[str, Any]:
        """A good object of the kind."""
        return bases().get((self.resource.api_version, self.resource.kind), {"metadata": {"name": "a"}})

    def travel(self, body: bytes, validation: str = "Warn") -> Any:
        """Create an object, update the good one to it, and it to the good one; the object, if it may be created."""
        created = self._attempt(lambda: self.create(body, validation))
        good = self._attempt(lambda: self.create(json.dumps(self.base()).encode()))
        for old, new in ((good, body), (created, json.dumps(self.base()).encode()), (created, body)):
            if old is not None:
                for subresource in ("", *self._shared()):
                    self._attempt(lambda old=old, new=new, sub=subresource: self.update(old, new, sub))
        return created

    def create(self, body: bytes, validation: str = "Warn") -> Any:
        """The object as it is stored."""
        obj = self.received(body, validation)
        meta = obj.metadata
        meta.name = meta.name or "generated"
        meta.uid, meta.creation_timestamp = cases.UID, cases.NOW
        meta.deletion_timestamp = meta.deletion_grace_period_seconds = meta.self_link = meta.generation = None
        self.strategy.prepare_for_create(obj, self.context)
        self._check(self.strategy.validate(obj, self.context) or validate_common_create(meta, self.resource.namespaced))
        for warning in self.strategy.warnings_on_create(obj, self.context):
            assert isinstance(warning, str)
        self._own(obj, None)
        raw = self.show(obj)
        # Numbers with more than 64 bits are floats in YAML.
        assert json.loads(yaml_to_json(json_to_yaml(raw))[0], parse_int=float) == json.loads(raw, parse_int=float)
        return obj

    def update(self, old: Any, body: bytes, subresource: str = "") -> Any:
        """The object as it is stored in place of another."""
        old = self.stored(old)
        obj = self.received(body, "Warn")
        meta, before = obj.metadata, old.metadata
        meta.name = before.name
        meta.uid, meta.creation_timestamp, meta.generation = before.uid, before.creation_timestamp, before.generation
        meta.deletion_timestamp, meta.deletion_grace_period_seconds = before.deletion_timestamp, None
        prepare, validate = self.strategy.rules(subresource)
        prepare(obj, old, self.context)
        self._check(validate_common_update(meta, before, self.resource.namespaced) + validate(obj, old, self.context))
        if not subresource:
            self.strategy.warnings_on_update(obj, old, self.context)
        self._own(obj, old, subresource)
        self.show(obj)
        return obj

    def received(self, body: bytes, validation: str) -> Any:
        """The object in a body, in the version that is stored, with its defaults."""
        obj = decode_json(self.resource, body, validation, [])
        obj = scheme.convert(obj, self.resource, self.storage)
        self.strategy.default(obj)
        if obj.metadata is None:
            obj.metadata = ObjectMeta()
        obj.metadata.namespace = self.context.namespace or None
        return obj

    def stored(self, obj: Any) -> Any:
        """The object as it comes back from the store."""
        return scheme.decoder(self.storage).decode(scheme.encoder.encode(obj))

    def show(self, obj: Any) -> bytes:
        """Read back what was stored, and answer with it in every version, also as a table."""
        obj = self.stored(obj)
        for resource in scheme.resources():
            if not resource.stored or scheme.storage_resource(resource) is not self.storage:
                continue
            converted = scheme.convert(obj, self.storage, resource)
            converted.kind, converted.api_version = resource.kind, resource.api_version
            raw = scheme.encoder.encode(converted)
            render(resource, [raw], version="v1", include_object="Metadata", meta=None, columns=True)
        return raw

    def _own(self, obj: Any, old: Any, subresource: str = "") -> None:
        obj.metadata.managed_fields = managedfields.record_update(
            obj,
            old,
            manager="fuzz",
            api_version=self.storage.api_version,
            now=cases.NOW,
            subresource=subresource,
            reset_fields=resetfields.for_request(self.storage, subresource),
        )

    def _shared(self) -> list[str]:
        return [each.name for each in self.resource.subresources if each.kind is None and "update" in each.verbs]

    def _check(self, errors: list[FieldError]) -> None:
        if errors:
            raise Invalid(self.storage.group, self.storage.kind, "a", errors)

    def _attempt(self, step: Any) -> Any:
        try:
            return step()
        except APIError as error:
            refused(error)
            return None


def refused(error: APIError) -> None:
    """Check a refusal: it blames the client, and can be written as JSON."""
    assert 400 <= error.code < 500, repr(error)
    assert json.loads(scheme.encoder.encode(error.status()))["message"]


@cache
def _registry() -> Registry:
    """A server without any objects."""
    return Registry(Cache(MemoryStore(), [each.storage_prefix for each in STORED]), SystemClock(), Chain([]))


@cache
def journey(resource: Resource) -> Journey:
    """The journey of a resource; making its decoders and visitors takes longer than a thousand objects."""
    return Journey(resource)


@cache
def bases() -> dict[tuple[str, str], dict[str, Any]]:
    """The good objects of the recorded cases, by apiVersion and kind."""
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for path in sorted(_APISERVER.glob("**/cases/**/*.yaml")):
        document = yaml.load(path.read_text(), getattr(yaml, "CSafeLoader", yaml.SafeLoader))
        found.setdefault((document["apiVersion"], document["kind"]), document["base"])
    return found
