"""`kubectl patch`: changes fields of objects with a strategic, merge or JSON patch."""

from __future__ import annotations

from pybernetes.kubectl import mutating
from pybernetes.kubectl.builder import Builder
from pybernetes.kubectl.command import Command
from pybernetes.kubectl.data import loads
from pybernetes.kubectl.errors import CLIError, StatusError, raise_all
from pybernetes.kubectl.flags import Flag

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pybernetes.kubectl.context import Context

_TYPES = ("json", "merge", "strategic")
_MEDIA = {
    "json": "application/json-patch+json",
    "merge": "application/merge-patch+json",
    "strategic": "application/strategic-merge-patch+json",
}


def run(context: Context, arguments: list[str]) -> int | None:
    """`patch`."""
    flags = context.flags
    dry = mutating.dry_run(flags)
    kind = flags.text("type").lower()
    if flags.get("patch") and flags.get("patch-file"):
        raise CLIError("cannot specify --patch and --patch-file together")
    if not flags.get("patch") and not flags.get("patch-file"):
        raise CLIError("must specify --patch or --patch-file containing the contents of the patch")
    if flags.on("local") and arguments:
        raise CLIError("cannot specify --local and server resources")
    if flags.on("local") and dry == "server":
        raise CLIError("cannot specify --local and --dry-run=server - did you mean --dry-run=client?")
    if kind not in _TYPES:
        raise CLIError(f'--type must be one of [{" ".join(_TYPES)}], not "{flags.text("type")}"')
    patch = _patch(flags.text("patch"), flags.text("patch-file"))
    builder = Builder(context).files(flags.words("filename"), flags.on("recursive"), flags.text("kustomize"))
    builder.arguments(arguments, allow_empty=False)
    builder.latest = False
    builder.local = flags.on("local")
    errors: list[CLIError] = []
    count = 0
    for info in _targets(builder):
        count += 1
        local = flags.on("local") or dry == "client"
        try:
            if local:
                before = info.object if flags.on("local") else context.client.get(info.path())
                after = apply_locally(before, patch, kind)
            else:
                before = context.client.get(info.path(flags.text("subresource")))
                after = mutating.patch(context, info, kind, patch, dry, flags.text("subresource"))
        except StatusError as error:
            if error.reason == "UnsupportedMediaType":
                gv = f"{info.mapping.group}/{info.mapping.version}"
                raise CLIError(
                    f"{_MEDIA[kind]} is not supported by {gv}, Kind={info.mapping.kind}: {error.message}"
                ) from None
            errors.append(error)
            continue
        changed = before != after
        if flags.on("record") and not local:
            after = context.client.patch(
                info.path(),
                "merge",
                {"metadata": {"annotations": {mutating.CHANGE_CAUSE: mutating.change_cause(context)}}},
            )
        printer = mutating.printer_for(
            flags, "patched" if changed else "patched (no change)", dry if changed else "none"
        )
        context.out(printer(after))
    errors += builder.errors
    raise_all(errors)
    if not count:
        raise CLIError("no objects passed to patch")
    return None


def _targets(builder: Builder) -> Any:
    """Objects to patch: those of arguments need not be fetched."""
    from pybernetes.kubectl.builder import Info

    if builder.filenames or builder.kustomize:
        yield from builder.visit()
        return
    if not builder.given():
        yield from builder.visit()  # says what is missing
    for query in builder.queries():
        yield Info(query.mapping, query.namespace, query.name, {})


def _patch(text: str, path: str) -> Any:
    if path:
        try:
            with open(path, encoding="utf-8") as file:
                text = file.read()
        except OSError as error:
            raise CLIError(f"unable to read patch file: open {path}: {(error.strerror or '').lower()}") from None
    try:
        return loads(text)
    except ValueError:
        if text.lstrip().startswith("{"):
            return text.encode("utf-8", "surrogateescape")  # the server says what is wrong with it
    from pybernetes.kubectl.data import go_quote
    from pybernetes.kubectl.manifests import parse_yaml

    try:
        return parse_yaml(text.encode())
    except ValueError as error:
        raise CLIError(f"unable to parse {go_quote(text)}: {error}") from None


def apply_locally(obj: dict[str, Any], patch: Any, kind: str) -> dict[str, Any]:
    """The object after the patch, computed here. Raises CLIError."""
    from pybernetes.kubectl.strategic import json_merge, merge, type_of

    if isinstance(patch, bytes) or (kind != "json" and not isinstance(patch, dict)):
        raise CLIError("Invalid JSON Patch" if kind == "merge" else "invalid JSON document")
    if kind == "json":
        from pybernetes.api.patch import json_patch

        try:
            found: dict[str, Any] = json_patch.apply(obj, patch)
        except Exception as error:
            # The server's error says only that the patch does not apply; what it comes from says why.
            problem = str(error.__context__ or error).removeprefix("error decoding patch: ")
            raise CLIError(problem.replace("[]handlers.jsonPatchOp", "jsonpatch.Patch")) from None
        return found
    if kind == "merge":
        merged: dict[str, Any] = json_merge(obj, patch)
        return merged
    cls = type_of(str(obj.get("apiVersion")), str(obj.get("kind")))
    if cls is None:
        group, _, version = str(obj.get("apiVersion")).rpartition("/")
        raise CLIError(
            f"strategic merge patch is not supported for {group}/{version}, Kind={obj.get('kind')} locally,"
            " try --type merge"
        )
    return merge(obj, patch, cls)


COMMAND = Command(
    "patch (-f FILENAME | TYPE NAME) [-p PATCH|--patch-file FILE]",
    "Update fields of a resource",
    run,
    flags=(
        *mutating.PRINT_FLAGS,
        *mutating.FILENAME_FLAGS,
        mutating.DRY_RUN,
        mutating.LOCAL,
        mutating.RECORD,
        mutating.field_manager("kubectl-patch"),
        Flag("patch", short="p", help="The patch, JSON or YAML."),
        Flag("patch-file", help="File with the patch."),
        Flag("type", default="strategic", help="json, merge or strategic."),
        Flag("subresource", help="Subresource to patch."),
    ),
)
