"""Pods that have their node and wait for the word of Permit plugins."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from pybernetes.api.times import format_duration
from pybernetes.client.clock import Clock, Timer

from .podinfo import PodInfo
from .status import Code, Status

MAX_SECONDS = 900.0  # upstream's longest wait


class WaitingPod:
    """A pod that waits. The first word that ends the waiting counts."""

    def __init__(self, pod: PodInfo, node_name: str, waits: Mapping[str, float], clock: Clock) -> None:
        self.pod = pod
        self.node_name = node_name
        self._done: asyncio.Future[Status | None] = asyncio.get_running_loop().create_future()
        self._timers: dict[str, Timer] = {
            plugin: clock.call_later(min(seconds, MAX_SECONDS), self._late, plugin, min(seconds, MAX_SECONDS))
            for plugin, seconds in waits.items()
        }
        """Of the plugins that have not allowed it yet."""

    @property
    def pending_plugins(self) -> list[str]:
        """The plugins that have not allowed it yet."""
        return list(self._timers)

    def allow(self, plugin: str) -> None:
        """This plugin lets it go."""
        timer = self._timers.pop(plugin, None)
        if timer is not None:
            timer.cancel()
        if not self._timers and not self._done.done():
            self._done.set_result(None)

    def reject(self, plugin: str, message: str) -> bool:
        """It shall not go; False if that came too late."""
        return self._stop(Status(Code.UNSCHEDULABLE, message, plugin=plugin))

    def preempt(self, plugin: str, message: str) -> bool:
        """It must make room, and is tried again; False if that came too late."""
        return self._stop(Status(Code.ERROR, message, plugin=plugin))

    async def wait(self) -> Status | None:
        """Wait until the pod is allowed or rejected, or until the timeout; returns the status."""
        try:
            return await self._done
        finally:
            self._cancel()

    def _late(self, plugin: str, seconds: float) -> None:
        waited = format_duration(int(seconds * 1e9))
        self.reject(plugin, f"rejected due to timeout after waiting {waited} at plugin {plugin}")

    def _stop(self, status: Status) -> bool:
        self._cancel()
        if self._done.done():
            return False
        self._done.set_result(status)
        return True

    def _cancel(self) -> None:
        for timer in self._timers.values():
            timer.cancel()
