"""Follows a folder or a URL, and tells which static pods have come, changed or gone.

What cannot be read or is no pod is told in the log, and whatever that place gave before stays: a half-written file, or
a web server that is away for a moment, must not end pods.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from urllib.parse import urlsplit

from pybernetes.api.core.v1 import Pod
from pybernetes.api.times import rfc3339
from pybernetes.client.clock import Clock
from pybernetes.client.http import HTTPClient
from pybernetes.client.keys import uid_of
from pybernetes.component import offload

from ..config.load import seconds
from ..config.types import KubeletConfiguration
from ..server.inotify import FolderWatch, open_watch
from .invalid import InvalidManifest

MAX_MANIFEST = 10 << 20
READ_WITHIN = 20.0
"""Seconds for reading all manifests: a folder on a file system that does not answer must not stop the node."""
log = logging.getLogger(__name__)


class StaticPods:
    """What one source has. `added` and `removed` are the way into the kubelet; another content is another pod."""

    def __init__(self, added: Callable[[Pod], None], removed: Callable[[Pod], None]) -> None:
        self._added = added
        self._removed = removed
        self._pods: dict[str, Pod] = {}
        self.seen = asyncio.Event()
        """The source has been read once."""

    def set(self, pods: list[Pod]) -> None:
        """The source has these now."""
        new = {uid_of(each): each for each in pods}
        for uid in self._pods.keys() - new.keys():
            self._removed(self._pods.pop(uid))
        for uid in new.keys() - self._pods.keys():
            self._pods[uid] = new[uid]
            self._added(new[uid])
        self.seen.set()


class FolderSource:
    """Manifests in a folder (or one file), one pod or list each; names that begin with a dot do not count."""

    def __init__(self, path: Path, node: str, clock: Clock, pods: StaticPods, every: float) -> None:
        self._path = path
        self._node = node
        self._clock = clock
        self.pods = pods
        self._every = every
        self._known: dict[Path, tuple[bytes, list[Pod]]] = {}
        """What each file said last, and the pods of the last time that it could be understood."""

    async def run(self) -> None:
        """Follow until cancelled."""
        while True:
            try:
                file, contents = await offload.run(f"static pods in {self._path}", READ_WITHIN, self._contents)
            except OSError as error:
                log.warning("static pods in %s cannot be read: %s", self._path, error)
                await self._clock.sleep(self._every)
                continue
            watch = FolderWatch(file)
            try:
                self._look(contents)
                await watch.wait(self._every)
                # Whoever writes a file is not done with the first event.
                await self._clock.sleep(0.02)
            finally:
                watch.close()

    def _contents(self) -> tuple[int, dict[Path, bytes | OSError]]:
        """A watch of the folder, and what is in its files since then. In a thread."""
        folder = self._path if self._path.is_dir() else self._path.parent
        file = open_watch(str(folder))
        try:
            return file, {path: _read(path) for path in self._files()}
        except OSError:
            if file >= 0:
                os.close(file)
            raise

    def _look(self, contents: Mapping[Path, bytes | OSError]) -> None:
        """Take what has changed."""
        found: dict[Path, tuple[bytes, list[Pod]]] = {}
        for path, data in contents.items():
            before = self._known.get(path)
            try:
                if isinstance(data, OSError):
                    raise data
                if before is not None and before[0] == data:
                    found[path] = before
                    continue
                from .static import pods_from

                now = rfc3339(self._clock.now())
                found[path] = (data, pods_from(data, str(path), self._node, now, file=True))
            except Exception as error:  # whatever is wrong with one manifest, the others count
                log.warning("could not process manifest file %s: %s", path, error or repr(error))
                if before is not None:
                    found[path] = before
        self._known = found
        self.pods.set([pod for _, pods in found.values() for pod in pods])

    def _files(self) -> list[Path]:
        if not self._path.exists():
            return []
        if not self._path.is_dir():
            return [self._path]
        return sorted(
            Path(each.path) for each in os.scandir(self._path) if not each.name.startswith(".") and each.is_file()
        )


def _read(path: Path) -> bytes | OSError:
    try:
        with path.open("rb") as file:
            data = file.read(MAX_MANIFEST + 1)
    except OSError as error:
        return error
    return data if len(data) <= MAX_MANIFEST else OSError(f"larger than {MAX_MANIFEST} bytes")


class URLSource:
    """A manifest at a URL."""

    def __init__(
        self,
        url: str,
        headers: dict[str, list[str]],
        node: str,
        clock: Clock,
        pods: StaticPods,
        every: float,
    ) -> None:
        self._url = url
        self._headers = {name: ", ".join(values) for name, values in headers.items()}
        self._node = node
        self._clock = clock
        self.pods = pods
        self._every = every
        self._data: bytes | None = None

    async def run(self) -> None:
        """Follow until cancelled."""
        while True:
            try:
                await self.look()
            except Exception as error:  # whatever a web server says, the next look may be better
                log.warning("failed to read pods from URL %s: %s", self._url, error or repr(error))
            await self._clock.sleep(self._every)

    async def look(self) -> None:
        """Read it once."""
        data = await self._fetch()
        if not data:
            self.pods.set([])
            raise InvalidManifest("zero-length data received")
        if data == self._data:
            return
        from .static import pods_from

        pods = pods_from(data, self._url, self._node, rfc3339(self._clock.now()), file=False)
        self._data = data
        self.pods.set(pods)

    async def _fetch(self) -> bytes:
        parts = urlsplit(self._url)
        client = HTTPClient(f"{parts.scheme}://{parts.netloc}", max_body=MAX_MANIFEST)
        try:
            target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
            answer = await client.request("GET", target, self._headers)
        finally:
            await client.close()
        if answer.status != 200:
            raise InvalidManifest(f"{self._url}: {answer.status}")
        return answer.body


Source = FolderSource | URLSource


def static_sources(
    config: KubeletConfiguration,
    node: str,
    clock: Clock,
    added: Callable[[Pod], None],
    removed: Callable[[Pod], None],
) -> list[Source]:
    """The sources that a configuration names."""
    sources: list[Source] = []
    if config.static_pod_path:
        every = seconds(config.file_check_frequency)
        sources.append(FolderSource(Path(config.static_pod_path), node, clock, StaticPods(added, removed), every))
    if config.static_pod_url:
        every = seconds(config.http_check_frequency)
        headers = config.static_pod_url_header or {}
        sources.append(URLSource(config.static_pod_url, headers, node, clock, StaticPods(added, removed), every))
    return sources
