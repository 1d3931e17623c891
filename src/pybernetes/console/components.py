"""The console's requests to components beside the API server: the scheduler about a pod, all for their metrics.

They listen on this machine, so only the clusters of `pyb up` here have an answer. The user's credentials go along, and
the component decides.
"""

from __future__ import annotations

import copy
import json

from pybernetes.kubectl.errors import CLIError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pybernetes.kubectl.context import Context

NAMES = ("scheduler", "controller-manager")


def scheduling(context: Context, query: dict[str, str]) -> dict[str, Any]:
    """The scheduler's report about a pod: its attempts, and what its plugins say now of each node."""
    wanted = {"namespace": query.get("namespace", ""), "name": query.get("name", "")}
    if not all(wanted.values()):
        raise CLIError("the question takes namespace= and name=")
    found: dict[str, Any] = json.loads(_ask(context, "scheduler", "/debug/why", wanted))
    return found


def metrics(context: Context, query: dict[str, str]) -> dict[str, Any]:
    """The metrics of a component, in Prometheus' text format; no text and the reason where it cannot be asked."""
    name = query.get("name", "")
    if name not in NAMES:
        raise CLIError(f"the question takes name=, one of {', '.join(NAMES)}")
    try:
        return {"text": _ask(context, name, "/metrics", {}).decode()}
    except CLIError as error:
        return {"text": "", "message": error.text()}


def _ask(context: Context, component: str, path: str, query: dict[str, str]) -> bytes:
    from pybernetes.cluster.component_addresses import address_of, layout_of
    from pybernetes.cluster.errors import ClusterError

    config = context.client.config
    layout = layout_of(config.server)
    if layout is None:
        raise CLIError(f"the {component} can be asked only for clusters of this machine")
    try:
        url = address_of(layout, component)
    except ClusterError as error:
        raise CLIError(str(error)) from None
    there = copy.copy(config)
    there.server, there.tls_server_name = url, ""
    client = type(context.client)(there, context.client.log, context.client.user_agent)
    return client.open("GET", path, dict(query), accept="*/*").read()
