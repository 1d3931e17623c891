"""Brings a container's image to the node: by its pull policy, with the pod's secrets, slower after each failure.

An image that is here because some pod had a secret for it is given to others only if they may have it as well
(`images.pulled`).
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import Counter as Count
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from pybernetes.api.core.containers import AnyContainer
from pybernetes.api.core.image import parse_reference
from pybernetes.api.core.v1 import ObjectReference, Pod, Secret
from pybernetes.api.gocompat.quote import quote
from pybernetes.api.times import format_duration
from pybernetes.client.clock import Clock
from pybernetes.client.events import NORMAL, WARNING, EventRecorder
from pybernetes.client.keys import uid_of
from pybernetes.cri import v1 as cri
from pybernetes.cri.errors import CRIError
from pybernetes.cri.remote import Runtime

from ..backoff import IMAGE_BASE, IMAGE_LONGEST, BackOff
from ..container.config import ImageUser
from .credentials import Credential, InvalidSecret, Keyring
from .pulled import PulledImages

# reasons of a container's waiting state
IMAGE_PULL_BACK_OFF: Final = "ImagePullBackOff"
IMAGE_INSPECT_ERROR: Final = "ImageInspectError"
ERR_IMAGE_PULL: Final = "ErrImagePull"
ERR_IMAGE_NEVER_PULL: Final = "ErrImageNeverPull"
INVALID_IMAGE_NAME: Final = "InvalidImageName"
_TOLD_BY_RUNTIME: Final = {
    "RegistryUnavailable": "the registry is unavailable",
    "SignatureValidationFailed": "the signature validation failed",
}
log = logging.getLogger(__name__)

Pull = Callable[[Any], Awaitable[Any]]


class ImageError(Exception):
    """There is no image for the container: the reason and message of its waiting state."""

    def __init__(self, reason: str, message: str, retry_after: float = 0.0) -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message
        self.retry_after = retry_after


@dataclass(frozen=True, slots=True)
class LocalImage:
    """An image that the runtime has."""

    ref: str
    user: ImageUser


class ImageManager:
    """Makes sure that images are there. `parallel`: pulls at a time, None = as many as there are."""

    def __init__(
        self,
        runtime: Runtime,
        recorder: EventRecorder,
        clock: Clock,
        pulled: PulledImages,
        *,
        parallel: int | None = 1,
    ) -> None:
        self._runtime = runtime
        self._recorder = recorder
        self._clock = clock
        self._pulled = pulled
        self._turns = asyncio.Semaphore(parallel) if parallel else contextlib.nullcontext()
        self._backoff = BackOff(clock, IMAGE_BASE, IMAGE_LONGEST)
        self.took: Callable[[str, float, int], None] = lambda uid, seconds, size: None
        """Called for each pull: the pod's uid, the duration, the image's bytes."""
        self.requests: Count[tuple[str, ...]] = Count()
        """Images that were wanted, by: whether they were there, the policy, and whether they had to be pulled."""
        self._errors: dict[str, str] = {}
        """The last failure of a pod's image, by the key of its back-off."""

    async def ensure(
        self,
        pod: Pod,
        container: AnyContainer,
        reference: ObjectReference,
        secrets: Sequence[Secret],
        sandbox: Any,
        handler: str = "",
    ) -> LocalImage:
        """The container's image, pulled if need be; `reference` is what events are about. Raises `ImageError`."""
        policy = container.image_pull_policy or "IfNotPresent"
        return await self.ensure_image(pod, container.image or "", policy, reference, secrets, sandbox, handler)

    async def ensure_image(
        self,
        pod: Pod,
        requested: str,
        policy: str,
        reference: ObjectReference,
        secrets: Sequence[Secret],
        sandbox: Any,
        handler: str = "",
    ) -> LocalImage:
        """The same for any image (image volumes)."""
        image = self._named(requested, reference)
        spec = cri.ImageSpec(image=image, user_specified_image=requested, runtime_handler=handler)
        there = "unknown"
        if policy != "Always":
            present = await self._present(spec, requested, reference)
            there = str(present is not None).lower()
            if present is not None:
                keyring = self._keyring(secrets)
                if not self._pulled.needs_pull(requested, present.ref, keyring.lookup(parse_reference(image).name)):
                    message = (
                        f"Container image {quote(requested)} already present on machine and can be accessed by the pod"
                    )
                    self._recorder.event(reference, NORMAL, "Pulled", message)
                    self.requests[there, policy.lower(), "false"] += 1
                    return present
            if policy == "Never":
                message = f"Container image {quote(requested)} is not present with pull policy of Never"
                self._recorder.event(reference, WARNING, "ErrImageNeverPull", message)
                self.requests[there, policy.lower(), "false"] += 1
                raise ImageError(ERR_IMAGE_NEVER_PULL, message)
        self.requests[there, policy.lower(), "true"] += 1
        credentials = self._keyring(secrets).lookup(parse_reference(image).name)
        ref = await self._pull(pod, requested, spec, reference, credentials, sandbox)
        found = await self._status(cri.ImageSpec(image=ref, runtime_handler=handler))
        return found or LocalImage(ref, ImageUser(0))

    def forget(self, uid: str) -> None:
        """A pod is gone."""
        for key in [key for key in self._errors if key.startswith(f"{uid}_")]:
            del self._errors[key]
            self._backoff.reset(key)

    def _named(self, requested: str, reference: ObjectReference) -> str:
        try:
            found = parse_reference(requested)
        except ValueError as error:
            reason = f"couldn't parse image name {quote(requested)}: {error}"
            message = f"Failed to apply default image tag {quote(requested)}: {reason}"
            self._recorder.event(reference, WARNING, "InspectFailed", message)
            raise ImageError(INVALID_IMAGE_NAME, message) from None
        return requested if found.tag or found.digest else f"{requested}:latest"

    def _keyring(self, secrets: Sequence[Secret]) -> Keyring:
        try:
            return Keyring.of(secrets)
        except InvalidSecret as error:
            raise ImageError(ERR_IMAGE_PULL, str(error)) from error

    async def _present(self, spec: Any, requested: str, reference: ObjectReference) -> LocalImage | None:
        try:
            return await self._status(spec)
        except CRIError as error:
            message = f"Failed to inspect image {quote(requested)}: {error}"
            self._recorder.event(reference, WARNING, "InspectFailed", message)
            raise ImageError(IMAGE_INSPECT_ERROR, message) from error

    async def _status(self, spec: Any) -> LocalImage | None:
        answer = await self._runtime.image_status(cri.ImageStatusRequest(image=spec))
        if not answer.HasField("image"):
            return None
        image = answer.image
        if image.HasField("uid"):
            return LocalImage(image.id, ImageUser(image.uid.value))
        # an image without a user runs as root
        return LocalImage(image.id, ImageUser(None, image.username) if image.username else ImageUser(0))

    async def _pull(
        self,
        pod: Pod,
        requested: str,
        spec: Any,
        reference: ObjectReference,
        credentials: Sequence[Credential],
        sandbox: Any,
    ) -> str:
        key = f"{pod.metadata.uid if pod.metadata else ''}_{requested}"
        if self._backoff.is_waiting_since_update(key):
            message = f"Back-off pulling image {quote(requested)}"
            self._recorder.event(reference, NORMAL, "BackOff", message)
            if key in self._errors:
                message += f": {self._errors[key]}"
            raise ImageError(IMAGE_PULL_BACK_OFF, message, retry_after=self._backoff.delay(key))
        self._errors.pop(key, None)
        self._recorder.event(reference, NORMAL, "Pulling", f"Pulling image {quote(requested)}")
        asked = self._clock.monotonic()
        async with self._turns:
            begun = self._clock.monotonic()
            try:
                self._pulled.intend(requested)
            except OSError as error:
                message = f"Failed to record image pull intent for container image {quote(requested)}: {error}"
                self._recorder.event(reference, WARNING, "Failed", message)
                raise ImageError(ERR_IMAGE_PULL, message) from None
            try:
                ref, used, size = await self._try_all(spec, credentials, sandbox)
            except asyncio.CancelledError:  # the pod is deleted
                self._pulled.failed(requested)
                raise
            except CRIError as error:
                self._pulled.failed(requested)
                text = f"Failed to pull image {quote(requested)}: {error}"
                self._recorder.event(reference, WARNING, "Failed", text)
                self._backoff.next(key, self._clock.now())
                reason, message = _explain(requested, error)
                self._errors[key] = f"{reason}: {message}"
                raise ImageError(reason, message, retry_after=self._backoff.delay(key)) from error
        self._pulled.succeeded(requested, ref, used)
        ended = self._clock.monotonic()
        self.took(uid_of(pod), ended - begun, size)
        took, waited = _milliseconds(ended - begun), _milliseconds(ended - asked)
        message = (
            f"Successfully pulled image {quote(requested)} in {took} ({waited} including waiting). "
            f"Image size: {size} bytes."
        )
        self._recorder.event(reference, NORMAL, "Pulled", message)
        self._backoff.collect()
        return ref

    async def _try_all(
        self, spec: Any, credentials: Sequence[Credential], sandbox: Any
    ) -> tuple[str, Credential | None, int]:
        problems: list[CRIError] = []
        for each in credentials or (None,):
            auth = cri.AuthConfig(username=each.username, password=each.password) if each else None
            try:
                answer = await self._runtime.pull_image(
                    cri.PullImageRequest(image=spec, auth=auth, sandbox_config=sandbox)
                )
            except CRIError as error:
                problems.append(error)
                continue
            found = await self._runtime.image_status(
                cri.ImageStatusRequest(image=cri.ImageSpec(image=answer.image_ref))
            )
            return answer.image_ref, each, found.image.size
        if len(problems) == 1:
            raise problems[0]
        distinct = list(dict.fromkeys(map(str, problems)))
        raise AggregateError(problems[0].code, distinct)


class AggregateError(CRIError):
    """Several credentials were tried, and each was refused."""

    def __init__(self, code: str, messages: list[str]) -> None:
        super().__init__(code, messages[0])
        self._messages = messages

    def __str__(self) -> str:
        return self._messages[0] if len(self._messages) == 1 else f"[{', '.join(self._messages)}]"


def _explain(image: str, error: CRIError) -> tuple[str, str]:
    """The reason and message; some failures are recognized by the prefix of the runtime's error."""
    for reason, words in _TOLD_BY_RUNTIME.items():
        if error.message.startswith(reason):
            return reason, f"image pull failed for {image} because {words}{error.message.removeprefix(reason)}"
    return ERR_IMAGE_PULL, str(error)


def _milliseconds(seconds: float) -> str:
    return format_duration(int(seconds * 1000) * 1_000_000)
