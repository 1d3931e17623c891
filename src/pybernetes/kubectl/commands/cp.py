"""`kubectl cp`: copies files between here and a container, with the container's tar."""

from __future__ import annotations

import io
import os
import tarfile
import time
from shutil import copyfileobj

from pybernetes.kubectl import websocket
from pybernetes.kubectl.attaching import _PROTOCOLS, container_of
from pybernetes.kubectl.command import Command
from pybernetes.kubectl.errors import CLIError
from pybernetes.kubectl.flags import Flag

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pybernetes.kubectl.context import Context


def run(context: Context, arguments: list[str]) -> int | None:
    """`cp`."""
    if len(arguments) != 2:
        raise CLIError("source and destination are required")
    source, target = (_place(each) for each in arguments)
    if source[0] and target[0]:
        raise CLIError("one of src or dest must be a local file specification")
    if not source[0] and not target[0]:
        raise CLIError("one of src or dest must be a remote file specification")
    if not source[1] or not target[1]:
        raise CLIError("filepath can not be empty")
    return _download(context, source, target[1]) if source[0] else _upload(context, source[1], target)


def _place(text: str) -> tuple[str, str]:
    """Pod and path of `namespace/pod:path`; a local path has no pod."""
    if ":" not in text or text.startswith((".", "/")):
        return "", text
    pod, _, path = text.partition(":")
    if not pod:
        raise CLIError("filespec must match the canonical format: [[namespace/]pod:]file/path")
    return pod, path


def _session(context: Context, place: str, command: list[str], stdin: bool) -> websocket.WebSocket:
    namespace, slash, name = place.partition("/")
    if not slash:
        namespace, name = context.namespace(), place
    pod = context.client.get(f"/api/v1/namespaces/{namespace}/pods/{name}")
    container = container_of(context, pod, context.flags.text("container"))["name"]
    parameters = {"container": container, "command": command, "stdin": stdin, "stdout": True, "stderr": True}
    path = f"/api/v1/namespaces/{namespace}/pods/{name}/exec"
    return websocket.WebSocket(context.client, path, parameters, _PROTOCOLS)


class _Ended(Exception):
    """The connection closed while an archive was sent; what the container's tar said is still to be read."""


class _Upload(io.RawIOBase):
    """The stdin of the container's tar."""

    def __init__(self, socket: websocket.WebSocket) -> None:
        self._socket = socket

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        try:
            self._socket.send(websocket.STDIN, bytes(data))
        except OSError:
            raise _Ended from None
        return len(data)


class _Download(io.RawIOBase):
    """The archive that the container's tar writes, from where it broke off after a lost connection (`--retries`)."""

    def __init__(self, context: Context, pod: str, path: str) -> None:
        self._context, self._pod, self._path = context, pod, path
        self._retries = context.flags.number("retries")
        self._tries = self._received = 0
        self._rest = b""
        self._socket: websocket.WebSocket | None = self._open()

    def _open(self) -> websocket.WebSocket:
        command = ["tar", "cf", "-", self._path]
        if self._retries:
            escaped = self._path.replace("'", "'\\''")
            command = ["sh", "-c", f"tar cf - '{escaped}' | tail -c+{self._received + 1}"]
        return _session(self._context, self._pod, command, False)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._rest and self._socket is not None:
            try:
                self._receive()
            except (CLIError, OSError) as error:
                self._again(error)
        count = min(len(buffer), len(self._rest))
        buffer[:count], self._rest = self._rest[:count], self._rest[count:]
        return count

    def _receive(self) -> None:
        assert self._socket is not None
        message = self._socket.receive()
        if message is None:
            raise CLIError("the connection ended before the copy did")
        channel, payload = message
        if channel == websocket.STDOUT:
            self._rest = payload
            self._received += len(payload)
        elif channel == websocket.STDERR:
            self._context.out(payload.decode("utf-8", "replace"))
        elif channel == websocket.ERROR:
            websocket.exec_status(payload)
            self.hang_up()

    def _again(self, error: Exception) -> None:
        self.hang_up()
        if 0 <= self._retries <= self._tries:
            if self._retries:
                self._context.out(f"Dropping out copy after {self._tries} retries\n")
            raise error
        self._tries += 1
        self._context.out(f"Resuming copy at {self._received} bytes, retry {self._tries}/{self._retries}\n")
        time.sleep(0.1)
        self._socket = self._open()

    def hang_up(self) -> None:
        """Closes the connection; what was received is still to be read."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None


def _finish(socket: websocket.WebSocket) -> None:
    """Reads until the command has ended. Raises CLIError where it failed."""
    errors = b""
    while (message := socket.receive()) is not None:
        channel, payload = message
        if channel == websocket.STDERR:
            errors += payload
        elif channel == websocket.ERROR:
            if errors:
                os.write(2, errors)
            websocket.exec_status(payload)
            return


def _upload(context: Context, source: str, target: tuple[str, str]) -> int | None:
    if not os.path.exists(source):
        raise CLIError(f"{source} doesn't exist in local filesystem")
    pod, path = target
    name = os.path.basename(path.rstrip("/")) if not path.endswith("/") else os.path.basename(source.rstrip("/"))
    folder = os.path.dirname(path.rstrip("/")) if not path.endswith("/") else path.rstrip("/")
    if _is_folder(context, pod, path):
        folder, name = path.rstrip("/") or "/", os.path.basename(os.path.abspath(source))
    command = ["tar", "-xmf", "-"]
    if context.flags.on("no-preserve"):
        command = ["tar", "--no-same-permissions", "--no-same-owner", "-xmf", "-"]
    socket = _session(context, pod, [*command, *(["-C", folder] if folder else [])], True)
    try:
        # GNU's format: every tar reads it, and its times are whole seconds.
        with tarfile.open(fileobj=_Upload(socket), mode="w|", bufsize=1 << 18, format=tarfile.GNU_FORMAT) as archive:
            archive.add(source, arcname=name)
        if socket.protocol.startswith("v5"):
            socket.send(websocket.CLOSE, bytes([websocket.STDIN]))
    except _Ended:
        pass
    try:
        _finish(socket)
    finally:
        socket.close()
    return None


def _is_folder(context: Context, pod: str, path: str) -> bool:
    socket = _session(context, pod, ["test", "-d", path], False)
    try:
        _finish(socket)
        return True
    except CLIError:
        return False
    finally:
        socket.close()


def _download(context: Context, source: tuple[str, str], target: str) -> int | None:
    pod, path = source
    prefix = path.strip("/")
    base = os.path.join(target, os.path.basename(prefix)) if os.path.isdir(target) else target
    content = _Download(context, pod, path)
    try:
        try:
            with tarfile.open(fileobj=content, mode="r|") as archive:
                found = _extract(context, archive, prefix, base)
        except tarfile.ReadError as error:
            if "empty file" not in str(error):
                raise CLIError(f"the container's tar did not write an archive: {str(error).splitlines()[0]}") from None
            found = False
        while content.read(1 << 16):
            pass  # to the exit code of tar
    finally:
        content.hang_up()
    if not found:
        raise CLIError(f"{path} no such file or directory")
    return None


def _extract(context: Context, archive: tarfile.TarFile, prefix: str, base: str) -> bool:
    """Write the files of an archive below `base`; whether there were any. Nothing of the archive is believed."""
    found = False
    for member in archive:
        found = True
        shown = _printable(member.name)
        inside = os.path.relpath(member.name.lstrip("/"), prefix) if prefix else member.name
        destination = os.path.normpath(os.path.join(base, inside))
        if inside.startswith("..") or not (destination + os.sep).startswith(os.path.normpath(base) + os.sep):
            context.err(f'warning: file "{shown}" is outside target destination, skipping\n')
            continue
        if member.isdir():
            os.makedirs(destination, exist_ok=True)
        elif member.isfile():
            os.makedirs(os.path.dirname(destination) or ".", exist_ok=True)
            reader = archive.extractfile(member)
            assert reader is not None
            with open(destination, "wb") as file:
                copyfileobj(reader, file)
            if not context.flags.on("no-preserve"):
                os.chmod(destination, member.mode & 0o777)
        else:
            context.err(f'warning: skipping symlink: "{shown}" -> "{_printable(member.linkname)}"\n')
    return found


def _printable(name: str) -> str:
    """A name that does not command the terminal that shows it."""
    return "".join(each if each.isprintable() else f"\\x{ord(each):02x}" for each in name)


COMMAND = Command(
    "cp <file-spec-src> <file-spec-dest>",
    "Copy files and directories to and from containers",
    run,
    flags=(
        Flag("container", short="c", help="Name of the container."),
        Flag("no-preserve", "bool", help="Do not keep owner and permissions."),
        Flag("retries", "int", help="How often a broken copy from a container goes on; negative: always."),
    ),
)
