"""Chooses a printer by `-o` (and `--template`): an object in, text out."""

from __future__ import annotations

from pybernetes.kubectl.data import go_quote
from pybernetes.kubectl.errors import CLIError
from pybernetes.kubectl.flags import Flag

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeAlias

    from pybernetes.kubectl.context import Context
    from pybernetes.kubectl.flags import Flags

    Printer: TypeAlias = Callable[[dict[str, Any]], str]

PRINT_FLAGS: tuple[Flag, ...] = (
    Flag(
        "output",
        short="o",
        help="Output format: json, yaml, kyaml, name, go-template, jsonpath and their variants.",
    ),
    Flag("template", help="Template or file for -o go-template and -o go-template-file."),
    Flag("allow-missing-template-keys", "bool", True, "Ignore errors of templates about missing fields."),
    Flag("show-managed-fields", "bool", help="Keep managedFields in JSON and YAML."),
)
_TEMPLATES = ("go-template", "go-template-file", "template", "templatefile")
_JSONPATHS = ("jsonpath", "jsonpath-as-json", "jsonpath-file")
FORMATS = sorted(("json", "yaml", "kyaml", "name", *_TEMPLATES, *_JSONPATHS))


def hide_managed_fields(obj: dict[str, Any]) -> dict[str, Any]:
    """Takes managedFields off an object and the items of a list."""
    metadata = obj.get("metadata")
    if isinstance(metadata, dict):
        metadata.pop("managedFields", None)
    for item in obj.get("items") or ():
        if isinstance(item, dict):
            hide_managed_fields(item)
    inner = obj.get("object")
    if obj.get("type") and isinstance(inner, dict):
        hide_managed_fields(inner)
    return obj


def printer_for(flags: Flags, operation: str = "", dry_run: str = "none", typed: bool = False) -> Printer:
    """The printer of a command that changes something: `NAME OPERATION` without `-o`. Raises CLIError.

    `typed`: JSON keeps the order of the fields, as upstream prints objects that it made itself.
    """
    output = flags.text("output")
    if not output and not flags.get("template"):
        suffix = {"client": " (dry run)", "server": " (server dry run)"}.get(dry_run, "")
        return lambda obj: f"{object_label(obj)} {operation}{suffix}\n"
    if typed and output == "json":
        from pybernetes.kubectl.data import pretty

        return lambda obj: pretty(go_order(obj), sort=False) + "\n"
    return generic(flags, output)


_ORDER = {
    name: place
    for place, name in enumerate(
        [
            "kind",
            "apiVersion",
            "metadata",
            "immutable",
            "name",
            "generateName",
            "namespace",
            "uid",
            "resourceVersion",
            "generation",
            "creationTimestamp",
            "image",
            "command",
            "args",
            "workingDir",
            "ports",
            "env",
            "resources",
            "replicas",
            "selector",
            "volumes",
            "containers",
            "restartPolicy",
            "dnsPolicy",
            "data",
            "binaryData",
            "type",
            "schedule",
            "jobTemplate",
            "hard",
            "scopes",
            "template",
            "strategy",
            "spec",
            "status",
        ]
    )
}
_MAPS = ("labels", "annotations", "matchLabels", "data", "hard")


def go_order(value: Any, name: str = "") -> Any:
    """An object with its fields in the order of upstream's types, as far as generators use them."""
    if isinstance(value, dict):
        if name in _MAPS or (name == "selector" and all(isinstance(each, str) for each in value.values())):
            return {key: value[key] for key in sorted(value)}
        keys = sorted(value, key=lambda key: _ORDER.get(key, 5.5 if not name else 30.5))
        return {key: go_order(value[key], key) for key in keys}
    return [go_order(each) for each in value] if isinstance(value, list) else value


def generic(flags: Flags, output: str, extra: tuple[str, ...] = ()) -> Printer:
    """The printer of a named format. Raises CLIError for a format that does not exist."""
    template = flags.get("template") or ""
    if not output and template:
        output = "go-template"
    name, _, argument = output.partition("=")
    show_managed = flags.on("show-managed-fields")

    def prepared(obj: dict[str, Any]) -> dict[str, Any]:
        return obj if show_managed else hide_managed_fields(obj)

    if output == "json":
        from pybernetes.kubectl.data import pretty

        return lambda obj: pretty(prepared(obj)) + "\n"
    if output == "yaml":
        from pybernetes.kubectl.printers import yaml_text

        documents: list[bool] = []

        def print_yaml(obj: dict[str, Any]) -> str:
            text = ("---\n" if documents else "") + yaml_text.dumps(prepared(obj))
            documents.append(True)
            return text

        return print_yaml
    if output == "kyaml":
        from pybernetes.kubectl.printers import kyaml_text

        return lambda obj: kyaml_text.dumps(prepared(obj))
    if output == "name":
        return names
    if name in _TEMPLATES:
        return _template(flags, name, argument or template)
    if name in _JSONPATHS:
        return _jsonpath(flags, name, argument or template)
    allowed = ",".join(sorted({*FORMATS, *extra}))
    raise CLIError(
        f'unable to match a printer suitable for the output format "{output}", allowed formats are: {allowed}'
    )


def names(obj: dict[str, Any]) -> str:
    """`-o name`: one line for each object."""
    if str(obj.get("kind", "")).endswith("List") and isinstance(obj.get("items"), list):
        return "".join(names(item) for item in obj["items"])
    return f"{object_label(obj)}\n"


def object_label(obj: dict[str, Any]) -> str:
    """`pod/web`, `deployment.apps/web`."""
    kind = str(obj.get("kind") or "<unknown>").lower()
    group = str(obj.get("apiVersion") or "").rpartition("/")[0]
    name = (obj.get("metadata") or {}).get("name") or "<unknown>"
    return f"{kind}.{group}/{name}" if group else f"{kind}/{name}"


def _read(path: str, what: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            return file.read()
    except OSError as error:
        raise CLIError(f"error reading --template {path}, open {path}: {(error.strerror or '').lower()}\n") from None


def _template(flags: Flags, name: str, text: str) -> Printer:
    if not text:
        raise CLIError("template format specified but no template given")
    if name.endswith("file"):
        text = _read(text, name)
    from pybernetes.kubectl.printers.gotemplate import Template, TemplateError

    allow_missing = flags.on("allow-missing-template-keys")
    try:
        compiled = Template(text, allow_missing)
    except TemplateError as error:
        raise CLIError(f"error parsing template {text}, {error}\n") from None

    def render(obj: dict[str, Any]) -> str:
        try:
            return compiled.render(obj)
        except TemplateError as error:
            _explain(str(error), text, compiled.partial, obj)
            raise CLIError(f"error executing template {go_quote(text)}: {error}") from None

    return render


def _explain(problem: str, template: str, partial: str, obj: dict[str, Any]) -> None:
    """Print upstream's explanation on stdout when a template fails."""
    import sys

    from pybernetes.kubectl.data import dumps
    from pybernetes.kubectl.printers.gotemplate_functions import go_value

    sys.stdout.write(
        f"{partial}Error executing template: {problem}. Printing more information for debugging the template:\n"
        f"\ttemplate was:\n\t\t{template}\n\traw data was:\n\t\t{dumps(obj)}\n"
        f"\tobject given to template engine was:\n\t\t{go_value(obj)}\n\n"
    )


def _jsonpath(flags: Flags, name: str, text: str) -> Printer:
    if not text:
        raise CLIError("template format specified but no template given")
    if name == "jsonpath-file":
        text = _read(text, name)
    from pybernetes.kubectl.printers.jsonpath import JSONPath, JSONPathError

    try:
        compiled = JSONPath(text, flags.on("allow-missing-template-keys"), as_json=name == "jsonpath-as-json")
    except JSONPathError as error:
        raise CLIError(f"error parsing jsonpath {text}, {error}\n") from None

    def render(obj: dict[str, Any]) -> str:
        try:
            return compiled.render(obj)
        except JSONPathError as error:
            from pybernetes.kubectl.printers.gotemplate_functions import go_syntax

            raise CLIError(
                f"error executing jsonpath {go_quote(text)}: Error executing template: {error}. Printing more"
                f" information for debugging the template:\n\ttemplate was:\n\t\t{text}\n"
                f"\tobject given to jsonpath engine was:\n"
                f"\t\t{go_syntax(obj)}\n\n\n"
            ) from None

    return render


def print_object(context: Context, printer: Printer, obj: dict[str, Any]) -> None:
    """Prints one object on stdout."""
    context.out(printer(obj))
