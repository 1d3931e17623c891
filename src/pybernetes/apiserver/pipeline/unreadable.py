"""Lists and watches of a resource with an object that cannot be decrypted, because its encryption key is gone.

As upstream: one object is refused (`ResourceStore.find`), and so is every page it would be on; other pages, other
namespaces and other objects are served and written. A watch, and a list of whatever the cache has, would have to hold
all objects, and get 429: the key may be restored, which is checked with every such request.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pybernetes.api.errors import InternalError, TooManyRequests
from pybernetes.store.cache import Sealed

from ..registry.resource_store import ResourceStore
from .options import ListOptions

if TYPE_CHECKING:
    from ..verbs.list import ListPage


async def check_watch(store: ResourceStore) -> None:
    """Raise TooManyRequests unless everything can be read by now."""
    await store.unseal()
    for key, why in store.partition.sealed.items():
        package = "core" if not store.resource.group else store.resource.group.partition(".")[0]
        kind = "unstructured.Unstructured" if store.custom else f"{package}.{store.resource.kind}"
        raise TooManyRequests(f"storage is (re)initializing: failed to list *{kind}: {Sealed(key, why)}")


async def check_list(store: ResourceStore, options: ListOptions) -> None:
    """Try to decrypt unreadable objects; a list of any version needs all of them. Raises TooManyRequests."""
    await store.unseal()
    if options.resource_version == 0 and not options.limit:
        await check_watch(store)


def check_page(store: ResourceStore, scope: str, after: str, options: ListOptions, page: ListPage) -> None:
    """Raise InternalError if an unreadable object belongs on the page; report later ones in a warning."""
    name = options.field_selector.requires("metadata.name") if options.field_selector else None
    sealed = store.partition.sealed
    ahead = sorted(
        key for key in sealed if key.startswith(scope) and key > after and (name is None or store.split(key)[1] == name)
    )
    if not ahead:
        return
    full = options.limit and len(page.items) >= options.limit
    if not full or page.items[-1].key > ahead[0]:
        raise InternalError(Sealed(ahead[0], sealed[ahead[0]]))
    page.last = page.items[-1].key
    page.remaining += len(ahead)
