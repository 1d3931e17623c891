"""`projected`: several sources in one folder, among them the pod's service account token."""

from __future__ import annotations

import asyncio
from typing import Final

from pybernetes.api import errors
from pybernetes.api.core.v1 import Pod, ProjectedVolumeSource, ServiceAccountTokenProjection, Volume, VolumeProjection

from ..error_text import why
from ..service_account_tokens import TokenError
from . import config_map, downward_api, secret
from .atomic_writer import File, Payload, size_of
from .base import MountedVolume
from .contents import NO_MODE, check_size, show
from .host import Host, fs_group, fs_user

PLUGIN: Final = "projected"
_OWN: Final = 0o600  # only where the files get an owner or a group: `ownership` adds what the group may


async def set_up(host: Host, pod: Pod, volume: Volume) -> MountedVolume:
    """Write the files."""
    payload = await collect(host, pod, volume.projected or ProjectedVolumeSource())
    return await show(host, pod, volume.name or "", PLUGIN, payload, memory=True)


async def collect(host: Host, pod: Pod, source: ProjectedVolumeSource) -> Payload:
    """The files of all sources, later ones over earlier ones; all that is wrong with them is said at once."""
    if source.default_mode is None:
        raise ValueError(NO_MODE)
    files: dict[str, File] = {}
    wrong: list[str] = []
    size = 0
    for each in source.sources or ():
        await asyncio.sleep(0)  # other pods and the node's heartbeat have their turns between thousands of sources
        try:
            added = await _collect(host, pod, each, source.default_mode)
        except (errors.APIError, OSError, ValueError, TokenError) as error:
            wrong.append(why(error))
            continue
        files |= added
        size += size_of(added)
        check_size(size)
    if wrong:
        raise ValueError(downward_api.joined(wrong))
    return files


async def _collect(host: Host, pod: Pod, source: VolumeProjection, mode: int) -> Payload:
    if source.secret:
        one = source.secret
        return await secret.collect(host, pod, one.name or "", one.items or (), mode, bool(one.optional))
    if source.config_map:
        other = source.config_map
        return await config_map.collect(host, pod, other.name or "", other.items or (), mode, bool(other.optional))
    if source.downward_api:
        return downward_api.collect(host, pod, source.downward_api.items or (), mode)
    if source.service_account_token:
        return await _token(host, pod, source.service_account_token, mode)
    if source.cluster_trust_bundle:
        raise ValueError("ClusterTrustBundle projection is not supported: the API server serves no ClusterTrustBundles")
    if source.pod_certificate:
        raise ValueError("PodCertificate projection is not supported: the API server serves no PodCertificateRequests")
    return {}


async def _token(host: Host, pod: Pod, source: ServiceAccountTokenProjection, mode: int) -> Payload:
    token = await host.tokens.get(pod, source.audience or "", source.expiration_seconds)
    user = fs_user(pod)
    if user is not None or fs_group(pod) is not None:
        mode = _OWN
    return {source.path or "": File(token.encode(), mode, user)}
