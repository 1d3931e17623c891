"""A registry in each node, on its loopback, of the images that the cluster keeps (DATA/images/*.tar).

Pods ask for `nginx` more often than for `nginx:1.22.1`, and then a registry is asked every time (imagePullPolicy is
Always). The runtime asks this one first, so what was imported or made here is found, on a machine without a network
too; what is not here it goes on to ask the registry of the name for (404 means: next, please).

Only who shows the node's key is served: pods on the node's network share its loopback, and may not read images that
they have no password for. The runtime has the key in `hosts.toml`, which root alone may read.

Served are manifests and blobs, to be read, straight out of the archives. Of OCI's archives nothing is changed, so
digests are those of the image; docker's older ones have no manifests, so these are made up from what is in them.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import re
import secrets
import socket
import tarfile
from pathlib import Path
from typing import IO, Any, NamedTuple
from urllib.parse import parse_qs, urlsplit

from pybernetes.cluster import files
from pybernetes.cluster.images import oci
from pybernetes.cri.embedded.images import archive, compression

ADDRESS = "127.0.0.1"
PORT = 10247  # beside the kubelet's own on loopback
KEY_FILE = "mirror.key"
_HEADER = "X-Pybernetes-Mirror-Key"
_PATH = re.compile(r"/v2/(?P<repository>[a-z0-9._/-]+)/(?P<what>manifests|blobs)/(?P<which>[A-Za-z0-9._:-]+)")
_IP_FREEBIND = 15
_LONGEST_HEAD = 64 << 10
_MANIFEST_SIZE = 4 << 20  # what registries take


class Blob(NamedTuple):
    """Where some bytes are: in an archive, or here."""

    archive: Path | None
    offset: int
    size: int
    content: bytes = b""

    def read(self) -> bytes:
        """All of it."""
        if self.archive is None:
            return self.content
        with open(self.archive, "rb") as file:
            file.seek(self.offset)
            return file.read(self.size)


class Contents(NamedTuple):
    """The content of an archive."""

    names: dict[str, str]
    """The digest of the manifest of each name."""
    blobs: dict[str, Blob]


def hosts(key: str) -> str:
    """containerd's `_default/hosts.toml` for a node with this key."""
    server = f'[host."http://{ADDRESS}:{PORT}"]'
    return f'{server}\n  capabilities = ["pull", "resolve"]\n{server[:-1]}.header]\n  {_HEADER} = ["{key}"]\n'


def key_of(folder: Path) -> str:
    """The key of the node with this folder, made if there is none."""
    path = folder / KEY_FILE
    if not path.exists():
        files.write_private(path, secrets.token_hex(32).encode())
    return path.read_text()


class Images:
    """The archives in a folder, looked at again when they change."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._known: dict[Path, tuple[tuple[int, int], Contents]] = {}

    def manifest(self, name: str) -> tuple[str, Blob] | None:
        """Digest and bytes of the manifest of an image, by its full name."""
        for _, each in self._known.values():
            if name in each.names:
                return each.names[name], each.blobs[each.names[name]]
        return None

    def blob(self, digest: str) -> Blob | None:
        """Some bytes by their digest."""
        return next((each.blobs[digest] for _, each in self._known.values() if digest in each.blobs), None)

    def look(self) -> None:
        """Find out what there is."""
        known = {}
        for path in sorted(self._folder.glob("*.tar")):
            try:
                seen = path.stat()
                stamp = (seen.st_mtime_ns, seen.st_size)
                before = self._known.get(path)
                known[path] = before if before and before[0] == stamp else (stamp, contents(path))
            except (OSError, tarfile.TarError, ValueError, KeyError, TypeError, AttributeError) as error:
                print(f"{path} cannot be served: {error}", flush=True)
        self._known = known


def contents(path: Path) -> Contents:
    """Read an archive, OCI's or docker's. Raises what tarfile does, and ValueError and its like for bad JSON."""
    with tarfile.open(path, "r:") as tar:
        members = {member.name.removeprefix("./"): member for member in tar if member.isreg()}
        if "index.json" in members:
            return _oci(path, tar, members)
        return _docker(path, tar, members)


def _oci(path: Path, tar: tarfile.TarFile, members: dict[str, tarfile.TarInfo]) -> Contents:
    blobs = {}
    for name, member in members.items():
        folder, _, hexadecimal = name.rpartition("/")
        if folder.startswith("blobs/"):
            digest = f"{folder.removeprefix('blobs/')}:{hexadecimal}"
            blobs[digest] = Blob(path, member.offset_data, member.size)
    names = {}
    for manifest in json.load(_open(tar, members["index.json"])).get("manifests") or ():
        annotations = manifest.get("annotations") or {}
        named = annotations.get(archive.NAME) or annotations.get(archive.REFERENCE)
        if named and manifest["digest"] in blobs and archive.fits(manifest.get("platform")):
            names[oci.full_name(str(named))] = str(manifest["digest"])
    return Contents(names, blobs)


def _docker(path: Path, tar: tarfile.TarFile, members: dict[str, tarfile.TarInfo]) -> Contents:
    names: dict[str, str] = {}
    blobs: dict[str, Blob] = {}

    def described(name: str, media: str) -> dict[str, Any]:
        member = members[name]
        with _open(tar, member) as file:
            packed = compression.kind_of(file.read(6))
            file.seek(0)
            digest = f"sha256:{hashlib.file_digest(file, 'sha256').hexdigest()}"  # type: ignore[arg-type]
        blobs[digest] = Blob(path, member.offset_data, member.size)
        return {"mediaType": media + (f"+{packed}" if packed else ""), "digest": digest, "size": member.size}

    for image in json.load(_open(tar, members["manifest.json"])):
        manifest = {
            "schemaVersion": 2,
            "mediaType": oci.MANIFEST,
            "config": described(image["Config"], oci.CONFIG),
            "layers": [described(each, oci.LAYER.removesuffix("+gzip")) for each in image["Layers"]],
        }
        content = json.dumps(manifest, separators=(",", ":")).encode()
        digest = oci.digest(content)
        blobs[digest] = Blob(None, 0, len(content), content)
        names.update({oci.full_name(name): digest for name in image.get("RepoTags") or ()})
    return Contents(names, blobs)


def _open(tar: tarfile.TarFile, member: tarfile.TarInfo) -> IO[bytes]:
    file = tar.extractfile(member)
    assert file is not None
    return file


# -- serving --


class Mirror:
    """Serves the images of a folder: each request by a child process, so that a slow client does not block others.

    (Not by threads: a process that has begun a PID namespace for its children cannot have any.) The children are in the
    node's PID namespace, whose init process cannot end before the last of them was waited for: so the server polls
    `descriptors`, which tell of their ends too.
    """

    def __init__(self, listener: socket.socket, folder: Path, key: str) -> None:
        self.listener = listener
        self._key = key
        self._images = Images(folder)
        self._children: dict[int, int] = {}
        """Descriptors of those that are not known to have ended, and their ids."""

    def descriptors(self) -> list[int]:
        """The descriptors to poll for input: when there is some, it is time to `serve`."""
        return [self.listener.fileno(), *self._children]

    def serve(self) -> None:
        """Take what waits at the listener; forget the children that have ended."""
        self.reap()
        try:
            connection, _ = self.listener.accept()
        except OSError:  # the client is gone already, or there was none
            return
        with connection:
            self._images.look()
            child = os.fork()
            if not child:
                try:
                    _answer(connection, self._images, self._key)
                finally:
                    os._exit(0)
            self._children[os.pidfd_open(child)] = child

    def reap(self) -> None:
        """Forget the children that have ended."""
        for descriptor, child in list(self._children.items()):
            if os.waitpid(child, os.WNOHANG)[0]:
                os.close(descriptor)
                del self._children[descriptor]


def listen() -> socket.socket:
    """A socket for it in this network namespace."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.setsockopt(socket.SOL_IP, _IP_FREEBIND, 1)  # the loopback may not be up yet
    listener.bind((ADDRESS, PORT))
    listener.listen(64)
    listener.setblocking(False)
    return listener


def _answer(connection: socket.socket, images: Images, key: str) -> None:
    """One request, one answer."""
    with connection:
        connection.settimeout(30)
        try:
            head = b""
            while b"\r\n\r\n" not in head and len(head) < _LONGEST_HEAD:
                arrived = connection.recv(4096)
                if not arrived:
                    return
                head += arrived
            first, *others = head.split(b"\r\n\r\n", 1)[0].decode("latin-1").split("\r\n")
            method, target, *_ = first.split(" ")
            if _shows(others, key):
                status, headers, blob = _find(images, method, target)
            else:
                status, headers, blob = _problem("401 Unauthorized", "UNAUTHORIZED", "it is the node's runtime's alone")
            lines = [f"HTTP/1.1 {status}", *headers, f"Content-Length: {blob.size}", "Connection: close", "", ""]
            connection.sendall("\r\n".join(lines).encode("latin-1"))
            if method == "HEAD":
                return
            if blob.archive is None:
                connection.sendall(blob.content)
            else:
                with open(blob.archive, "rb") as file:
                    connection.sendfile(file, blob.offset, blob.size)
        except (OSError, ValueError):
            return


def _shows(headers: list[str], key: str) -> bool:
    """Whether one of these headers is the node's key."""
    given = [value.strip() for name, _, value in (each.partition(":") for each in headers) if _same(name, _HEADER)]
    return len(given) == 1 and hmac.compare_digest(given[0].encode(), key.encode())


def _same(name: str, other: str) -> bool:
    return name.strip().lower() == other.lower()


def _find(images: Images, method: str, target: str) -> tuple[str, list[str], Blob]:
    url = urlsplit(target)
    if method not in ("GET", "HEAD"):
        return _problem("405 Method Not Allowed", "UNSUPPORTED")
    if url.path in ("/v2", "/v2/"):
        return "200 OK", ["Content-Type: application/json"], Blob(None, 0, 2, b"{}")
    match = _PATH.fullmatch(url.path)
    if match is None:
        return _problem("404 Not Found", "NAME_UNKNOWN")
    which = match["which"]
    if match["what"] == "blobs":
        blob = images.blob(which)
        if blob is None:
            return _problem("404 Not Found", "BLOB_UNKNOWN")
        return "200 OK", ["Content-Type: application/octet-stream", f"Docker-Content-Digest: {which}"], blob
    if ":" in which:
        blob = images.blob(which)
        found = (which, blob) if blob is not None and blob.size <= _MANIFEST_SIZE else None
    else:
        host = parse_qs(url.query).get("ns", ["docker.io"])[0]
        found = images.manifest(f"{host}/{match['repository']}:{which}")
    if found is None:
        return _problem("404 Not Found", "MANIFEST_UNKNOWN")
    media = json.loads(found[1].read()).get("mediaType") or oci.MANIFEST
    return "200 OK", [f"Content-Type: {media}", f"Docker-Content-Digest: {found[0]}"], found[1]


def _problem(status: str, code: str, message: str = "it is not here") -> tuple[str, list[str], Blob]:
    content = json.dumps({"errors": [{"code": code, "message": message}]}).encode()
    return status, ["Content-Type: application/json"], Blob(None, 0, len(content), content)
