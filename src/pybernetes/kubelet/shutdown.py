"""Graceful node shutdown: pods end in the order of their priority before the machine does."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

from pybernetes.api.core.v1 import Pod
from pybernetes.client.clock import Clock


class ShutdownManager:
    """Ends pods when the machine is about to go down."""

    def __init__(
        self,
        root: Path,
        *,
        grace: float = 0.0,
        grace_critical: float = 0.0,
        by_priority: list[tuple[int, float]] | None = None,
        active_pods: Callable[[], list[Pod]],
        kill: Callable[[Pod, float, str, str], Awaitable[None]],
        changed: Callable[[], None],
        event: Callable[[str, str, str], None] = lambda *_: None,
        clock: Clock,
    ) -> None:
        """`grace` and `grace_critical` as in KubeletConfiguration (`shutdownGracePeriod`...), `by_priority` likewise;
        `kill(pod, grace seconds, reason, message)` makes it Failed; `changed`: the node's Ready condition is another."""
        raise NotImplementedError

    @property
    def enabled(self) -> bool:
        """Whether there is any grace period."""
        raise NotImplementedError

    async def start(self) -> None:
        """Listen for the shutdown (logind where there is one, SIGPWR everywhere)."""
        raise NotImplementedError

    async def stop(self) -> None:
        """Listen no more."""
        raise NotImplementedError

    def message(self) -> str:
        """For the node's Ready condition: why it is not, while shutting down; else empty."""
        raise NotImplementedError

    def admit(self, pod: Pod) -> None:
        """`PodRefused` (NodeShutdown) while shutting down."""
        raise NotImplementedError
