"""Reads spans from a cluster's API server, and waits until the consequences of a command have ended.

They have ended when nothing of them has come for QUIET seconds, nothing of them goes on, and every pod that was made
runs and is ready, has ended, is gone, or cannot be placed.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from typing import Any
from urllib.parse import quote

import msgspec

from pybernetes.api import errors
from pybernetes.client.transport import Transport
from pybernetes.cluster.errors import ClusterError
from pybernetes.trace.span import Span, decoder
from pybernetes.trace.store import SPANS
from pybernetes.trace.tree import Node, Spans

QUIET = 1.5  # seconds; components send half a second after something happened
LOOK = 0.25  # seconds between looks
OURS = " pybernetes"  # in the user agent of our components and clients

Belongs = Callable[[Span], bool]


class Reader:
    """The spans that were read so far."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._after = 0
        self.spans: list[Span] = []
        """Finished ones, as they came."""
        self.going_on: list[Span] = []
        """Of the API server, at the last look."""

    async def read(self, since: float = 0.0) -> int:
        """Read what came since the last time (or a time, in seconds since 1970); how many spans."""
        target = f"{SPANS}?after={self._after}&since={since:.3f}"
        try:
            body = (await self._transport.request("GET", target)).body
        except (errors.NotFound, errors.PathNotFound):
            raise ClusterError("the API server keeps no spans: it runs without --trace-dir") from None
        except errors.APIError as error:
            raise ClusterError(f"spans cannot be read: {error}") from error
        except (OSError, TimeoutError) as error:
            raise ClusterError(f"the API server does not answer: {error}") from error
        head, *lines = body.splitlines()
        try:
            self._after = int(msgspec.json.decode(head)["next"])
            *batches, going_on = [decoder.decode(line).spans for line in lines]
        except (msgspec.DecodeError, KeyError, TypeError, ValueError) as error:
            raise ClusterError(f"the API server answers with something else than spans: {error}") from error
        self.going_on = going_on
        new = [span for batch in batches for span in batch]
        self.spans += new
        return len(new)

    def forget(self) -> None:
        """Go on with what comes from now on."""
        self.spans.clear()

    def add(self, span: Span) -> None:
        """A span that the server does not know: of the command that was run."""
        self.spans.append(span)

    def adopt(self, root: Span) -> None:
        """Requests of clients that name no trace, made while a command ran, are its requests."""
        for span in self.spans:
            if _is_foreign(span, root):
                span.links = [(root.trace, root.id)]

    def trees(self, belongs: Belongs | None = None) -> list[Node]:
        """The trees of causes among all spans, or among some."""
        return Spans([*self.going_on, *self.spans]).trees(belongs)

    async def wait_until_quiet(self, root: Span, within: float) -> str:
        """Read until the consequences of a span have ended; what is still going on after so many seconds."""
        deadline = time.monotonic() + within
        count, since, left = -1, time.monotonic(), ""
        while time.monotonic() < deadline:
            await self.read()
            self.adopt(root)
            (tree,) = self.trees(lambda span: span is root)
            nodes = list(tree.walk())
            left = "new spans are still coming"
            if len(nodes) == count and not any(node.span.end == 0 for node in nodes):
                left = await self._unsettled(nodes)
                if not left and time.monotonic() - since >= QUIET:
                    return ""
            if left:
                count, since = len(nodes), time.monotonic()
            await asyncio.sleep(LOOK)
        return left

    async def _unsettled(self, nodes: list[Node]) -> str:
        """The first pod of those that were made which is on its way."""
        for node in nodes:
            key = str(node.span.attributes.get("object", ""))
            if node.span.name == "create pods" and key.count("/") == 4:
                _, _, _, namespace, name = key.split("/")
                path = f"/api/v1/namespaces/{quote(namespace)}/pods/{quote(name)}"
                try:
                    pod = json.loads((await self._transport.request("GET", path)).body)
                except errors.NotFound:
                    continue
                except (errors.APIError, OSError, TimeoutError) as error:
                    return str(error)
                if not settled(pod):
                    return f"pod {namespace}/{name} is on its way"
        return ""


def prefixes_of(kind: str, namespace: str) -> tuple[str, ...]:
    """The key prefixes of objects of a kind, by any of its names; a custom kind is meant by its plural."""
    from pybernetes.api.resources import RESOURCES

    word, _, group = kind.lower().partition(".")
    found = {
        each.storage_prefix
        for each in RESOURCES
        if each.stored
        and word in (each.plural, each.singular, each.kind.lower(), *each.short_names)
        and group in ("", each.group)
    }
    bases = found or {f"/registry/{group}/{word}/"}
    return tuple(f"{base}{place}" for base in bases for place in ("", f"{namespace}/"))


def of_object(spans: list[Span], prefixes: tuple[str, ...], name: str) -> list[Node]:
    """The trees in which an object was made, else all in which it was written."""
    known = Spans(spans)
    keys = {f"{prefix}{name}" for prefix in prefixes}
    found = [span for span in spans if span.attributes.get("object") in keys and span.revisions]
    made = [span for span in found if span.name.startswith("create ")]
    roots = {id(root): root for root in map(known.root_of, made[-1:] or found)}
    wanted = {(root.trace, root.id) for root in roots.values()}
    return known.trees(lambda span: (span.trace, span.id) in wanted) if wanted else []


_CREATING = ("ContainerCreating", "PodInitializing")


def settled(pod: dict[str, Any]) -> bool:
    """Whether a pod is ready, has ended, or cannot go on: no node fits, or a container cannot be started."""
    status = pod.get("status") or {}
    if status.get("phase") in ("Succeeded", "Failed"):
        return True
    conditions = {each["type"]: each["status"] for each in status.get("conditions") or ()}
    waiting = [(each.get("state") or {}).get("waiting") or {} for each in status.get("containerStatuses") or ()]
    stuck = not {each.get("reason", _CREATING[0]) for each in waiting}.issubset(_CREATING)
    return conditions.get("Ready") == "True" or conditions.get("PodScheduled") == "False" or stuck


def _is_foreign(span: Span, root: Span) -> bool:
    """Whether a request came while a command ran from a client that names no trace, and is not one of ours."""
    if span.parent or span.causes or span.links or "code" not in span.attributes:
        return False
    return root.start <= span.start <= root.end and OURS not in str(span.attributes.get("agent"))
