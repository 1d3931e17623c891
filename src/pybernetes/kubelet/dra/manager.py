"""Prepares the devices of pods' ResourceClaims through their drivers, and unprepares them.

Woken by: a pod whose sandbox is to be made, a pod whose containers have ended, a driver that comes or goes. Writes:
`dra_manager_state`; deletes the node's ResourceSlices of drivers that have been gone for half a minute. A claim that
cannot be prepared keeps its pod waiting, with the reason; nothing of a claim is noted before all its drivers are there,
so that such a pod can be deleted without them.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, Final

from pybernetes.api import errors
from pybernetes.api.core.v1 import Container, Pod
from pybernetes.api.resource.v1 import ResourceClaim, ResourceSlice
from pybernetes.client.client import Client
from pybernetes.client.clock import Clock, Timer
from pybernetes.client.keys import uid_of

from . import checkpoint, claims
from .checkpoint import Claim, Device, DriverState
from .claims import ClaimError
from .plugin import Drivers, Took

RECONCILE_EVERY: Final = 60.0
WIPE_AFTER: Final = 30.0
"""Seconds without a driver until its ResourceSlices are deleted; upstream's."""
WIPE_RETRY: Final = 5.0
log = logging.getLogger(__name__)

Key = tuple[str, str]
"""Namespace and name of a claim."""


class DRAManager:
    """Claims in use on this node.

    Invariant: a claim is in `_claims` from before its drivers are asked to prepare it until all of them have
    unprepared it, and so it is in the checkpoint.
    """

    def __init__(
        self,
        client: Client,
        folder: Path,
        node: str,
        clock: Clock,
        *,
        changed: Callable[[set[str]], None],
        took: Took = lambda *_: None,
    ) -> None:
        """`changed` gets the uids of pods that wait for a driver, when one has come."""
        self._client, self._folder, self._node, self._clock = client, folder, node, clock
        self._changed = changed
        self.drivers = Drivers(self._driver_changed, took)
        self._claims = {(each.namespace, each.claim_name): each for each in checkpoint.load(folder)}
        self._prepared: set[str] = set()
        """Uids of claims that were prepared since the kubelet started."""
        self._unpreparing: set[str] = set()
        self._turns: dict[str, asyncio.Lock] = {}
        """One call for each claim (by uid) at a time."""
        self._waiting: set[str] = set()
        """Uids of pods whose claims could not be prepared."""
        self._gone: dict[str, Timer] = {}
        """Drivers that are not there, until their ResourceSlices are to be deleted."""
        self._to_wipe: asyncio.Queue[str] = asyncio.Queue()

    # -- for pods

    async def prepare(self, pod: Pod) -> None:
        """Prepare all claims of a pod; `ClaimError` says what is missing. Repeated calls change nothing."""
        if not claims.has_claims(pod):
            return
        try:
            await self._prepare(pod)
            self._waiting.discard(uid_of(pod))
        except (ClaimError, OSError) as error:
            self._waiting.add(uid_of(pod))
            raise ClaimError(f"prepare dynamic resources: {error}") from None

    async def unprepare(self, uid: str) -> None:
        """Unprepare what only this pod uses; `ClaimError` if a driver is not there or refuses."""
        self._waiting.discard(uid)
        try:
            for claim in [each for each in self._claims.values() if uid in (each.pod_uids or {})]:
                await self._unprepare(claim, uid)
        except (ClaimError, OSError) as error:
            raise ClaimError(f"unprepare dynamic resources: {error}") from None

    def cdi_devices(self, pod: Pod, container: Container) -> list[str]:
        """The CDI devices that a container gets; `ClaimError` if its claims are not prepared."""
        found: dict[str, None] = {}
        for name, requests in claims.container_claims(pod, container).items():
            claim = self._of(pod, name)
            for request in requests:
                for _, device in _devices(claim, request):
                    found.update(dict.fromkeys(device.cdi_device_ids or ()))
        return list(found)

    def container_devices(self, pod: Pod, container: Container) -> Iterator[tuple[Claim, str, Device]]:
        """Claim, driver and device of all that a container has; for the pod-resources socket."""
        for name, requests in claims.container_claims(pod, container).items():
            try:
                claim = self._of(pod, name)
            except ClaimError:
                continue
            seen: list[Device] = []
            for request in requests:
                for driver, device in _devices(claim, request):
                    if not any(device is each for each in seen):
                        seen.append(device)
                        yield claim, driver, device

    def holders(self) -> set[str]:
        """The uids of pods that have claims."""
        return {uid for each in self._claims.values() for uid in each.pod_uids or ()}

    def count(self) -> dict[str, int]:
        """How many claims of each driver, and of any, are in use."""
        found = {"<any>": len(self._claims)}
        for claim in self._claims.values():
            for driver in claim.driver_state or ():
                found[driver] = found.get(driver, 0) + 1
        return found

    # -- long-lived

    async def reconcile(self, active: Callable[[], Iterable[str] | None]) -> None:
        """Unprepare, once a minute, what pods left that are not there any more; `active` gives None if unknown."""
        while True:
            await self._clock.sleep(RECONCILE_EVERY)
            known = active()
            for uid in self.holders() - set(known) if known is not None else ():
                try:
                    await self.unprepare(uid)
                except ClaimError as error:
                    log.warning("unpreparing resources of pod %s failed, trying again later: %s", uid, error)

    async def wipe(self) -> None:
        """Delete ResourceSlices: all of the node at the start, then those of drivers that stay away."""
        await self._wipe("")
        while True:
            await self._wipe(await self._to_wipe.get())

    # -- inside

    def _driver_changed(self, name: str) -> None:
        timer = self._gone.pop(name, None)
        if timer is not None:
            timer.cancel()
        if name in self.drivers.names():
            waiting, self._waiting = self._waiting, set()
            if waiting:
                self._changed(waiting)
        else:
            self._gone[name] = self._clock.call_later(WIPE_AFTER, self._to_wipe.put_nowait, name)

    async def _wipe(self, driver: str) -> None:
        selector = f"spec.nodeName={self._node}" + (f",spec.driver={driver}" if driver else "")
        while not driver or driver not in self.drivers.names():
            try:
                await self._client.delete_collection(ResourceSlice, field_selector=selector)
                return
            except errors.NotFound:
                return
            except (errors.APIError, OSError, TimeoutError) as error:
                log.info("deleting ResourceSlices (%s) failed: %s", selector, error)
                await self._clock.sleep(WIPE_RETRY)

    async def _prepare(self, pod: Pod) -> None:
        wanted: dict[str, ResourceClaim] = {}
        namespace = (pod.metadata.namespace if pod.metadata else None) or ""
        for name, generated in claims.pod_claims(pod):
            try:
                claim = await self._client.get(ResourceClaim, name, namespace)
            except (errors.APIError, OSError, TimeoutError) as error:
                raise ClaimError(f"fetch ResourceClaim {name}: {error}") from None
            claims.check(pod, claim, generated=generated)
            for driver in claims.drivers(claim):
                self.drivers.get(driver)
            wanted[name] = claim
        noted = [self._note(namespace, name, claim, uid_of(pod)) for name, claim in wanted.items()]
        self._save()
        for each in noted:
            async with self._turns.setdefault(each.claim_uid, asyncio.Lock()):
                if each.claim_uid not in self._prepared:
                    await self._prepare_claim(each)

    def _note(self, namespace: str, name: str, claim: ResourceClaim, uid: str) -> Claim:
        claim_uid = (claim.metadata.uid if claim.metadata else None) or ""
        known = self._claims.get((namespace, name))
        if known is None:
            states = {driver: DriverState() for driver in claims.drivers(claim)}
            known = self._claims[namespace, name] = Claim(claim_uid, name, namespace, {}, states)
        elif known.claim_uid != claim_uid:
            raise ClaimError(
                f"old ResourceClaim with same name {name} and different UID {known.claim_uid} still exists "
                "(previous pod force-deleted?!)"
            )
        elif claim_uid in self._unpreparing:
            raise ClaimError(f"ResourceClaim {name} is being unprepared")
        known.pod_uids = (known.pod_uids or {}) | {uid: {}}
        return known

    async def _prepare_claim(self, claim: Claim) -> None:
        for driver, state in (claim.driver_state or {}).items():
            result = await self._call("NodePrepareResources", driver, claim)
            state.devices = [
                Device(each.pool_name, each.device_name, share or None, list(each.request_names), list(ids))
                for each in result.devices
                for share, ids in ((getattr(each, "share_id", ""), each.cdi_device_ids),)
            ]
        self._prepared.add(claim.claim_uid)
        self._save()

    async def _unprepare(self, claim: Claim, uid: str) -> None:
        async with self._turns.setdefault(claim.claim_uid, asyncio.Lock()):
            users = claim.pod_uids or {}
            if uid not in users:
                return
            if len(users) > 1:
                claim.pod_uids = {each: {} for each in users if each != uid}
                self._save()
                return
            self._unpreparing.add(claim.claim_uid)
            self._prepared.discard(claim.claim_uid)
            try:
                for driver in claim.driver_state or {}:
                    await self._call("NodeUnprepareResources", driver, claim)
            finally:
                self._unpreparing.discard(claim.claim_uid)
            self._claims.pop((claim.namespace, claim.claim_name), None)
            self._save()
        self._turns.pop(claim.claim_uid, None)

    async def _call(self, method: str, driver: str, claim: Claim) -> Any:
        found = self.drivers.get(driver)
        log.debug("%s of driver %s for claim %s/%s", method, driver, claim.namespace, claim.claim_name)
        answers = await found.call(method, [(claim.namespace, claim.claim_uid, claim.claim_name)])
        result = answers.pop(claim.claim_uid, None)
        if answers:
            raise ClaimError(f"{method} returned result for unknown claim UID {next(iter(answers))}")
        if result is None:
            raise ClaimError(f"{method} skipped 1 ResourceClaims")
        if result.error:
            raise ClaimError(f"{method} failed for ResourceClaim {claim.claim_name}: {result.error}")
        return result

    def _of(self, pod: Pod, name: str) -> Claim:
        namespace = (pod.metadata.namespace if pod.metadata else None) or ""
        found = self._claims.get((namespace, name))
        if found is None:
            raise ClaimError(f"unable to get claim info for ResourceClaim {name} in namespace {namespace}")
        return found

    def _save(self) -> None:
        try:
            checkpoint.save(self._folder, self._claims.values())
        except OSError as error:
            raise ClaimError(f"checkpoint ResourceClaim state: {error}") from None


def _devices(claim: Claim, request: str) -> Iterator[tuple[str, Device]]:
    """The devices of a claim that a request has, with their drivers; all of them for the empty request."""
    for driver, state in (claim.driver_state or {}).items():
        for device in state.devices or ():
            names = device.request_names or ()
            if not request or not names or request in names or request in {each.split("/")[0] for each in names}:
                yield driver, device
