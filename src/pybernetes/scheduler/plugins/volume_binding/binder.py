"""Tells the API server which volumes a pod's claims get, and waits until controllers have made it so.

Nothing polls: who waits is woken by changes of its claims, its volumes and its pod.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable

from pybernetes.api.core.nodeaffinity import node_selector_matches
from pybernetes.api.core.v1 import Node, PersistentVolume, PersistentVolumeClaim, Pod
from pybernetes.api.core.volumebinding import SELECTED_NODE, annotations_of
from pybernetes.client.keys import Key, key_of

from ...framework import Handle
from ..assumed import Assumed
from .matching import fully_bound


class BindingFailed(Exception):
    """The pod has to be tried again."""


class Binder:
    """Makes bindings true."""

    def __init__(
        self,
        handle: Handle,
        volumes: Assumed[PersistentVolume],
        claims: Assumed[PersistentVolumeClaim],
        timeout: float,
    ) -> None:
        self._handle = handle
        self._volumes = volumes
        self._claims = claims
        self._timeout = timeout
        self._pods = handle.informer(Pod)
        self._nodes = handle.informer(Node)
        self._waiting: dict[Key, set[asyncio.Event]] = {}
        """By claim and by pod (`_pod` keeps the two apart): who wants to know of its changes."""
        claims.informer.add_handler(self._claim_changed, self._claim_updated, self._claim_changed)
        volumes.informer.add_handler(self._volume_changed, self._volume_updated, self._volume_changed)
        self._pods.add_handler(on_delete=lambda pod: self._wake(_pod(key_of(pod))))

    async def bind(
        self,
        pod: Key,
        node_name: str,
        volumes: Iterable[PersistentVolume],
        claims: Iterable[PersistentVolumeClaim],
    ) -> None:
        """Update volumes (bound copies) and claims (with their node selected), and wait for the rest.

        Raises `BindingFailed` when it cannot become true, and what the API server refuses with.
        """
        sent_volumes, sent_claims = [], []
        for volume in volumes:
            sent_volumes.append(await self._handle.client.update(volume))
        for claim in claims:
            sent_claims.append(await self._handle.client.update(claim))
        keys = {_pod(pod), *(key_of(each) for each in sent_claims), *(_claim_of(each) for each in sent_volumes)}
        await self._until(keys, lambda: self._done(pod, node_name, sent_volumes, sent_claims))

    async def _until(self, keys: Iterable[Key], condition: Callable[[], bool]) -> None:
        event = asyncio.Event()
        for key in keys:
            self._waiting.setdefault(key, set()).add(event)
        late = False

        def expire() -> None:
            nonlocal late
            late = True
            event.set()

        timer = self._handle.clock.call_later(self._timeout, expire)
        try:
            while not condition():
                if late:
                    raise BindingFailed("binding volumes: context deadline exceeded")
                await event.wait()
                event.clear()
        finally:
            timer.cancel()
            for key in keys:
                self._waiting[key].discard(event)
                if not self._waiting[key]:
                    del self._waiting[key]

    def _done(
        self,
        pod: Key,
        node_name: str,
        volumes: Iterable[PersistentVolume],
        claims: Iterable[PersistentVolumeClaim],
    ) -> bool:
        node = self._nodes.named(node_name)
        if node is None:
            raise BindingFailed(f'binding volumes: failed to get node "{node_name}": node "{node_name}" not found')
        if self._pods.get(pod) is None:
            raise BindingFailed(f'binding volumes: pod does not exist any more: pod "{pod.name}" not found')
        done = [self._volume_done(each, node) for each in volumes]  # every one, for what they raise
        done += [self._claim_done(each, node) for each in claims]
        return all(done)

    def _volume_done(self, sent: PersistentVolume, node: Node) -> bool:
        key = key_of(sent)
        volume, claim = self._volumes.informer.get(key), self._claims.informer.get(_claim_of(sent))
        if volume is None or claim is None:
            name = (
                f'persistentvolume "{key.name}"'
                if volume is None
                else f'persistentvolumeclaim "{_claim_of(sent).name}"'
            )
            raise BindingFailed(f"binding volumes: failed to check binding: {name} not found")
        if _older(volume, sent):
            return False
        self._check_affinity(volume, node)
        reference = volume.spec.claim_ref if volume.spec else None
        if reference is None or not reference.uid:
            raise BindingFailed(f'binding volumes: ClaimRef got reset for pv "{key.name}"')
        return fully_bound(claim)

    def _claim_done(self, sent: PersistentVolumeClaim, node: Node) -> bool:
        key = key_of(sent)
        claim = self._claims.informer.get(key)
        if claim is None:
            raise BindingFailed(
                f'binding volumes: failed to check provisioning pvc: persistentvolumeclaim "{key.name}" not found'
            )
        if _older(claim, sent):
            return False
        if annotations_of(claim).get(SELECTED_NODE) != annotations_of(sent)[SELECTED_NODE]:
            # How a provisioner says that it cannot make a volume for this node.
            raise BindingFailed(f'binding volumes: provisioning failed for PVC "{key.name}"')
        name = claim.spec.volume_name if claim.spec else None
        if name:
            volume = self._volumes.informer.named(name)
            if volume is None:
                return False
            self._check_affinity(volume, node)
        return fully_bound(claim)

    def _check_affinity(self, volume: PersistentVolume, node: Node) -> None:
        affinity = volume.spec.node_affinity if volume.spec else None
        if (
            affinity is not None
            and affinity.required is not None
            and not node_selector_matches(affinity.required, node)
        ):
            one, other = key_of(volume).name, key_of(node).name
            why = f'pv "{one}" node affinity doesn\'t match node "{other}": no matching NodeSelectorTerms'
            raise BindingFailed(f"binding volumes: {why}")

    # -- waking

    def _wake(self, key: Key) -> None:
        for event in self._waiting.get(key, ()):
            event.set()

    def _claim_changed(self, claim: PersistentVolumeClaim) -> None:
        self._wake(key_of(claim))

    def _claim_updated(self, old: PersistentVolumeClaim, new: PersistentVolumeClaim) -> None:
        self._wake(key_of(new))

    def _volume_changed(self, volume: PersistentVolume) -> None:
        self._wake(_claim_of(volume))

    def _volume_updated(self, old: PersistentVolume, new: PersistentVolume) -> None:
        self._wake(_claim_of(old))
        self._wake(_claim_of(new))


def _pod(key: Key) -> Key:
    return Key(f"pods/{key.namespace}", key.name)


def _claim_of(volume: PersistentVolume) -> Key:
    reference = volume.spec.claim_ref if volume.spec else None
    return Key((reference.namespace or ""), (reference.name or "")) if reference else Key("", "")


def _older(known: PersistentVolume | PersistentVolumeClaim, sent: PersistentVolume | PersistentVolumeClaim) -> bool:
    return _version(known) < _version(sent)


def _version(obj: PersistentVolume | PersistentVolumeClaim) -> int:
    text = (obj.metadata.resource_version if obj.metadata else None) or "0"
    return int(text) if text.isdigit() else 0
