"""The console's endpoints beside the API: user and cluster, `why` and the trace of an object, other components.

`/-/info`  context, user, namespace, server; `/-/why` and `/-/trace` with `?resource=pods&namespace=NS&name=NAME`
(`resource` with its group: `deployments.apps`). `/-/trace?since=SECONDS` is what happened lately, `?first=SECONDS` how
the cluster started. `/-/scheduling` is what the scheduler knows of a pod, `/-/components?name=NAME` the metrics of a
component, for clusters of this machine. All of it is asked for with the user's rights.
"""

from __future__ import annotations

import time
from http import HTTPStatus
from urllib.parse import parse_qs

from pybernetes.console import components
from pybernetes.kubectl.errors import CLIError, StatusError

MOST_SPANS = 3000
"""Of an answer; trees beyond are counted."""
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pybernetes.kubectl.context import Context
    from pybernetes.trace.tree import Node


def answer(context: Context, method: str, path: str, query: str) -> tuple[int, dict[str, Any]]:
    """The code and the JSON for one request."""
    found = {
        "/-/info": _info,
        "/-/why": _why,
        "/-/trace": _trace,
        "/-/scheduling": components.scheduling,
        "/-/components": components.metrics,
    }.get(path)
    if found is None:
        return HTTPStatus.NOT_FOUND, {"message": f"no such question: {path}"}
    if method != "GET":
        return HTTPStatus.METHOD_NOT_ALLOWED, {"message": f"{path} is read with GET"}
    # A context of the request's own: its connection is not shared with other requests.
    own = type(context)(context.flags, context.path, context.argv)
    try:
        return HTTPStatus.OK, found(own, {name: values[-1] for name, values in parse_qs(query).items()})
    except CLIError as error:
        return HTTPStatus.UNPROCESSABLE_ENTITY, {"message": error.text()}
    except Exception as error:  # one object that cannot be explained ends one answer
        return HTTPStatus.INTERNAL_SERVER_ERROR, {"message": f"{path} failed: {type(error).__name__}: {error}"}


def _info(context: Context, query: dict[str, str]) -> dict[str, Any]:
    name, fields = context.loader.context()
    return {
        "context": name,
        "user": fields.get("user", ""),
        "namespace": context.namespace(),
        "server": context.client.config.server,
    }


def _why(context: Context, query: dict[str, str]) -> dict[str, Any]:
    from pybernetes.kubectl.builder import Builder
    from pybernetes.kubectl.commands import why

    resource, name = _object(query)
    builder = Builder(context)
    builder.namespace = query.get("namespace") or builder.namespace
    (info,) = builder.arguments([resource, name], allow_empty=False).checked()
    found = why.answer(context, info)
    return {"sentence": found.sentence, "details": list(found.details), "help": found.fix}


def _object(query: dict[str, str]) -> tuple[str, str]:
    resource, name = query.get("resource", ""), query.get("name", "")
    if not resource or not name:
        raise CLIError("the question takes resource= and name=")
    return resource, name


def _trace(context: Context, query: dict[str, str]) -> dict[str, Any]:
    from pybernetes.cluster.tracing import of_object, prefixes_of
    from pybernetes.trace.span import decoder
    from pybernetes.trace.store import SPANS
    from pybernetes.trace.tree import Spans, mark_critical

    since, first = _seconds(query, "since"), _seconds(query, "first")
    resource, name = _object(query) if since is None and first is None else ("", "")
    after = time.time() - since if since is not None else 0.0
    try:
        raw = context.client.open("GET", SPANS, {"after": 0, "since": after}).read()
    except StatusError as error:
        if error.http_code == HTTPStatus.NOT_FOUND:
            raise CLIError("the API server keeps no spans: it runs without --trace-dir") from None
        raise
    spans = [span for line in raw.splitlines()[1:] for span in decoder.decode(line).spans]
    if name:
        trees = of_object(spans, prefixes_of(resource, query.get("namespace", "")), name)
    else:
        began = min((span.start for span in spans), default=0)
        trees = Spans(each for each in spans if first is None or each.start - began < first * 1e9).trees()
    for tree in trees:
        mark_critical(tree)
    shown: list[dict[str, Any]] = []
    left_out = 0
    for tree in trees if first is not None else reversed(trees):
        nodes = [_span(node) for node in tree.walk()]
        if shown and len(shown) + len(nodes) > MOST_SPANS:
            left_out += 1
        else:
            shown += nodes
    return {"spans": shown, "leftOut": left_out}


def _seconds(query: dict[str, str], name: str) -> float | None:
    text = query.get(name)
    if text is None:
        return None
    if not (text.isascii() and text.isdecimal() and len(text) < 9):
        raise CLIError(f"{name}= takes seconds, not {text!r}")
    return float(text)


def _span(node: Node) -> dict[str, Any]:
    """A span for the waterfall; times in milliseconds."""
    span = node.span
    return {
        "id": span.id,
        "parent": node.parent.span.id if node.parent else "",
        "name": span.name,
        "component": span.service,
        "start": span.start / 1e6,
        "end": node.end / 1e6,
        "critical": node.critical,
        "error": span.error,
        "marks": [{"at": at / 1e6, "name": name, "text": text} for at, name, text in span.marks],
    }
