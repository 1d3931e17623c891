"""Records a node's published volumes on its disk: one file a volume, so that a restarted plugin knows its
references."""

from __future__ import annotations

import json
import logging
import os
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from pybernetes.objectfs.csi.request import safe_name

log = logging.getLogger(__name__)


@dataclass
class Published:
    """A volume on this node and who uses it: target paths, and which of them only read. `expires` is when an unused
    volume is unmounted (epoch)."""

    id: str
    volume: dict[str, Any]
    fingerprint: str = ""
    references: list[str] = field(default_factory=list)
    read_only: list[str] = field(default_factory=list)
    expires: float = 0.0


class States:
    """Written, synced and renamed; a file that cannot be read is named in the log and left where it is."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)

    def get(self, id: str) -> Published | None:
        return self._read(self._path(id))

    def all(self) -> list[Published]:
        found = [self._read(each) for each in sorted(self._folder.glob("*.json"))]
        return [each for each in found if each is not None]

    def put(self, published: Published) -> None:
        path = self._path(published.id)
        temporary = path.with_suffix(".new")
        with open(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
            json.dump(asdict(published), file)
            file.flush()
            os.fsync(file.fileno())
        temporary.rename(path)

    def remove(self, id: str) -> None:
        self._path(id).unlink(missing_ok=True)

    def _path(self, id: str) -> Path:
        return self._folder / f"{safe_name(id)}.json"

    @staticmethod
    def _read(path: Path) -> Published | None:
        try:
            return Published(**json.loads(path.read_text()))
        except FileNotFoundError:
            return None
        except (OSError, ValueError, TypeError) as error:
            log.error("%s cannot be read: %s", path, error)
            return None
