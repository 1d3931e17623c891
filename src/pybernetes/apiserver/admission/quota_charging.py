"""Charges quotas, however many ask at the same moment, and exactly.

A quota is charged BEFORE the object is stored, by a conditional write of its usage. Requests of one namespace that come
together are judged one after the other and charged with one write, so that a quota costs a busy namespace one write for
many objects. What is charged for an object whose name turns out to be taken is given back at once; if it is unknown
whether an object was stored, it is left to the quota controller, which recounts.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable
from functools import partial
from typing import TYPE_CHECKING, Final

import msgspec

from pybernetes.api.core.v1 import ResourceQuota as Quota
from pybernetes.api.core.v1 import ResourceQuotaStatus
from pybernetes.api.errors import APIError, InternalError, NotFound
from pybernetes.api.quota import Evaluator, evaluator_for, scope_selectors
from pybernetes.api.quota.lists import (
    ZERO,
    Resources,
    add,
    equal,
    exceeding,
    formatted,
    mask,
    negative,
    parsed,
    subtract,
    without_zeros,
)
from pybernetes.store.watchers import Item

from ..registry.managed_fields import track
from ..registry.server_context import own_context
from .plugin import UPDATE, Attributes, forbidden
from .quota_limits import LimitedResource

if TYPE_CHECKING:
    from ..registry.registry import Registry

_ATTEMPTS: Final = 4  # upstream's: one, and three more
_EVALUATORS = 1024  # resources of which it is remembered how they are counted
_PATIENCE: Final = 10.0  # seconds a request waits for its turn; upstream's


class Charging:
    """Judges and charges the requests of all namespaces."""

    def __init__(self, registry: Registry, limited: list[LimitedResource]) -> None:
        self.registry = registry
        self._limited = limited
        self._evaluators: dict[tuple[str, str], Evaluator | None] = {}
        self._waiting: dict[str, list[_Waiter]] = {}
        """The waiting requests, by namespace. A namespace in here has a task that works them off."""
        self._tasks: set[asyncio.Task[None]] = set()

    def charge(self, attributes: Attributes) -> Awaitable[None] | None:
        """Charge a request, if it may cost anything. Raises Forbidden if it costs too much."""
        evaluator = self._evaluator(attributes)
        if evaluator is None or not evaluator.handles(
            attributes.operation,  # type: ignore[arg-type]
            attributes.subresource,
            attributes.old,
            attributes.new,
        ):
            return None
        return self._wait(_Waiter(attributes, evaluator))

    async def _wait(self, waiter: _Waiter) -> None:
        namespace = waiter.attributes.namespace
        queue = self._waiting.get(namespace)
        if queue is None:
            self._waiting[namespace] = [waiter]
            task = asyncio.get_running_loop().create_task(self._work_off(namespace))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        else:
            queue.append(waiter)
        try:
            async with asyncio.timeout(_PATIENCE):
                await waiter.judged
        except TimeoutError:
            raise InternalError("resource quota evaluation timed out") from None

    async def _work_off(self, namespace: str) -> None:
        """Judge the waiting requests, all that have come meanwhile at once, until there are none."""
        while self._waiting[namespace]:
            batch, self._waiting[namespace] = self._waiting[namespace], []
            try:
                await self._judge(namespace, [each for each in batch if not each.judged.done()])
            except APIError as error:
                for each in batch:
                    each.settle(error)
            except BaseException as error:
                for each in batch:
                    each.settle(InternalError(f"resource quota evaluation failed: {error}"))
                del self._waiting[namespace]
                raise
        del self._waiting[namespace]

    async def _judge(self, namespace: str, batch: list[_Waiter]) -> None:
        names: set[str] | None = None
        for _ in range(_ATTEMPTS):
            quotas = [
                _Running(item, quota) for item, quota in self._present(namespace) if names is None or item.key in names
            ]
            limited = self._limited if names is None else []
            open_ = [each for each in batch if not each.judged.done()]
            now = self.registry.clock.now()
            charged = []
            for waiter in open_:
                try:
                    usage = judge(quotas, waiter.attributes, waiter.evaluator, limited, now)
                except APIError as error:
                    await self._settle(waiter, error)
                    continue
                if waiter.attributes.dry_run or not usage:
                    await self._settle(waiter, None)
                    continue
                for quota, requested in usage:
                    quota.used = add(quota.used, requested)
                    waiter.charges.append((quota.item.key, requested))
                charged.append(waiter)
            names = {each.item.key for each in quotas if each.changed() and not await self._write(each)}
            if not names:
                for waiter in charged:
                    await self._settle(waiter, None)
                return
            for waiter in charged:  # those that could not be written are charged again, or refused
                waiter.charges = [(key, usage) for key, usage in waiter.charges if key not in names]
        conflict = self.registry.store("", "v1", "resourcequotas").conflict
        for waiter in batch:
            await self._settle(waiter, conflict(next(iter(names or {""})).rpartition("/")[2]))

    async def _settle(self, waiter: _Waiter, error: APIError | None) -> None:
        """Tell a request its verdict; who is refused, or has left meanwhile, pays nothing."""
        if waiter.charges and error is None and not waiter.judged.done():
            waiter.attributes.undo = partial(self._refund, waiter.charges)
        elif waiter.charges:
            await self._refund(waiter.charges)
        waiter.charges = []
        waiter.settle(error)

    def _present(self, namespace: str) -> list[tuple[Item, Quota]]:
        store = self.registry.store("", "v1", "resourcequotas")
        keys = list(store.partition.scan(store.scope(namespace)))
        return list(store.decode_all(store.partition.items[key] for key in keys))

    async def _refund(self, charges: list[tuple[str, Resources]]) -> None:
        """Give back what was charged for an object that was not stored after all."""
        store = self.registry.store("", "v1", "resourcequotas")
        for key, usage in charges:

            async def give_back(quota: Quota, usage: Resources = usage) -> Quota:
                status = quota.status = quota.status or ResourceQuotaStatus()
                used = parsed(status.used)
                less = subtract(used, mask(usage, used))
                status.used = formatted({name: value if value.sign() > 0 else ZERO for name, value in less.items()})
                return quota

            with contextlib.suppress(NotFound):
                await store.write(*store.split(key), give_back)

    async def _write(self, running: _Running) -> bool:
        """Write the new usage; False if the quota was changed meanwhile."""
        quota = running.quota
        status = quota.status or ResourceQuotaStatus()
        quota.status = msgspec.structs.replace(status, used=formatted(running.used))
        store = self.registry.store("", "v1", "resourcequotas")
        context = own_context(self.registry)
        context.subresource = "status"
        track(store, quota, store.decode(running.item), context)
        try:
            return await store.replace(running.item, quota) is not None
        except APIError as error:
            if error.code == 404:
                return False  # a deleted quota limits nothing
            raise

    def _evaluator(self, attributes: Attributes) -> Evaluator | None:
        key = (attributes.resource.group, attributes.resource.plural)
        if key not in self._evaluators:
            if len(self._evaluators) >= _EVALUATORS:
                self._evaluators.clear()
            self._evaluators[key] = evaluator_for(*key)
        return self._evaluators[key]


class _Waiter:
    """A request that waits for its verdict."""

    def __init__(self, attributes: Attributes, evaluator: Evaluator) -> None:
        self.attributes = attributes
        self.evaluator = evaluator
        self.judged: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.charges: list[tuple[str, Resources]] = []
        """The usage charged to quotas, by key, for this request."""

    def settle(self, error: APIError | None) -> None:
        if self.judged.done():
            return
        if error is None:
            self.judged.set_result(None)
        else:
            self.judged.set_exception(error)


class _Running:
    """A quota, and what is used of it when all who were let in so far are counted."""

    def __init__(self, item: Item, quota: Quota) -> None:
        status = quota.status or ResourceQuotaStatus()
        self.item, self.quota = item, quota
        self.hard, self.used = parsed(status.hard), parsed(status.used)
        self._before = self.used

    @property
    def name(self) -> str:
        return (self.quota.metadata.name if self.quota.metadata else None) or ""

    def changed(self) -> bool:
        return not equal(self._before, self.used)


def judge(
    quotas: list[_Running], attributes: Attributes, evaluator: Evaluator, limited: list[LimitedResource], now: float
) -> list[tuple[_Running, Resources]]:
    """The usage to charge to quotas if the request is admitted; empty if it uses nothing. Raises Forbidden."""
    obj = attributes.new
    scopes = [scope for each in limited for scope in evaluator.matching_scopes(obj, each.match_scopes)]
    usage = evaluator.usage(obj, now)
    needed: set[str] = set()
    for each in limited:
        if (each.api_group, each.resource) == (attributes.resource.group, attributes.resource.plural):
            needed.update(
                name
                for name, value in usage.items()
                if value.sign() > 0 and any(part in name for part in each.match_contains)
            )
    concerned: list[_Running] = []
    covered: set[str] = set()
    covered_scopes = []
    for quota in quotas:
        covered_scopes += evaluator.matching_scopes(obj, scope_selectors(quota.quota.spec))
        if not evaluator.matches(quota.quota, obj):
            continue
        names = evaluator.matching_resources(quota.hard)
        missing = evaluator.missing(names, obj)
        if missing is not None:
            raise forbidden(attributes, f"failed quota: {quota.name}: {missing}")
        if any(name not in quota.used for name in names):
            raise forbidden(attributes, f"status unknown for quota: {quota.name}, resources: {','.join(names)}")
        concerned.append(quota)
        covered.update(names)
    below = negative(usage)
    if below:
        raise forbidden(attributes, f"quota usage is negative for resource(s): {','.join(below)}")
    deltas = _deltas(concerned, attributes, evaluator, usage, now)
    if not any(deltas):
        return []
    uncovered = sorted(needed - covered)
    if uncovered:
        raise forbidden(attributes, f"insufficient quota to consume: {','.join(uncovered)}")
    open_scopes = evaluator.uncovered_scopes(scopes, covered_scopes)
    if open_scopes:
        shown = " ".join(
            f"{{{each.scope_name} {each.operator} [{' '.join(each.values or ())}]}}" for each in open_scopes
        )
        raise APIError(f"insufficient quota to match these scopes: [{shown}]", code=500, reason="")
    result = []
    for quota, delta in zip(concerned, deltas, strict=False):
        requested = mask(delta, quota.hard)
        after = add(quota.used, requested)
        over = exceeding(mask(after, requested), quota.hard) if attributes.subresource != "status" else []
        if over:
            raise forbidden(
                attributes,
                f"exceeded quota: {quota.name}, requested: {_shown(requested, over)}, "
                f"used: {_shown(quota.used, over)}, limited: {_shown(quota.hard, over)}",
            )
        if requested:
            result.append((quota, requested))
    return result


def _deltas(
    concerned: list[_Running], attributes: Attributes, evaluator: Evaluator, usage: Resources, now: float
) -> list[Resources]:
    """How much more each quota is charged; without quotas, how much more is used at all.

    An update is charged with what it adds, where the quota has counted the object before.
    """
    old = attributes.old
    if attributes.operation != UPDATE or old is None or not old.metadata.resource_version:
        return [without_zeros(usage)] * max(1, len(concerned))
    difference = subtract(usage, evaluator.usage(old, now))
    more = without_zeros({name: value for name, value in difference.items() if value.sign() > 0})
    if not concerned:
        return [more]
    return [more if evaluator.matches(each.quota, old) else without_zeros(usage) for each in concerned]


def _shown(resources: Resources, names: list[str]) -> str:
    return ",".join(f"{name}={resources[name]}" for name in names if name in resources)
