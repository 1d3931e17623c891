"""The terminal side of exec, attach and debug: copies stdin, stdout and stderr between here and a container."""

from __future__ import annotations

import os
import select
import signal
import sys
import time

from pybernetes.kubectl import websocket
from pybernetes.kubectl.data import dig, dumps
from pybernetes.kubectl.errors import CLIError, StatusError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pybernetes.kubectl.context import Context

_PROTOCOLS = "v5.channel.k8s.io, v4.channel.k8s.io"


def detach_keys(text: str) -> bytes:
    """The bytes of `ctrl-p,ctrl-q` or `a,ctrl-@`. Raises CLIError."""
    found = b""
    for key in text.split(",") if text else ():
        name = key.strip()
        last = name[-1:].lower()
        if len(name) == 1:
            found += name.encode()
        elif name.lower() == f"ctrl-{last}" and last and last in "@abcdefghijklmnopqrstuvwxyz[\\]^_":
            found += bytes([ord(last.upper()) - 64])
        else:
            raise CLIError(f"invalid detach keys {text}: unknown key {name}")
    return found


def stream(context: Context, path: str, parameters: dict[str, Any], stdin: bool, tty: bool, keys: bytes = b"") -> int:
    """Runs the session until the container's side ends, or the user types the keys that detach; returns 0 or raises
    Exit with the exit code."""
    socket = websocket.WebSocket(context.client, path, parameters, _PROTOCOLS)
    saved = None
    if tty and sys.stdin.isatty():
        import termios
        import tty as terminal

        saved = termios.tcgetattr(0)
        terminal.setraw(0)
        _send_size(socket)
        signal.signal(signal.SIGWINCH, lambda *_: _send_size(socket))
    try:
        return _copy(socket, stdin, keys)
    finally:
        if saved is not None:
            import termios

            termios.tcsetattr(0, termios.TCSADRAIN, saved)
            signal.signal(signal.SIGWINCH, signal.SIG_DFL)
        socket.close()


def _send_size(socket: websocket.WebSocket) -> None:
    size = os.get_terminal_size(0)
    socket.send(websocket.RESIZE, dumps({"Width": size.columns, "Height": size.lines}).encode())


def _copy(socket: websocket.WebSocket, stdin: bool, keys: bytes = b"") -> int:
    typed = b""
    sys.stdout.flush()
    sys.stderr.flush()
    reading = stdin
    while True:
        if socket.pending():
            ready: list[Any] = [socket]
        else:
            watched: list[Any] = [socket, *([0] if reading else [])]
            ready, _, _ = select.select(watched, [], [])
        if 0 in ready:
            content = os.read(0, 32768)
            if keys:
                typed = (typed + content)[-len(keys) - len(content) :]
                if keys in typed:
                    return 0
            if content:
                socket.send(websocket.STDIN, content)
            else:
                reading = False
                if socket.protocol.startswith("v5"):
                    socket.send(websocket.CLOSE, bytes([websocket.STDIN]))
        if socket in ready:
            message = socket.receive()
            if message is None:
                return 0
            channel, payload = message
            if channel == websocket.STDOUT and payload:
                _write(1, payload)
            elif channel == websocket.STDERR and payload:
                _write(2, payload)
            elif channel == websocket.ERROR:
                websocket.exec_status(payload)
                return 0


def _write(descriptor: int, payload: bytes) -> None:
    view = memoryview(payload)
    while view:
        view = view[os.write(descriptor, view) :]


def container_of(context: Context, pod: dict[str, Any], wanted: str, quiet: bool = False) -> dict[str, Any]:
    """The container that a command is for: named, annotated as default, or the first. Raises CLIError."""
    spec = pod.get("spec") or {}
    every = [
        *(spec.get("initContainers") or ()),
        *(spec.get("containers") or ()),
        *(spec.get("ephemeralContainers") or ()),
    ]
    name = pod["metadata"]["name"]
    if wanted:
        for container in every:
            if container["name"] == wanted:
                found: dict[str, Any] = container
                return found
        known = ", ".join(container["name"] for container in every)
        raise CLIError(f"container {wanted} is not valid for pod {name} out of: {known}")
    default = dig(pod, "metadata", "annotations", "kubectl.kubernetes.io/default-container")
    if default:
        for container in every:
            if container["name"] == default:
                return dict(container)
    containers = spec.get("containers") or [{}]
    first: dict[str, Any] = containers[0]
    if len(containers) > 1 and not quiet:
        names = [each["name"] for each in containers]
        names += [f"{each['name']} (init)" for each in spec.get("initContainers") or ()]
        names += [f"{each['name']} (ephem)" for each in spec.get("ephemeralContainers") or ()]
        context.err(f'Defaulted container "{first["name"]}" out of: {", ".join(names)}\n')
    return first


def running_pod(context: Context, word: str, action: str, filenames: list[str] | None = None) -> dict[str, Any]:
    """The pod that `exec` or `attach` is about; `action` is what cannot be done with one that has ended."""
    from pybernetes.kubectl.pod_lookup import check_timeout, pod_for

    check_timeout(context)
    pod = pod_for(context, word, context.flags["pod-running-timeout"], filenames)
    phase = dig(pod, "status", "phase", default="")
    if phase in ("Succeeded", "Failed"):
        raise CLIError(f"cannot {action} a container in a completed pod; current phase is {phase}")
    return pod


def session(
    context: Context,
    pod: dict[str, Any],
    what: str,
    parameters: dict[str, Any],
    stdin: bool,
    tty: bool,
    keys: bytes = b"",
) -> int:
    """Opens `exec` or `attach` of a pod and copies until the container's side ends."""
    path = f"/api/v1/namespaces/{pod['metadata'].get('namespace', context.namespace())}/pods/{pod['metadata']['name']}"
    streams = {"stdin": stdin, "stdout": True, "stderr": not tty, "tty": tty}
    return stream(context, f"{path}/{what}", {**parameters, **streams}, stdin, tty, keys if tty else b"")


def wait_running(context: Context, namespace: str, name: str, timeout: float) -> dict[str, Any]:
    """Waits until a pod runs or has ended. Raises CLIError."""
    path = f"/api/v1/namespaces/{namespace}/pods"
    deadline = time.monotonic() + timeout
    while True:
        pod: dict[str, Any] = context.client.get(f"{path}/{name}")
        phase = dig(pod, "status", "phase", default="")
        if phase in ("Running", "Succeeded", "Failed"):
            return pod
        left = deadline - time.monotonic()
        if left <= 0:
            raise CLIError("timed out waiting for the condition")
        version = pod["metadata"].get("resourceVersion", "")
        selector = {"fieldSelector": f"metadata.name={name}", "resourceVersion": version}
        try:
            for event in context.client.clone().watch(path, selector, timeout=left):
                if event.get("type") == "DELETED":
                    raise CLIError(f'pods "{name}" not found')
                if dig(event, "object", "status", "phase") in ("Running", "Succeeded", "Failed"):
                    break
        except TimeoutError:
            continue


def attach_to_new(context: Context, pod: dict[str, Any]) -> int:
    """Attaches to a pod that was just created; one that has already ended shows its logs."""
    flags = context.flags
    namespace, name = pod["metadata"]["namespace"], pod["metadata"]["name"]
    pod = wait_running(context, namespace, name, flags["pod-running-timeout"])
    container = container_of(context, pod, "", quiet=True)["name"]
    path = f"/api/v1/namespaces/{namespace}/pods/{name}"
    if dig(pod, "status", "phase") in ("Succeeded", "Failed"):
        _logs(context, path, container)
        return _exit_code(pod)
    stdin, tty = flags.on("stdin"), flags.on("tty")
    if not flags.on("quiet") and stdin and sys.stdin.isatty():
        context.err("If you don't see a command prompt, try pressing enter.\n")
    parameters = {"container": container, "stdin": stdin, "stdout": True, "stderr": not tty, "tty": tty}
    try:
        stream(context, f"{path}/attach", parameters, stdin, tty)
    except StatusError as error:
        context.err(f"warning: couldn't attach to pod/{name}, falling back to streaming logs: {error.message}\n")
        _logs(context, path, container)
    if (pod.get("spec") or {}).get("restartPolicy") == "Always":
        return 0
    for _ in range(100):
        pod = context.client.get(path)
        if dig(pod, "status", "phase") in ("Succeeded", "Failed"):
            return _exit_code(pod)
        time.sleep(0.1)
    return 0


def attach_to_container(context: Context, namespace: str, name: str, container: str) -> None:
    """Waits until a container of a pod runs, then attaches to it; one that has already ended shows its logs."""
    flags = context.flags
    collection = f"/api/v1/namespaces/{namespace}/pods"
    path = f"{collection}/{name}"
    pod: dict[str, Any] = context.client.get(path)
    warned = ""
    while not (state := _state(pod, container)).keys() & {"running", "terminated"}:
        message = (state.get("waiting") or {}).get("message", "")
        if message and message != warned and not flags.on("quiet"):
            context.err(f"Warning: container {container}: {message}\n")
            warned = message
        version = pod["metadata"].get("resourceVersion", "")
        selector = {"fieldSelector": f"metadata.name={name}", "resourceVersion": version}
        for event in context.client.clone().watch(collection, selector):
            if event.get("type") == "DELETED":
                raise CLIError('pods "" not found')
            if event.get("type") in ("ADDED", "MODIFIED"):
                pod = event["object"]
                break
        else:
            pod = context.client.get(path)
    stdin, tty = flags.on("stdin"), flags.on("tty")
    if "terminated" in state:
        _logs(context, path, container)
        return
    if not flags.on("quiet") and stdin:
        context.err(
            "All commands and output from this session will be recorded in container logs, including credentials and"
            " sensitive information passed through the command prompt.\n"
        )
        if sys.stdin.isatty():
            context.err("If you don't see a command prompt, try pressing enter.\n")
    parameters = {"container": container, "stdin": stdin, "stdout": True, "stderr": not tty, "tty": tty}
    try:
        stream(context, f"{path}/attach", parameters, stdin, tty)
    except StatusError as error:
        context.err(f"warning: couldn't attach to pod/{name}, falling back to streaming logs: {error.message}\n")
        _logs(context, path, container)


def _state(pod: dict[str, Any], container: str) -> dict[str, Any]:
    """The state of one container of a pod, of whichever kind."""
    for key in ("containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses"):
        for status in dig(pod, "status", key, default=[]):
            if status.get("name") == container:
                return dict(status.get("state") or {})
    return {}


def _logs(context: Context, path: str, container: str) -> None:
    response = context.client.open("GET", f"{path}/log", {"container": container})
    sys.stdout.flush()
    for piece in response.pieces():
        _write(1, piece)


def _exit_code(pod: dict[str, Any]) -> int:
    from pybernetes.kubectl.errors import Exit

    for status in dig(pod, "status", "containerStatuses", default=[]):
        ended = dig(status, "state", "terminated", default={})
        if ended.get("exitCode"):
            name = f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"
            raise Exit(
                ended["exitCode"], f"pod {name} terminated ({ended.get('reason', '')})\n{ended.get('message', '')}"
            )
    return 0
