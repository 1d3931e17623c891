"""`kubectl apply`: makes objects what the files say; keeps what others wrote, removes what the files no longer have.

Client-side: a three-way patch between the last applied configuration (an annotation), the file and the live object.
Server-side: the file is sent as it is and the server merges by field manager. `--prune` is in `pruning.py`.
"""

from __future__ import annotations

import sys

from pybernetes.kubectl import apply_journal, mutating
from pybernetes.kubectl.builder import Builder, Info, resource_label
from pybernetes.kubectl.command import Command
from pybernetes.kubectl.data import copy, loads
from pybernetes.kubectl.errors import CLIError, StatusError, add_source, not_found, raise_all
from pybernetes.kubectl.flags import Flag
from pybernetes.kubectl.strategic import conflicts, merge, three_way, two_way, type_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pybernetes.kubectl.applyset import ApplySet
    from pybernetes.kubectl.context import Context

_RETRIES = 5


def run(context: Context, arguments: list[str]) -> int | None:
    """`apply`."""
    flags = context.flags
    if arguments:
        raise CLIError(f"Unexpected args: [{' '.join(arguments)}]\nSee 'kubectl apply -h' for help and examples")
    dry = mutating.dry_run(flags)
    mutating.validation(flags)
    applyset = _check(context, dry)
    if not flags.words("filename") and not flags.get("kustomize"):
        raise CLIError("must specify one of -f and -k")
    builder = Builder(context).files(flags.words("filename"), flags.on("recursive"), flags.text("kustomize"))
    builder.selectors(flags.text("selector"))
    builder.latest, builder.validates = False, True
    if flags.on("server-side") and not flags.changed("field-manager"):
        flags.put("field-manager", "kubectl")
    errors: list[CLIError] = []
    applied: list[Info] = []
    infos = builder.infos()
    errors += builder.errors
    if not infos and not errors:
        raise CLIError("no objects passed to apply")
    if applyset is not None:
        if errors:
            raise_all(errors)
        applyset.begin(infos, dry)
    output: list[Info] = []
    for info in infos:
        try:
            result = _server_side(context, info, dry) if flags.on("server-side") else _client_side(context, info, dry)
            applied.append(info)
            if result:
                context.out(_message(info, result, dry))
            else:
                output.append(info)
        except CLIError as error:
            errors.append(error)
    if output and flags.text("output") != "name":
        _print(context, output)
    if applyset is not None and not errors:
        applyset.finish(applied, dry)
    elif flags.on("prune") and not errors:
        from pybernetes.kubectl.pruning import prune

        prune(context, applied, dry)
    raise_all(errors)
    return None


def _check(context: Context, dry: str) -> ApplySet | None:
    """Refuses flags that do not go together; returns the set of `--applyset`. Raises CLIError."""
    flags = context.flags
    server = flags.on("server-side")
    refused = (
        (flags.on("force-conflicts") and not server, "--force-conflicts only works with --server-side"),
        (
            server and dry == "client",
            "--dry-run=client doesn't work with --server-side (did you mean --dry-run=server instead?)",
        ),
        (server and flags.on("force"), "--force cannot be used with --server-side"),
        (dry == "server" and flags.on("force"), "--dry-run=server cannot be used with --force"),
        (flags.on("all") and flags.get("selector"), "cannot set --all and --selector at the same time"),
        (flags.get("applyset") and not flags.on("prune"), "--applyset requires --prune"),
        (flags.on("prune") and flags.on("force"), "--force cannot be used with --prune"),
        (flags.get("subresource") and not server, "--subresource can only be specified for --server-side"),
    )
    for wrong, message in refused:
        if wrong:
            raise CLIError(message)
    if flags.get("applyset"):
        from pybernetes.kubectl.applyset import ApplySet

        found = ApplySet(context)
        for name, given in (
            ("all", flags.on("all")),
            ("selector", flags.get("selector")),
            ("prune-allowlist", flags.words("prune-allowlist")),
        ):
            if given:
                raise CLIError(f"--{name} is incompatible with --applyset")
        return found
    if flags.on("prune"):
        if not flags.on("all") and not flags.get("selector"):
            raise CLIError(
                "all resources selected for prune without explicitly passing --all. To prune all resources, pass the"
                " --all flag. If you did not mean to prune all resources, specify a label selector"
            )
        if server:
            raise CLIError("--prune is in alpha and doesn't currently work on objects created by server-side apply")
        if flags.words("prune-allowlist"):
            from pybernetes.kubectl.pruning import mappings

            mappings(context)  # a kind that there is not is an error before anything is applied
    return None


def _message(info: Info, result: str, dry: str) -> str:
    suffix = {"client": " (dry run)", "server": " (server dry run)"}.get(dry, "")
    return f"{resource_label(info.mapping, info.name)} {result}{suffix}\n"


def _quiet(context: Context) -> bool:
    """Whether the objects are printed at the end and not with a message each."""
    output = context.flags.text("output")
    return bool(output or context.flags.get("template")) and output != "name"


def _print(context: Context, infos: list[Info]) -> None:
    from pybernetes.kubectl.printing import generic

    printer = generic(context.flags, context.flags.text("output"))
    if len(infos) == 1:
        context.out(printer(infos[0].object))
        return
    items = [info.object for info in infos]
    context.out(printer({"apiVersion": "v1", "kind": "List", "metadata": {}, "items": items}))


def _done(context: Context, info: Info, result: str) -> str:
    if context.flags.text("output") == "name":
        context.out(f"{resource_label(info.mapping, info.name)}\n")
        return ""
    return "" if _quiet(context) else result


def _client_side(context: Context, info: Info, dry: str) -> str:
    """Applies one object; returns the word of its message, empty where the object itself is printed."""
    return _done(context, info, apply_object(context, info, dry))


def apply_object(context: Context, info: Info, dry: str) -> str:
    """Applies one object on the client's side; returns what became of it: created, configured or unchanged."""
    if not info.name:
        generated = (info.object.get("metadata") or {}).get("generateName")
        if generated:
            raise CLIError(f"from {generated}: cannot use generate name with apply")
        raise CLIError(
            f'error when retrieving current configuration of "{info.source}": resource name may not be empty'
        )
    if info.mapping.namespaced:
        info.object.setdefault("metadata", {})["namespace"] = info.namespace
    mutating.record(context, info.object)
    desired = info.object
    try:
        current = context.client.get(info.path())
    except StatusError as error:
        if not not_found(error):
            raise _retrieving(error, info) from None
        return _create(context, info, dry)
    _warn_if_deleting(current)
    modified = copy(desired)
    mutating.set_last_applied(modified)
    annotations = (current.get("metadata") or {}).get("annotations") or {}
    if mutating.LAST_APPLIED not in annotations:
        context.err(
            f"Warning: resource {info.mapping.resource}/{info.name} is missing the {mutating.LAST_APPLIED} annotation"
            " which is required by kubectl apply. kubectl apply should only be used on resources created declaratively"
            " by either kubectl create --save-config or kubectl apply. The missing annotation will be patched"
            " automatically.\n"
        )
    patched = _patch(context, info, modified, current, dry)
    changed = patched is not current
    info.refresh(patched)
    if changed and dry == "none":
        apply_journal.keep(context, info, annotations.get(mutating.LAST_APPLIED) or "")
    return "configured" if changed else "unchanged"


def _retrieving(error: StatusError, info: Info) -> StatusError:
    mapping = info.mapping
    gv = f"{mapping.group}/{mapping.version}"
    message = (
        f'error when retrieving current configuration of:\nResource: "{gv}, Resource={mapping.resource}",'
        f' GroupVersionKind: "{gv}, Kind={mapping.kind}"\nName: "{info.name}", Namespace: "{info.namespace}"\n'
        f'from server for: "{info.source}": {error.message}'
    )
    return StatusError({**error.status, "message": message})


def _create(context: Context, info: Info, dry: str) -> str:
    mutating.set_last_applied(info.object)
    without_nulls(info.object)  # after the annotation, which holds the file as it is
    if dry != "client":
        try:
            info.refresh(mutating.post(context, info, info.object, dry))
        except CLIError as error:
            raise add_source(error, "creating", info.source) from None
    if dry == "none":
        apply_journal.keep(context, info, "")
    return "created"


def without_nulls(value: Any) -> None:
    """Drops the nulls of maps in place: a create must do what the patch of an update would do."""
    if isinstance(value, dict):
        for key in [key for key, each in value.items() if each is None]:
            del value[key]
    for each in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        without_nulls(each)


def _warn_if_deleting(current: dict[str, Any]) -> None:
    metadata = current.get("metadata") or {}
    if metadata.get("deletionTimestamp"):
        name = metadata.get("name")
        sys.stderr.write(f"Warning: Detected changes to resource {name} which is currently being deleted.\n")


def _patch(context: Context, info: Info, modified: dict[str, Any], current: dict[str, Any], dry: str) -> dict[str, Any]:
    """The object after the patch; the current one itself where there is nothing to change."""
    flags = context.flags
    cls = type_of(info.mapping.api_version, info.mapping.kind)
    for attempt in range(_RETRIES + 1):
        text = ((current.get("metadata") or {}).get("annotations") or {}).get(mutating.LAST_APPLIED)
        try:
            original = loads(text) if text else {}
        except ValueError:
            original = {}
        patch = three_way(original, modified, current, cls)
        if not patch:
            return current
        if cls and not flags.on("overwrite"):
            _refuse_conflicts(info, patch, two_way(original, current, cls), cls)
        if dry == "client":
            return merge(current, patch, cls)
        kind = "strategic" if cls else "merge"
        version = ((modified.get("metadata") or {}).get("resourceVersion")) or ""
        if version:
            patch.setdefault("metadata", {})["resourceVersion"] = version
        try:
            return mutating.patch(context, info, kind, patch, dry)
        except StatusError as error:
            if error.reason == "Conflict" and not version and attempt < _RETRIES:
                current = context.client.get(info.path())
                continue
            if flags.on("force") and error.reason in ("Conflict", "Invalid"):
                return _recreate(context, info, modified, current)
            raise add_source(_applying(error, info, patch), "", "") from None
    raise AssertionError


def _refuse_conflicts(info: Info, patch: dict[str, Any], changed: dict[str, Any], cls: str) -> None:
    """Raises CLIError where the patch would overwrite what others changed since the last apply."""
    # Every apply changes the annotation. Upstream counts that as a conflict, so that its flag refuses any change.
    ours = copy(patch)
    ((ours.get("metadata") or {}).get("annotations") or {}).pop(mutating.LAST_APPLIED, None)
    if conflicts(ours, changed, cls):
        from pybernetes.kubectl.printers import yaml_text

        raise add_source(
            CLIError(
                f"patch:\n{yaml_text.dumps(ours)}\nconflicts with changes made from original to current:\n"
                f"{yaml_text.dumps(changed)}"
            ),
            "patching",
            info.source,
        )


def _applying(error: StatusError, info: Info, patch: dict[str, Any]) -> StatusError:
    from pybernetes.kubectl.data import dumps

    if error.reason == "Invalid":
        return error
    gv = f"{info.mapping.group}/{info.mapping.version}"
    message = (
        f'error when applying patch:\n{dumps(patch)}\nto:\nResource: "{gv}, Resource={info.mapping.resource}",'
        f' GroupVersionKind: "{gv}, Kind={info.mapping.kind}"\nName: "{info.name}", Namespace: "{info.namespace}"\n'
        f'for: "{info.source}": error when patching "{info.source}": {error.message}'
    )
    return StatusError({**error.status, "message": message})


def _recreate(context: Context, info: Info, modified: dict[str, Any], current: dict[str, Any]) -> dict[str, Any]:
    """Deletes and creates the object (`--force`); what was there before is put back where the new one is refused."""
    from pybernetes.kubectl.deleting import delete_and_wait

    flags = context.flags
    delete_and_wait(context, info, flags.number("grace-period"), flags["timeout"])
    try:
        return mutating.post(context, info, copy(modified))
    except StatusError as error:
        try:
            mutating.post(context, info, current)
        except CLIError as second:
            raise CLIError(
                "An error occurred force-replacing the existing object with the newly provided one:\n\n"
                f"{error.message}.\n\nAdditionally, an error occurred attempting to restore the original object:\n\n"
                f"{second.message}"
            ) from None
        raise


def _server_side(context: Context, info: Info, dry: str) -> str:
    from pybernetes.kubectl.server_side_apply import apply

    apply(context, info, dry)
    _warn_if_deleting(info.object)
    return _done(context, info, "serverside-applied")


FLAGS: tuple[Flag, ...] = (
    *mutating.PRINT_FLAGS,
    *mutating.FILENAME_FLAGS,
    mutating.DRY_RUN,
    mutating.VALIDATE,
    mutating.SELECTOR,
    mutating.RECORD,
    mutating.field_manager("kubectl-client-side-apply"),
    Flag("all", "bool", help="With --prune: all objects of the namespace."),
    Flag("applyset", help="With --prune: object that keeps the set of applied objects."),
    Flag("cascade", default="background", no_value="background", help="background, foreground or orphan."),
    Flag("force", "bool", help="Delete and create again what cannot be patched."),
    Flag("force-conflicts", "bool", help="Take fields over from other managers."),
    Flag("grace-period", "int", -1, "Seconds that deleted objects get to end."),
    Flag("openapi-patch", "bool", True, "Kept for compatibility."),
    Flag("overwrite", "bool", True, "Resolve conflicts with the files."),
    Flag("prune", "bool", help="Delete objects that were applied before and are in no file now."),
    Flag("prune-allowlist", "array", help="group/version/kind that --prune may delete; may be repeated."),
    Flag("server-side", "bool", help="Let the server merge."),
    Flag("subresource", help="Subresource to apply to."),
    Flag("timeout", "duration", help="How long to wait for a deletion."),
    Flag("wait", "bool", help="Wait until deleted objects are gone."),
)


def _last_applied(context: Context, arguments: list[str]) -> list[Info]:
    flags = context.flags
    builder = Builder(context).files(flags.words("filename"), flags.on("recursive"), flags.text("kustomize"))
    builder.selectors(flags.get("selector") or "", everything=flags.on("all"))
    return builder.arguments(arguments).checked()


def view_last_applied(context: Context, arguments: list[str]) -> int | None:
    """`apply view-last-applied`."""
    from pybernetes.kubectl.data import pretty
    from pybernetes.kubectl.printers import yaml_text

    output = context.flags.text("output")
    if output not in ("yaml", "json"):
        raise CLIError(
            f"Unexpected -o output mode: {output}, the flag 'output' must be one of yaml|json\n"
            f"See '{context.path} -h' for help and examples"
        )
    for info in _last_applied(context, arguments):
        text = ((info.object.get("metadata") or {}).get("annotations") or {}).get(mutating.LAST_APPLIED)
        if not text:
            continue
        value = loads(text)
        context.out(yaml_text.dumps(value) if output == "yaml" else pretty(value, "  ") + "\n")
    return None


def set_last_applied(context: Context, arguments: list[str]) -> int | None:
    """`apply set-last-applied`."""
    flags = context.flags
    dry = mutating.dry_run(flags)
    builder = Builder(context).files(flags.words("filename"))
    builder.latest = False
    for info in builder.checked():
        current = context.client.get(info.path())
        annotations = (current.get("metadata") or {}).get("annotations") or {}
        if mutating.LAST_APPLIED not in annotations and not flags.on("create-annotation"):
            raise CLIError(
                f"no last-applied-configuration annotation found on resource: {info.name}, to create the annotation,"
                " run the command with --create-annotation"
            )
        wanted = copy(info.object)
        if info.mapping.namespaced:
            wanted.setdefault("metadata", {}).setdefault("namespace", info.namespace)
        text = mutating.last_applied(wanted)
        if text != annotations.get(mutating.LAST_APPLIED) and dry != "client":
            patch = {"metadata": {"annotations": {mutating.LAST_APPLIED: text}}}
            current = context.client.patch(info.path(), "merge", patch, mutating.parameters(flags, dry))
        context.out(mutating.printer_for(flags, "configured", dry)(current))
    return None


def edit_last_applied(context: Context, arguments: list[str]) -> int | None:
    """`apply edit-last-applied`."""
    from pybernetes.kubectl.commands.edit import edit_last_applied as edit

    return edit(context, arguments)


COMMAND = Command(
    "apply (-f FILENAME | -k DIRECTORY)",
    "Apply a configuration to a resource by file name or stdin",
    run,
    flags=FLAGS,
    children={
        "view-last-applied": Command(
            "view-last-applied (TYPE [NAME | -l label] | TYPE/NAME | -f FILENAME)",
            "View the latest last-applied-configuration annotations of a resource/object",
            view_last_applied,
            flags=(
                Flag("output", default="yaml", short="o"),
                mutating.SELECTOR,
                mutating.ALL,
                *mutating.FILENAME_FLAGS,
            ),
        ),
        "set-last-applied": Command(
            "set-last-applied -f FILENAME",
            "Set the last-applied-configuration annotation on a live object to match the contents of a file",
            set_last_applied,
            flags=(
                *mutating.PRINT_FLAGS,
                mutating.DRY_RUN,
                Flag("create-annotation", "bool", help="Create the annotation where it is missing."),
                Flag("filename", "list", short="f"),
            ),
        ),
        "edit-last-applied": Command(
            "edit-last-applied (RESOURCE/NAME | -f FILENAME)",
            "Edit latest last-applied-configuration annotations of a resource/object",
            edit_last_applied,
            flags=(
                *mutating.PRINT_FLAGS,
                *mutating.FILENAME_FLAGS,
                mutating.field_manager("kubectl-client-side-apply"),
                mutating.VALIDATE,
                Flag("windows-line-endings", "bool"),
            ),
        ),
    },
)
