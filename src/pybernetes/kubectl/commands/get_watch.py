"""`kubectl get --watch`: the rows of objects as they change, until the user or the server ends it."""

from __future__ import annotations

import sys

from pybernetes.kubectl.errors import CLIError, StatusError
from pybernetes.kubectl.printers.table import Columns, TablePrinter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pybernetes.kubectl.builder import Builder
    from pybernetes.kubectl.context import Context


def run(context: Context, builder: Builder, human: bool) -> int | None:
    """Prints what is there (unless --watch-only) and then every change."""
    from pybernetes.kubectl.commands.get import TABLE, _queries, as_table, table_options
    from pybernetes.kubectl.commands.get import printer as other_printer

    flags = context.flags
    client = context.client
    queries = list(_queries(builder))
    if not queries:
        raise CLIError("You must provide one or more resources by argument or filename.")
    if len(queries) > 1 and builder.filenames:
        raise CLIError(
            "watch is only supported on individual resources and resource collections - more than 1 resource was found"
        )
    if len(queries) > 1:
        raise CLIError("you may only specify a single resource type")
    query = queries[0]
    accept = TABLE if human else "application/json"
    parameters = {"labelSelector": builder.label_selector, "fieldSelector": builder.field_selector}
    events = flags.on("output-watch-events")
    columns = Columns()
    options = table_options(context)
    options.with_namespace = builder.all_namespaces and query.mapping.namespaced
    options.kind_prefix = query.mapping.group_resource
    table = TablePrinter(options, columns)
    render = None if human else other_printer(context, flags.text("output"))

    def show(obj: dict[str, Any], kind: str) -> None:
        if human:
            rows = obj if obj.get("kind") == "Table" else as_table(obj)
            table.print(rows, kind if events else "")
            context.out(columns.flush())
        else:
            assert render is not None
            context.out(render({"type": kind, "object": obj} if events else obj))

    try:
        if query.name:
            found = client.get(query.path(), accept=accept)
            metadata = found.get("metadata") or {}
            version = metadata.get("resourceVersion", "")
            first = [found]
            parameters = {"fieldSelector": f"metadata.name={query.name}"}
        else:
            found = client.list(query.path(), parameters, builder.chunk, accept=accept)
            version = (found.get("metadata") or {}).get("resourceVersion", "")
            first = [found] if human else list(found.get("items") or ())
            for item in first if not human else ():
                item.setdefault("apiVersion", query.mapping.api_version)
                item.setdefault("kind", query.mapping.kind)
    except StatusError as error:
        if error.reason == "NotFound" and builder.ignore_not_found:
            return None
        raise
    if not flags.on("watch-only"):
        for obj in first:
            show(obj, "ADDED")
    sys.stdout.flush()
    from pybernetes.kubectl.builder import Query

    path = Query(query.mapping, query.namespace).path()
    while True:
        ended = _follow(client, path, {**parameters, "resourceVersion": version}, accept, show)
        if ended is None:
            return None
        version = ended


def _follow(client: Any, path: str, parameters: dict[str, Any], accept: str, show: Any) -> str | None:
    """One watch; None when it is over for good."""
    for event in client.watch(path, parameters, accept=accept):
        if event.get("type") == "ERROR":
            raise StatusError(event.get("object") or {})
        if event.get("type") == "BOOKMARK":
            continue
        show(event["object"], event["type"])
        sys.stdout.flush()
    return None
