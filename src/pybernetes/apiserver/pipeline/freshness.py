"""Waiting for the cache to be as new as the client has already seen."""

from __future__ import annotations

from pybernetes.api.errors import TooLargeResourceVersion

from ..registry.resource_store import ResourceStore

PATIENCE = 3.0  # seconds; upstream's blockTimeout


async def wait_until_fresh(store: ResourceStore, revision: int, *, retry_after: int = 1) -> None:
    """Return when the cache has seen the revision. Raises TooLargeResourceVersion."""
    cache = store.cache
    if revision > cache.revision and not await cache.wait_for(revision, PATIENCE):
        raise TooLargeResourceVersion(revision, cache.revision, retry_after)
