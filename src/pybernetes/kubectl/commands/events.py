"""`kubectl events`: events sorted by time."""

from __future__ import annotations

from pybernetes.kubectl.ages import age, timestamp
from pybernetes.kubectl.command import Command
from pybernetes.kubectl.errors import CLIError, NoMatch, PlainError
from pybernetes.kubectl.flags import Flag
from pybernetes.kubectl.printers.table import Columns
from pybernetes.kubectl.printing import PRINT_FLAGS, generic
from pybernetes.terminal import escaped

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pybernetes.kubectl.context import Context


def run(context: Context, arguments: list[str]) -> int | None:
    """`events`."""
    flags = context.flags
    if arguments:
        raise CLIError(f"unexpected arguments: [{' '.join(arguments)}]\nSee '{context.path} -h' for help and examples")
    namespace = "" if flags.on("all-namespaces") else context.namespace()
    fields = []
    if flags.text("for"):
        kind, slash, name = flags.text("for").partition("/")
        if not slash or not kind or not name:
            raise CLIError("--for must be in resource/name form")
        try:
            mapping = context.mapper.resource(kind)
        except NoMatch as error:
            raise PlainError(error.message) from None
        fields += [
            f"involvedObject.apiVersion={mapping.api_version}",
            f"involvedObject.kind={mapping.kind}",
            f"involvedObject.name={name}",
        ]
    types = flags.words("types")
    for word in types:
        if word.lower() not in ("normal", "warning"):
            raise CLIError("valid --types are Normal or Warning")
    path = f"/api/v1/namespaces/{namespace}/events" if namespace else "/api/v1/events"
    parameters = {"fieldSelector": ",".join(fields)}
    listed = context.client.list(path, parameters, flags.number("chunk-size"))
    wanted = [word.lower() for word in types]
    events = [each for each in listed.get("items") or () if not wanted or str(each.get("type")).lower() in wanted]
    columns = Columns()
    render = generic(flags, flags.text("output")) if flags.text("output") else None

    def row(event: dict[str, Any], kind: str = "") -> None:
        involved = event.get("involvedObject") or {}
        cells = [_interval(event), event.get("type", ""), event.get("reason", "")]
        cells += [f"{involved.get('kind', '')}/{involved.get('name', '')}", str(event.get("message", "")).strip()]
        cells = [escaped(str(each)) for each in cells]
        columns.row([*([event["metadata"].get("namespace", "")] if not namespace else []), *cells])

    if not events and not flags.on("watch"):
        where = f" in {namespace} namespace." if namespace else "."
        context.err(f"No events found{where}\n")
        return None
    events.sort(key=lambda each: timestamp(_last(each)) or 0.0)
    if render is not None:
        for event in events:
            event.setdefault("apiVersion", "v1")
            event.setdefault("kind", "Event")
        whole = {"apiVersion": "v1", "kind": "EventList", "metadata": listed.get("metadata") or {}, "items": events}
        context.out(render(whole))
        return None
    if not flags.on("no-headers"):
        headers = ["LAST SEEN", "TYPE", "REASON", "OBJECT", "MESSAGE"]
        columns.row(headers if namespace else ["NAMESPACE", *headers])
    for event in events:
        row(event)
    context.out(columns.flush())
    if flags.on("watch"):
        import sys

        sys.stdout.flush()
        version = (listed.get("metadata") or {}).get("resourceVersion", "")
        for change in context.client.watch(path, {**parameters, "resourceVersion": version}):
            if change.get("type") not in ("DELETED", "ERROR", "BOOKMARK"):
                if wanted and str(change["object"].get("type")).lower() not in wanted:
                    continue
                row(change["object"])
                context.out(columns.flush())
                sys.stdout.flush()
    return None


def _last(event: dict[str, Any]) -> Any:
    if event.get("series") is not None:
        return event["series"].get("lastObservedTime")
    return event.get("lastTimestamp") or event.get("eventTime")


def _interval(event: dict[str, Any]) -> str:
    first = event.get("eventTime") or event.get("firstTimestamp")
    series = event.get("series")
    if series is not None:
        return f"{age(series.get('lastObservedTime'))} (x{series.get('count', 0)} over {age(first)})"
    if event.get("count", 0) > 1:
        return f"{age(event.get('lastTimestamp'))} (x{event['count']} over {age(first)})"
    return age(first)


COMMAND = Command(
    "events [(-o|--output=)json|yaml] [--for TYPE/NAME] [--watch] [--types=Normal,Warning]",
    "List events",
    run,
    flags=(
        *PRINT_FLAGS,
        Flag("all-namespaces", "bool", short="A", help="Events of all namespaces."),
        Flag("chunk-size", "int", 500, "Objects in one response of a list."),
        Flag("for", help="Events of this object: TYPE/NAME."),
        Flag("no-headers", "bool", help="Do not print headers."),
        Flag("types", "list", help="Normal, Warning."),
        Flag("watch", "bool", short="w", help="Print events as they come."),
    ),
)
