"""Snapshots of a cluster as files: all that its API server stores, one JSON object a line (`.gz`: compressed).

The first line says what the file is and which cluster it is of (the uid of its namespace kube-system). Restored into
the same cluster, all but leases becomes what it was. In another one what belongs to the cluster itself stays: nodes,
its certificate authority, its API server's addresses. Pure, but for reading and writing files.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from pybernetes.cluster import files
from pybernetes.version import GIT_VERSION

FORMAT = "pybernetes-snapshot/v1"
BATCH = 1_000_000
"""Bytes of a request that writes a part."""
KUBE_SYSTEM = "/registry/namespaces/kube-system"
ALWAYS_KEPT = ("/registry/leases/*", "/registry/masterleases/*")
"""Keys of the running cluster that no snapshot changes: who holds a lease renews it all the time."""
KEPT_IN_ANOTHER = (
    "/registry/minions/*",
    "/registry/csinodes/*",
    "/registry/configmaps/*/kube-root-ca.crt",
    "/registry/configmaps/kube-system/extension-apiserver-authentication",
    "/registry/services/specs/default/kubernetes",
    "/registry/services/endpoints/default/kubernetes",
    "/registry/endpointslices/default/kubernetes",
    "/registry/ipaddresses/*",
    "/registry/servicecidrs/*",
    "/registry/apiregistration.k8s.io/apiservices/v*",
)
_FIRST = ("/registry/namespaces/", "/registry/apiextensions.k8s.io/customresourcedefinitions/")


class SnapshotError(ValueError):
    """A file that is no snapshot, or of a later format."""


@dataclass(frozen=True)
class Snapshot:
    """The stored objects of a cluster."""

    entries: Mapping[str, Any]
    revision: int = 0
    kubernetes: str = GIT_VERSION

    @property
    def cluster(self) -> str:
        """Which cluster it is of."""
        uid: str = (self.entries.get(KUBE_SYSTEM) or {}).get("metadata", {}).get("uid", "")
        return uid


@dataclass
class Batch:
    """One request to /debug/state."""

    put: dict[str, Any] = field(default_factory=dict)
    delete: list[str] = field(default_factory=list)

    def body(self) -> bytes:
        """Stored values begin with kind, apiVersion and metadata, without blanks: their order is kept."""
        return json.dumps({"put": self.put, "delete": self.delete}, separators=(",", ":"), ensure_ascii=False).encode()


def of_answer(answer: Mapping[str, Any]) -> Snapshot:
    """The snapshot in the response of GET /debug/state."""
    return Snapshot({each["key"]: each["value"] for each in answer["entries"]}, answer["revision"])


def save(snapshot: Snapshot, path: Path) -> None:
    """Write a file, for its owner's eyes: it has the cluster's Secrets."""
    head = {
        "format": FORMAT,
        "kubernetes": snapshot.kubernetes,
        "cluster": snapshot.cluster,
        "revision": snapshot.revision,
        "entries": len(snapshot.entries),
    }
    lines = [head, *({"key": key, "value": value} for key, value in sorted(snapshot.entries.items()))]
    text = "".join(json.dumps(each, separators=(",", ":"), ensure_ascii=False) + "\n" for each in lines).encode()
    content = gzip.compress(text, mtime=0) if path.suffix == ".gz" else text
    files.write_private(path, content)


def load(path: Path) -> Snapshot:
    """Read a file. SnapshotError, OSError."""
    try:
        content = path.read_bytes()
        text = gzip.decompress(content) if content[:2] == b"\x1f\x8b" else content
        head, *rest = (json.loads(line) for line in text.splitlines())
        if not isinstance(head, dict) or head.get("format") != FORMAT:
            raise SnapshotError(f"{path}: not a snapshot in the format {FORMAT}")
        entries = {each["key"]: each["value"] for each in rest}
        if len(entries) != head["entries"]:
            raise SnapshotError(f"{path}: {len(entries)} of {head['entries']} entries are there")
        return Snapshot(entries, head["revision"], head["kubernetes"])
    except (ValueError, KeyError, TypeError, EOFError, gzip.BadGzipFile) as error:
        if isinstance(error, SnapshotError):
            raise
        raise SnapshotError(f"{path}: not a snapshot: {error}") from None


def changes(now: Snapshot, wanted: Snapshot) -> Iterator[Batch]:
    """The writes that make a cluster what the snapshot is: owners before those they own, deletions last."""
    kept = ALWAYS_KEPT if now.cluster == wanted.cluster else (*ALWAYS_KEPT, *KEPT_IN_ANOTHER)

    def stays(key: str) -> bool:
        return any(fnmatchcase(key, pattern) for pattern in kept)

    put = [key for key in wanted.entries if not stays(key) and now.entries.get(key) != wanted.entries[key]]
    depth = _depths(wanted.entries)
    put.sort(key=lambda key: (not key.startswith(_FIRST), depth(key), key))
    batch, size = Batch(), 0
    for key in put:
        length = len(json.dumps(wanted.entries[key]))
        if size and size + length > BATCH:
            yield batch
            batch, size = Batch(), 0
        batch.put[key] = wanted.entries[key]
        size += length
    batch.delete = [key for key in now.entries if key not in wanted.entries and not stays(key)]
    if batch.put or batch.delete:
        yield batch


def _depths(entries: Mapping[str, Any]) -> Any:
    """How many owners stand one above the other over an object; the garbage collector takes what has none of them."""
    owners = {}
    for value in entries.values():
        if isinstance(value, dict) and isinstance(metadata := value.get("metadata"), dict):
            owners[metadata.get("uid")] = [each["uid"] for each in metadata.get("ownerReferences") or ()]

    def depth_of(uid: Any, seen: frozenset[Any]) -> int:
        above = [each for each in owners.get(uid, ()) if each not in seen]
        return 1 + max(depth_of(each, seen | {uid}) for each in above) if above else 0

    def depth(key: str) -> int:
        value = entries[key]
        metadata = value.get("metadata") if isinstance(value, dict) else None
        return depth_of(metadata.get("uid"), frozenset()) if isinstance(metadata, dict) else 0

    return depth
