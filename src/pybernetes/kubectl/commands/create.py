"""`kubectl create`: objects of files, or of the generators in `create_*.py`."""

from __future__ import annotations

from pybernetes.kubectl import mutating
from pybernetes.kubectl.builder import Builder
from pybernetes.kubectl.command import Command
from pybernetes.kubectl.errors import CLIError, add_source, raise_all
from pybernetes.kubectl.flags import Flag

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pybernetes.kubectl.context import Context


def run(context: Context, arguments: list[str]) -> int | None:
    """`create -f`."""
    flags = context.flags
    if arguments and not (flags.words("filename") or flags.get("kustomize")):
        from pybernetes.kubectl.commands.plugin import run_plugin

        run_plugin(context.argv)  # `kubectl-create-NAME`; returns where there is none
        raise CLIError(f"Unexpected args: [{' '.join(arguments)}]\nSee 'kubectl create -h' for help and examples")
    if not flags.words("filename") and not flags.get("kustomize") and not flags.get("raw"):
        raise CLIError("must specify one of -f and -k")
    if arguments:
        raise CLIError(f"Unexpected args: [{' '.join(arguments)}]\nSee 'kubectl create -h' for help and examples")
    if flags.get("raw"):
        return _raw(context)
    dry = mutating.dry_run(flags)
    mutating.validation(flags)
    if flags.on("edit"):
        from pybernetes.kubectl.commands.edit import create_edited

        return create_edited(context)
    printer = mutating.printer_for(flags, "created", dry)
    builder = Builder(context).files(flags.words("filename"), flags.on("recursive"), flags.text("kustomize"))
    builder.selectors(flags.text("selector"))
    builder.latest, builder.validates = False, True
    errors: list[CLIError] = []
    count = 0
    for info in builder.visit():
        count += 1
        if flags.on("save-config"):
            mutating.set_last_applied(info.object)
        mutating.record(context, info.object)
        try:
            mutating.create(context, info, dry, printer)
        except CLIError as error:
            errors.append(add_source(error, "creating", info.source))
    errors += builder.errors
    raise_all(errors)
    if not count:
        raise CLIError("no objects passed to create")
    return None


def _raw(context: Context) -> int | None:
    flags = context.flags
    if flags.on("edit"):
        raise CLIError("--raw and --edit are mutually exclusive")
    names = flags.words("filename")
    if len(names) != 1:
        raise CLIError("--raw can only use a single local file or stdin")
    if names[0].startswith(("http://", "https://")):
        raise CLIError("--raw cannot read from a url")
    for name, given in (
        ("recursive", flags.on("recursive")),
        ("selector (-l)", flags.get("selector")),
        ("output", flags.text("output")),
    ):
        if given:
            raise CLIError(f"--raw and --{name} are mutually exclusive")
    if not flags.text("raw").startswith("/"):
        problem = f'parse "{flags.text("raw")}": invalid URI for request'
        raise CLIError(f"--raw must be a valid URL path: {problem}")
    from pybernetes.kubectl.manifests import sources

    _, body = next(iter(sources(names)))
    response = context.client.open("POST", flags.text("raw"), body=body)
    context.out(context.client.content(response).decode("utf-8", "replace"))
    return None


def _children() -> dict[str, Command | str]:
    from pybernetes.kubectl.commands import create_generators, create_rbac, create_secrets, create_services

    found: dict[str, Command | str] = {}
    for module in (create_generators, create_rbac, create_secrets, create_services):
        found.update({command.name: command for command in module.COMMANDS})
    return found


FLAGS: tuple[Flag, ...] = (
    *mutating.PRINT_FLAGS,
    *mutating.FILENAME_FLAGS,
    mutating.DRY_RUN,
    mutating.VALIDATE,
    mutating.SAVE_CONFIG,
    mutating.SELECTOR,
    mutating.RECORD,
    mutating.field_manager("kubectl-create"),
    Flag("edit", "bool", help="Edit the object before it is created."),
    Flag("raw", help="Path to POST to as it is."),
    Flag("windows-line-endings", "bool", help="With --edit: line endings of Windows."),
)

COMMAND = Command(
    "create -f FILENAME", "Create a resource from a file or from stdin", run, flags=FLAGS, children=_children()
)
