"""Has volumes attached to the nodes whose pods need them, and detached when no pod there does.

Woken by: nodes, pods with volumes, claims and volumes behind them, VolumeAttachments, drivers. Writes:
VolumeAttachments, which are orders for the attacher beside a CSI driver, and `volumesAttached` of nodes. One worker: a
volume that can be on one node only must not be ordered for two at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, TypeVar

from pybernetes.api import errors
from pybernetes.api.core.v1 import Node, PersistentVolume, PersistentVolumeClaim, Pod
from pybernetes.api.storage.v1 import CSIDriver, VolumeAttachment
from pybernetes.client.events import NORMAL, WARNING
from pybernetes.client.keys import Key, is_controlled_by, key_of, uid_of

from ..base import Controller
from ..common.meta import is_deleting, meta, name_of
from ..common.nodes import index_by_node, pods_on
from ..common.pods import node_of
from ..pvcprotection import claims_of
from .attachments import (
    Attachable,
    Detach,
    NodeState,
    Plan,
    attachable,
    attachment,
    attachment_name,
    blocking_message,
    driver_and_handle,
    is_ours,
    node_state,
    plan,
    uses_volumes,
)

_T = TypeVar("_T")

_BY_CLAIM: Final = "pod-pvc"
_BY_NODE: Final = "attachment-by-node"
_BY_VOLUME: Final = "attachment-by-volume"
_ATTACHED: Final = "node-by-attached-volume"
STILL_IN_USE: Final = 1.0
"""Seconds until a volume is looked at again that the node had in use after all. Its status wakes us before."""


class PersistentVolumeAttachDetachController(Controller[Node]):
    """Attaches and detaches, node by node."""

    name = "persistentvolume-attach-detach-controller"
    kind = Node

    def setup(self) -> None:
        """Follow what decides about volumes of pods."""
        self.recorder = self.context.events.recorder("attachdetach-controller")
        self.pods = self.informer(Pod)
        self.pods.add_index(_BY_CLAIM, lambda pod: [str(key) for key in claims_of(pod)])
        index_by_node(self.pods)
        self.claims = self.informer(PersistentVolumeClaim)
        self.volumes = self.informer(PersistentVolume)
        self.drivers = self.informer(CSIDriver)
        self.attachments = self.informer(VolumeAttachment)
        self.attachments.add_index(_BY_NODE, lambda each: [_node(each)])
        self.attachments.add_index(_BY_VOLUME, lambda each: [_volume(each)] if _volume(each) else [])
        self.own.add_index(_ATTACHED, lambda node: node_state(node).reported)
        self._ordered: dict[str, VolumeAttachment] = {}
        """Attachments that we made and the cache has not shown yet, by name."""
        self._deleted: set[str] = set()
        """UIDs of attachments that we have deleted and the cache still shows."""
        self._names: dict[str, str] = {}
        """Names of volumes by their attachments', for volumes that are deleted while they are attached."""
        self._unwanted: dict[str, dict[str, float]] = {}
        self._blocked: dict[str, set[str]] = {}
        """By node the volumes that it waits for, reported to their pods."""
        self._reported_errors: dict[str, str | None] = {}
        """By attachment the last error that was reported."""
        self._forced = self.context.metrics.counter(
            "attach_detach_controller_attachdetach_controller_forced_detaches",
            "Number of times the A/D Controller performed a forced detach",
            ("reason",),
        )
        self.pods.add_handler(self._pod_seen, self._pod_updated, self._pod_seen)
        self.claims.add_handler(self._claim_seen, lambda _, new: self._claim_seen(new))
        self.volumes.add_handler(self._volume_seen, lambda _, new: self._volume_seen(new))
        self.attachments.add_handler(
            self._attachment_seen, lambda _, new: self._attachment_seen(new), self._attachment_gone
        )
        self.drivers.add_handler(lambda _: self._wake_all(), lambda _, __: self._wake_all(), lambda _: self._wake_all())

    # -- being woken

    def concerns(self, old: Node | None, new: Node | None) -> bool:
        """Changes of what nodes use, report and suffer; not their heartbeats."""
        if old is not None and node_state(old).reported != (node_state(new).reported if new else ()):
            self._wake_blocked()
        return old is None or new is None or node_state(old) != node_state(new)

    def _pod_seen(self, pod: Pod) -> None:
        if node_of(pod) and _may_need_attaching(pod):
            self.queue.add(Key("", node_of(pod)))

    def _pod_updated(self, old: Pod, new: Pod) -> None:
        if node_of(old) != node_of(new) or uses_volumes(old) != uses_volumes(new) or uid_of(old) != uid_of(new):
            self._pod_seen(old)
            self._pod_seen(new)

    def _claim_seen(self, claim: PersistentVolumeClaim) -> None:
        self._wake_users(str(key_of(claim)))

    def _volume_seen(self, volume: PersistentVolume) -> None:
        reference = volume.spec.claim_ref if volume.spec else None
        if reference is not None:
            self._wake_users(f"{reference.namespace}/{reference.name}")
        for each in self.attachments.by_index(_BY_VOLUME, name_of(volume)):
            self.queue.add(Key("", _node(each)))

    def _wake_users(self, claim: str) -> None:
        for pod in self.pods.by_index(_BY_CLAIM, claim):
            if node_of(pod):
                self.queue.add(Key("", node_of(pod)))

    def _attachment_seen(self, found: VolumeAttachment) -> None:
        self._ordered.pop(name_of(found), None)
        self.queue.add(Key("", _node(found)))

    def _attachment_gone(self, gone: VolumeAttachment) -> None:
        self._attachment_seen(gone)
        self._deleted.discard(uid_of(gone))
        self._names.pop(name_of(gone), None)
        self._reported_errors.pop(name_of(gone), None)
        self._wake_blocked()

    def _wake_blocked(self) -> None:
        for node in self._blocked:
            self.queue.add(Key("", node))

    def _wake_all(self) -> None:
        for node in self.own.items():
            self.queue.add(key_of(node))

    # -- one node

    async def reconcile(self, key: Key) -> float | None:
        """Give a node the volumes that its pods need, and take off the others."""
        node = self.own.get(key)
        state = node_state(node)
        if state.exists and not state.managed:
            return None
        users: dict[str, list[Pod]] = {}
        wanted: dict[str, Attachable] = {}
        for pod, needed in self._needs(key.name):
            users.setdefault(needed.name, []).append(pod)
            wanted[needed.name] = needed
        held = self._held(key.name, state)
        result = plan(
            state,
            wanted.values(),
            held,
            lambda each: bool(list(self._holders(each, key.name))),
            self._unwanted.get(key.name, {}),
            self.clock.now(),
            force=not self.options.disable_force_detach_on_timeout,
        )
        self._remember(self._unwanted, key.name, result.unwanted)
        self._say_blocked(key.name, result, users)
        self._say_failed(wanted, held, users)
        await self._report(node, state, result.report)
        for name in result.report:
            if name in wanted and name not in state.reported:
                self._say(users[name], NORMAL, "SuccessfulAttachVolume", "succeeded", wanted[name].title)
        for each in result.create:
            await self._attach(each, key.name, users[each.name])
        again = result.again
        for detach in result.detach:
            if not await self._detach(detach, key.name, state):
                again = min(again or STILL_IN_USE, STILL_IN_USE)
        if again is None and (wanted or held) and not self.options.disable_attach_detach_reconcile_sync:
            again = self.options.attach_detach_reconcile_sync_period
        return again

    def _needs(self, node: str) -> Iterator[tuple[Pod, Attachable]]:
        """The volumes to be attached for the pods of a node."""
        for pod in pods_on(self.pods, node):
            if not _may_need_attaching(pod) or not uses_volumes(pod) or pod.spec is None:
                continue
            for volume in pod.spec.volumes or ():
                persistent = None
                if volume.persistent_volume_claim is not None:
                    persistent = self._behind(pod, volume.persistent_volume_claim.claim_name or "")
                elif volume.ephemeral is not None:
                    persistent = self._behind(pod, f"{name_of(pod)}-{volume.name}", made_for_pod=True)
                found = attachable(volume, persistent, self._needs_attaching)
                if found is not None:
                    yield pod, found

    def _behind(self, pod: Pod, claim_name: str, made_for_pod: bool = False) -> PersistentVolume | None:
        claim = self.claims.named(claim_name, meta(pod).namespace or "")
        if claim is None or claim.spec is None or claim.status is None or claim.status.phase != "Bound":
            return None
        if made_for_pod and not is_controlled_by(claim, pod):
            return None
        volume = self.volumes.named(claim.spec.volume_name or "")
        reference = volume.spec.claim_ref if volume is not None and volume.spec is not None else None
        return volume if reference is not None and reference.uid == uid_of(claim) else None

    def _needs_attaching(self, driver: str) -> bool:
        found = self.drivers.named(driver)
        return found is None or found.spec is None or found.spec.attach_required is not False

    def _held(self, node: str, state: NodeState) -> dict[str, VolumeAttachment | None]:
        """The volumes that a node has: those with an attachment, and those its status tells of."""
        known = (name for name in (*state.reported, *state.in_use) if driver_and_handle(name))
        by_attachment = {attachment_name(name, node): name for name in known}
        held: dict[str, VolumeAttachment | None] = {
            name: None for name in state.reported if name.startswith(("kubernetes.io/csi/", *_SELF_ATTACHED))
        }
        ordered = (each for each in self._ordered.values() if _node(each) == node)
        for each in (*self.attachments.by_index(_BY_NODE, node), *ordered):
            name = self._name_of(each) or by_attachment.get(name_of(each))
            if name is not None and attachment_name(name, node) == name_of(each):
                self._names[name_of(each)] = name
                held[name] = each
            elif name is None and is_ours(name_of(each)):
                # Its volume is deleted, and the node neither has nor uses it: left over from before a restart.
                held[f"{_LEFT_OVER}{name_of(each)}"] = each
        return held

    def _name_of(self, each: VolumeAttachment) -> str | None:
        volume = self.volumes.named(_volume(each)) if _volume(each) else None
        if volume is not None and volume.spec is not None and volume.spec.csi is not None:
            return f"kubernetes.io/csi/{volume.spec.csi.driver}^{volume.spec.csi.volume_handle}"
        return self._names.get(name_of(each))

    def _holders(self, wanted: Attachable, node: str) -> Iterator[str]:
        """The other nodes that have a volume."""
        if wanted.csi is None:
            yield from (name for each in self.own.by_index(_ATTACHED, wanted.name) if (name := name_of(each)) != node)
            return
        ordered = (each for each in self._ordered.values() if _volume(each) == wanted.persistent_volume)
        for each in (*self.attachments.by_index(_BY_VOLUME, wanted.persistent_volume), *ordered):
            if _node(each) != node:
                yield _node(each)

    # -- doing

    async def _report(self, node: Node | None, state: NodeState, names: list[str]) -> None:
        if node is None:
            return
        known = ("kubernetes.io/csi/", *_SELF_ATTACHED)
        foreign = [name for name in state.reported if not name.startswith(known)]
        wanted = sorted([*names, *foreign])
        if wanted == sorted(state.reported):
            return
        paths = {each.name: each.device_path for each in (node.status.volumes_attached if node.status else None) or ()}
        listed = [{"name": name, "devicePath": paths.get(name) or ""} for name in wanted]
        patch = {"status": {"volumesAttached": listed or None}}
        await self.client.patch(Node, name_of(node), patch, subresource="status")

    async def _attach(self, wanted: Attachable, node: str, pods: list[Pod]) -> None:
        order = attachment(wanted, node)
        try:
            made = await self.client.create(order)
        except errors.AlreadyExists:
            return  # the cache will show it
        except errors.APIError as error:
            self._say(pods, WARNING, "FailedAttachVolume", "failed", wanted.title, str(error))
            raise
        if self.attachments.named(name_of(made)) is None:
            self._ordered[name_of(made)] = made

    async def _detach(self, detach: Detach, node: str, state: NodeState) -> bool:
        """Order the detachment; False if the node has just begun to use the volume."""
        present = detach.attachment
        if present is not None and (is_deleting(present) or uid_of(present) in self._deleted):
            return True
        if detach.name.startswith(_LEFT_OVER) and present is not None and await self._exists(_volume(present)):
            return False
        if not detach.forced and state.exists and not await self._is_unused(detach.name, node):
            return False
        if present is not None:  # else it is detached, and only the node's status is still to say so
            if detach.forced:
                self._forced.inc(detach.forced)
                self.log.warning("%s: detaching %s by force: %s", node, detach.name, detach.forced)
            try:
                await self.client.delete(VolumeAttachment, name_of(present))
            except errors.NotFound:
                pass
            if self.attachments.named(name_of(present)) is not None:
                self._deleted.add(uid_of(present))
            self._ordered.pop(name_of(present), None)
        return True

    async def _exists(self, volume: str) -> bool:
        try:
            await self.client.get(PersistentVolume, volume)
        except errors.NotFound:
            return False
        return True

    async def _is_unused(self, name: str, node: str) -> bool:
        try:
            live = await self.client.get(Node, node)
        except errors.NotFound:
            return True
        return name not in node_state(live).in_use

    # -- telling

    def _say_blocked(self, node: str, result: Plan, users: dict[str, list[Pod]]) -> None:
        told = self._blocked.get(node, set())
        for each in result.blocked:
            if each.name in told:
                continue
            holders = set(self._holders(each, node))
            others = [pod for holder in holders for pod, needed in self._needs(holder) if needed.name == each.name]
            for pod in users[each.name]:
                message = blocking_message(each.title, meta(pod).namespace or "", others)
                self.recorder.event(pod, WARNING, "FailedAttachVolume", message)
        self._remember(self._blocked, node, {each.name for each in result.blocked})

    def _say_failed(
        self,
        wanted: dict[str, Attachable],
        held: dict[str, VolumeAttachment | None],
        users: dict[str, list[Pod]],
    ) -> None:
        for name, each in wanted.items():
            present = held.get(name)
            error = present.status.attach_error if present is not None and present.status is not None else None
            if present is None or error is None:
                continue
            text = f"{error.time} {error.message}"
            if self._reported_errors.get(name_of(present)) != text:
                self._reported_errors[name_of(present)] = text
                self._say(users[name], WARNING, "FailedAttachVolume", "failed", each.title, error.message or "")

    def _say(self, pods: list[Pod], type: str, reason: str, how: str, title: str, error: str = "") -> None:
        for pod in pods:
            text = f'AttachVolume.Attach {how} for volume "{title}" ' + (f": {error}" if error else "")
            self.recorder.event(pod, type, reason, text)

    @staticmethod
    def _remember(where: dict[str, _T], node: str, what: _T) -> None:
        if what:
            where[node] = what
        else:
            where.pop(node, None)


_LEFT_OVER: Final = "kubernetes.io/csi/^"
_SELF_ATTACHED: Final = ("kubernetes.io/fc/", "kubernetes.io/iscsi/")
"""Volumes that nodes attach themselves; they still wait for our word."""


def _node(each: VolumeAttachment) -> str:
    return (each.spec.node_name if each.spec else None) or ""


def _volume(each: VolumeAttachment) -> str:
    source = each.spec.source if each.spec else None
    return (source.persistent_volume_name if source else None) or ""


def _may_need_attaching(pod: Pod) -> bool:
    for volume in (pod.spec.volumes if pod.spec else None) or ():
        if volume.persistent_volume_claim or volume.ephemeral or volume.iscsi or volume.fc:
            return True
    return False
