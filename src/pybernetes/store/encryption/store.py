"""A store above another: what goes down is encrypted, what comes up is not.

Its users, the cache first of all, see plain values; the store below sees only encrypted ones. Values that were
written by another provider than the one that writes now are stale: they are read, and an object that is written again
without a change is written nevertheless (`stale`), which is how keys are changed. A value that none of the keys opens
comes up as it is kept (`Ciphertext`): it is one object that cannot be read, and no reason to withhold the others.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from pathlib import Path

from ..base import Ciphertext, Entry, Event, Page, Receive, RevisionMismatch, Store, StoreUnavailable, Watch
from .configuration import Rules
from .kms import KMS
from .providers import PREFIX, Provider, Undecipherable

log = logging.getLogger(__name__)

_RESOURCES = 4096  # resources whose providers are remembered
_TRANSFORMERS = {"aesgcm": "AES", "aescbc": "AES", "secretbox": "Secretbox"}

ResourceOf = Callable[[str], tuple[str, str] | None]
"""From a key to the group and plural of the resource that is kept there; None if it is no resource."""


class _Plan:
    """Rules, and what follows from them for each resource.

    An operation uses one plan from its beginning to its end: other rules would not have the keys that it has fetched.
    """

    def __init__(self, rules: Rules, resource_of: ResourceOf) -> None:
        self.rules = rules
        self._resource_of = resource_of
        self._by_resource: dict[tuple[str, str], tuple[Provider, ...] | None] = {}

    def providers(self, key: str) -> tuple[Provider, ...] | None:
        """The providers for the value of a key, the first of them for writing; None: it is not encrypted."""
        resource = self._resource_of(key)
        if resource is None:
            return None
        if resource not in self._by_resource:
            if len(self._by_resource) >= _RESOURCES:
                self._by_resource.clear()
            self._by_resource[resource] = self.rules.providers(*resource)
        return self._by_resource[resource]

    async def fetch_keys(self, entries: Iterable[Entry]) -> None:
        """Have the keys of values whose keys are kept elsewhere, as far as they are to be had."""
        if not self.rules.plugins:
            return
        for entry in entries:
            for provider in self.providers(entry.key) or ():
                if isinstance(provider, KMS) and entry.value.startswith(provider.prefix):
                    await provider.prepare_read(entry.value[len(provider.prefix) :])


class EncryptedStore:
    """Encrypts by rules. `reload` may give other rules at any time; it is asked before every use."""

    def __init__(
        self, inner: Store, rules: Rules, resource_of: ResourceOf, reload: Callable[[], Rules | None] | None = None
    ) -> None:
        self._inner = inner
        self._plan = _Plan(rules, resource_of)
        self._resource_of = resource_of
        self._reload = reload
        self._written_by: dict[str, bytes] = {}
        """The prefix of every value that was seen, of the resources that there is a rule for."""
        self.exclusive = inner.exclusive

    async def start(self) -> None:
        await self._inner.start()

    async def close(self) -> None:
        await self._plan.rules.close()
        await self._inner.close()

    async def create(self, key: str, value: bytes, *, ttl: int | None = None) -> int:
        """See `Store`."""
        return await self._inner.create(key, await self._down(key, value), ttl=ttl)

    async def update(self, key: str, value: bytes, *, revision: int, ttl: int | None = None) -> int:
        """See `Store`."""
        try:
            return await self._inner.update(key, await self._down(key, value), revision=revision, ttl=ttl)
        except RevisionMismatch as mismatch:
            raise await self._plain(mismatch) from None

    async def delete(self, key: str, *, revision: int) -> int:
        """See `Store`."""
        try:
            return await self._inner.delete(key, revision=revision)
        except RevisionMismatch as mismatch:
            raise await self._plain(mismatch) from None

    async def get(self, key: str) -> Entry | None:
        """See `Store`."""
        plan = self._plan
        entry = await self._inner.get(key)
        if entry is None:
            return None
        await plan.fetch_keys([entry])
        return self._up(entry, plan)

    async def range(self, prefix: str, *, after: str = "", limit: int = 0, revision: int = 0) -> Page:
        """See `Store`."""
        self._refresh()
        plan = self._plan
        page = await self._inner.range(prefix, after=after, limit=limit, revision=revision)
        await plan.fetch_keys(page.entries)
        return Page([self._up(entry, plan) for entry in page.entries], page.revision, page.remaining)

    def watch(self, prefix: str, *, after: int, receive: Receive | None = None) -> Watch:
        """See `Store`. Changes arrive after the write returned: a key may have to be fetched first."""
        return _PlainWatch(self._inner.watch(prefix, after=after), self._events)

    async def revision(self) -> int:
        return await self._inner.revision()

    async def compact(self, revision: int) -> None:
        await self._inner.compact(revision)

    async def check(self) -> None:
        await self._inner.check()

    @property
    def has_plugins(self) -> bool:
        """Whether there are KMS plugins."""
        return bool(self._plan.rules.plugins)

    async def check_plugins(self) -> None:
        """Whether all who keep keys are well. Raises StoreUnavailable."""
        self._refresh()
        problems = []
        for number, plugin in enumerate(self._plan.rules.plugins):
            try:
                await plugin.check()
            except StoreUnavailable as error:
                problems.append(f"kms-provider-{number}: {error}")
        if problems:
            raise StoreUnavailable(", ".join(problems))

    def stale(self, key: str) -> bool:
        """Whether the value would be written in another way now."""
        self._refresh()
        providers = self._plan.providers(key)
        written = self._written_by.get(key)
        if providers is None or written is None:
            return False
        now = current(providers[0])
        return now is not None and written != now

    def _refresh(self) -> None:
        rules = self._reload() if self._reload is not None else None
        if rules is not None:
            self._plan = _Plan(rules, self._resource_of)

    async def _down(self, key: str, value: bytes) -> bytes:
        self._refresh()
        providers = self._plan.providers(key)
        if providers is None:
            return value
        first = providers[0]
        if isinstance(first, KMS):
            await first.prepare_write()
        return first.prefix + first.encrypt(value, key)

    def _up(self, entry: Entry, plan: _Plan) -> Entry:
        value = self._decrypted(entry.key, entry.value, plan)
        return entry if value is entry.value else Entry(entry.key, value, entry.revision)

    def _decrypted(self, key: str, data: bytes, plan: _Plan) -> bytes:
        """The value, or the `Ciphertext` that it is to us."""
        providers = plan.providers(key)
        if providers is None:
            return data
        problems = []
        for provider in providers:
            prefix = provider.prefix
            if data.startswith(prefix):
                try:
                    value = provider.decrypt(data[len(prefix) :] if prefix else data, key)
                except Undecipherable as error:
                    problems += [str(error)] if prefix else []
                    continue
                self._written_by[key] = provider.stamp(data[len(prefix) :]) if isinstance(provider, KMS) else prefix
                return value
        self._written_by.pop(key, None)
        return Ciphertext.of(data, "; ".join(problems) or _unmatched(data, providers))

    async def _events(self, batch: list[Event]) -> list[Event]:
        plan = self._plan
        if plan.rules.plugins:
            for event in batch:
                entries = [] if event.value is None else [Entry(event.key, event.value, event.revision)]
                await plan.fetch_keys([*entries, *([event.previous] if event.previous else [])])
        return [self._event(event, plan) for event in batch]

    def _event(self, event: Event, plan: _Plan) -> Event:
        if event.value is None:
            value = None
            self._written_by.pop(event.key, None)
        else:
            value = self._decrypted(event.key, event.value, plan)
        previous = event.previous
        if previous is not None:
            written = self._written_by.get(event.key)
            previous = self._up(previous, plan)
            if written is not None:
                self._written_by[event.key] = written
            elif value is None:
                self._written_by.pop(event.key, None)
        return Event(event.key, value, event.revision, previous)

    async def _plain(self, mismatch: RevisionMismatch) -> RevisionMismatch:
        found = mismatch.current
        if found is None:
            return mismatch
        plan = self._plan
        await plan.fetch_keys([found])
        return RevisionMismatch(mismatch.key, self._up(found, plan))


class _PlainWatch:
    def __init__(self, inner: Watch, plain: Callable[[list[Event]], Awaitable[list[Event]]]) -> None:
        self._inner = inner
        self._plain = plain

    def __aiter__(self) -> AsyncIterator[list[Event]]:
        return self._batches()

    async def _batches(self) -> AsyncIterator[list[Event]]:
        async for batch in self._inner:
            yield await self._plain(batch)

    async def close(self) -> None:
        await self._inner.close()


def _unmatched(data: bytes, providers: Iterable[Provider]) -> str:
    """Upstream's error for a value that was written with none of these keys."""
    kind = data[len(PREFIX) :].partition(b":")[0].decode("latin-1")
    named = _TRANSFORMERS.get(kind)
    if named and any(each.prefix.startswith(PREFIX + kind.encode() + b":") for each in providers):
        return f"no matching key was found for the provided {named} transformer"
    return "no matching prefix found"


def current(provider: Provider) -> bytes | None:
    """The stamp of values that the provider writes now; None if it is not known yet."""
    return provider.current if isinstance(provider, KMS) else provider.prefix


def watching(
    file: Path, changed: Callable[[], bool], read: Callable[[Path], Rules | None]
) -> Callable[[], Rules | None]:
    """A source of new rules for `EncryptedStore`: those of a file when it has changed; an invalid file is logged.

    `read` may say None: the file is another, and says the same.
    """

    def reload() -> Rules | None:
        if not changed():
            return None
        try:
            rules = read(file)
        except (OSError, ValueError) as error:
            log.error("%s has changed and cannot be used, the old one stays: %s", file, error)
            return None
        if rules is not None:
            log.info("%s was read again", file)
        return rules

    return reload
