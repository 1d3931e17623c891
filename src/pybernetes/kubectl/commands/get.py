"""`kubectl get`: prints objects, as the server's Table or in any other format, once or as they change."""

from __future__ import annotations

from pybernetes.kubectl.builder import Builder, Info, Query, list_error
from pybernetes.kubectl.command import Command
from pybernetes.kubectl.errors import CLIError, StatusError, raise_all
from pybernetes.kubectl.flags import Flag
from pybernetes.kubectl.printers.table import Columns, TableOptions, TablePrinter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from pybernetes.kubectl.context import Context
    from pybernetes.kubectl.mapper import Mapping

TABLE = (
    "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json"
)
_EXTRA_FORMATS = ("custom-columns", "custom-columns-file", "wide")
_SUGGEST = 'Use "kubectl api-resources" for a complete list of supported resources.'


def run(context: Context, arguments: list[str]) -> int | None:
    """`get`."""
    flags = context.flags
    if flags.get("raw"):
        return _raw(context, arguments)
    output = flags.text("output")
    human = (not output and not flags.get("template")) or output == "wide"
    watching = flags.on("watch") or flags.on("watch-only")
    if flags.get("sort-by") and watching:
        name = "watch" if flags.on("watch") else "watch-only"
        tail = " for watch events received" if flags.on("watch") else ""
        context.err(f"warning: --{name} requested, --sort-by will be ignored{tail}\n")
    elif not watching and not arguments and not flags.words("filename") and not flags.get("kustomize"):
        context.err(f"You must specify the type of resource to get. {_SUGGEST}\n\n")
        raise CLIError(
            'Required resource not specified.\nUse "kubectl explain <resource>" for a detailed description of that'
            " resource (e.g. kubectl explain pods).\nSee 'kubectl get -h' for help and examples"
        )
    if flags.on("show-labels") and output and output != "wide":
        raise CLIError(f"--show-labels option cannot be used with {output} printer")
    if flags.on("output-watch-events") and not watching:
        raise CLIError("--output-watch-events option can only be used with --watch or --watch-only")
    builder = Builder(context)
    builder.all_namespaces = flags.on("all-namespaces")
    builder.may_take_everything = True
    if builder.all_namespaces:
        builder.explicit = False
    builder.files(flags.words("filename"), flags.on("recursive"), flags.text("kustomize"))
    builder.selectors(flags.text("selector"), flags.text("field-selector"))
    builder.subresource = flags.text("subresource")
    builder.ignore_not_found = flags.on("ignore-not-found")
    builder.chunk = 0 if flags.get("sort-by") else flags.number("chunk-size")
    if builder.filenames or builder.kustomize:
        builder.selectors(flags.text("selector"), "")
    builder.arguments(arguments)
    if watching:
        from pybernetes.kubectl.commands import get_watch

        return get_watch.run(context, builder, human)
    if human:
        return _print_tables(context, builder)
    return _print_generic(context, builder, output)


def table_options(context: Context) -> TableOptions:
    """The table options from the flags."""
    flags = context.flags
    options = TableOptions()
    options.wide = flags.text("output") == "wide"
    options.no_headers = flags.on("no-headers")
    options.show_labels = flags.on("show-labels")
    options.label_columns = flags.words("label-columns")
    options.show_kind = flags.on("show-kind")
    return options


# -- tables


def _print_tables(context: Context, builder: Builder) -> int | None:
    flags = context.flags
    columns = Columns()
    printer: TablePrinter | None = None
    last: Mapping | None = None
    written = 0
    namespaced = not builder.all_namespaces
    parameters = {
        "labelSelector": builder.label_selector,
        "fieldSelector": builder.field_selector,
        "includeObject": "Object" if flags.get("sort-by") else "",
    }
    found = [(query, _table(context, builder, query, parameters)) for query in _queries(builder)]
    if not flags.on("server-print"):
        found = [(query, table if table is None or table["rows"] else None) for query, table in found]
    several = len({query.mapping.group_resource for query, table in found if table is not None}) > 1
    for query, table in found:
        if table is None:
            namespaced = namespaced and (query.mapping.namespaced or builder.errors != [])
            continue
        namespaced = namespaced and query.mapping.namespaced
        if flags.get("sort-by"):
            from pybernetes.kubectl.sorting import sort

            try:
                table["rows"] = sort(
                    table.get("rows") or [], flags.text("sort-by"), lambda row: row.get("object") or {}
                )
            except CLIError:
                table["rows"] = []  # upstream prints nothing where no object has the field
        if printer is None or last is None or last.group_resource != query.mapping.group_resource:
            text = columns.flush()
            written += len(text)
            context.out(text)
            columns.forget()
            options = table_options(context)
            options.with_namespace = builder.all_namespaces and query.mapping.namespaced
            options.show_kind = options.show_kind or several
            options.kind_prefix = (
                f"{query.mapping.kind.lower()}.{query.mapping.group}"
                if query.mapping.group
                else query.mapping.kind.lower()
            )
            printer = TablePrinter(options, columns)
            if last is not None and not options.no_headers and written and table.get("rows"):
                context.out("\n")
            last = query.mapping
        printer.print(table)
    text = columns.flush()
    context.out(text)
    if not written + len(text) and not builder.ignore_not_found and not builder.errors:
        where = f" in {builder.namespace} namespace." if namespaced else ""
        context.err(f"No resources found{where}\n")
    raise_all(builder.errors)
    return None


def _queries(builder: Builder) -> Iterator[Query]:
    """The queries to send; an object of a file is asked for by its name."""
    if builder.filenames or builder.kustomize:
        if builder._types or builder._pairs:
            raise CLIError(
                "when paths, URLs, or stdin is provided as input, you may not specify resource arguments as well"
            )
        builder.latest = False
        for info in builder.visit():
            yield Query(info.mapping, info.namespace, info.name)
        return
    yield from builder.queries()


def _table(context: Context, builder: Builder, query: Query, parameters: dict[str, str]) -> dict[str, Any] | None:
    accept = TABLE if context.flags.get("server-print", True) else "application/json"
    try:
        if query.name:
            asked = {"includeObject": parameters["includeObject"]}
            found: dict[str, Any] = context.client.get(query.path(builder.subresource), asked, accept=accept)
        else:
            found = context.client.list(query.path(), parameters, builder.chunk, accept=accept)
    except StatusError as error:
        if builder.everything and error.http_code in (403, 404, 405):
            return None  # `get everything` shows what the user may see
        if not (builder.ignore_not_found and error.reason == "NotFound"):
            builder.errors.append(error if query.name else list_error(error, query.mapping, builder))
        return None
    return found if found.get("kind") == "Table" else as_table(found)


def as_table(obj: dict[str, Any]) -> dict[str, Any]:
    """A Table of names and ages, for a server that does not make Tables."""
    from pybernetes.kubectl.ages import age

    items = obj["items"] if isinstance(obj.get("items"), list) else [obj]
    rows = []
    for item in items or ():
        metadata = item.get("metadata") or {}
        rows.append({"cells": [metadata.get("name", ""), age(metadata.get("creationTimestamp"))], "object": item})
    definitions = [{"name": "Name", "type": "string", "format": "name"}, {"name": "Age", "type": "string"}]
    return {"kind": "Table", "metadata": obj.get("metadata") or {}, "columnDefinitions": definitions, "rows": rows}


# -- other formats


def printer(context: Context, output: str) -> Any:
    """The printer of a format that is not a table; custom columns print a whole list at a time."""
    flags = context.flags
    name, _, argument = output.partition("=")
    if name in ("custom-columns", "custom-columns-file"):
        from pybernetes.kubectl.printers.customcolumns import CustomColumns

        spec = argument or flags.text("template")
        make = CustomColumns.of_spec if name == "custom-columns" else CustomColumns.of_file
        chosen = make(spec, flags.on("no-headers"))
        columns = Columns()
        state = {"headers": not flags.on("no-headers")}

        def render(obj: dict[str, Any]) -> str:
            if state["headers"]:
                columns.row(chosen.headers)
                state["headers"] = False
            for item in obj["items"] if isinstance(obj.get("items"), list) else [obj]:
                try:
                    columns.row(chosen.cells(item))
                except CLIError:
                    context.out(columns.flush())  # the rows before the one that has no such column
                    raise
            return columns.flush()

        return render
    from pybernetes.kubectl.printing import generic

    return generic(flags, output, _EXTRA_FORMATS)


def _print_generic(context: Context, builder: Builder, output: str) -> int | None:
    flags = context.flags
    render = printer(context, output)
    infos: list[Info] = builder.infos()
    errors = builder.errors
    single = builder.single
    if single and errors:
        raise_all(errors)
    if not infos and builder.ignore_not_found:
        raise_all(errors)
        return None
    objects = [info.object for info in infos]
    if flags.get("sort-by"):
        from pybernetes.kubectl.sorting import sort

        objects = sort(objects, flags.text("sort-by"))
    if single and len(objects) == 1 and not isinstance(objects[0].get("items"), list):
        context.out(render(objects[0]))
    else:
        flat: list[Any] = []
        for obj in objects:
            flat += obj["items"] if isinstance(obj.get("items"), list) else [obj]
        context.out(render({"apiVersion": "v1", "kind": "List", "metadata": {"resourceVersion": ""}, "items": flat}))
    raise_all(errors)
    return None


def _raw(context: Context, arguments: list[str]) -> int | None:
    flags = context.flags
    if arguments:
        raise CLIError("arguments may not be passed when --raw is specified")
    if flags.on("watch") or flags.on("watch-only") or flags.get("selector"):
        raise CLIError("--raw may not be specified with other flags that filter the server request or alter the output")
    if flags.get("output"):
        raise CLIError("--raw and --output are mutually exclusive")
    path = flags.text("raw")
    if not path.startswith("/"):
        raise CLIError(f'--raw must be a valid URL path: parse "{path}": invalid URI for request')
    import sys

    response = context.client.open("GET", path, accept="application/json, */*")
    sys.stdout.flush()
    try:
        for piece in response.pieces():
            sys.stdout.buffer.write(piece)
            sys.stdout.buffer.flush()
    except (EOFError, ValueError, ConnectionError) as error:
        raise context.client.broken(error) from None
    return None


OUTPUT_HELP = "Output format: wide, json, yaml, kyaml, name, go-template, jsonpath, custom-columns and their variants."
FLAGS: tuple[Flag, ...] = (
    Flag("output", short="o", help=OUTPUT_HELP),
    Flag("template", help="Template or file for go-template formats."),
    Flag("allow-missing-template-keys", "bool", True, "Ignore errors of templates about missing fields."),
    Flag("show-managed-fields", "bool", help="Keep managedFields in JSON and YAML."),
    Flag("no-headers", "bool", help="Do not print headers."),
    Flag("show-labels", "bool", help="Add a column with all labels."),
    Flag("label-columns", "list", short="L", help="Labels that get a column each."),
    Flag("show-kind", "bool", help="Put the resource type before each name."),
    Flag("sort-by", help="Sort by a field, given as a JSONPath expression."),
    Flag("raw", help="Path to request from the server as it is."),
    Flag("watch", "bool", short="w", help="After the list, print changes."),
    Flag("watch-only", "bool", help="Print changes only."),
    Flag("output-watch-events", "bool", help="Print the type of each event of a watch."),
    Flag("ignore-not-found", "bool", help="A named object that does not exist is no error."),
    Flag("field-selector", help="Select objects by field: key=value, key!=value."),
    Flag("all-namespaces", "bool", short="A", help="List objects of all namespaces."),
    Flag("server-print", "bool", True, "Let the server make the columns.", hidden=False),
    Flag("filename", "list", short="f", help="Files, folders or URLs that name the objects."),
    Flag("kustomize", short="k", help="Folder of a kustomization."),
    Flag("recursive", "bool", short="R", help="Go through folders below the folder of -f."),
    Flag("chunk-size", "int", 500, "Objects in one response of a list; 0 means all."),
    Flag("selector", short="l", help="Select objects by label."),
    Flag("subresource", help="Get a subresource of the object: status, scale, resize."),
)

COMMAND = Command(
    "get [(-o|--output=)json|yaml|kyaml|name|go-template|go-template-file|template|templatefile|jsonpath|"
    "jsonpath-as-json|jsonpath-file|custom-columns|custom-columns-file|wide]"
    " (TYPE[.VERSION][.GROUP] [NAME | -l label] | TYPE[.VERSION][.GROUP]/NAME ...) [flags]",
    "Display one or many resources",
    run,
    flags=FLAGS,
    long="Display one or many resources: objects by name, or lists filtered by selectors.",
    examples="""
# All pods of the namespace
kubectl get pods
# One deployment as YAML
kubectl get deployment web -o yaml
# The node of every pod
kubectl get pods -A -o custom-columns=NAME:.metadata.name,NODE:.spec.nodeName
""",
)
