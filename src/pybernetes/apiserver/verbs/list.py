"""GET a collection: the bytes of its objects, joined.

A page is served from the cache whenever the cache still shows the revision that was asked for, else from the store's
history. Pages of one list share a revision, so that together they are a snapshot; when that has been compacted the
client gets 410 with a token to continue with the present objects.

A page with an object that cannot be decrypted is refused (`sealed`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import msgspec

from pybernetes.api.errors import BadRequest, InternalError, ResourceExpired, ServiceUnavailable
from pybernetes.net.http import Request, Response
from pybernetes.store.base import Compacted, Entry, FutureRevision, StoreUnavailable
from pybernetes.store.cache import Foreign, Sealed, item_of
from pybernetes.store.watchers import Item

from ..large_objects import beside_loop, collecting_later
from ..negotiation import output_format
from ..partial_metadata import ListMeta
from ..pipeline import unreadable
from ..pipeline.freshness import wait_until_fresh
from ..pipeline.options import ListOptions, decode_continue, encode_continue, list_options
from ..pipeline.respond import TRANSFORMS, answer_list
from ..registry.resource_store import ResourceStore

LARGE_LIST = 1 << 20  # bytes of a list that is not answered as it is kept: longer ones are made beside the event loop
TURN = 1000
"""Objects that a selector looks at before others have their turn: 5 ms when it decodes the labels of each."""
_INCONSISTENT = -1  # the revision of a token that goes on without a snapshot

_EXPIRED = (
    "The provided continue parameter is too old to display a consistent list result. You can start a new list "
    "without the continue parameter, or use the continue token in this response to retrieve the remainder of the "
    "results. Continuing with the provided token results in an inconsistent list - objects that were created, "
    "modified, or deleted between the time the first chunk was returned and now may show up in the list."
)


class ListPage(msgspec.Struct, gc=False):
    """A part of a collection. `last` is the key to go on after when there is more."""

    items: list[Item]
    revision: int
    last: str = ""
    remaining: int = 0


async def list_(store: ResourceStore, request: Request) -> Response:
    """Answer with the collection, or a page of it."""
    info = request.info
    form = output_format(request.headers, info.query, transforms=TRANSFORMS)
    options = list_options(store, info.query)
    page = await read_page(store, info.namespace, options)
    if store.asks_webhook:
        await store.ready(page.items)
    meta = page_meta(store, info.namespace, options, page)
    raws = [store.raw(item) for item in page.items]
    if form.transform and sum(map(len, raws)) > LARGE_LIST:
        with collecting_later:
            return await beside_loop(lambda: answer_list(request, store.resource, raws, meta, form))
    return answer_list(request, store.resource, raws, meta, form)


def page_meta(store: ResourceStore, namespace: str, options: ListOptions, page: ListPage) -> ListMeta:
    """The metadata of a page: where it was read, and how to go on."""
    meta = ListMeta(str(page.revision))
    if page.last:
        meta.continue_ = encode_continue(page.last, store.scope(namespace), page.revision)
        if not options.selects:
            meta.remaining_item_count = page.remaining
    return meta


async def read_page(store: ResourceStore, namespace: str, options: ListOptions) -> ListPage:
    """The objects that are asked for, as of the revision that is asked for."""
    scope = store.scope(namespace)
    if store.partition.sealed:
        await unreadable.check_list(store, options)
    if store.asks_webhook and options.selects:
        await store.ready([store.partition.items[key] for key in store.partition.scan(scope)])
    if options.continue_:
        after, revision = decode_continue(options.continue_, scope)
        if options.resource_version:
            raise BadRequest("specifying resource version is not allowed when using continue")
        if revision == _INCONSISTENT:
            await store.consistent()
            return await _from_cache(store, scope, after, options)
        return await _at(store, scope, after, revision, options)
    wanted = options.resource_version
    if wanted == 0:  # what is at hand, all of it: upstream's cache does not cut it into pages
        options.limit = 0
    if wanted and (options.match == "Exact" or (options.limit and not options.match)):
        return await _at(store, scope, "", wanted, options)
    if wanted is None:
        await store.consistent()
    elif wanted:
        await wait_until_fresh(store, wanted)
    return await _from_cache(store, scope, "", options)


async def _from_cache(store: ResourceStore, scope: str, after: str, options: ListOptions) -> ListPage:
    """A page from the cache; with a selector it yields to other requests between objects."""
    partition = store.partition
    items = partition.items
    keys = partition.scan(scope, after)
    limit = options.limit
    if not options.selects:
        chosen = keys[:limit] if limit else keys
        more = len(keys) - len(chosen)
        page = ListPage([items[key] for key in chosen], store.cache.revision, chosen[-1] if more else "", more)
        if partition.sealed:
            unreadable.check_page(store, scope, after, options, page)
        return page
    found: list[Item] = []
    last = ""
    revision = store.cache.revision
    for number, item in enumerate([items[key] for key in keys], 1):
        if not number % TURN:
            await asyncio.sleep(0)
        if options.matches(store.attributes(item)):
            if limit and len(found) == limit:
                last = found[-1].key
                break
            found.append(item)
    page = ListPage(found, revision, last)
    if partition.sealed:
        unreadable.check_page(store, scope, after, options, page)
    return page


async def _at(store: ResourceStore, scope: str, after: str, revision: int, options: ListOptions) -> ListPage:
    """A page as of an exact revision."""
    if revision > store.cache.revision:
        await wait_until_fresh(store, revision, retry_after=0)
    if store.partition.changed <= revision:
        page = await _from_cache(store, scope, after, options)
        return ListPage(page.items, revision, page.last, page.remaining)
    found: list[Item] = []
    while True:
        # A selector may leave out most of what is read, so a page may take several reads.
        limit = options.limit - len(found) if options.limit else 0
        try:
            past = await store.history(scope, after, limit, revision)
        except (Compacted, FutureRevision) as error:
            raise _expired(store, scope, after, revision, options) from error
        except StoreUnavailable as error:
            raise ServiceUnavailable(str(error)) from error
        items = list(_items(past.entries))
        found += [item for item in items if not options.selects or options.matches(store.attributes(item))]
        if not past.remaining or not past.entries:
            return ListPage(found, revision)
        after = past.entries[-1].key
        if len(found) >= options.limit:
            return ListPage(found, revision, after, past.remaining)


def _items(entries: list[Entry]) -> Iterator[Item]:
    """The objects among what was read. Raises InternalError if one is encrypted and its key is gone."""
    for entry in entries:
        try:
            yield item_of(entry.key, entry.value, entry.revision)
        except Foreign:
            continue  # bytes of another program; the cache has logged it
        except Sealed as error:
            raise InternalError(error) from error


def _expired(store: ResourceStore, scope: str, after: str, revision: int, options: ListOptions) -> ResourceExpired:
    if not options.continue_:
        return ResourceExpired("The resourceVersion for the provided list is too old.")
    error = ResourceExpired(_EXPIRED)
    error.metadata = {"continue": encode_continue(after, scope, _INCONSISTENT)}
    return error
