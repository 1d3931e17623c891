"""/exec, /attach, /portForward: handed to the runtime's own streaming server. /run: a command without streams.

The runtime is asked for a URL, and the client's connection joined with one to it: whatever the two speak with each
other (SPDY, WebSocket) goes through as it is. What new clients speak and runtimes do not is translated
(`net.streams.remotecommand`, `net.streams.spdy_tunnel`).
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from pybernetes.api.core.v1 import Pod
from pybernetes.api.gocompat.quote import quote
from pybernetes.cri import v1 as cri
from pybernetes.cri.errors import CRIError
from pybernetes.net.http import Response
from pybernetes.net.streams.remotecommand import StreamOptions, translate, wants_translation
from pybernetes.net.streams.spdy_tunnel import pass_tunnel, tunneled
from pybernetes.net.streams.websocket import is_upgrade, is_websocket
from pybernetes.net.upgrade import Target, UpgradeFailed, pass_on

from ..runtime import labels
from ..runtime.types import find_container
from .answers import Refused, json, text

if TYPE_CHECKING:
    from .server import Call

_RETRY = 60  # seconds; upstream's cacheTTL of streaming requests


async def execute(call: Call) -> Response | None:
    """/exec/NAMESPACE/POD[/UID]/CONTAINER?command=..."""
    pod, container = place(call)
    options = stream_options(call)
    id = await running_container(call, pod, container)
    if id is None:
        raise Refused(500, f"container not found ({quote(container)})")
    request = cri.ExecRequest(
        container_id=id,
        cmd=call.query.get("command", []),
        tty=options.tty,
        stdin=options.stdin,
        stdout=options.stdout,
        stderr=options.stderr,
    )
    return await _remote_command(call, await _url(call.runtime.exec(request)), options)


async def attach(call: Call) -> Response | None:
    """/attach/NAMESPACE/POD[/UID]/CONTAINER"""
    pod, container = place(call)
    options = stream_options(call)
    id = await running_container(call, pod, container)
    spec = find_container(pod, container)
    if id is None or spec is None:
        assert pod.metadata is not None
        where = f"{pod.metadata.name}_{pod.metadata.namespace}"
        raise Refused(500, f"container {container} not found in pod {where}")
    tty = bool(spec.tty)  # whether a process runs in a terminal is decided when it starts
    request = cri.AttachRequest(
        container_id=id, tty=tty, stdin=options.stdin, stdout=options.stdout, stderr=options.stderr and not tty
    )
    return await _remote_command(call, await _url(call.runtime.attach(request)), options)


async def port_forward(call: Call) -> Response | None:
    """/portForward/NAMESPACE/POD[/UID]"""
    if len(call.parts) not in (2, 3):
        raise Refused(404, "404: Page Not Found")
    tunnel = bool(tunneled(call.request))
    ports = ports_of(call) if is_websocket(call.request) and not tunnel else []
    pod = call.source.pod(call.parts[0], call.parts[1])
    if pod is None or pod.metadata is None:
        raise Refused(404, "pod does not exist")
    if len(call.parts) == 3 and pod.metadata.uid != call.parts[2]:
        raise Refused(404, "pod not found")
    sandbox = await _sandbox(call, pod)
    if sandbox is None:
        raise Refused(500, f"pod not found ({quote(f'{pod.metadata.name}_{pod.metadata.namespace}')})")
    target = await _url(call.runtime.port_forward(cri.PortForwardRequest(pod_sandbox_id=sandbox, port=ports)))
    upgrade_required(call)
    try:
        if tunnel:
            return await pass_tunnel(call.request, target)
        return await pass_on(call.request, target)
    except UpgradeFailed as error:
        return text(f"{error}\n", 500)


async def run(call: Call) -> Response:
    """/run/NAMESPACE/POD[/UID]/CONTAINER?cmd=...: what the command writes."""
    pod, container = place(call)
    id = await running_container(call, pod, container)
    if id is None:
        raise Refused(500, f"container not found ({quote(container)})")
    try:
        answer = await call.runtime.exec_sync(cri.ExecSyncRequest(container_id=id, cmd=call.first("cmd").split(" ")))
    except CRIError as error:
        raise Refused(500, str(error)) from None
    output = answer.stdout + answer.stderr
    if answer.exit_code:
        shown = output.decode("utf-8", "replace")
        raise Refused(500, f"command '{call.first('cmd')}' exited with {answer.exit_code}: {shown}")
    return json(output)


# -- what is asked for ---------------------------------------------------------------------------------------------


def place(call: Call) -> tuple[Pod, str]:
    """The pod and the name of the container that a path ends in. Raises Refused."""
    if len(call.parts) not in (3, 4):
        raise Refused(404, "404: Page Not Found")
    pod = call.source.pod(call.parts[0], call.parts[1])
    if pod is None or pod.metadata is None:
        raise Refused(404, "pod does not exist")
    if len(call.parts) == 4 and pod.metadata.uid != call.parts[2]:
        raise Refused(500, f"container not found ({quote(call.parts[3])})")
    return pod, call.parts[-1]


def stream_options(call: Call) -> StreamOptions:
    """The streams that a client wants. Raises Refused."""
    wanted = {name: call.first(parameter) == "1" for name, parameter in _PARAMETERS.items()}
    if wanted["tty"]:
        wanted["stderr"] = False  # a terminal has one output
    if not (wanted["stdin"] or wanted["stdout"] or wanted["stderr"]):
        raise Refused(400, "you must specify at least 1 of stdin, stdout, stderr")
    return StreamOptions(**wanted)


_PARAMETERS = {"stdin": "input", "stdout": "output", "stderr": "error", "tty": "tty"}


def ports_of(call: Call) -> list[int]:
    """The ports that a WebSocket client wants. Raises Refused."""
    texts = call.query.get("port")
    if not texts:
        raise Refused(400, 'query parameter "port" is required')
    found = []
    for text_ in texts:
        if not text_:
            raise Refused(400, 'query parameter "port" cannot be empty')
        for each in text_.split(","):
            if not (each.isascii() and each.isdecimal()):
                why = f"strconv.ParseUint: parsing {quote(each)}: invalid syntax"
                raise Refused(400, f"unable to parse {quote(text_)} as a port: {why}")
            if int(each) > 65535:
                why = f"strconv.ParseUint: parsing {quote(each)}: value out of range"
                raise Refused(400, f"unable to parse {quote(text_)} as a port: {why}")
            if int(each) < 1:
                raise Refused(400, f"port {quote(text_)} must be > 0")
            found.append(int(each))
    return found


def upgrade_required(call: Call) -> None:
    """Raises Refused unless the client wants to leave HTTP."""
    if not is_upgrade(call.request):
        raise Refused(500, "Upgrade request required\n")


# -- the runtime ---------------------------------------------------------------------------------------------------


async def running_container(call: Call, pod: Pod, container: str) -> str | None:
    """The id of the pod's running container of that name."""
    assert pod.metadata is not None
    selector = {labels.POD_UID: pod.metadata.uid or "", labels.CONTAINER_NAME: container}
    state = cri.ContainerStateValue(state=cri.CONTAINER_RUNNING)
    try:
        answer = await call.runtime.list_containers(
            cri.ListContainersRequest(filter=cri.ContainerFilter(label_selector=selector, state=state))
        )
    except CRIError as error:
        raise _refusal(error) from None
    newest = max(answer.containers, key=lambda each: each.created_at, default=None)
    return newest.id if newest is not None else None


async def _sandbox(call: Call, pod: Pod) -> str | None:
    """The id of the pod's newest sandbox."""
    assert pod.metadata is not None
    selector = {labels.POD_UID: pod.metadata.uid or ""}
    state = cri.PodSandboxStateValue(state=cri.SANDBOX_READY)
    try:
        answer = await call.runtime.list_pod_sandbox(
            cri.ListPodSandboxRequest(filter=cri.PodSandboxFilter(label_selector=selector, state=state))
        )
    except CRIError as error:
        raise _refusal(error) from None
    newest = max(answer.items, key=lambda each: each.created_at, default=None)
    return newest.id if newest is not None else None


async def _url(asked: Awaitable[Any]) -> Target:
    """Where the runtime serves what it was asked for. Raises Refused."""
    try:
        answer = await asked
    except CRIError as error:
        raise _refusal(error) from None
    parts = urlsplit(answer.url)
    path = f"{parts.path}?{parts.query}" if parts.query else parts.path
    return Target(parts.hostname or "127.0.0.1", parts.port or 80, path)


def _refusal(error: CRIError) -> Refused:
    if error.code == "NotFound":
        return Refused(404, str(error))
    if error.code == "ResourceExhausted":
        return Refused(429, str(error), [("Retry-After", str(_RETRY))])
    return Refused(500, str(error))


async def _remote_command(call: Call, target: Target, options: StreamOptions) -> Response | None:
    upgrade_required(call)
    try:
        if wants_translation(call.request):
            return await translate(call.request, target, options)
        return await pass_on(call.request, target)
    except UpgradeFailed as error:
        return text(f"{error}\n", 500)
