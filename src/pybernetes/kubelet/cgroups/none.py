"""A machine whose cgroups are not ours (`cgroupsPerQOS: false`, as without root): pods have none, so none are limited.

What was wanted is remembered, so that a resize comes to an end; nothing is enforced, which is said to whom it concerns
(`pod.syncer`).
"""

from __future__ import annotations

from dataclasses import asdict, replace

from .config import CgroupConfig


class NoCgroups:
    """A `Hierarchy` in which nothing is."""

    version = 0

    def __init__(self) -> None:
        self._wanted: dict[str, CgroupConfig] = {}

    def exists(self, name: str) -> bool:
        """Whether it was made."""
        return name in self._wanted

    def create(self, name: str, config: CgroupConfig) -> None:
        """Remember it."""
        self._wanted.setdefault(name, config)

    def update(self, name: str, config: CgroupConfig) -> None:
        """Remember it."""
        given = {key: value for key, value in asdict(config).items() if value is not None}
        self._wanted[name] = replace(self.read(name), **given)

    def read(self, name: str) -> CgroupConfig:
        """The settings that were applied last."""
        return self._wanted.get(name, CgroupConfig())

    def remove(self, name: str) -> None:
        """Forget it and all below."""
        below = f"{name}/"
        self._wanted = {each: config for each, config in self._wanted.items() if not f"{each}/".startswith(below)}

    def children(self, name: str) -> set[str]:
        """The names of the direct children."""
        prefix = f"{name.rstrip('/')}/"
        return {each.removeprefix(prefix).split("/")[0] for each in self._wanted if each.startswith(prefix)}

    def pids(self, name: str) -> set[int]:
        """None: who would know."""
        return set()

    def memory_usage(self, name: str) -> int:
        """Unknown."""
        return 0

    def page_sizes(self) -> tuple[int, ...]:
        """None that could be limited."""
        return ()
