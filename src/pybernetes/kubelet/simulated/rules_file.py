"""The file of rules: read at the start, and again when it has changed; a bad one then changes nothing."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Final

import msgspec

from pybernetes.client.clock import Clock

from .behaviour import Rules, read_rules

LOOK_EVERY: Final = 1.0
"""Seconds."""
log = logging.getLogger(__name__)


class RulesFile:
    """One."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._stamp = self._look()

    def read(self) -> Rules:
        """Read and parse the file. Raises OSError, or ValueError that names the file and the field."""
        from pybernetes.api.yaml import yaml_to_json

        self._stamp = self._look()
        body = self.path.read_bytes()
        try:
            content, repeated = yaml_to_json(body)
            if repeated:
                raise ValueError(repeated[0])
            if _documents(body) > 1:
                raise ValueError("must be one document: what comes after `---` would not count")
            return read_rules(msgspec.json.decode(content))
        except ValueError as error:
            raise ValueError(f"{self.path}: {error}") from error

    async def follow(self, clock: Clock, changed: Callable[[Rules], None]) -> None:
        """Hand on what it says whenever that is something else, until cancelled."""
        while True:
            await clock.sleep(LOOK_EVERY)
            if self._look() == self._stamp:
                continue
            try:
                rules = self.read()
            except (OSError, ValueError) as error:
                log.error("the rules stay as they were: %s", error)
                continue
            log.info("new rules of %s are in force", self.path)
            changed(rules)

    def _look(self) -> tuple[int, int, int] | None:
        try:
            state = self.path.stat()
        except OSError:
            return None
        return state.st_mtime_ns, state.st_size, state.st_ino


def _documents(body: bytes) -> int:
    """How many there are in YAML that can be read."""
    import yaml

    try:
        return sum(isinstance(each, yaml.DocumentStartEvent) for each in yaml.parse(body, Loader=yaml.CSafeLoader))
    except yaml.YAMLError:  # in one that is not the first
        return 2
