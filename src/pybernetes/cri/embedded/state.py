"""The state of sandboxes and containers, on disk before it is acted on.

A folder each, `sandboxes/ID` and `containers/ID`: the request as it came (`config`, protobuf), what became of it
(`state.json`, a line for each change, of which the last one counts) and the order for the launcher (`spec.json`). A
folder without a readable state is of a request that was never answered: its client will ask again.

Lines are added because to replace a file costs a new one and the end of the old one, several times for each pod.
"""

from __future__ import annotations

import json
import logging
import os
import secrets
from dataclasses import MISSING, dataclass, field, fields
from pathlib import Path
from typing import Any

from pybernetes.component import state_files
from pybernetes.component.removal import remove_tree

from .leftovers import Leftovers

log = logging.getLogger(__name__)
_ADD = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC


@dataclass
class Sandbox:
    """A pod's sandbox. `config` is its PodSandboxConfig."""

    id: str
    config: Any
    handler: str = ""
    created_at: int = 0
    ready: bool = False
    ips: list[str] = field(default_factory=list)
    network: bool = False
    """Whether it has, or may have, a network of its own that is to be given back."""


@dataclass
class Container:
    """A container. `config` is its ContainerConfig; times are nanoseconds since 1970, 0 if not yet."""

    id: str
    config: Any
    sandbox_id: str = ""
    image_id: str = ""
    log_path: str = ""
    stop_signal: int = 15
    created_at: int = 0
    started_at: int = 0
    starting: bool = False
    """Whether its process is about to become its program: nothing can be done in it yet."""
    finished_at: int = 0
    exit_code: int = 0
    reason: str = ""
    message: str = ""
    user: list[Any] = field(default_factory=list)
    """uid, gid and groups, once it runs."""

    @property
    def has_process(self) -> bool:
        """Whether there is a process, or may be one."""
        return bool(self.started_at and not self.finished_at)

    @property
    def running(self) -> bool:
        """Whether its program runs."""
        return self.has_process and not self.starting


class Records:
    """The folders of one kind."""

    def __init__(self, folder: Path, kind: type[Sandbox] | type[Container], message: Any) -> None:
        self._folder = folder
        self._kind = kind
        self._message = message
        self._fields = {each.name for each in fields(kind)} - {"config"}
        """A later version may have written more."""
        self._leftovers = Leftovers()
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)

    def folder(self, id: str) -> Path:
        """Where a record's files are."""
        return self._folder / id

    def spec(self, id: str) -> Path:
        """The file that the launcher reads."""
        return self._folder / id / "spec.json"

    def create(self, record: Sandbox | Container) -> None:
        """Writes a new record down."""
        self._leftovers.retry()
        folder = self.folder(record.id)
        folder.mkdir(mode=0o700)
        try:
            (folder / "config").write_bytes(record.config.SerializeToString())
            self.save(record)
        except BaseException:
            self.remove(record.id)
            raise

    def save_config(self, record: Sandbox | Container) -> None:
        """Writes a changed request down."""
        state_files.write(self.folder(record.id) / "config", record.config.SerializeToString())

    def save(self, record: Sandbox | Container) -> None:
        """Writes down what became of it."""
        values = {name: value for name, value in vars(record).items() if name != "config"}
        file = os.open(f"{self._folder}/{record.id}/state.json", _ADD, 0o600)
        try:
            os.write(file, f"\n{json.dumps(values)}".encode())
        finally:
            os.close(file)

    def try_save(self, record: Sandbox | Container) -> bool:
        """The same where nothing depends on it: a disk that takes nothing is logged. Whether it was written."""
        try:
            self.save(record)
        except OSError as error:
            log.error("the state of %s is not written down: %s", record.id, error)
            return False
        return True

    def write_spec(self, id: str, spec: dict[str, Any]) -> None:
        """Writes down how it is to be started."""
        self.spec(id).write_bytes(json.dumps(spec).encode())

    def remove(self, id: str) -> None:
        """Forgets a record; may be repeated."""
        self._leftovers.remove(self.folder(id))

    def load(self) -> list[Any]:
        """All records; what cannot be read is taken away."""
        found = []
        for folder in self._folder.iterdir():
            try:
                config = self._message.FromString(state_files.content(folder / "config"))
                values = _last(state_files.content(folder / "state.json"))
                known = {name: value for name, value in values.items() if name in self._fields}
                record = self._kind(config=config, **known)
                _check(record, folder.name)
                found.append(record)
            except Exception as error:
                log.warning("%s cannot be read and is forgotten: %r", folder, error)
                remove_tree(folder, ignore_errors=True)
        return found


def new_id() -> str:
    """An id as runtimes have them: 64 hex digits."""
    return secrets.token_hex(32)


def _check(record: Sandbox | Container, name: str) -> None:
    """Raise ValueError if a record is not that of its folder, or has values of another kind."""
    if record.id != name:
        raise ValueError(f"it is of {record.id!r}")
    for each in fields(record):
        usual = [] if each.default is MISSING else each.default
        if each.name not in ("id", "config") and type(getattr(record, each.name)) is not type(usual):
            raise ValueError(f"{each.name} is {getattr(record, each.name)!r}")


def _last(lines: bytes) -> dict[str, Any]:
    """The last line that is whole: the machine may have lost its power while one was written."""
    for line in reversed(lines.splitlines()):
        try:
            found: dict[str, Any] = json.loads(line)
            return found
        except ValueError:
            continue
    raise ValueError("no state was written")
