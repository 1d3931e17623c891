"""Objects in memory, for tests."""

from __future__ import annotations

from collections.abc import Iterator

from pybernetes.objectfs.objects.store import ObjectInfo, ObjectMissing


class MemoryStore:
    """A dict of objects."""

    def __init__(self) -> None:
        self.objects: dict[str, bytes] = {}

    def create(self) -> None:
        pass

    def put(self, key: str, data: bytes) -> None:
        self.objects[key] = bytes(data)

    def get(self, key: str, offset: int = 0, length: int = -1) -> bytes:
        if key not in self.objects:
            raise ObjectMissing(2, f"object {key} is missing")
        data = self.objects[key]
        return data[offset:] if length < 0 else data[offset : offset + length]

    def delete(self, key: str) -> None:
        self.objects.pop(key, None)

    def list(self, prefix: str = "") -> Iterator[ObjectInfo]:
        for key in sorted(self.objects):
            if key.startswith(prefix):
                yield ObjectInfo(key, len(self.objects[key]), 0.0)
