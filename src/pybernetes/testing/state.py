"""The state of a cluster as text: for the report of a failed test, and for comparing two moments."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from pybernetes.api import errors
from pybernetes.testing.client import Client, Object
from pybernetes.trace.store import SPANS

if TYPE_CHECKING:
    from pybernetes.trace.span import Span

SHOWN = ("nodes", "namespaces", "deployments", "statefulsets", "daemonsets", "jobs", "cronjobs", "pods", "services")
"""Kinds that the report of a failed test lists."""
SYSTEM = ("kube-system", "kube-public", "kube-node-lease")
UNSTEADY = ("resourceVersion", "uid", "creationTimestamp", "managedFields", "generation")
"""Metadata that differ from run to run."""
MOST_EVENTS = 40
MOST_LINES = 150
"""Of the trace."""


def summary(client: Client) -> str:
    """One line an object, as `kubectl get` shows it."""
    lines = []
    for resource in SHOWN:
        path = client.resource(resource).path(None)
        table = client.request("GET", path, accept="application/json;as=Table;v=v1;g=meta.k8s.io")
        shown = [number for number, column in enumerate(table["columnDefinitions"]) if column.get("priority", 0) == 0]
        for row in table.get("rows") or ():
            namespace = row["object"]["metadata"].get("namespace", "")
            if namespace not in SYSTEM:
                cells = "  ".join(str(row["cells"][number]) for number in shown[1:])
                lines.append(f"{resource} {namespace + '/' if namespace else ''}{row['cells'][0]}  {cells}")
    return "\n".join(lines)


def events(client: Client) -> str:
    """The last events, oldest first."""
    found = client.list("events", all_namespaces=True)
    found.sort(key=lambda event: (event["metadata"]["creationTimestamp"], event["metadata"]["resourceVersion"]))
    lines = []
    for event in found[-MOST_EVENTS:]:
        about = event.get("involvedObject") or {}
        where = f"{about.get('kind')}/{about.get('name')}"
        lines.append(f"{event.get('type')} {event.get('reason')} {where}: {event.get('message')}")
    return "\n".join(lines)


def spans(client: Client) -> list[Span]:
    """The recent spans of all components (docs/trace.md); none if the cluster does not record them."""
    from pybernetes.trace.span import decoder

    try:
        _, *batches = client.fetch("GET", SPANS).splitlines()
    except errors.NotFound:
        return []
    return [span for each in batches for span in decoder.decode(each).spans]


def trace(client: Client) -> str:
    """The trees of spans that the test's requests have caused, the newest last."""
    from pybernetes.trace.text import excerpt
    from pybernetes.trace.tree import Spans, begun_by_users

    return "\n".join(excerpt(begun_by_users(Spans(spans(client)).trees()), MOST_LINES))


def state(client: Client, resources: Iterable[str]) -> dict[str, Object]:
    """All objects of some kinds by `kind/namespace/name`, without what differs from run to run."""
    result = {}
    for resource in resources:
        for each in client.list(resource, all_namespaces=True):
            metadata = {key: value for key, value in each["metadata"].items() if key not in UNSTEADY}
            name = "/".join(part for part in (resource, metadata.get("namespace"), metadata["name"]) if part)
            result[name] = {**each, "metadata": metadata}
    return result


def differences(before: dict[str, Object], after: dict[str, Object]) -> str:
    """The differences between two states, as a diff of each object; empty if there are none."""
    parts: list[str] = []
    for name in sorted({*before, *after}):
        old, new = _lines(before.get(name)), _lines(after.get(name))
        parts += difflib.unified_diff(old, new, f"before/{name}", f"after/{name}", lineterm="", n=2)
    return "\n".join(parts)


def _lines(content: Any) -> list[str]:
    return [] if content is None else json.dumps(content, indent=2, sort_keys=True).splitlines()
