"""`kubectl undo`: applies what an object was before the last `apply`; once more, and the last apply is back."""

from __future__ import annotations

from pybernetes.kubectl import apply_journal, mutating
from pybernetes.kubectl.builder import Builder, Info
from pybernetes.kubectl.command import Command
from pybernetes.kubectl.commands.apply import apply_object
from pybernetes.kubectl.data import loads
from pybernetes.kubectl.errors import CLIError
from pybernetes.kubectl.flags import Flag

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pybernetes.kubectl.context import Context


def run(context: Context, arguments: list[str]) -> int | None:
    """`undo TYPE/NAME`."""
    flags = context.flags
    dry = mutating.dry_run(flags)
    builder = Builder(context).files(flags.words("filename"), flags.on("recursive"), flags.text("kustomize"))
    if not arguments and not flags.words("filename") and not flags.text("kustomize"):
        raise CLIError("undo takes objects: TYPE/NAME, or the files that were applied")
    for info in builder.arguments(arguments, allow_empty=False).checked():
        if info.mapping.kind == "Secret" and not info.mapping.group:
            raise CLIError(f"{info.label()}: former values of Secrets are not kept, so that there is nothing to undo")
        text = apply_journal.previous(context, info)
        if text is None:
            raise CLIError(f"{info.label()}: no client-side apply of this machine is known that could be undone")
        if not text:
            raise CLIError(f"{info.label()} was created by the last apply; `kubectl delete {info.label()}` undoes it")
        wanted = Info(info.mapping, info.namespace, info.name, loads(text))
        result = apply_object(context, wanted, dry)
        if result:
            context.out(mutating.printer_for(flags, f"undone ({result})", dry)(wanted.object))
    return None


COMMAND = Command(
    "undo (TYPE/NAME | -f FILENAME)",
    "Undo the last apply of an object",
    run,
    flags=(
        *mutating.PRINT_FLAGS,
        *mutating.FILENAME_FLAGS,
        mutating.DRY_RUN,
        mutating.VALIDATE,
        mutating.field_manager("kubectl-client-side-apply"),
        Flag("force", "bool", help="Delete and create again what cannot be patched."),
        Flag("grace-period", "int", -1, "Seconds that deleted objects get to end."),
        Flag("timeout", "duration", help="How long to wait for a deletion."),
    ),
)
