"""Makes volumes of CSI drivers ready for pods on this node, and takes them down: attached, staged, published.

Woken by: `set_up` for a pod, `tear_down` after its containers, housekeeping. Writes: the files of `volume_data`, the
claim's status after an expansion. Everything is noted on disk before its driver is called, so a call that was cut off
by a crash, a deadline or the pod's end is undone from the disk alone. A driver that hangs keeps only its own pods
waiting: each call has a deadline and each volume a lock of its own.
"""

from __future__ import annotations

import asyncio
import base64
import json
import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from pybernetes.api import errors
from pybernetes.api.core.v1 import PersistentVolume, PersistentVolumeClaim, Pod, Secret, Volume
from pybernetes.api.gocompat.quote import quote
from pybernetes.api.storage.v1 import CSIDriver, CSIDriverSpec
from pybernetes.client.client import Client
from pybernetes.client.keys import key_of, uid_of
from pybernetes.component import klog, offload
from pybernetes.cri.mounting import is_mount_point
from pybernetes.csi import v1
from pybernetes.csi.client import CSIClient
from pybernetes.csi.errors import CSIError

from ..error_text import why
from ..service_account_tokens import TokenError, Tokens
from ..volumes.base import MountedVolume, StepError
from ..volumes.host import fs_group
from ..volumes.ownership import set_group
from . import expansion, source
from .attachments import Attachments
from .drivers import Drivers, NotRegistered
from .source import Reference, Source
from .volume_data import Layout, VolumeData

LOOK_WITHIN: Final = 10.0
GROUP_WITHIN: Final = 600.0
"""Seconds for giving all files of a volume to a group."""
IN_USE: Final = "volume uses the ReadWriteOncePod access mode and is already in use by another pod"
log = logging.getLogger(__name__)

Key = tuple[str, str]
"""Driver and handle."""
Use = tuple[str, str]
"""Pod and spec name."""


@dataclass(slots=True)
class _Held:
    """A volume on this node.

    Invariant: `published` and `staged` mirror what is on disk; each entry of `published` is also in `users`. A volume
    is forgotten, and no longer in use, when it has no users and is not staged.
    """

    name: str
    """The unique name."""
    users: set[Use] = field(default_factory=set)
    """Pods that use it, or are about to."""
    published: dict[Use, VolumeData] = field(default_factory=dict)
    staged: VolumeData | None = None
    ready: bool = False
    """NodeStageVolume has succeeded since this kubelet began."""
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)


@dataclass(slots=True)
class Mounted:
    """A publication that this kubelet has made or found, for what is to be done again while its pod runs."""

    source: Source
    republish: bool
    claim: tuple[str, str] | None
    looked: float


class CSIVolumes:
    """The CSI volumes of all pods of this node."""

    def __init__(
        self,
        drivers: Drivers,
        attachments: Attachments,
        root: Path,
        client: Client,
        tokens: Tokens,
        event: Callable[[Pod, str, str, str], None],
    ) -> None:
        self.drivers, self.attachments, self.tokens = drivers, attachments, tokens
        self.layout = Layout(root)
        self.client, self.event = client, event
        self._held: dict[Key, _Held] = {}
        self.mounted: dict[Use, Mounted] = {}
        """By pod and the volume's name in it."""
        self._load()

    def _load(self) -> None:
        """Load the volumes that an earlier kubelet process has left on disk."""
        for uid, data in self.layout.find_published():
            held = self._hold(data)
            held.published[uid, data.spec_name] = data
            held.users.add((uid, data.spec_name))
            if data.attachable:
                self.attachments.hold(held.name)
        for data in self.layout.find_staged():
            held = self._hold(data)
            held.staged = data
            if data.attachable:
                self.attachments.hold(held.name)

    def _hold(self, data: VolumeData | Source) -> _Held:
        name = f"kubernetes.io/csi/{data.driver}^{data.handle}"
        return self._held.setdefault((data.driver, data.handle), _Held(name))

    @property
    def node(self) -> str:
        """The name of this node."""
        return self.attachments.node

    # -- for pods

    async def set_up(
        self, pod: Pod, name: str, persistent: PersistentVolume, claim: PersistentVolumeClaim, *, read_only: bool
    ) -> MountedVolume:
        """Make the volume behind a claim ready; raises `StepError`."""
        found = source.persistent_source(persistent, read_only=read_only)
        key = key_of(claim)
        ready = await self._set_up(pod, name, found, (key.namespace, key.name))
        await expansion.expand(self, pod, found, persistent, claim)
        return ready

    async def set_up_inline(self, pod: Pod, volume: Volume) -> MountedVolume:
        """Make a volume ready that is declared in its pod; raises `StepError`."""
        assert volume.csi is not None
        try:
            found = source.ephemeral_source(pod, volume, await self._driver(volume.csi.driver or ""))
        except ValueError as error:
            raise StepError("MountVolume.SetUp failed", volume.name or "", str(error)) from None
        return await self._set_up(pod, volume.name or "", found, None)

    async def refresh(self, pod: Pod, name: str) -> None:
        """Refresh a running pod's volume at each sync: republication, expansion. Raises `StepError`."""
        mounted = self.mounted.get((uid_of(pod), name))
        if mounted is None:
            return
        if mounted.republish:
            await self._publish(pod, mounted.source, self._client_of(mounted.source), repeated=True)
        await expansion.look(self, pod, mounted)

    async def tear_down(self, uid: str) -> None:
        """Unpublish all volumes of a pod, and unstage those that no other pod uses; raises `StepError`.

        What cannot be unstaged now is tried again by `unstage_unused`.
        """
        for use in [each for each in self.mounted if each[0] == uid]:
            del self.mounted[use]
        problems = []
        for key, held in list(self._held.items()):
            for use in [each for each in held.users if each[0] == uid]:
                try:
                    await self._release(key, held, use)
                except StepError as error:
                    problems.append(error)
        if problems:
            raise problems[0]

    async def unstage_unused(self) -> None:
        """Unstage what no pod uses any more, and could not be unstaged, or was left by an earlier kubelet."""
        for key, held in list(self._held.items()):
            if not held.users and not held.lock.locked():
                async with held.lock:
                    if not held.users:
                        await self._unstage(key, held)

    def staging_path(self, found: Source) -> str:
        """Where a volume is staged; empty if it is not."""
        held = self._held.get((found.driver, found.handle))
        return str(self.layout.staging(_data(found))) if held is not None and held.staged is not None else ""

    def published_path(self, uid: str, found: Source) -> Path:
        """Where a volume is published for a pod."""
        return self.layout.published(uid, _data(found))

    # -- up

    async def _set_up(self, pod: Pod, name: str, found: Source, claim: tuple[str, str] | None) -> MountedVolume:
        what = _detailed(found, pod)
        use = (uid_of(pod), found.spec_name)
        klog.info(
            log, 4, "Added volume to desired state", pod=key_of(pod), volumeName=name, volumeSpecName=found.spec_name
        )
        driver = await self._driver(found.driver)
        if driver is None:
            self._client_of(found)  # raises if the driver is unknown here and in the cluster
        held = self._hold(found)
        attached = found.persistent and source.attach_required(driver)
        held.users.add(use)
        context: dict[str, str] = {}
        if attached:
            self.attachments.hold(held.name)
            klog.info(log, 0, f"operationExecutor.VerifyControllerAttachedVolume started {what}", pod=key_of(pod))
            context = await self.attachments.wait(found)
        client = self._client_of(found)
        klog.info(log, 1, f"operationExecutor.MountVolume started {what}", pod=key_of(pod))
        data = _data(found, self.node, self.attachments.attachment_name(found), attachable=attached)
        async with held.lock:
            if found.access_modes == (source.READ_WRITE_ONCE_POD,) and any(
                each[0] != use[0] for each in held.published
            ):
                raise StepError("MountVolume.SetUp failed", found.spec_name, IN_USE)
            await self._write(held, use, data)
            try:
                capabilities = await client.node_capabilities()
                if found.persistent and v1.NodeRPC.STAGE_UNSTAGE_VOLUME in capabilities:
                    await self._stage(pod, found, held, client, capabilities, context, data)
                new = await self._publish(pod, found, client, capabilities=capabilities, context=context)
            except CSIError as error:
                raise StepError("MountVolume.SetUp failed", found.spec_name, str(error)) from None
        path = self.layout.published(use[0], data)
        if found.block:
            await self._files(found, self.layout.link_device, use[0], data)
        group = source.group_to_set(pod, found, driver, capabilities)
        if new and group is not None:
            await self._give_to_group(pod, path, group)
        spec = (driver.spec if driver else None) or CSIDriverSpec()
        self.mounted[use[0], name] = Mounted(
            found, bool(spec.requires_republish), claim, asyncio.get_running_loop().time()
        )
        klog.info(log, 1, f"MountVolume.SetUp succeeded {what}", pod=key_of(pod))
        return MountedVolume(name, path, read_only=found.read_only, device=found.block)

    async def _give_to_group(self, pod: Pod, path: Path, group: int) -> None:
        context = pod.spec.security_context if pod.spec else None
        only_root = context is not None and context.fs_group_change_policy == "OnRootMismatch"
        await offload.run(
            f"volume {path}", GROUP_WITHIN, set_group, path, group, read_only=False, only_on_mismatch=only_root
        )

    async def _write(self, held: _Held, use: Use, data: VolumeData) -> None:
        held.published[use] = data
        try:
            await offload.run(f"pod {use[0]}", LOOK_WITHIN, self.layout.note_published, use[0], data)
        except OSError as error:
            raise StepError("MountVolume.NewMounter initialization failed", data.spec_name, why(error)) from None

    async def _stage(
        self,
        pod: Pod,
        found: Source,
        held: _Held,
        client: CSIClient,
        capabilities: set[int],
        context: dict[str, str],
        data: VolumeData,
    ) -> None:
        if held.ready:
            return
        before = held.staged
        held.staged = data
        await self._files(found, self.layout.note_staged, data)
        secrets = await self.secrets(found, found.stage_secret, "MountVolume.MountDevice failed")
        try:
            await client.call(
                "NodeStageVolume",
                volume_id=found.handle,
                publish_context=context,
                staging_target_path=str(self.layout.staging(data)),
                volume_capability=source.capability(found, capabilities, fs_group(pod)),
                secrets=secrets,
                volume_context=found.attributes,
            )
        except CSIError as error:
            if error.final and before is None:  # there is nothing to be undone
                held.staged = None
                await self._files(found, self.layout.forget_staged, data)
            raise StepError("MountVolume.MountDevice failed", found.spec_name, str(error)) from None
        held.ready = True
        path = quote(str(self.layout.staging(data)))
        what = _detailed(found, pod)
        klog.info(log, 0, f"MountVolume.MountDevice succeeded {what} device mount path {path}", pod=key_of(pod))

    async def _publish(
        self,
        pod: Pod,
        found: Source,
        client: CSIClient,
        *,
        capabilities: set[int] | None = None,
        context: dict[str, str] | None = None,
        repeated: bool = False,
    ) -> bool:
        """Call NodePublishVolume; False if the volume is published already."""
        uid, data = uid_of(pod), _data(found)
        target = self.layout.published(uid, data)
        driver = await self._driver(found.driver)
        spec = (driver.spec if driver else None) or CSIDriverSpec()
        if not spec.requires_republish and await self._files(found, is_mount_point, target):
            return False
        try:
            if capabilities is None:
                capabilities = await client.node_capabilities()
            if context is None and found.persistent and source.attach_required(driver):
                context = await self.attachments.wait(found)
            secrets = await self.secrets(found, found.publish_secret, "MountVolume.SetUp failed")
            tokens = await self._tokens(pod, found, spec)
            if tokens and spec.service_account_token_in_secrets:
                secrets |= tokens
                tokens = {}
            log.debug("calling NodePublishVolume rpc [volid=%s,target_path=%s]", found.handle, target)
            await client.call(
                "NodePublishVolume",
                volume_id=found.handle,
                publish_context=context,
                staging_target_path=self.staging_path(found),
                target_path=str(target),
                volume_capability=source.capability(found, capabilities, fs_group(pod)),
                readonly=found.read_only,
                secrets=secrets,
                volume_context={**found.attributes, **source.pod_info(pod, found, driver), **tokens},
            )
        except CSIError as error:
            if error.final and not repeated:
                await self._forget_published(found, uid)
            raise StepError("MountVolume.SetUp failed", found.spec_name, str(error)) from None
        return True

    async def _forget_published(self, found: Source, uid: str) -> None:
        """The driver has published nothing: there is nothing to be unpublished."""
        held, data = self._held[found.driver, found.handle], _data(found)
        try:
            await self._files(found, self.layout.forget_published, uid, data)
        except StepError:
            return  # something is there after all
        held.published.pop((uid, found.spec_name), None)

    async def secrets(self, found: Source, reference: Reference | None, step: str) -> dict[str, str]:
        """The contents of a Secret that a PersistentVolume names; raises `StepError`."""
        if reference is None:
            return {}
        try:
            secret = await self.client.get(Secret, reference[1], reference[0])
            return {key: base64.b64decode(value).decode() for key, value in (secret.data or {}).items()}
        except (errors.APIError, OSError, TimeoutError) as error:
            problem = f"failed to get secret {reference[0]}/{reference[1]}: {why(error)}"
        except UnicodeDecodeError:
            problem = f"secret {reference[0]}/{reference[1]}: drivers take text only"
        raise StepError(step, found.spec_name, problem)

    async def _tokens(self, pod: Pod, found: Source, spec: CSIDriverSpec) -> dict[str, str]:
        tokens = {}
        for each in spec.token_requests or ():
            audience = each.audience or ""
            try:
                text, expires = await self.tokens.get_expiring(pod, audience, each.expiration_seconds)
            except TokenError as error:
                raise StepError("MountVolume.SetUp failed", found.spec_name, str(error)) from None
            tokens[audience] = {"token": text, "expirationTimestamp": expires}
        return {source.SERVICE_ACCOUNT_TOKENS: json.dumps(tokens)} if tokens else {}

    # -- down

    async def _release(self, key: Key, held: _Held, use: Use) -> None:
        async with held.lock:
            data = held.published.get(use)
            if data is not None:
                await self._unpublish(held, use, data)
            held.users.discard(use)
            if not held.users:
                await self._unstage(key, held)

    async def _unpublish(self, held: _Held, use: Use, data: VolumeData) -> None:
        uid = use[0]
        target = self.layout.published(uid, data)
        step = "UnmapVolume.UnmapBlockVolume failed" if data.block else "UnmountVolume.TearDown failed"
        try:
            client = self.drivers.get(data.driver)
            log.debug("calling NodeUnpublishVolume rpc: [volid=%s, target_path=%s]", data.handle, target)
            await client.call("NodeUnpublishVolume", volume_id=data.handle, target_path=str(target))
            await offload.run(f"pod {uid}", LOOK_WITHIN, self.layout.forget_published, uid, data)
        except (CSIError, NotRegistered, OSError) as error:
            raise StepError(step, data.spec_name, why(error)) from None
        del held.published[use]
        log.info("UnmountVolume.TearDown succeeded for volume %s (%s) of pod %s", data.spec_name, held.name, uid)

    async def _unstage(self, key: Key, held: _Held) -> None:
        """Unstage a volume that no pod uses; it stays known, and in use, while that fails."""
        data = held.staged
        if data is not None:
            path = self.layout.staging(data)
            try:
                client = self.drivers.get(data.driver)
                await client.call("NodeUnstageVolume", volume_id=data.handle, staging_target_path=str(path))
                await offload.run(f"volume {held.name}", LOOK_WITHIN, self.layout.forget_staged, data)
            except (CSIError, NotRegistered, OSError) as error:
                log.warning("UnmountDevice failed for volume %s, trying again later: %s", held.name, why(error))
                return
            log.info("UnmountDevice succeeded for volume %s", held.name)
            held.staged, held.ready = None, False
        if not held.users:  # else a pod has come meanwhile, and waits for the lock
            self._held.pop(key, None)
            self.attachments.release(held.name)

    # -- small things

    def _client_of(self, found: Source) -> CSIClient:
        try:
            return self.drivers.get(found.driver)
        except NotRegistered as error:
            step = "MountVolume.MountDevice failed" if found.persistent else "MountVolume.SetUp failed"
            why = f"kubernetes.io/csi: attacher.MountDevice failed to create newCsiDriverClient: {error}"
            raise StepError(step, found.spec_name, why if found.persistent else str(error)) from None

    async def _driver(self, name: str) -> CSIDriver | None:
        try:
            return await self.client.get(CSIDriver, name)
        except errors.NotFound:
            return None

    async def _files(self, found: Source, function: Callable[..., Any], *args: Any) -> Any:
        """A look at, or a change of, the volume's folders, in a thread."""
        try:
            return await offload.run(f"volume {found.unique_name}", LOOK_WITHIN, function, *args)
        except OSError as error:
            raise StepError("MountVolume.SetUp failed", found.spec_name, why(error)) from None


def _data(found: Source, node: str = "", attachment: str = "", *, attachable: bool = False) -> VolumeData:
    return VolumeData(
        found.driver,
        found.handle,
        found.spec_name,
        node,
        attachment,
        lifecycle=found.lifecycle,
        attachable=attachable,
        block=found.block,
    )


def _detailed(found: Source, pod: Pod) -> str:
    """How upstream's log names a volume."""
    name = (pod.metadata.name if pod.metadata else None) or ""
    return (
        f"for volume {quote(found.spec_name)} (UniqueName: {quote(found.unique_name)}) pod {quote(name)} "
        f"(UID: {quote(uid_of(pod))})"
    )
