"""Images between the archives that a cluster keeps (DATA/images) and registries or files."""

from __future__ import annotations

import base64
import binascii
import contextlib
import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pybernetes.cluster import files
from pybernetes.cluster.errors import ClusterError
from pybernetes.cluster.images import archives, store
from pybernetes.cluster.images.bars import Bars
from pybernetes.cluster.layout import Layout

CERTIFICATES = Path("/etc/containerd/certs.d")


def pull(layout: Layout, name: str, username: str = "", password: str = "") -> tuple[str, Path]:
    """Loads an image from its registry into the archives that are kept; its name in full, and the archive."""
    from pybernetes.cri.embedded.images import pulling

    files.make_private_folder(layout.images)
    try:
        reference = pulling.parse(name)
        if reference.by_digest:
            raise ClusterError(f"{reference.name}: an image that is kept has a tag, no digest")
        archive = store.archive_path(layout, reference.name)
    except (pulling.PullError, ValueError) as error:
        raise ClusterError(str(error)) from error
    return pull_to(layout, name, archive, username, password), archive


def pull_to(layout: Layout, name: str, archive: Path, username: str = "", password: str = "") -> str:
    """Loads an image from its registry into an archive, by a tag or a digest; its name in full."""
    from pybernetes.cri.embedded.images import archiving, pulling
    from pybernetes.cri.embedded.images.registry import Credentials

    try:
        reference = pulling.parse(name)
        login = Credentials(username, password) if username else docker_login(reference.registry)
        folders = [layout.registries, CERTIFICATES]
        with Bars() as bars:
            return archiving.archive(folders, name, login, archive, bars)
    except (pulling.PullError, ValueError) as error:
        raise ClusterError(str(error)) from error


def export(kept: list[Path], name: str, target: Path) -> int:
    """Writes an image that is kept as an OCI archive, and tells its size; `kept` are the archives that have it."""
    if not kept:
        raise ClusterError(f"no archive of {name} is kept here: `image pull` and `image import` keep one")
    with _as_oci(kept[0], name) as archive:
        return _copy(archive, target)


@contextlib.contextmanager
def _as_oci(archive: Path, name: str) -> Iterator[Path]:
    """The archive, or another one while it is needed, if it came from docker in docker's own form."""
    if archives.is_oci(archive):
        yield archive
        return
    temporary = archive.with_name(f".{archive.name}.{os.getpid()}")  # see `store.forget_unfinished`
    try:
        with open(temporary, "wb") as out:
            archives.write_as_oci(archive, name, out)
        yield temporary
    finally:
        temporary.unlink(missing_ok=True)


def _copy(archive: Path, target: Path) -> int:
    place = Path(os.path.realpath(target))  # a link stays one
    temporary = place.with_name(f".{place.name}.{os.getpid()}")
    try:
        if place.exists() and not place.is_file():  # a device or a pipe is written to, and stays what it is
            with open(archive, "rb") as source, open(place, "wb") as out:
                shutil.copyfileobj(source, out)
        else:
            shutil.copyfile(archive, temporary)
            temporary.replace(place)
        return archive.stat().st_size
    except OSError as error:
        raise ClusterError(f"{target}: {error.strerror}") from None
    finally:
        temporary.unlink(missing_ok=True)


def docker_login(registry: str, config: Path | None = None) -> Any:
    """The credentials of `docker login` for a registry: `auths` in its config.json; None without. Helpers are not
    asked."""
    from pybernetes.cri.embedded.images.registry import Credentials

    path = config or Path(os.environ.get("DOCKER_CONFIG") or Path.home() / ".docker") / "config.json"
    try:
        auths = json.loads(path.read_bytes()).get("auths", {})
        keys = ["https://index.docker.io/v1/", "docker.io"] if registry == "docker.io" else []
        entry = next(
            auths[key] for key in (*keys, registry, f"https://{registry}", f"http://{registry}") if key in auths
        )
        if token := entry.get("identitytoken"):
            return Credentials(identity_token=token)
        user, _, password = base64.b64decode(entry["auth"], validate=True).decode().partition(":")
        return Credentials(user, password)
    except (FileNotFoundError, StopIteration, KeyError):
        return None
    except (ValueError, TypeError, AttributeError, binascii.Error) as error:
        raise ClusterError(f"{path} is not what `docker login` writes: {error}") from None
