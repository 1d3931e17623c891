"""What the API server does with an object of a kind between the request and the answer, one step after the other.

Unlike a request, an object that is refused goes on to the next step: warnings, printers and patches see it too.
"""

from __future__ import annotations

import gc
import json
from collections.abc import Callable, Iterator
from functools import _lru_cache_wrapper, cache
from typing import Any

import cases
from costs.counting import countable
from fuzz.journey import Journey, journey

from pybernetes.api import managedfields
from pybernetes.api.byte_cache import Remembered
from pybernetes.api.errors import APIError, Invalid
from pybernetes.api.gocompat import goencoder
from pybernetes.api.managedfields import node_of, resetfields
from pybernetes.api.meta.validation import validate_common_create, validate_common_update
from pybernetes.api.patch import json_patch, merge_patch
from pybernetes.api.patch.strategic_merge import strategic_merge
from pybernetes.api.resources import Resource

Step = Callable[[], object]


class Steps:
    """The steps of one kind."""

    def __init__(self, resource: Resource) -> None:
        self.way: Journey = journey(resource)
        self.resource = resource

    def received(self, document: dict[str, Any]) -> Any:
        """The object as it is decoded, with its defaults."""
        obj = self.way.received(json.dumps(document).encode(), "Warn")
        meta = obj.metadata
        meta.name = meta.name or "a"
        meta.uid, meta.creation_timestamp = cases.UID, cases.NOW
        return obj

    def judged(self, obj: Any, old: Any) -> None:
        """Everything that looks at a decoded object: validation and warnings, for every verb."""
        strategy, context, namespaced = self.way.strategy, self.way.context, self.resource.namespaced
        errors = [*strategy.validate(obj, context), *validate_common_create(obj.metadata, namespaced)]
        strategy.warnings_on_create(obj, context)
        for subresource in ("", *self.way._shared()):
            _, validate = strategy.rules(subresource)
            errors += validate(obj, old, context)
        errors += validate_common_update(obj.metadata, old.metadata, namespaced)
        strategy.warnings_on_update(obj, old, context)
        if errors:
            Invalid(self.resource.group, self.resource.kind, "a", errors).status()

    def shown(self, obj: Any) -> None:
        """The object as it is answered, stored and printed."""
        self.way.show(obj)
        goencoder.encode(obj)

    def owned(self, obj: Any, old: Any) -> None:
        """Managed fields after a create and after an update."""
        self.way._own(obj, None)
        self.way._own(obj, old)

    def applied(self, document: dict[str, Any]) -> None:
        """Server-side apply: a new object, then the same by another manager, then less of it."""
        config = {"kind": self.resource.kind, "apiVersion": self.resource.api_version, **document}
        live = None
        for manager, wanted in (("one", config), ("two", config), ("one", {**config, **self.way.base()})):
            merged = managedfields.apply(
                live,
                json.loads(json.dumps(wanted)),
                node=node_of(self.resource.type),
                manager=manager,
                api_version=self.resource.api_version,
                kind=self.resource.kind,
                now=cases.NOW,
                force=True,
                subresource="",
                reset_fields=resetfields.for_request(self.resource, ""),
            )
            live = self.way.received(json.dumps(merged).encode(), "Warn")

    def patched(self, document: dict[str, Any]) -> None:
        """The three kinds of patches, onto an object that is as large."""
        cls = self.resource.type
        strategic_merge(json.loads(json.dumps(document)), json.loads(json.dumps(document)), cls)
        strategic_merge(self.way.base(), document, cls)
        merge_patch.apply(document, merge_patch.check(document))
        operations = [{"op": "add", "path": f"/{key}", "value": value} for key, value in document.items()]
        json_patch.apply(document, json_patch.check(operations))

    def all(self, document: dict[str, Any], *, patches: bool = True) -> Iterator[Step]:
        """The steps on a document; each may end with an APIError."""
        body = json.dumps(document).encode()
        good = self.received(self.way.base())
        yield lambda: self.way.received(body, "Strict")
        yield lambda: self.judged(self.received(document), good)
        yield lambda: self.shown(self.received(document))
        yield lambda: self.owned(self.received(document), good)
        if not patches:
            return
        yield lambda: self.applied(document)
        yield lambda: self.patched(document)

    def compared(self, document: dict[str, Any]) -> Step:
        """The judgement of an object whose texts and numbers count how often they are compared."""
        obj, same = countable(self.received(document)), countable(self.received(document))
        return lambda: self.judged(obj, same)

    def run(self, document: dict[str, Any], *, patches: bool = True) -> None:
        """All steps."""
        for step in self.all(document, patches=patches):
            attempt(step)


def attempt(step: Step) -> None:
    """Do a step, which may be refused."""
    try:
        step()
    except APIError as error:
        error.status()


@cache
def _caches() -> list[Any]:
    found: list[Any] = []
    for each in gc.get_objects():
        if isinstance(each, _lru_cache_wrapper) and each.cache_parameters()["maxsize"] is not None:
            found.append(each.cache_clear)
        elif isinstance(each, Remembered):
            found.append(each._known.clear)
    return found


def forget() -> None:
    """Empty the caches of what was found out about objects, so that the next step does all its work."""
    for clear in _caches():
        clear()
