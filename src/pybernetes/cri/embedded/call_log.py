"""Calls of CRI that change something, and calls that fail, as lines of the runtime's log.

An operator finds there what a kubelet asked for, how long it took and what went wrong: containerd logs the same calls.
What only reads is logged with -v=4, since a kubelet asks all the time.
"""

from __future__ import annotations

import inspect
import logging
import time
from collections.abc import Callable
from typing import Any, Final

from pybernetes.component import klog
from pybernetes.cri.errors import CRIError

CHANGING: Final = (
    *("run_pod_sandbox", "stop_pod_sandbox", "remove_pod_sandbox"),
    *("create_container", "start_container", "stop_container", "remove_container"),
    *("update_container_resources", "reopen_container_log", "pull_image", "remove_image"),
)
_USUAL: Final = ("NotFound",)
"""Codes of errors that a kubelet expects when something is gone; of an image that is pulled it is news."""
log = logging.getLogger(__name__)


class LoggedCalls:
    """A servicer whose calls are logged."""

    def __init__(self, servicer: Any) -> None:
        self._servicer = servicer

    def __getattr__(self, name: str) -> Any:
        function = getattr(self._servicer, name)
        return _logged(name, function) if inspect.iscoroutinefunction(function) else function


def _logged(name: str, function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    verb = "".join(part.capitalize() for part in name.split("_"))
    verbosity = 2 if name in CHANGING else 4

    async def call(request: Any) -> Any:
        begin = time.monotonic()
        try:
            response = await function(request)
        except CRIError as error:
            if error.code not in _USUAL or name == "pull_image":
                klog.error(log, error.message, f"{verb} failed", **facts(request), took=_since(begin))
            raise
        klog.info(log, verbosity, verb, **facts(request), **made(response), took=_since(begin))
        return response

    return call


def facts(request: Any) -> dict[str, str]:
    """The pod, the container and the image that a request names, for its log line."""
    found: dict[str, str] = {}
    metadata: Any = getattr(getattr(request, "config", None), "metadata", None)
    if hasattr(metadata, "namespace"):
        found["pod"] = f"{metadata.namespace}/{metadata.name}"
    elif metadata is not None:
        of_pod = request.sandbox_config.metadata
        found |= {"pod": f"{of_pod.namespace}/{of_pod.name}", "container": metadata.name}
    for field, name in (("pod_sandbox_id", "sandboxID"), ("container_id", "containerID")):
        if value := getattr(request, field, ""):
            found[name] = value
    if image := getattr(getattr(request, "image", None), "image", ""):
        found["image"] = image
    if timeout := getattr(request, "timeout", 0):
        found["timeout"] = f"{timeout}s"
    return found


def made(response: Any) -> dict[str, str]:
    """The ids that a response has."""
    names = (("pod_sandbox_id", "sandboxID"), ("container_id", "containerID"), ("image_ref", "imageRef"))
    return {name: value for field, name in names if (value := getattr(response, field, ""))}


def _since(begin: float) -> str:
    return f"{time.monotonic() - begin:.3f}s"
