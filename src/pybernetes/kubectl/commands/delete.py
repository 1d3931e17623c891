"""`kubectl delete`: deletes objects by name, selector or file, and waits until they are gone."""

from __future__ import annotations

import sys

from pybernetes.kubectl import deleting, mutating
from pybernetes.kubectl.builder import Builder, Info
from pybernetes.kubectl.command import Command
from pybernetes.kubectl.errors import CLIError, StatusError, add_source, not_found, raise_all
from pybernetes.kubectl.flags import Flag

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pybernetes.kubectl.context import Context


def run(context: Context, arguments: list[str]) -> int | None:
    """`delete`."""
    flags = context.flags
    if flags.get("raw"):
        answer = context.client.open("DELETE", flags.text("raw"))
        context.out(context.client.content(answer).decode("utf-8", "replace"))
        return None
    dry = mutating.dry_run(flags)
    policy = deleting.cascade(context)
    grace = flags.number("grace-period")
    if flags.on("now"):
        if grace != -1:
            raise CLIError("--now and --grace-period cannot be specified together")
        grace = 1
    if flags.text("output") not in ("", "name"):
        raise CLIError(f"unexpected -o output mode: {flags.text('output')}. We only support '-o name'")
    everything = flags.on("all")
    if everything and (flags.get("selector") or flags.get("field-selector")):
        raise CLIError("setting 'all' parameter but found a non empty selector. ")
    if flags.on("force") and grace > 0:
        raise CLIError("--force and --grace-period greater than 0 cannot be specified together")
    builder = _builder(context, arguments)
    infos = builder.infos()
    ignore = flags.on("ignore-not-found") or everything or bool(flags.get("selector") or flags.get("field-selector"))
    if ignore and not flags.changed("ignore-not-found"):
        builder.errors = [error for error in builder.errors if not not_found(error)]
    if flags.on("force") and grace <= 0:
        context.err(
            "Warning: Immediate deletion does not wait for confirmation that the running resource has been terminated."
            " The resource may continue to run on the cluster indefinitely.\n"
        )
        grace = 0
    elif grace == 0:
        grace = 1
    if flags.on("interactive") and not _confirmed(context, infos):
        return None
    return _delete(context, builder, infos, grace, policy, dry, ignore)


def _builder(context: Context, arguments: list[str]) -> Builder:
    flags = context.flags
    builder = Builder(context)
    builder.all_namespaces = flags.on("all-namespaces")
    builder.files(flags.words("filename"), flags.on("recursive"), flags.text("kustomize"))
    if flags.on("all") and not arguments and not flags.words("filename") and not flags.text("kustomize"):
        raise CLIError("at least one resource must be specified to use a selector")
    builder.selectors(flags.text("selector"), flags.text("field-selector"), flags.on("all"))
    builder.arguments(arguments, allow_empty=False)
    builder.latest = builder.fetch = False
    builder.ignore_not_found = flags.on("ignore-not-found")
    return builder


def _confirmed(context: Context, infos: list[Info]) -> bool:
    if not infos:
        context.out("No resources found\n")
        return False
    context.out(f"You are about to delete the following {len(infos)} resource(s):\n")
    for info in infos:
        context.out(f"{info.label()}\n")
    context.out("Do you want to continue? (y/N): ")
    sys.stdout.flush()
    if sys.stdin.readline().strip().lower() != "y":
        context.out("deletion is cancelled\n")
        return False
    return True


def _delete(
    context: Context, builder: Builder, infos: list[Info], grace: int, policy: str, dry: str, ignore: bool
) -> int | None:
    flags = context.flags
    errors = list(builder.errors)
    waiting: list[tuple[Info, str]] = []
    found = 0
    warn = context.explicit_namespace() and not flags.on("all-namespaces")
    for info in infos:
        found += 1
        if warn and not info.mapping.namespaced:
            context.err("Warning: deleting cluster-scoped resources, not scoped to the provided namespace\n")
            warn = False
        uid = (info.object.get("metadata") or {}).get("uid", "")
        if dry != "client":
            try:
                answer = context.client.delete(info.path(), deleting.options(grace, policy, dry))
            except StatusError as error:
                if not (ignore and not_found(error)):
                    errors.append(add_source(error, "deleting", info.source))
                continue
            details = (answer or {}).get("details") or {}
            uid = details.get("uid") or uid
        _print(context, info, grace, dry)
        waiting.append((info, uid))
    if not found and not errors:
        if not flags.on("ignore-not-found"):
            context.out("No resources found\n")
        return None
    if flags.on("wait") and dry == "none":
        sys.stdout.flush()
        timeout = flags["timeout"] or 168 * 3600
        for info, uid in waiting:
            if "watch" not in info.mapping.verbs:
                continue
            try:
                if not deleting.wait_gone(context, info, timeout, uid):
                    errors.append(
                        CLIError(f"timed out waiting for the condition on {info.mapping.resource}/{info.name}")
                    )
            except StatusError as error:
                if error.reason not in ("Forbidden", "MethodNotAllowed"):
                    errors.append(error)
    raise_all(errors)
    return None


def _print(context: Context, info: Info, grace: int, dry: str) -> None:
    kind = f"{info.mapping.kind.lower()}.{info.mapping.group}" if info.mapping.group else info.mapping.kind.lower()
    if context.flags.text("output") == "name":
        context.out(f"{kind}/{info.name}\n")
        return
    operation = "force deleted" if grace == 0 else "deleted"
    if info.mapping.namespaced:
        operation += f" from {info.namespace} namespace"
    operation += {"client": " (dry run)", "server": " (server dry run)"}.get(dry, "")
    context.out(f'{kind} "{info.name}" {operation}\n')


FLAGS: tuple[Flag, ...] = (
    *mutating.FILENAME_FLAGS,
    mutating.DRY_RUN,
    mutating.SELECTOR,
    mutating.FIELD_SELECTOR,
    mutating.ALL,
    mutating.ALL_NAMESPACES,
    Flag("cascade", default="background", no_value="background", help="background, foreground or orphan."),
    Flag("force", "bool", help="Delete at once, with grace period 0."),
    Flag("grace-period", "int", -1, "Seconds that the object gets to end; negative means its own."),
    Flag("ignore-not-found", "bool", help="An object that is not there is no error."),
    Flag("interactive", "bool", short="i", help="Ask before."),
    Flag("now", "bool", help="Same as --grace-period=1."),
    Flag("output", short="o", help="name, or nothing."),
    Flag("raw", help="Path to DELETE as it is."),
    Flag("timeout", "duration", help="How long to wait; 0 decides by the object."),
    Flag("wait", "bool", True, "Wait until the objects are gone."),
)
COMMAND = Command(
    "delete ([-f FILENAME] | [-k DIRECTORY] | TYPE [(NAME | -l label | --all)])",
    "Delete resources by file names, stdin, resources and names, or by resources and label selector",
    run,
    flags=FLAGS,
)
