"""`kubectl logs -f` of many pods: a thread for each container, and a watch that adds the pods that come later."""

from __future__ import annotations

import os
import threading
import time

from pybernetes.kubectl.errors import CLIError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pybernetes.kubectl.context import Context


def follow(
    context: Context, targets: list[tuple[dict[str, Any], str]], parameters: dict[str, Any], word: str, container: str
) -> int | None:
    """Prints the lines of all targets as they come. With a selector or pattern it goes on for new pods."""
    flags = context.flags
    limit = flags.number("max-log-requests")
    if len(targets) > limit:
        raise CLIError(
            f"you are attempting to follow {len(targets)} log streams, but maximum allowed concurrency is {limit},"
            " use --max-log-requests to increase the limit"
        )
    follower = _Follower(context, parameters, limit)
    for pod, name in targets:
        follower.add(pod, name)
    if flags.text("selector") or flags.text("regex") or word.endswith("~"):
        threading.Thread(target=follower.watch, args=(word, container), daemon=True).start()
        while True:
            time.sleep(3600)
    follower.join()
    return None


class _Follower:
    """The running threads, at most `--max-log-requests` of them. `_seen` holds every container that was started to be
    read, by its ID, so that none is read twice and a restarted one is read again."""

    def __init__(self, context: Context, parameters: dict[str, Any], limit: int) -> None:
        self._context = context
        self._parameters = parameters
        self._limit = limit
        self._seen: set[tuple[str, str, str]] = set()
        self._threads: list[threading.Thread] = []
        self._lock = threading.Lock()

    def add(self, pod: dict[str, Any], container: str, whole: bool = False) -> None:
        """Reads a container's log from now on; `whole`: from its beginning, because it has only just started."""
        key = (pod["metadata"]["uid"], container, _container_id(pod, container))
        with self._lock:
            if key in self._seen:
                return
            self._threads = [thread for thread in self._threads if thread.is_alive()]
            if len(self._threads) >= self._limit:
                name = pod["metadata"]["name"]
                os.write(2, f"warning: {self._limit} logs are followed already, {name} is left out\n".encode())
                return
            self._seen.add(key)
            thread = threading.Thread(target=self._copy, args=(pod, container, whole), daemon=True)
            self._threads.append(thread)
        thread.start()

    def join(self) -> None:
        for thread in self._threads:
            thread.join()

    def _copy(self, pod: dict[str, Any], container: str, whole: bool) -> None:
        from pybernetes.kubectl.commands.logs import label_for

        context = self._context
        metadata = pod["metadata"]
        color = context.terminal()
        head = label_for(pod, container, color) if context.flags.on("prefix") or color else b""
        path = f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}/log"
        parameters = {**self._parameters, "container": container}
        if whole:
            parameters.pop("tailLines", None)
        try:
            client = context.client.clone()
            response = client.open("GET", path, parameters, accept="*/*", timeout=0)
            for line in response.lines():
                os.write(1, head + line + b"\n")
        except CLIError as error:
            os.write(2, f"error: {error.message}\n".encode())
        except (EOFError, ValueError, OSError):
            pass

    def watch(self, word: str, container: str) -> None:
        """Adds the containers of pods that start to run, and those that run again."""
        from pybernetes.kubectl.commands.logs import name_pattern
        from pybernetes.kubectl.data import dig

        context = self._context
        flags = context.flags
        pattern = name_pattern(flags.text("regex"), word)
        path = f"/api/v1/namespaces/{context.namespace()}/pods"
        client = context.client.clone()
        while True:
            try:
                for event in client.watch(path, {"labelSelector": flags.text("selector")}):
                    pod = event.get("object") or {}
                    if event.get("type") in ("DELETED", "ERROR", "BOOKMARK"):
                        continue
                    if dig(pod, "status", "phase") != "Running" or not pattern.search(pod["metadata"]["name"]):
                        continue
                    names = [each["name"] for each in pod["spec"]["containers"]]
                    chosen = names if flags.on("all-containers") else [container if container in names else names[0]]
                    for name in chosen:
                        if _container_id(pod, name):
                            self.add(pod, name, whole=True)
            except CLIError:
                pass
            time.sleep(1)


def _container_id(pod: dict[str, Any], container: str) -> str:
    """The ID of a container that runs; nothing for one that does not."""
    for status in (pod.get("status") or {}).get("containerStatuses") or ():
        if status.get("name") == container and "running" in (status.get("state") or {}):
            return str(status.get("containerID") or "")
    return ""
