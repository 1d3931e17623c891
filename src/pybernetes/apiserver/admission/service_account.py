"""Gives each pod a service account, and mounts its token into the containers.

The token is a projected volume, `kube-api-access-` and five random characters, mounted into every container that has
nothing else at that path. Mirror pods, which a kubelet creates for its static pods, get nothing and may ask for
nothing.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Iterable
from functools import cached_property
from typing import Final

from pybernetes.api.core.containers import AnyContainer
from pybernetes.api.core.podsecrets import secret_names
from pybernetes.api.core.v1 import (
    ConfigMapProjection,
    DownwardAPIProjection,
    DownwardAPIVolumeFile,
    KeyToPath,
    LocalObjectReference,
    ObjectFieldSelector,
    Pod,
    PodSpec,
    ProjectedVolumeSource,
    ServiceAccountTokenProjection,
    Volume,
    VolumeMount,
    VolumeProjection,
)
from pybernetes.api.core.v1 import ServiceAccount as Account
from pybernetes.api.errors import NotFound
from pybernetes.api.meta.v1 import ObjectMeta
from pybernetes.api.names import generate_name

from ..registry.lister import Lister, lister
from .plugin import CREATE, UPDATE, Attributes, Plugin, forbidden

DEFAULT: Final = "default"
MIRROR: Final = "kubernetes.io/config.mirror"
_VOLUME: Final = "kube-api-access-"
_PLACE: Final = "/var/run/secrets/kubernetes.io/serviceaccount"
_ENFORCE: Final = "kubernetes.io/enforce-mountable-secrets"
_TRUE: Final = ("1", "t", "T", "TRUE", "true", "True")  # what Go reads as true
_SECONDS: Final = 3607  # an hour, and seven seconds to tell these tokens from others
_ATTEMPTS: Final = 10
"""How often the default account is looked for: a controller makes it a moment after its namespace."""


def _source() -> ProjectedVolumeSource:
    namespace = ObjectFieldSelector(api_version="v1", field_path="metadata.namespace")
    return ProjectedVolumeSource(
        default_mode=0o644,
        sources=[
            VolumeProjection(
                service_account_token=ServiceAccountTokenProjection(expiration_seconds=_SECONDS, path="token")
            ),
            VolumeProjection(
                config_map=ConfigMapProjection(name="kube-root-ca.crt", items=[KeyToPath(key="ca.crt", path="ca.crt")])
            ),
            VolumeProjection(
                downward_api=DownwardAPIProjection(items=[DownwardAPIVolumeFile(path="namespace", field_ref=namespace)])
            ),
        ],
    )


_SOURCE: Final = _source()  # all pods share it; a volume is never changed in place


class ServiceAccount(Plugin):
    """Upstream's ServiceAccount."""

    name = "ServiceAccount"
    operations = (CREATE, UPDATE)
    resources = ("pods", "pods/ephemeralcontainers")

    def admit(self, attributes: Attributes) -> Awaitable[None] | None:
        if attributes.operation != CREATE:
            return None
        pod: Pod = attributes.new
        spec = pod.spec = pod.spec or PodSpec()
        if _is_mirror(pod):
            _check_mirror(pod, spec, attributes)
            return None
        spec.service_account_name = spec.service_account_name or DEFAULT
        account = self._get(attributes.namespace, spec.service_account_name)
        if account is None:
            return self._wait_and_complete(attributes, spec)
        _complete(spec, account, attributes)
        return None

    def validate(self, attributes: Attributes) -> Awaitable[None] | None:
        pod: Pod = attributes.new
        spec = pod.spec or PodSpec()
        if attributes.operation == UPDATE:
            if not attributes.subresource:
                return None
        elif _is_mirror(pod):
            _check_mirror(pod, spec, attributes)
            return None
        name = spec.service_account_name
        if not name:
            meta = pod.metadata or ObjectMeta()
            raise forbidden(attributes, f"no service account specified for pod {attributes.namespace}/{meta.name}")
        account = self._get(attributes.namespace, name)
        if account is None:
            return self._wait_and_judge(attributes, spec)
        _judge(spec, account, attributes)
        return None

    def _get(self, namespace: str, name: str) -> Account | None:
        return self._accounts.get(namespace, name)

    @cached_property
    def _accounts(self) -> Lister[Account]:
        return lister(self.registry, "", "v1", "serviceaccounts")

    async def _wait_and_complete(self, attributes: Attributes, spec: PodSpec) -> None:
        _complete(spec, await self._wait_for(attributes, spec.service_account_name or DEFAULT), attributes)

    async def _wait_and_judge(self, attributes: Attributes, spec: PodSpec) -> None:
        _judge(spec, await self._wait_for(attributes, spec.service_account_name or ""), attributes)

    async def _wait_for(self, attributes: Attributes, name: str) -> Account:
        pause = random.uniform(0.1, 0.2)  # upstream's
        for attempt in range(_ATTEMPTS if name == DEFAULT else 1):
            if attempt:
                await asyncio.sleep(pause)
            found = await self._accounts.find(attributes.namespace, name)
            if found is not None:
                return found
        raise forbidden(
            attributes,
            f"error looking up service account {attributes.namespace}/{name}: {NotFound('', 'serviceaccount', name)}",
        )


def _complete(spec: PodSpec, account: Account, attributes: Attributes) -> None:
    wanted = spec.automount_service_account_token
    if wanted is None:
        wanted = account.automount_service_account_token
    if wanted is not False:
        _mount_token(spec)
    if not spec.image_pull_secrets and account.image_pull_secrets:
        spec.image_pull_secrets = [LocalObjectReference(name=each.name) for each in account.image_pull_secrets]
    _judge(spec, account, attributes)


def _mount_token(spec: PodSpec) -> None:
    """Put the token where every container finds it; a volume that is already there is used."""
    present = next((each.name for each in spec.volumes or () if (each.name or "").startswith(_VOLUME)), None)
    lacking = [
        each
        for each in (*(spec.init_containers or ()), *(spec.containers or ()))
        if not each.volume_mounts or all(mount.mount_path != _PLACE for mount in each.volume_mounts)
    ]
    if not lacking:
        return
    name = present or generate_name(_VOLUME)
    mount = VolumeMount(name=name, read_only=True, mount_path=_PLACE)
    for container in lacking:
        container.volume_mounts = [*container.volume_mounts, mount] if container.volume_mounts else [mount]
    if present is None:
        spec.volumes = [*(spec.volumes or ()), Volume(name=name, projected=_SOURCE)]


def _is_mirror(pod: Pod) -> bool:
    meta = pod.metadata
    return meta is not None and meta.annotations is not None and MIRROR in meta.annotations


def _check_mirror(pod: Pod, spec: PodSpec, attributes: Attributes) -> None:
    if spec.service_account_name:
        raise forbidden(attributes, "a mirror pod may not reference service accounts")
    if next(iter(secret_names(pod)), None) is not None:
        raise forbidden(attributes, "a mirror pod may not reference secrets")
    for volume in spec.volumes or ():
        sources = (volume.projected.sources if volume.projected is not None else None) or ()
        if any(each.service_account_token is not None for each in sources):
            raise forbidden(attributes, "a mirror pod may not use ServiceAccountToken volume projections")


def _judge(spec: PodSpec, account: Account, attributes: Attributes) -> None:
    """An account that says so lets its pods use no other Secrets than its own."""
    meta = account.metadata
    if meta is None or not meta.annotations or meta.annotations.get(_ENFORCE) not in _TRUE:
        return
    own = {each.name for each in account.secrets or ()}
    end = f"is not allowed because service account {meta.name} does not reference that"
    if attributes.operation == UPDATE:
        _check_containers(spec.ephemeral_containers or (), "ephemeral container", own, end, attributes)
        return
    for volume in spec.volumes or ():
        if volume.secret is not None and volume.secret.secret_name not in own:
            what = f'volume with secret.secretName="{volume.secret.secret_name or ""}"'
            raise forbidden(attributes, f"{what} {end} secret")
    _check_containers(spec.init_containers or (), "init container", own, end, attributes)
    _check_containers(spec.containers or (), "container", own, end, attributes)
    pull = {each.name for each in account.image_pull_secrets or ()}
    for index, each in enumerate(spec.image_pull_secrets or ()):
        if each.name not in pull:
            raise forbidden(attributes, f'imagePullSecrets[{index}].name="{each.name or ""}" {end} imagePullSecret')


def _check_containers(
    containers: Iterable[AnyContainer], what: str, own: set[str | None], end: str, attributes: Attributes
) -> None:
    for container in containers:
        for variable in container.env or ():
            source = variable.value_from.secret_key_ref if variable.value_from is not None else None
            if source is not None and source.name not in own:
                where = (
                    f'{what} {container.name} with envVar {variable.name} referencing secret.secretName="{source.name}"'
                )
                raise forbidden(attributes, f"{where} {end} secret")
        for each in container.env_from or ():
            if each.secret_ref is not None and each.secret_ref.name not in own:
                where = f"{what} {container.name} with envFrom"
                name = each.secret_ref.name
                raise forbidden(attributes, f'{where} referencing secret.secretName="{name}" {end} secret')
