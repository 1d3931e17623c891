"""Deletion with its options, and waiting until an object is gone."""

from __future__ import annotations

import time

from pybernetes.kubectl.errors import CLIError, StatusError, not_found

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pybernetes.kubectl.builder import Info
    from pybernetes.kubectl.context import Context

_POLICIES = {"background": "Background", "foreground": "Foreground", "orphan": "Orphan"}


def cascade(context: Context) -> str:
    """The propagation policy of `--cascade`. Raises CLIError."""
    value = context.flags.text("cascade")
    if value in _POLICIES:
        return _POLICIES[value]
    for words, policy in ((("true", "1", "t", "True", "TRUE"), "background"), (("false", "0", "f", "False"), "orphan")):
        if value in words:
            context.err(
                f"warning: --cascade={value} is deprecated (boolean value) and can be replaced with"
                f" --cascade={policy}.\n"
            )
            return _POLICIES[policy]
    raise CLIError(f'invalid cascade value ({value}). Must be "background", "foreground", or "orphan"')


def options(grace: int = -1, policy: str = "", dry: str = "none") -> dict[str, Any]:
    """DeleteOptions."""
    found: dict[str, Any] = {}
    if grace >= 0:
        found["gracePeriodSeconds"] = grace
    if policy:
        found["propagationPolicy"] = policy
    if dry == "server":
        found["dryRun"] = ["All"]
    return found


def wait_gone(context: Context, info: Info, timeout: float, uid: str = "") -> bool:
    """Waits until the object is gone or replaced by another; False when the time is up."""
    from pybernetes.kubectl.builder import Query

    deadline = time.monotonic() + timeout if timeout > 0 else None
    path = Query(info.mapping, info.namespace).path()
    selector = {"fieldSelector": f"metadata.name={info.name}"}
    while True:
        try:
            listed = context.client.get(path, selector)
        except StatusError as error:
            if not_found(error):  # the kind itself is gone: its CustomResourceDefinition was deleted
                return True
            raise
        items = [item for item in listed.get("items") or () if item["metadata"]["name"] == info.name]
        if not items or (uid and items[0]["metadata"].get("uid") != uid):
            return True
        left = None if deadline is None else deadline - time.monotonic()
        if left is not None and left <= 0:
            return False
        version = (listed.get("metadata") or {}).get("resourceVersion", "")
        try:
            for event in context.client.watch(path, {**selector, "resourceVersion": version}, timeout=left):
                if event.get("type") == "DELETED":
                    return True
                if event.get("type") == "ERROR":
                    break
        except TimeoutError:
            return False
        except StatusError:
            pass
        time.sleep(0.1)  # a server that refuses or ends watches is asked again, but not in a busy loop


def delete_and_wait(context: Context, info: Info, grace: int, timeout: float = 0) -> None:
    """Deletes an object that may not exist and waits until it is gone."""
    try:
        context.client.delete(info.path(), options(0 if grace < 0 else grace, "Background"))
    except StatusError as error:
        if not not_found(error):
            raise
        return
    wait_gone(context, info, timeout)
