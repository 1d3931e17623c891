"""`kubectl label`; `annotate` shares its work through `run_for`."""

from __future__ import annotations

from pybernetes.kubectl import mutating
from pybernetes.kubectl.builder import Builder, Info
from pybernetes.kubectl.command import Command
from pybernetes.kubectl.errors import CLIError, raise_all
from pybernetes.kubectl.flags import Flag

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pybernetes.kubectl.context import Context


def run(context: Context, arguments: list[str]) -> int | None:
    """`label`."""
    return run_for(context, arguments, "label")


def run_for(context: Context, arguments: list[str], what: str) -> int | None:
    """`label` or `annotate`: the same command for two fields of metadata."""
    flags = context.flags
    dry = mutating.dry_run(flags)
    if flags.on("list") and flags.get("output"):
        raise CLIError("--list and --output may not be specified together")
    resources, pairs = _split(arguments, what)
    _check(context, resources, pairs, dry, what)
    new, removed = _parse(pairs, what)
    builder = Builder(context).files(flags.words("filename"), flags.on("recursive"), flags.text("kustomize"))
    builder.local = flags.on("local")
    builder.latest = not flags.on("local")
    builder.all_namespaces = flags.on("all-namespaces")
    if not flags.on("local"):
        builder.selectors(flags.text("selector"), flags.text("field-selector"), flags.on("all"))
        builder.arguments(resources, allow_empty=flags.on("all"))
    infos = builder.infos()
    one = builder.single
    if not one and flags.get("resource-version"):
        raise CLIError("--resource-version may only be used with a single resource")
    errors = list(builder.errors)
    for info in infos:
        try:
            _change(context, info, new, removed, dry, what, one)
        except CLIError as error:
            errors.append(error)
    raise_all(errors)
    return None


def _split(arguments: list[str], what: str) -> tuple[list[str], list[str]]:
    """Resources first, then changes."""

    def changes(word: str) -> bool:
        if what == "label":
            return "=" in word or word.endswith("-")
        return ("=" in word and word[0] != "=") or (word.endswith("-") and word != "-")

    at = next((index for index, word in enumerate(arguments) if changes(word)), len(arguments))
    pairs = arguments[at:]
    for word in pairs:
        if not changes(word):
            raise CLIError(f"all resources must be specified before {what} changes: {word}")
    return arguments[:at], pairs


def _check(context: Context, resources: list[str], pairs: list[str], dry: str, what: str) -> None:
    flags = context.flags
    files = flags.words("filename") or flags.get("kustomize")
    sample = "pod.yaml or --filename=pod.json" if what == "label" else "rsrc.yaml or --filename=rsrc.json"
    if flags.on("all") and flags.get("selector"):
        raise CLIError("cannot set --all and --selector at the same time")
    if flags.on("all") and flags.get("field-selector"):
        raise CLIError("cannot set --all and --field-selector at the same time")
    if flags.on("local"):
        if dry == "server":
            raise CLIError("cannot specify --local and --dry-run=server - did you mean --dry-run=client?")
        if resources:
            raise CLIError(f"can only use local files by -f {sample} when --local=true is set")
        if not files:
            raise CLIError(f"one or more files must be specified as -f {sample}")
    elif not resources and not files:
        raise CLIError("one or more resources must be specified as <resource> <name> or <resource>/<name>")
    if not pairs and not flags.on("list"):
        raise CLIError(f"at least one {'label' if what == 'label' else 'annotation'} update is required")


def _parse(pairs: list[str], what: str) -> tuple[dict[str, str], list[str]]:
    new: dict[str, str] = {}
    removed: list[str] = []
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if equals:
            if not key or (what == "label" and "=" in value):
                raise CLIError(
                    f"invalid {'label' if what == 'label' else 'annotation format'} spec: {pair}"
                    if what == "label"
                    else f"invalid annotation format: {pair}"
                )
            if what == "label":
                problems = label_value_problems(value)
                if problems:
                    raise CLIError(f'invalid label value: "{pair}": {";".join(problems)}')
            new[key] = value
        elif pair.endswith("-"):
            removed.append(pair[:-1])
        else:
            raise CLIError(f"unknown label spec: {pair}")
    for key in removed:
        if key in new:
            if what == "label":
                raise CLIError("can not both modify and remove a label in the same command")
            raise CLIError(f"can not both modify and remove the following annotation(s) in the same command: {key}")
    return new, removed


def label_value_problems(value: str) -> list[str]:
    """Why a value cannot be a label's."""
    found = []
    if len(value) > 63:
        found.append("must be no more than 63 bytes")
    good = all(char.isascii() and (char.isalnum() or char in "-_.") for char in value)
    if value and not (good and value[0].isalnum() and value[-1].isalnum()):
        found.append(
            "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must"
            " start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for"
            " validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
        )
    return found


def _change(
    context: Context, info: Info, new: dict[str, str], removed: list[str], dry: str, what: str, one: bool
) -> None:
    flags = context.flags
    field = "labels" if what == "label" else "annotations"
    metadata = info.object.setdefault("metadata", {})
    current = dict(metadata.get(field) or {})
    if not flags.on("overwrite") and not flags.on("list"):
        _refuse_overwriting(current, new, what)
    local = dry == "client" or flags.on("local") or flags.on("list")
    changes: dict[str, Any] = {key: value for key, value in new.items() if current.get(key) != value}
    gone = [key for key in removed if key in current]
    if what == "label" and not local:
        for key in removed:
            if key not in current:
                context.out(f'label "{key}" not found.\n')
    after = {**{key: value for key, value in current.items() if key not in removed}, **new}
    if after or field in metadata:
        metadata[field] = after
    if not local and (changes or gone or what == "annotate"):
        body: dict[str, Any] = {field: {**changes, **dict.fromkeys(gone)}}
        if flags.get("resource-version"):
            body["resourceVersion"] = flags.text("resource-version")
        mutating_body = {"metadata": body}
        if flags.on("record"):
            body.setdefault("annotations", {})[mutating.CHANGE_CAUSE] = mutating.change_cause(context)
        answer = mutating.patch(context, info, "merge", mutating_body if body[field] or len(body) > 1 else {}, dry)
        if what == "annotate":
            info.refresh(answer)
    if flags.on("list"):
        indent = ""
        if not one:
            indent = " "
            context.out(f"Listing {field} for {info.mapping.kind}.{info.mapping.group}/{info.name}:\n")
        for key, value in (metadata.get(field) or {}).items():
            context.out(f"{indent}{key}={value}\n")
        return
    if what == "annotate":
        message = "annotated"
    else:
        message = "modified" if changes and gone else "labeled" if changes else "unlabeled" if gone else "not labeled"
    context.out(mutating.printer_for(flags, message, dry)(info.object))


def _refuse_overwriting(current: dict[str, str], new: dict[str, str], what: str) -> None:
    clashes = [key for key in new if key in current and (current[key] != new[key] or what == "annotate")]
    if what == "label":
        if clashes:
            from pybernetes.kubectl.errors import Aggregate

            found = [
                CLIError(f"'{key}' already has a value ({current[key]}), and --overwrite is false") for key in clashes
            ]
            raise found[0] if len(found) == 1 else Aggregate(found)
    elif clashes:
        shown = ", ".join(f"'{key}' already has a value ({current[key]})" for key in clashes)
        raise CLIError(f"--overwrite is false but found the following declared annotation(s): {shown}")


def flags_for(what: str) -> tuple[Flag, ...]:
    """The flags of `label` and `annotate`."""
    return (
        *mutating.PRINT_FLAGS,
        *mutating.FILENAME_FLAGS,
        mutating.DRY_RUN,
        mutating.SELECTOR,
        mutating.FIELD_SELECTOR,
        mutating.ALL,
        mutating.ALL_NAMESPACES,
        mutating.LOCAL,
        mutating.RECORD,
        mutating.field_manager(f"kubectl-{what}"),
        Flag("list", "bool", help="Print what the objects have."),
        Flag("overwrite", "bool", help="Change values that are there."),
        Flag("resource-version", help="Change the object only in this version."),
    )


COMMAND = Command(
    "label [--overwrite] (-f FILENAME | TYPE NAME) KEY_1=VAL_1 ... KEY_N=VAL_N [--resource-version=version]",
    "Update the labels on a resource",
    run,
    flags=flags_for("label"),
)
