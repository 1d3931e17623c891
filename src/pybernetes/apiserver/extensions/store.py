"""The objects of one version of a custom resource.

What is stored may be older than the definition: in another version, or by another schema. It is brought into the form
of today when it is read, once, and kept beside the bytes. Everything that was written since the definition last
changed, and in this version, is sent as it is.

In memory an object is always in the version of the request, as upstream has it; only bytes are in the stored version.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from copy import deepcopy
from typing import Any

import msgspec

from pybernetes.api.errors import APIError, Forbidden
from pybernetes.api.structural.objects import CustomObject, encode
from pybernetes.store.cache import Cache, with_revision, without_revision
from pybernetes.store.watchers import Item

from ..registry.resource_store import NeedsConversion, ResourceStore, with_initialization
from ..registry.selectable import Attributes
from .conversion import Converter
from .resource import CustomResource
from .strategy import CustomResourceStrategy
from .version import CustomVersion, document_of, from_document

log = logging.getLogger(__name__)


class CustomResourceStore(ResourceStore):
    """One version of a custom resource."""

    custom: CustomVersion

    def __init__(self, resource: CustomResource, cache: Cache, floor: int, converter: Converter, warning: str) -> None:
        self.warning = warning
        self.terminating = False
        self._of = resource
        self._floor = floor  # objects with a greater revision were written under this definition
        self._converter = converter
        self._stored_version = resource.storage_version
        self._head = _head(resource.kind, resource.api_version)
        super().__init__(resource, resource, cache, CustomResourceStrategy(resource), None)
        self.asks_webhook = converter.remote
        self.form = f"{resource.api_version} {floor}"

    def _setup(self) -> None:
        self.custom = self._of.custom
        self._attributes = self.custom.attributes
        self.selectable = self.custom.selectable

    # -- forms --------------------------------------------------------------------------------------------------

    def decode(self, item: Item) -> CustomObject:
        return self.custom.decode(self.raw(item))

    def raw(self, item: Item) -> bytes:
        if item.revision > self._floor and item.raw.startswith(self._head):
            return item.raw
        forms = item.forms
        if forms is None or forms[0] is not self._converter:
            forms = item.forms = (self._converter, {})
        found: bytes | None = forms[1].get(self.resource.version)
        if found is None:
            found = self._today(item.raw)
            if not self.asks_webhook or item.raw.startswith(self._head):
                forms[1][self.resource.version] = found  # otherwise it is a guess, made without the webhook
        return found

    def deleted(self, last: Item | None, revision: int) -> Item:
        assert last is not None
        return Item(last.key, with_revision(without_revision(self.raw(last)), revision), revision)

    def _today(self, raw: bytes) -> bytes:
        """Stored bytes in the form that the definition asks for now."""
        document = msgspec.json.decode(raw)
        stored: str = document["apiVersion"]
        version = self.custom if stored == self.resource.api_version else self._converter.version(stored)
        revision = document["metadata"].pop("resourceVersion", None)
        obj = from_document(document)
        if version is not None:
            version.tidy(obj)
        if stored != self.resource.api_version:
            obj.api_version = self.resource.api_version
            self.custom.trim(obj)
        made = encode(obj)
        made = with_revision(made, int(revision)) if revision is not None else made
        return raw if made == raw else made

    def encode(self, obj: Any) -> bytes:
        obj.metadata.resource_version = None
        if obj.api_version != self._stored_version:
            # With the defaults of the stored version: otherwise each reader would have to fill them in.
            obj = CustomObject(obj.kind, self._stored_version, obj.metadata, deepcopy(obj.content))
            stored = self._converter.version(self._stored_version)
            if stored is not None:
                stored.tidy(obj)
        return encode(obj)

    def attributes(self, item: Item) -> Attributes:
        found = item.attributes
        if found is None or found[0] is not self.custom:
            read: Callable[[bytes, str, str], Attributes] = self._attributes
            seen = read(self.raw(item), *self.split(item.key))
            found = item.attributes = (self.custom, with_initialization(seen, item) if self.initializes else seen)
        attributes: Attributes = found[1]
        return attributes

    # -- conversion by a webhook --------------------------------------------------------------------------------

    async def ready(self, items: Sequence[Item]) -> None:
        """Return when `raw` and `decode` can answer for these. Raises what the webhook has against it."""
        if not self._converter.remote:
            return
        waiting = [item for item in items if not self._converted(item)]
        if waiting:
            documents = [self._stored_document(item) for item in waiting]
            converted = await self._converter.convert(documents, self.resource.api_version)
            for item, document in zip(waiting, converted, strict=True):
                obj = from_document(document)
                self.custom.trim(obj)
                obj.metadata.resource_version = None
                made = encode(obj)
                self._keep(item, with_revision(made, item.revision) if item.revision else made)

    def _stored_document(self, item: Item) -> dict[str, Any]:
        """The stored object, pruned by the schema of its version as it is now."""
        document: dict[str, Any] = msgspec.json.decode(item.raw)
        stored = self._converter.version(document["apiVersion"])
        if stored is not None:
            obj = from_document(document)
            stored.tidy(obj)
            document = document_of(obj)
        return document

    async def convert_for(self, need: NeedsConversion) -> None:
        try:
            [document] = await self._converter.convert([need.document], need.api_version)
        except APIError as error:
            log.warning("%s: owners that speak %s are forgotten: %s", self.resource.fullname, need.api_version, error)
            self.custom.remember(need, None)
            return
        version = self._converter.version(need.api_version)
        obj = from_document(document)
        if version is not None:
            version.trim(obj)
        metadata = document.get("metadata") or {}
        kept = {"apiVersion": need.api_version, "kind": obj.kind, "metadata": metadata, **obj.content}
        self.custom.remember(need, kept)

    def _converted(self, item: Item) -> bool:
        if item.raw.startswith(self._head):
            return True
        return item.forms is not None and item.forms[0] is self._converter and self.resource.version in item.forms[1]

    def _keep(self, item: Item, raw: bytes) -> None:
        if item.forms is None or item.forms[0] is not self._converter:
            item.forms = (self._converter, {})
        item.forms[1][self.resource.version] = raw

    async def find(self, namespace: str, name: str) -> Item | None:
        item = await super().find(namespace, name)
        if item is not None and self.asks_webhook:
            await self.ready([item])
        return item

    async def create(self, obj: Any, *, dry_run: bool = False) -> Item:
        if self.terminating:
            why = "create not allowed while custom resource definition is terminating"
            raise Forbidden(self.resource.group, self.resource.plural, obj.metadata.name or "", why)
        item = await super().create(await self._stored(obj), dry_run=dry_run)
        if self.asks_webhook:
            await self.ready([item])
        return item

    async def replace(self, item: Item, new: Any, *, dry_run: bool = False) -> Item | None:
        written = await super().replace(item, await self._stored(new), dry_run=dry_run)
        if written is not None and self.asks_webhook:
            await self.ready([written])
        return written

    async def _stored(self, obj: CustomObject) -> CustomObject:
        """The object in the version that is stored."""
        if not self.asks_webhook or self._stored_version == self.resource.api_version:
            return obj
        obj.metadata.resource_version = None
        [document] = await self._converter.convert([document_of(obj)], self._stored_version)
        converted = from_document(document)
        stored = self._converter.version(self._stored_version)
        if stored is not None:
            stored.tidy(converted)
        return converted


def _head(kind: str, api_version: str) -> bytes:
    return b'{"kind":"%b","apiVersion":"%b",' % (kind.encode(), api_version.encode())
