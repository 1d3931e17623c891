"""`kubectl replace`: puts the objects of files in the place of those on the server."""

from __future__ import annotations

from pybernetes.kubectl import deleting, mutating
from pybernetes.kubectl.builder import Builder
from pybernetes.kubectl.command import Command
from pybernetes.kubectl.errors import CLIError, StatusError, add_source, not_found, raise_all
from pybernetes.kubectl.flags import Flag

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pybernetes.kubectl.context import Context


def run(context: Context, arguments: list[str]) -> int | None:
    """`replace`."""
    flags = context.flags
    dry = mutating.dry_run(flags)
    force = flags.on("force")
    if flags.number("grace-period") >= 0 and not force:
        raise CLIError("--grace-period must have --force specified")
    if flags["timeout"] and not force:
        raise CLIError("--timeout must have --force specified")
    if force and dry != "none":
        raise CLIError("--dry-run can not be used when --force is set")
    if not flags.words("filename") and not flags.get("kustomize"):
        raise CLIError("must specify one of -f and -k")
    if flags.get("raw"):
        from pybernetes.kubectl.manifests import sources

        if len(flags.words("filename")) != 1:
            raise CLIError("--raw can only use a single local file or stdin")
        _, body = next(iter(sources(flags.words("filename"))))
        answer = context.client.open("PUT", flags.text("raw"), body=body)
        context.out(context.client.content(answer).decode("utf-8", "replace"))
        return None
    builder = Builder(context).files(flags.words("filename"), flags.on("recursive"), flags.text("kustomize"))
    builder.latest, builder.validates = False, True
    printer = mutating.printer_for(flags, "replaced", dry)
    errors: list[CLIError] = []
    infos = builder.infos()
    if force:
        for info in infos:
            try:
                context.client.delete(
                    info.path(), deleting.options(flags.number("grace-period"), deleting.cascade(context))
                )
                grace = " force" if flags.number("grace-period") == 0 else ""
                where = f" from {info.namespace} namespace" if info.mapping.namespaced else ""
                context.out(f'{info.label().rpartition("/")[0]} "{info.name}"{grace} deleted{where}\n')
            except StatusError as error:
                if not not_found(error):
                    raise
        for info in infos:
            deleting.wait_gone(context, info, flags["timeout"])
    for info in infos:
        if flags.on("save-config"):
            mutating.set_last_applied(info.object)
        else:
            mutating.set_last_applied(info.object, only_existing=True)
        mutating.record(context, info.object)
        try:
            if dry != "client":
                if force:
                    info.refresh(mutating.post(context, info, info.object, dry))
                else:
                    info.refresh(_put(context, info, mutating.parameters(flags, dry)))
            context.out(printer(info.object))
        except CLIError as error:
            errors.append(add_source(error, "replacing", info.source))
    errors += builder.errors
    raise_all(errors)
    if not infos:
        raise CLIError("no objects passed to replace")
    return None


def _put(context: Context, info: object, parameters: dict[str, object]) -> dict[str, object]:
    from pybernetes.kubectl.builder import Info

    assert isinstance(info, Info)
    body = dict(info.object)
    metadata = dict(body.get("metadata") or {})
    sub = context.flags.text("subresource")
    if not metadata.get("resourceVersion"):
        current = context.client.get(info.path(sub))
        metadata["resourceVersion"] = current["metadata"]["resourceVersion"]
        body["metadata"] = metadata
    found: dict[str, object] = context.client.put(info.path(sub), body, parameters)
    return found


COMMAND = Command(
    "replace -f FILENAME",
    "Replace a resource by file name or stdin",
    run,
    flags=(
        *mutating.PRINT_FLAGS,
        *mutating.FILENAME_FLAGS,
        mutating.DRY_RUN,
        mutating.VALIDATE,
        mutating.SAVE_CONFIG,
        mutating.RECORD,
        mutating.field_manager("kubectl-replace"),
        Flag("cascade", default="background", no_value="background", help="background, foreground or orphan."),
        Flag("force", "bool", help="Delete and create again."),
        Flag("grace-period", "int", -1, "Seconds that the object gets to end."),
        Flag("raw", help="Path to PUT to as it is."),
        Flag("subresource", help="Subresource to replace."),
        Flag("timeout", "duration", help="How long to wait for a deletion."),
        Flag("wait", "bool", help="Wait until deleted objects are gone."),
    ),
)
