"""Follows a folder or a URL, and tells which static pods have come, changed or gone.

A manifest that cannot be read or is no pod is reported in the log, and the source's previous pods stay: a half-written
file, or a web server that is away for a moment, must not end pods.
"""

from __future__ import annotations

import asyncio
import logging
import os
import stat
from collections.abc import Callable
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
"""Seconds for a list of the folder: one on a file system that does not answer must not stop the node."""
MANIFEST_WITHIN = 5.0
"""Seconds for one manifest, which the others wait for."""
_Manifest = tuple[bytes, list[Pod]]
log = logging.getLogger(__name__)


class StaticPods:
    """The pods of one source. Calls `added` and `removed`; changed content is another pod."""

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
        self._known: dict[Path, _Manifest] = {}
        """The last content of each file, and the pods of its last valid content."""

    async def run(self) -> None:
        """Follow until cancelled."""
        while True:
            try:
                file, paths = await offload.run(f"static pods in {self._path}", READ_WITHIN, self._list)
            except OSError as error:
                log.warning("static pods in %s cannot be read: %s", self._path, error)
                await self._clock.sleep(self._every)
                continue
            watch = FolderWatch(file)
            try:
                await self._look(paths)
                await watch.wait(self._every)
                # The writer of a file is rarely done with the first event.
                await self._clock.sleep(0.02)
            finally:
                watch.close()

    def _list(self) -> tuple[int, list[Path]]:
        """A watch of the folder, and its files since then. In a thread."""
        folder = self._path if self._path.is_dir() else self._path.parent
        file = open_watch(str(folder))
        try:
            return file, self._files()
        except OSError:
            if file >= 0:
                os.close(file)
            raise

    async def _look(self, paths: list[Path]) -> None:
        """Take what has changed. Each file is read and understood in a thread of its own."""
        found = await asyncio.gather(*map(self._manifest, paths))
        self._known = {path: each for path, each in zip(paths, found, strict=True) if each is not None}
        self.pods.set([pod for _, pods in self._known.values() for pod in pods])

    async def _manifest(self, path: Path) -> _Manifest | None:
        before = self._known.get(path)
        try:
            return await offload.run(f"manifest {path}", MANIFEST_WITHIN, self._read, path, before)
        except IsADirectoryError:
            return None
        except Exception as error:  # whatever is wrong with one manifest, the others count
            log.warning("could not process manifest file %s: %s", path, error or repr(error))
            return before

    def _read(self, path: Path, before: _Manifest | None) -> _Manifest | None:
        """Read a manifest file; None for folders, pipes and devices."""
        from .static import pods_from

        with open(path, "rb", opener=_without_waiting) as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                return None
            data = file.read(MAX_MANIFEST + 1)
        if len(data) > MAX_MANIFEST:
            raise OSError(f"larger than {MAX_MANIFEST} bytes")
        if before is not None and before[0] == data:
            return before
        now = rfc3339(self._clock.now())
        return data, pods_from(data, str(path), self._node, now, file=True)

    def _files(self) -> list[Path]:
        """Names alone: a look at what a link leads to may fail or hang, which is that manifest's own affair."""
        if not self._path.exists():
            return []
        if not self._path.is_dir():
            return [self._path]
        return sorted(each for each in self._path.iterdir() if not each.name.startswith("."))


def _without_waiting(path: str, flags: int) -> int:
    """To open a pipe would otherwise wait for a writer."""
    return os.open(path, flags | os.O_NONBLOCK | os.O_CLOEXEC)


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

        now = rfc3339(self._clock.now())
        pods = await offload.run(
            "static pods by URL", READ_WITHIN, pods_from, data, self._url, self._node, now, file=False
        )
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
