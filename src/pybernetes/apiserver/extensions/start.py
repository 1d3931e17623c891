"""Starts custom resources: a server without definitions pays for one watch and nothing else.

Everything else is loaded when there is a definition, at the start or later.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

from pybernetes.api.errors import ServiceUnavailable
from pybernetes.store.base import StoreUnavailable
from pybernetes.store.watchers import Change

from ..registry.registry import Registry

if TYPE_CHECKING:
    from .definitions import Definitions

_PREFIX: Final = "/registry/apiextensions.k8s.io/customresourcedefinitions/"


class Extensions:
    """The custom resources of this server."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._wanted = asyncio.Event()
        self._loaded = asyncio.Event()
        self._definitions: Definitions | None = None

    async def start(self) -> None:
        """Serve what is defined already."""
        self._registry.settled = self._settled
        partition = self._registry.cache.partitions[_PREFIX]
        if partition.items:
            await self._load()
        else:
            partition.followers.append(self._first)

    async def run(self) -> None:
        """Follow the definitions until cancelled."""
        await self._wanted.wait()
        await (await self._load()).run()

    def _first(self, change: Change | None) -> None:
        if change is not None or self._registry.cache.partitions[_PREFIX].items:
            self._wanted.set()

    async def _load(self) -> Definitions:
        if self._definitions is None:
            from .definitions import Definitions

            self._definitions = Definitions(self._registry)
            self._wanted.set()
            self._loaded.set()
            await self._definitions.start()
        return self._definitions

    async def _settled(self) -> None:
        """Return when everything is served that was defined before. Raises ServiceUnavailable."""
        try:
            await self._registry.cache.consistent()
        except StoreUnavailable as error:
            raise ServiceUnavailable(str(error)) from error
        if self._wanted.is_set():
            await self._loaded.wait()
            assert self._definitions is not None
            await self._definitions.settled()


def custom_kinds(registry: Registry) -> dict[str, Any]:
    """The custom resources that are served, for the OpenAPI documents."""
    if not registry.custom_resources():
        return {}
    from .openapi import custom_kinds

    return custom_kinds(registry)
