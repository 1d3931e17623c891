"""`kubectl cp`: copies files between here and a container, with the container's tar."""

from __future__ import annotations

import io
import os
import tarfile

from pybernetes.kubectl import websocket
from pybernetes.kubectl.attaching import _PROTOCOLS, container_of
from pybernetes.kubectl.command import Command
from pybernetes.kubectl.errors import CLIError
from pybernetes.kubectl.flags import Flag

TYPE_CHECKING = False
if TYPE_CHECKING:
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


def _finish(socket: websocket.WebSocket, sink: io.BytesIO | None) -> None:
    errors = b""
    while True:
        message = socket.receive()
        if message is None:
            return
        channel, payload = message
        if channel == websocket.STDOUT and sink is not None:
            sink.write(payload)
        elif channel == websocket.STDERR:
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
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w") as archive:
        archive.add(source, arcname=name)
    command = ["tar", "--no-same-permissions", "--no-same-owner", "-xmf", "-"]
    if not context.flags.on("no-preserve"):
        command = ["tar", "-xmf", "-"]
    socket = _session(context, pod, [*command, *(["-C", folder] if folder else [])], True)
    data = content.getvalue()
    for at in range(0, len(data), 1 << 20):
        socket.send(websocket.STDIN, data[at : at + (1 << 20)])
    if socket.protocol.startswith("v5"):
        socket.send(websocket.CLOSE, bytes([websocket.STDIN]))
    _finish(socket, None)
    socket.close()
    return None


def _is_folder(context: Context, pod: str, path: str) -> bool:
    socket = _session(context, pod, ["test", "-d", path], False)
    try:
        _finish(socket, None)
        return True
    except CLIError:
        return False
    finally:
        socket.close()


def _download(context: Context, source: tuple[str, str], target: str) -> int | None:
    pod, path = source
    content = io.BytesIO()
    socket = _session(context, pod, ["tar", "cf", "-", path], False)
    try:
        _finish(socket, content)
    finally:
        socket.close()
    content.seek(0)
    prefix = path.strip("/")
    base = os.path.join(target, os.path.basename(prefix)) if os.path.isdir(target) else target
    try:
        found = _extract(context, content, prefix, base)
    except tarfile.TarError as error:
        raise CLIError(f"the container's tar did not write an archive: {str(error).splitlines()[0]}") from None
    if not found:
        raise CLIError(f"{path} no such file or directory")
    return None


def _extract(context: Context, content: io.BytesIO, prefix: str, base: str) -> bool:
    """Write the files of an archive below `base`; whether there were any. Nothing of the archive is believed."""
    found = False
    with tarfile.open(fileobj=content) as archive:
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
                    file.write(reader.read())
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
        Flag("retries", "int", help="Retries of a copy from a container; 0 has none."),
    ),
)
