"""/containerLogs/NAMESPACE/POD/CONTAINER: which container's log is meant, and the log itself."""

from __future__ import annotations

import contextlib
import time
from typing import TYPE_CHECKING, Any

from pybernetes.api.core.connect import PodLogOptions, decode, validate_log_options
from pybernetes.api.core.v1 import Pod
from pybernetes.api.gocompat.quote import quote
from pybernetes.api.times import parse_time
from pybernetes.component import offload
from pybernetes.cri import v1 as cri
from pybernetes.cri.errors import CRIError
from pybernetes.net.http import Response

from ..runtime.types import find_container
from .answers import Refused
from .log_lines import Selection, moment
from .log_reader import OPEN_WITHIN, LogError, open_log, read_log

if TYPE_CHECKING:
    from .server import Call

_PULLING = {
    "ErrImagePull": "image can't be pulled",
    "ImagePullBackOff": "trying and failing to pull image",
}


async def container_logs(call: Call) -> Response | None:
    """A container's log, in plain text, in pieces."""
    _, id, options = wanted_log(call)
    path = await _log_path(call, id)
    selection = selected(options, time.time())
    plain = id.rpartition("://")[2]

    async def running() -> bool:
        try:
            answer = await call.runtime.container_status(cri.ContainerStatusRequest(container_id=plain))
        except CRIError as error:
            return error.code == "Unavailable"
        return bool(answer.status.state == cri.CONTAINER_RUNNING)

    stream = None
    try:
        try:
            file = await offload.run(f"log {path}", OPEN_WITHIN, open_log, path)
        except offload.Overdue as error:
            raise LogError(f"failed to open log file {quote(path)}: {error}") from None
        call.request.connection.lasting = True
        if options.follow:  # who waits for a container that says nothing is to know that it waits
            stream = call.request.connection.stream(call.request, 200, "text/plain")
        reading = read_log(file, selection, tail=options.tail_lines, follow=bool(options.follow), running=running)
        async with contextlib.aclosing(reading) as pieces:
            async for piece in pieces:
                stream = stream or call.request.connection.stream(call.request, 200, "text/plain")
                stream.write(piece)
                await stream.drain()
    except LogError as error:
        if stream is not None:
            raise ConnectionResetError(str(error)) from None  # the answer must not look complete
        raise Refused(400, str(error)) from None
    stream = stream or call.request.connection.stream(call.request, 200, "text/plain")
    stream.end()
    return None


def wanted_log(call: Call) -> tuple[Pod, str, PodLogOptions]:
    """The pod, the id of the container (with the runtime's name) and the form of the log. Raises Refused."""
    if len(call.parts) != 3:
        raise Refused(404, "404: Page Not Found")
    namespace, name, container = call.parts
    options = _options(call)
    pod = call.source.pod(namespace, name)
    if pod is None:
        raise Refused(404, f"pod {quote(name)} does not exist")
    if find_container(pod, container) is None:
        raise Refused(404, f"container {quote(container)} not found in pod {quote(name)}")
    status = call.source.status(pod)
    return pod, container_id(name, status, container, previous=bool(options.previous)), options


def selected(options: PodLogOptions, now: float) -> Selection:
    """Which lines are wanted, and how."""
    return Selection(_since(options, now), bool(options.timestamps), options.limit_bytes)


def _options(call: Call) -> PodLogOptions:
    query = dict(call.query)
    tail = call.first("tail")
    if tail:  # the name of old clients; `all` is the same as nothing
        query["tailLines"] = [tail]
        if tail == "all":
            del query["tailLines"]
    try:
        options = decode(PodLogOptions, query)
    except ValueError:
        raise Refused(400, '{"message": "Unable to decode query."}') from None
    stream, options.stream = options.stream, None
    if validate_log_options(options):
        raise Refused(422, '{"message": "Invalid request."}')
    if stream not in (None, "All"):
        why = "Please enable PodLogsQuerySplitStreams feature gate in kubelet"
        raise Refused(400, f"unable to return the given log stream: {quote(stream)}. {why}")
    return options


def _since(options: PodLogOptions, now: float) -> Any:
    if options.since_seconds is not None:
        return moment(now - options.since_seconds)
    return moment(parse_time(options.since_time)) if options.since_time else None


async def _log_path(call: Call, id: str) -> str:
    try:
        answer = await call.runtime.container_status(cri.ContainerStatusRequest(container_id=id.rpartition("://")[2]))
    except CRIError:
        raise Refused(400, f"unable to retrieve container logs for {id}") from None
    return str(answer.status.log_path)


def container_id(pod: str, status: Any, container: str, *, previous: bool) -> str:
    """The id (with the runtime's name) of the container whose log is meant. Raises Refused in upstream's words."""
    found = None
    for statuses in ("container_statuses", "init_container_statuses", "ephemeral_container_statuses"):
        listed = getattr(status, statuses, None) or ()
        found = found or next((each for each in listed if each.name == container), None)
    where = f"container {quote(container)} in pod {quote(pod)}"
    if found is None:
        raise Refused(400, f"{where} is not available")
    state, last = found.state, found.last_state
    ended = last.terminated.container_id if last is not None and last.terminated is not None else None
    if previous:
        if not ended:
            raise Refused(400, f"previous terminated {where} not found")
        return str(ended)
    if state is not None and state.running is not None:
        return str(found.container_id or "")
    if state is not None and state.terminated is not None:
        id = state.terminated.container_id or ended
        if not id:
            raise Refused(400, f"{where} is terminated")
        return str(id)
    if last is not None and last.terminated is not None:
        if not ended:
            raise Refused(400, f"{where} is terminated")
        return str(ended)
    if state is not None and state.waiting is not None:
        reason = state.waiting.reason or ""
        raise Refused(400, f"{where} is waiting to start: {_PULLING.get(reason, reason)}")
    raise Refused(400, f"{where} is waiting to start - no logs yet")
