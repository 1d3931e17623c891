"""Logs of containers are cut into pieces, and old pieces are compressed and removed."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable

from pybernetes.client.clock import Clock


class LogRotator:
    """Rotates `N.log` to `N.log.TIMESTAMP`, compresses all but the newest, keeps so many files in all."""

    def __init__(
        self,
        *,
        max_size: str = "10Mi",
        max_files: int = 5,
        interval: float = 10.0,
        running: Callable[[], Iterable[tuple[str, str]]],
        reopen: Callable[[str], Awaitable[None]],
        clock: Clock,
    ) -> None:
        """`running()`: (container id, path of its log) of what runs; `reopen(container id)`: ReopenContainerLog."""
        raise NotImplementedError

    async def run(self) -> None:
        """Look every `interval` seconds until cancelled."""
        raise NotImplementedError

    def clean(self, path: str) -> None:
        """Remove a dead container's log and all pieces of it."""
        raise NotImplementedError
