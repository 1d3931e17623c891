"""Asks CSI drivers for the usage and health of their volumes (NodeGetVolumeStats).

An abnormal volume is also reported as an event of its pod, at each reading.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Final

from pybernetes.api.core.v1 import Pod
from pybernetes.client.events import WARNING
from pybernetes.csi import v1
from pybernetes.csi.errors import CSIError

from ..stats.disk import Volume
from ..stats.filesystem import FileSystem, Size
from .drivers import NotRegistered
from .volume_data import PLUGIN
from .volumes import CSIVolumes, Mounted

WITHIN: Final = 10.0
"""Seconds that one driver may take: the others' numbers wait for it."""
log = logging.getLogger(__name__)


async def volumes_of(volumes: CSIVolumes, uid: str, pod: Pod | None = None) -> list[Volume]:
    """The CSI volumes of a pod by their names in it; those whose driver does not say are left out."""
    mounted = [(use[1], each) for use, each in volumes.mounted.items() if use[0] == uid]
    found = await asyncio.gather(*(_volume(volumes, uid, pod, name, each) for name, each in mounted))
    return [each for each in found if each is not None]


async def _volume(volumes: CSIVolumes, uid: str, pod: Pod | None, name: str, mounted: Mounted) -> Volume | None:
    source = mounted.source
    try:
        client = volumes.drivers.get(source.driver)
        capabilities = await client.node_capabilities(WITHIN)
        if v1.NodeRPC.GET_VOLUME_STATS not in capabilities:
            return None
        response = await client.call(
            "NodeGetVolumeStats",
            within=WITHIN,
            volume_id=source.handle,
            volume_path=str(volumes.published_path(uid, source)),
            staging_target_path=volumes.staging_path(source),
        )
    except (CSIError, NotRegistered) as error:
        log.info("the use of volume %s of pod %s is not known: %s", name, uid, error)
        return None
    amounts = {each.unit: each for each in response.usage}
    room, inodes = amounts.get(v1.VolumeUsage.BYTES), amounts.get(v1.VolumeUsage.INODES)
    on = FileSystem(
        room.total if room else 0,
        room.available if room else 0,
        room.used if room else 0,
        inodes.total if inodes else 0,
        inodes.available if inodes else 0,
    )
    abnormal = response.volume_condition.abnormal if response.HasField("volume_condition") else None
    if abnormal and pod is not None:
        volumes.event(pod, WARNING, "VolumeConditionAbnormal", f"Volume {name}: {response.volume_condition.message}")
    return Volume(name, PLUGIN, Size(on.used, inodes.used if inodes else 0), on, abnormal=abnormal)
