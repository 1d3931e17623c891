"""A CSI driver for tests: it records every call, returns configured responses, and its mounts are plain folders."""

from __future__ import annotations

import asyncio
import os
import shutil
from pathlib import Path
from typing import Any

from pybernetes.csi import v1
from pybernetes.csi.driver import Driver
from pybernetes.csi.errors import CSIError, not_found


class NodeDriver(Driver):
    """Only the node's side, and no staging. A publication is a folder with the volume's context in files."""

    name = "mock.example.com"

    def __init__(self, node_id: str = "node-1", **how: Any) -> None:
        super().__init__(node_id, **how)
        self.calls: list[tuple[str, Any]] = []
        self.failing: dict[str, list[CSIError]] = {}
        """Errors that the next calls of a name get."""
        self.hanging: dict[str, asyncio.Event] = {}
        """Calls of these names wait."""

    async def noted(self, name: str, request: Any) -> None:
        self.calls.append((name, request))
        if name in self.hanging:
            await self.hanging[name].wait()
        if self.failing.get(name):
            raise self.failing[name].pop(0)

    def names(self) -> list[str]:
        return [name for name, _ in self.calls]

    def last(self, name: str) -> Any:
        return [request for each, request in self.calls if each == name][-1]

    async def node_publish_volume(self, request: Any) -> Any:
        await self.noted("NodePublishVolume", request)
        _publish(Path(request.target_path), request)
        return v1.NodePublishVolumeResponse()

    async def node_unpublish_volume(self, request: Any) -> Any:
        await self.noted("NodeUnpublishVolume", request)
        _unpublish(Path(request.target_path))
        return v1.NodeUnpublishVolumeResponse()


def _publish(target: Path, request: Any) -> None:
    if request.volume_capability.HasField("block"):
        target.touch()
        return
    target.mkdir(exist_ok=True)
    for key, value in request.volume_context.items():
        if "/" not in key:
            (target / key).write_text(value)


def _unpublish(target: Path) -> None:
    if target.is_dir():
        shutil.rmtree(target)
    else:
        target.unlink(missing_ok=True)


class MockDriver(NodeDriver):
    """All of the node's side: staging, expansion, statistics."""

    sick = ""
    """What its volumes suffer from."""

    async def node_stage_volume(self, request: Any) -> Any:
        await self.noted("NodeStageVolume", request)
        (Path(request.staging_target_path) / "staged").touch()
        return v1.NodeStageVolumeResponse()

    async def node_unstage_volume(self, request: Any) -> Any:
        await self.noted("NodeUnstageVolume", request)
        (Path(request.staging_target_path) / "staged").unlink(missing_ok=True)
        return v1.NodeUnstageVolumeResponse()

    async def node_expand_volume(self, request: Any) -> Any:
        await self.noted("NodeExpandVolume", request)
        return v1.NodeExpandVolumeResponse(capacity_bytes=request.capacity_range.required_bytes)

    async def node_get_volume_stats(self, request: Any) -> Any:
        await self.noted("NodeGetVolumeStats", request)
        if not os.access(request.volume_path, os.F_OK):
            raise not_found(f"{request.volume_path} does not exist")
        response = v1.NodeGetVolumeStatsResponse()
        if self.sick:
            response.volume_condition.CopyFrom(v1.VolumeCondition(abnormal=True, message=self.sick))
        response.usage.add(unit=v1.VolumeUsage.BYTES, total=1000, used=250, available=750)
        response.usage.add(unit=v1.VolumeUsage.INODES, total=10, used=3, available=7)
        return response
