"""Somebody else decides which images may run: an ImageReview is posted to them. Answers are kept for a while.

imagePolicy:
  kubeConfigFile: /path/to/kubeconfig
  allowTTL: 50           # seconds
  denyTTL: 50
  retryBackoff: 500      # milliseconds
  defaultAllow: true     # the decision if the webhook does not answer
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any, Final

import msgspec

from pybernetes.api.core.v1 import Pod, PodSpec
from pybernetes.api.meta.v1 import ObjectMeta

from ..review_webhook import ReviewWebhook, WebhookFailed
from .plugin import CREATE, UPDATE, Attributes, Plugin, forbidden

if TYPE_CHECKING:
    from ..registry.registry import Registry

_PREFIX: Final = "imagepolicywebhook.image-policy.k8s.io/"
_FAILED_OPEN: Final = "alpha.image-policy.k8s.io/failed-open"
_KEPT: Final = 1024  # answers; upstream's


class Configuration(msgspec.Struct, rename="camel"):
    """The plugin's configuration; 0 = the default, -1 = none."""

    kube_config_file: str = ""
    allow_ttl: float = msgspec.field(default=0, name="allowTTL")
    deny_ttl: float = msgspec.field(default=0, name="denyTTL")
    retry_backoff: float = 0
    default_allow: bool = False


class _Status(msgspec.Struct, rename="camel"):
    allowed: bool = False
    reason: str = ""
    audit_annotations: dict[str, str] | None = None


class _Review(msgspec.Struct):
    status: _Status


class ImagePolicyWebhook(Plugin):
    """Upstream's ImagePolicyWebhook."""

    name = "ImagePolicyWebhook"
    operations = (CREATE, UPDATE)
    resources = ("pods", "pods/ephemeralcontainers")

    def __init__(self, registry: Registry, configuration: Any = None, clock: Callable[[], float] = monotonic) -> None:
        super().__init__(registry)
        read = read_configuration(configuration)
        try:
            self._remote = ReviewWebhook(Path(read.kube_config_file), first_delay=read.retry_backoff)
        except (OSError, ValueError) as error:
            raise ValueError(f"{self.name}: {read.kube_config_file}: {error}") from None
        self._ttl = {True: read.allow_ttl, False: read.deny_ttl}
        self._default_allow = read.default_allow
        self._clock = clock
        self._answers: dict[bytes, tuple[float, _Status]] = {}

    async def stop(self) -> None:
        await self._remote.close()

    def validate(self, attributes: Attributes) -> Awaitable[None] | None:
        return self._validate(attributes)

    async def _validate(self, attributes: Attributes) -> None:
        pod: Pod = attributes.new
        spec = _review_spec(pod, attributes)
        key = msgspec.json.encode(spec)
        kept = self._answers.get(key)
        if kept is not None and kept[0] > self._clock():
            status = kept[1]
        else:
            try:
                status = await self._ask(spec)
            except (WebhookFailed, ValueError) as error:
                self._unanswered(attributes, pod, str(error))
                return
            self._keep(key, status)
        for name, value in (status.audit_annotations or {}).items():
            attributes.annotate(f"{_PREFIX}{name}", value)
        if not status.allowed:
            denied = f"image policy webhook backend denied one or more images: {status.reason}"
            raise forbidden(attributes, denied if status.reason else "one or more images rejected by webhook backend")

    async def _ask(self, spec: dict[str, Any]) -> _Status:
        review = {"kind": "ImageReview", "apiVersion": "imagepolicy.k8s.io/v1alpha1", "metadata": {}, "spec": spec}
        answer = await self._remote.post(msgspec.json.encode({**review, "status": {"allowed": False}}))
        return msgspec.json.decode(answer, type=_Review).status

    def _unanswered(self, attributes: Attributes, pod: Pod, why: str) -> None:
        if not self._default_allow:
            raise forbidden(attributes, why)
        attributes.annotate(f"{_PREFIX}failed-open", "true")
        meta = pod.metadata = pod.metadata or ObjectMeta()
        meta.annotations = {**(meta.annotations or {}), _FAILED_OPEN: "true"}

    def _keep(self, key: bytes, status: _Status) -> None:
        ttl = self._ttl[status.allowed]
        if ttl <= 0:
            return
        self._answers.pop(key, None)
        if len(self._answers) >= _KEPT:
            del self._answers[next(iter(self._answers))]
        self._answers[key] = (self._clock() + ttl, status)


def _review_spec(pod: Pod, attributes: Attributes) -> dict[str, Any]:
    spec = pod.spec or PodSpec()
    containers: tuple[Any, ...] = (*(spec.containers or ()), *(spec.init_containers or ()))
    if attributes.subresource:
        containers = tuple(spec.ephemeral_containers or ())
    annotations = (pod.metadata.annotations if pod.metadata else None) or {}
    told = {key: value for key, value in annotations.items() if ".image-policy.k8s.io/" in key}
    result: dict[str, Any] = {"containers": [{"image": each.image or ""} for each in containers]}
    if told:
        result["annotations"] = told
    return {**result, "namespace": attributes.namespace}


def read_configuration(configuration: Any) -> Configuration:
    """The configuration with its times in seconds. Raises ValueError."""
    if not isinstance(configuration, dict) or not isinstance(configuration.get("imagePolicy"), dict):
        raise ValueError("ImagePolicyWebhook: no config specified")
    try:
        read = msgspec.convert(configuration["imagePolicy"], Configuration)
    except msgspec.ValidationError as error:
        raise ValueError(f"ImagePolicyWebhook: {error}") from None
    read.retry_backoff = _seconds("retryBackoff", read.retry_backoff, 0.001, 1e-9, 300, 0.5)
    read.allow_ttl = _seconds("allowTTL", read.allow_ttl, 1, 1, 1800, 300)
    read.deny_ttl = _seconds("denyTTL", read.deny_ttl, 1, 1, 1800, 30)
    return read


def _seconds(name: str, value: float, scale: float, least: float, most: float, default: float) -> float:
    if value == -1:
        return 0.0
    if not value:
        return default
    if not least <= value * scale <= most:
        raise ValueError(
            f"ImagePolicyWebhook: {name}: valid value is between {least:g}s and {most:g}s, got {value * scale:g}s"
        )
    return value * scale
