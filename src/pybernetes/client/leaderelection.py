"""One of several replicas works; the others wait until it stops renewing a Lease.

The promise: as long as clocks run at about the same speed, no two lead at once. Clocks need not agree: who waits
measures with its own clock how long the Lease has not changed, and who leads stops by itself (`renew_deadline`)
well before others may take over (`lease_duration`).
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable

from pybernetes.api import errors
from pybernetes.api.coordination.v1 import Lease, LeaseSpec
from pybernetes.api.meta.v1 import ObjectMeta
from pybernetes.api.times import rfc3339_micro
from pybernetes.component import klog

from .client import Client
from .clock import Clock
from .keys import copy

LEASE_DURATION, RENEW_DEADLINE, RETRY_PERIOD = 15.0, 10.0, 2.0  # upstream's defaults
JITTER = 1.2
MAX_TRANSITIONS = 2**31 - 1
"""The greatest value of the field."""
TOLERANCE = 20.0
"""Seconds that a lease may be overdue before health checks tell; upstream's."""
log = logging.getLogger(__name__)


class LeadershipLost(Exception):
    """We lead no more; what we did must end now."""


class LeaderElector:
    """Invariant: we lead exactly if `_observed` names us, and then `_observed` is what we wrote last."""

    def __init__(
        self,
        client: Client,
        clock: Clock,
        *,
        name: str,
        namespace: str,
        identity: str,
        lease_duration: float = LEASE_DURATION,
        renew_deadline: float = RENEW_DEADLINE,
        retry_period: float = RETRY_PERIOD,
        on_new_leader: Callable[[str], None] | None = None,
    ) -> None:
        if lease_duration <= renew_deadline:
            raise ValueError("the lease duration must be greater than the renew deadline")
        if renew_deadline <= JITTER * retry_period:
            raise ValueError(f"the renew deadline must be greater than {JITTER} times the retry period")
        if not identity:
            raise ValueError("an identity is needed")
        self._client = client
        self._clock = clock
        self._name, self._namespace, self.identity = name, namespace, identity
        self._lease_duration, self._renew_deadline, self._retry_period = lease_duration, renew_deadline, retry_period
        self._on_new_leader = on_new_leader
        self._observed: Lease | None = None
        self._observed_at = 0.0  # when we saw it change, by our own clock
        self._reported = ""

    @property
    def leader(self) -> str:
        """The present leader as far as known; empty = none."""
        spec = self._observed.spec if self._observed else None
        return (spec.holder_identity if spec else None) or ""

    @property
    def is_leader(self) -> bool:
        """Whether it is us."""
        return self.leader == self.identity

    def problem(self) -> str:
        """Why this process should be ended and started anew, for health checks: it leads without a lease."""
        overdue = self._clock.monotonic() - self._observed_at > self._lease_duration + TOLERANCE
        return f"failed election to renew leadership on lease {self._name}" if self.is_leader and overdue else ""

    async def run(self, lead: Callable[[], Awaitable[None]]) -> None:
        """Wait until we lead, then run `lead` until it returns. `LeadershipLost` if the Lease could not be kept.

        When cancelled, or when `lead` ends, the Lease is released so that another can take over at once.
        """
        await self._acquire()
        klog.info(log, 0, "Successfully acquired lease", lock=f"{self._namespace}/{self._name}", identity=self.identity)
        work = asyncio.ensure_future(lead())
        renewal = asyncio.create_task(self._keep())
        try:
            await asyncio.wait([work, renewal], return_when=asyncio.FIRST_COMPLETED)
            if work.done():
                work.result()
                return
            renewal.result()
        finally:
            # First the work, then the Lease: no other process may lead while we still act.
            await _end(work)
            await _end(renewal)
            await self._release()

    async def _acquire(self) -> None:
        while not await self._try():
            await self._clock.sleep(self._retry_period * (1 + random.random() * JITTER))

    async def _keep(self) -> None:
        while True:
            await self._clock.sleep(self._retry_period)
            deadline = self._clock.monotonic() + self._renew_deadline
            while not await self._try_until(deadline):
                if self._clock.monotonic() + self._retry_period > deadline or not self.is_leader:
                    raise LeadershipLost(f"{self.identity} could not renew {self._namespace}/{self._name}")
                await self._clock.sleep(self._retry_period)

    async def _try_until(self, deadline: float) -> bool:
        attempt = asyncio.create_task(self._try())
        timer = self._clock.call_later(deadline - self._clock.monotonic(), attempt.cancel)
        try:
            return await attempt
        except asyncio.CancelledError:
            if not attempt.cancelled() or self._clock.monotonic() < deadline:
                attempt.cancel()
                raise
            return False
        finally:
            timer.cancel()

    async def _try(self) -> bool:
        """Acquire or renew; whether we lead. Nothing but cancellation is raised."""
        try:
            return await self._try_once()
        except errors.Conflict as error:
            log.debug("another candidate was faster: %s", error)
        except (errors.APIError, OSError, TimeoutError) as error:
            log.warning("the Lease cannot be taken: %s", error or type(error).__name__)
        except Exception:  # whatever is in the Lease: it may be another the next time
            log.exception("the Lease cannot be taken")
        return False

    async def _try_once(self) -> bool:
        if self._observed is not None and self.is_leader and self._valid():
            try:
                await self._write(self._observed, self._spec(self._observed.spec))
                return True
            except errors.Conflict:
                pass  # look what happened
        try:
            found = await self._client.get(Lease, self._name, self._namespace)
        except errors.NotFound:
            lease = Lease(metadata=ObjectMeta(name=self._name, namespace=self._namespace), spec=self._spec(None))
            self._observe(await self._client.create(lease))
            return True
        if self._observed is None or found.spec != self._observed.spec:
            self._observe(found)
        holder = (found.spec.holder_identity if found.spec else None) or ""
        if holder and holder != self.identity and self._valid():
            return False
        await self._write(found, self._spec(found.spec))
        return True

    def _valid(self) -> bool:
        """Whether the Lease we have seen may still be held."""
        spec = self._observed.spec if self._observed else None
        seconds = (spec.lease_duration_seconds if spec else None) or 0
        return self._observed_at + seconds > self._clock.monotonic()

    def _spec(self, before: LeaseSpec | None) -> LeaseSpec:
        now = rfc3339_micro(self._clock.now())
        before = before or LeaseSpec()
        ours = before.holder_identity == self.identity
        transitions = before.lease_transitions or 0
        return LeaseSpec(
            holder_identity=self.identity,
            lease_duration_seconds=int(self._lease_duration),
            acquire_time=(before.acquire_time if ours else None) or now,
            renew_time=now,
            lease_transitions=min(
                transitions if ours or before.holder_identity is None else transitions + 1, MAX_TRANSITIONS
            ),
        )

    async def _write(self, lease: Lease, spec: LeaseSpec) -> None:
        fresh = copy(lease)
        fresh.spec = spec
        self._observe(await self._client.update(fresh))

    def _observe(self, lease: Lease) -> None:
        self._observed = lease
        self._observed_at = self._clock.monotonic()
        if self.leader != self._reported:
            self._reported = self.leader
            if self._on_new_leader:
                self._on_new_leader(self.leader)

    async def _release(self) -> None:
        if not self.is_leader or self._observed is None:
            return
        now = rfc3339_micro(self._clock.now())
        before = self._observed.spec or LeaseSpec()
        released = LeaseSpec(
            holder_identity="",
            lease_duration_seconds=1,
            acquire_time=now,
            renew_time=now,
            lease_transitions=before.lease_transitions,
        )
        try:
            async with asyncio.timeout(self._renew_deadline):
                await self._write(self._observed, released)
        except (errors.APIError, OSError, TimeoutError) as error:
            log.info("the Lease could not be released, it ends by itself: %s", error or type(error).__name__)


async def _end(task: asyncio.Future[None]) -> None:
    task.cancel()
    await asyncio.wait([task])
