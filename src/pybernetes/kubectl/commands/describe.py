"""`kubectl describe`: everything about an object for people, with its events."""

from __future__ import annotations

from pybernetes.kubectl import mutating
from pybernetes.kubectl.builder import Builder
from pybernetes.kubectl.command import Command
from pybernetes.kubectl.describing.description import Description
from pybernetes.kubectl.describing.table import describer
from pybernetes.kubectl.describing.text import align
from pybernetes.kubectl.errors import CLIError, StatusError, not_found, raise_all
from pybernetes.kubectl.flags import Flag

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pybernetes.kubectl.builder import Info
    from pybernetes.kubectl.context import Context


def run(context: Context, arguments: list[str]) -> int | None:
    """`describe`."""
    flags = context.flags
    if not arguments and not flags.words("filename") and not flags.get("kustomize"):
        raise CLIError(
            'You must specify the type of resource to describe. Use "kubectl api-resources" for a complete list of'
            " supported resources."
        )
    builder = Builder(context).files(flags.words("filename"), flags.on("recursive"), flags.text("kustomize"))
    builder.all_namespaces = flags.on("all-namespaces")
    builder.selectors(flags.text("selector"))
    builder.chunk = flags.number("chunk-size")
    builder.arguments(arguments)
    infos = builder.infos()
    errors = list(builder.errors)
    if errors and not infos and len(arguments) == 2 and not_found(errors[0]):
        infos = _by_prefix(context, arguments)
        for info in infos:
            this = Description(context, info, False, flags.number("chunk-size"))
            describer(info.mapping.group, info.mapping.kind)(this)
            context.out(align(this.text()) + "\n")
        if infos:
            return None
    printed = False
    for info in infos:
        # Events of many objects are fetched only on request.
        events = flags.on("show-events") and (len(infos) == 1 or flags.changed("show-events"))
        this = Description(context, info, events, flags.number("chunk-size"))
        try:
            describer(info.mapping.group, info.mapping.kind)(this)
            text = align(this.text())
        except (AttributeError, LookupError, TypeError, ValueError) as error:  # the others are described all the same
            what = f"{info.mapping.kind} {info.name!r}"
            errors.append(CLIError(f"cannot describe {what}: unexpected data: {type(error).__name__}: {error}"))
            continue
        context.out(("\n\n" if printed else "") + text)
        printed = True
    if not infos and not errors:
        if builder.all_namespaces:
            context.err("No resources found\n")
        else:
            context.err(f"No resources found in {builder.namespace} namespace.\n")
    raise_all(errors)
    return None


def _by_prefix(context: Context, arguments: list[str]) -> list[Info]:
    """Objects whose name begins with what was given."""
    try:
        every = Builder(context).arguments(arguments[:1]).infos()
    except StatusError:
        return []
    return [info for info in every if info.name.startswith(arguments[1])]


COMMAND = Command(
    "describe (-f FILENAME | TYPE [NAME_PREFIX | -l label] | TYPE/NAME)",
    "Show details of a specific resource or group of resources",
    run,
    flags=(
        *mutating.FILENAME_FLAGS,
        mutating.SELECTOR,
        mutating.ALL_NAMESPACES,
        Flag("chunk-size", "int", 500, "Objects in one response of a list."),
        Flag("show-events", "bool", True, "Show events too."),
    ),
)
