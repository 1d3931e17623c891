"""/checkpoint/NAMESPACE/POD/CONTAINER: lets the runtime write a running container's state to a file of the node."""

from __future__ import annotations

import os
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from pybernetes.cri import v1 as cri
from pybernetes.cri.errors import CRIError
from pybernetes.cri.remote import REQUEST_TIMEOUT
from pybernetes.net.http import Response

from ..runtime.types import find_container
from .answers import Refused, json
from .streaming import running_container

if TYPE_CHECKING:
    from .server import Call

LONGEST: Final = 3600


class Checkpoints:
    """Serves the path; the files are put into a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    async def __call__(self, call: Call) -> Response:
        """The file's name."""
        if len(call.parts) != 3:
            raise Refused(404, "404 page not found\n")
        namespace, name, container = call.parts
        pod = call.source.pod(namespace, name)
        if pod is None:
            raise Refused(404, "pod does not exist")
        if find_container(pod, container) is None:
            raise Refused(404, f"container {container} does not exist")
        timeout = (call.query.get("timeout") or ["0"])[-1]
        if not re.fullmatch(r"[+-]?\d{1,18}", timeout):
            raise Refused(404, "cannot parse value of timeout parameter")
        try:
            if int(timeout) < 0:
                raise LookupError("CheckpointContainer requires the timeout value to be > 0")
            id = await running_container(call, pod, container)
            if id is None:
                raise LookupError(f"container {container} not found")
            os.makedirs(self._folder, 0o700, exist_ok=True)
            now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
            location = str(self._folder / f"checkpoint-{name}_{namespace}-{container}-{now}.tar")
            seconds = min(max(int(timeout), int(REQUEST_TIMEOUT)), LONGEST)
            request = cri.CheckpointContainerRequest(container_id=id, location=location, timeout=seconds)
            await call.runtime.checkpoint_container(request)
        except (CRIError, LookupError, OSError) as error:
            raise Refused(500, f"checkpointing of {namespace}/{name}/{container} failed ({error})") from None
        return json(msgspec.json.encode({"items": [location]}))
