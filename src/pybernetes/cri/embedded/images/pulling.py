"""Pulls an image: resolves its name at a mirror or the registry, loads what is not here, checks it, unpacks it.

A server that cannot be reached, has not got the image or answers with something else is passed over for the next one
(`hosts.py`); if all of them fail, the last one's words are the answer, as containerd's are. Layers that another image
brought are not loaded again.
"""

from __future__ import annotations

import base64
import binascii
import errno
import hashlib
import os
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, TypeVar

from pybernetes.api.core.image import parse_reference

from . import manifests
from .archive import DEPTH, Contained
from .compression import plain
from .config import read_config
from .downloads import Cancelled, DiskError, Downloads
from .hosts import Host, hosts
from .manifests import BadManifest, ImageManifest, NoMatch
from .names import full_name, is_id
from .registry import Credentials, Registry, RegistryError, SpeaksPlainHTTP
from .store import Image, ImageStore

T = TypeVar("T")
LARGEST_CONFIG = 16 << 20


class PullError(Exception):
    """Why an image is not here: CRI's code, and words for an event."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


@dataclass(frozen=True)
class Reference:
    """An image's name in full, in its parts; the identifier is a tag or a digest."""

    name: str
    registry: str
    repository: str
    identifier: str

    @property
    def by_digest(self) -> bool:
        """Whether it can only ever mean one thing."""
        return self.identifier.startswith("sha256:")


def parse(name: str) -> Reference:
    """A name as pods have it; PullError if it is none."""
    try:
        if is_id(name):
            raise ValueError("an id says not where the image is")
        full = full_name(name)
    except ValueError as error:
        raise PullError("InvalidArgument", f'failed to parse image reference "{name}": {error}') from None
    found = parse_reference(full)
    return Reference(full, found.host, found.repository, found.digest or found.tag)


def credentials(auth: Any) -> Credentials | None:
    """Those of CRI's AuthConfig; `auth` in it is base64 of `user:password`. PullError if it is not."""
    if auth is None:
        return None
    if auth.username or auth.identity_token or auth.registry_token:
        return Credentials(auth.username, auth.password, auth.identity_token, auth.registry_token)
    if not auth.auth:
        return None
    try:
        user, colon, password = base64.b64decode(auth.auth, validate=True).decode().partition(":")
    except (binascii.Error, UnicodeDecodeError):
        colon = user = password = ""
    if not colon:
        raise PullError("InvalidArgument", "invalid auth config: auth is not base64 of user:password")
    return Credentials(user, password.rstrip("\0"))


def pull(
    store: ImageStore,
    folders: Iterable[Path],
    name: str,
    login: Credentials | None = None,
    cancelled: threading.Event | None = None,
) -> Image:
    """Makes the image of a name be here as the registry has it now. Raises PullError."""
    reference = parse(name)
    event = cancelled or threading.Event()
    return ask_servers(
        folders, reference, login, lambda registry, digest: _into(store, registry, reference, digest, event), event
    )


def ask_servers(
    folders: Iterable[Path],
    reference: Reference,
    login: Credentials | None,
    action: Callable[[Registry, str], T],
    cancelled: threading.Event | None = None,
) -> T:
    """Does something with an image at the first server that has it, given its digest there. Raises PullError."""
    begins = f'failed to pull and unpack image "{reference.name}": '
    failure: Exception = RegistryError("no server of it may be pulled from")
    wait = cancelled.wait if cancelled is not None else time.sleep
    try:
        for server in hosts(folders, reference.registry):
            if not {"pull", "resolve"} <= server.capabilities:
                continue
            try:
                return _at(server, reference, login, action, wait)
            except (RegistryError, BadManifest) as error:
                failure = error  # the last one's words count: that is the registry itself
    except Cancelled:
        raise PullError("Canceled", f"{begins}context canceled") from None
    except DiskError as error:
        code = "ResourceExhausted" if "No space" in str(error) else "Unknown"
        raise PullError(code, f"{begins}{error}") from None
    except OSError as error:  # the disk's, certificates that cannot be read
        code = "ResourceExhausted" if error.errno == errno.ENOSPC else "Unknown"
        raise PullError(code, f"{begins}{error}") from None
    except ValueError as error:  # bad layers, hosts.toml
        raise PullError("Unknown", f"{begins}{error}") from None
    if isinstance(failure, NoMatch):
        raise PullError("NotFound", f"{begins}{failure}: not found")
    if not isinstance(failure, RegistryError):
        raise PullError("Unknown", f"{begins}{failure}")
    if failure.code == "NotFound":
        told = f'failed to resolve reference "{reference.name}": {reference.name}: not found'
        raise PullError("NotFound", begins + told)
    raise PullError(failure.code, begins + str(failure))


def _at(
    server: Host,
    reference: Reference,
    login: Credentials | None,
    action: Callable[[Registry, str], T],
    wait: Callable[[float], object],
) -> T:
    registry = Registry(server, reference.registry, reference.repository, login, wait)
    try:
        digest = _resolve(registry, reference)
    except SpeaksPlainHTTP as error:
        return _at(error.host, reference, login, action, wait)
    except RegistryError as error:
        told = f'failed to resolve reference "{reference.name}": {error}'
        raise RegistryError(told, error.code, error.status) from None
    return action(registry, digest)


def _into(
    store: ImageStore, registry: Registry, reference: Reference, digest: str, cancelled: threading.Event
) -> Image:
    named = f"{reference.registry}/{reference.repository}@{digest}"
    names = () if reference.by_digest else (reference.name,)
    here = store.find(named)
    if here is not None:
        try:
            contained = Contained(names, store.raw_config(here), tuple("" for _ in here.layers), digest)
            return store.add(_Nothing(), contained, (named,))
        except FileNotFoundError:
            pass  # it was removed meanwhile
    return _load(store, registry, digest, names, named, cancelled)


def _resolve(registry: Registry, reference: Reference) -> str:
    """The digest that the name stands for at this server. Asked without the bytes: registries count only those."""
    manifest = registry.resolve(reference.identifier)
    found = manifest.digest
    if manifest.body or not manifests._DIGEST.fullmatch(found):
        found = _digest(manifest.body or registry.manifest(reference.identifier).body)
    if reference.by_digest and found != reference.identifier:
        raise RegistryError(f"the registry answered {found}", "FailedPrecondition")
    return found


def _load(
    store: ImageStore,
    registry: Registry,
    digest: str,
    names: tuple[str, ...],
    named: str,
    cancelled: threading.Event,
) -> Image:
    _, manifest = manifest_of(registry, digest)
    downloads = Downloads(store.root / "downloads")
    if manifest.config.size > LARGEST_CONFIG:
        raise BadManifest(f"a configuration of {manifest.config.size} bytes")
    with downloads.open(registry, manifest.config, cancelled) as file:
        config = file.read(manifest.config.size)
    diffs = read_config(config).diffs
    if len(diffs) != len(manifest.layers):
        raise BadManifest(f"{len(manifest.layers)} layers, but the configuration tells of {len(diffs)}")
    wanted = {
        layer.digest: layer for diff, layer in zip(diffs, manifest.layers, strict=True) if not store.has_layer(diff)
    }
    _check_room(store.root, wanted.values())
    source = _Loaded(registry, downloads, {layer.digest: layer for layer in manifest.layers}, cancelled)
    try:
        for layer in wanted.values():
            downloads.open(registry, layer, cancelled).close()
    except DiskError:
        downloads.forget(*manifest.layers, beginnings=True)  # what was loaded must not keep the disk full
        raise
    contained = Contained(names, config, tuple(layer.digest for layer in manifest.layers), digest)
    try:
        return store.add(source, contained, (named,))
    finally:
        downloads.forget(manifest.config, *manifest.layers)


def manifest_of(registry: Registry, digest: str) -> tuple[bytes, ImageManifest]:
    """The manifest of a digest, or of what an index of that digest has for this machine; as it is, and read."""
    for _ in range(DEPTH):
        answer = registry.manifest(digest)
        if _digest(answer.body) != digest:
            told = f"unexpected commit digest {_digest(answer.body)}, expected {digest}: failed precondition"
            raise RegistryError(f'failed commit on ref "manifest-{digest}": {told}', "FailedPrecondition")
        content = manifests.read(answer.body, answer.media_type)
        if isinstance(content, ImageManifest):
            return answer.body, content
        digest = manifests.choose(content).digest
    raise BadManifest("indexes in indexes without an end")


def _check_room(root: Path, layers: Iterable[manifests.Descriptor]) -> None:
    disk = os.statvfs(root)
    needed = sum(layer.size for layer in layers)
    if needed > disk.f_bavail * disk.f_frsize:
        raise DiskError(f"No space left on device: the image's layers have {needed} bytes")


class _Loaded:
    """Layers for the store, in files."""

    def __init__(
        self,
        registry: Registry,
        downloads: Downloads,
        layers: dict[str, manifests.Descriptor],
        cancelled: threading.Event,
    ) -> None:
        self._registry = registry
        self._downloads = downloads
        self._layers = layers
        self._cancelled = cancelled

    def layer(self, member: str) -> IO[bytes]:
        """A layer as a plain tar stream. Loaded now if it was here at first and has been collected since."""
        layer = self._layers[member]
        return plain(self._downloads.open(self._registry, layer, self._cancelled))


class _Nothing:
    def layer(self, member: str) -> IO[bytes]:
        """An image that is here needs none."""
        raise FileNotFoundError("a layer of the image has gone")


def _digest(body: bytes) -> str:
    return "sha256:" + hashlib.sha256(body).hexdigest()
