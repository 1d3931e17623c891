"""`kubectl rollout`: status, history, undo, pause, resume and restart of Deployments, DaemonSets and StatefulSets."""

from __future__ import annotations

import time

from pybernetes.kubectl import mutating, rollouts
from pybernetes.kubectl.builder import Builder, Info
from pybernetes.kubectl.command import Command
from pybernetes.kubectl.data import dig
from pybernetes.kubectl.errors import CLIError, StatusError, raise_all
from pybernetes.kubectl.flags import Flag

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pybernetes.kubectl.context import Context


def _infos(context: Context, arguments: list[str], errors: list[CLIError] | None = None) -> list[Info]:
    """The objects; where some cannot be read and others can, their errors are put into `errors`."""
    flags = context.flags
    if not arguments and not flags.words("filename") and not flags.get("kustomize"):
        raise CLIError("required resource not specified")
    builder = Builder(context).files(flags.words("filename"), flags.on("recursive"), flags.text("kustomize"))
    builder.selectors(flags.get("selector") or "")
    infos = builder.arguments(arguments).infos()
    if builder.errors and not infos:
        raise_all(builder.errors)
    if errors is not None:
        errors += builder.errors
    if not infos:
        context.err(f"No resources found in {context.namespace()} namespace.\n")
    return infos


def status(context: Context, arguments: list[str]) -> int | None:
    """`rollout status`: waits until the rollout is done."""
    flags = context.flags
    revision = flags.number("revision")
    if revision < 0:
        raise CLIError(f"revision must be a positive integer: {revision}")
    timeout = flags["timeout"]
    deadline = time.monotonic() + timeout if timeout else None
    errors: list[CLIError] = []
    for info in _infos(context, arguments, errors):
        try:
            text, done = rollouts.status(info.object, info.mapping, revision)
            context.out(text)
            while not done and flags.on("watch"):
                done = _follow(context, info, revision, deadline, text)
        except CLIError as error:
            errors.append(error)
    raise_all(errors)
    return None


def _follow(context: Context, info: Info, revision: int, deadline: float | None, last: str) -> bool:
    import sys

    sys.stdout.flush()
    version = dig(info.object, "metadata", "resourceVersion", default="")
    parameters = {"fieldSelector": f"metadata.name={info.name}", "resourceVersion": version}
    left = None if deadline is None else deadline - time.monotonic()
    if left is not None and left <= 0:
        raise CLIError("timed out waiting for the condition")
    try:
        for event in context.client.watch(info.mapping.path(info.namespace), parameters, timeout=left):
            if event.get("type") == "DELETED":
                raise CLIError("object has been deleted")
            if event.get("type") == "ERROR":
                break
            info.refresh(event["object"])
            text, done = rollouts.status(info.object, info.mapping, revision)
            context.out(text)
            sys.stdout.flush()
            if done:
                return True
            if deadline is not None and time.monotonic() > deadline:
                raise CLIError("timed out waiting for the condition")
    except TimeoutError:
        raise CLIError("timed out waiting for the condition") from None
    info.refresh(context.client.get(info.path()))
    return rollouts.status(info.object, info.mapping, revision)[1]


def history(context: Context, arguments: list[str]) -> int | None:
    """`rollout history`."""
    flags = context.flags
    revision = flags.number("revision")
    if revision < 0:
        raise CLIError(f"revision must be a positive integer: {revision}")
    errors: list[CLIError] = []
    for info in _infos(context, arguments, errors):
        found = rollouts.history(context, info)
        if flags.get("template") and not flags.text("output"):
            context.out(mutating.printer_for(flags)(info.object))
            continue
        if flags.text("output"):
            if revision:
                if revision not in found:
                    raise CLIError("unable to find the specified revision")
                shown = [found[revision].source]
            else:
                shown = [found[number].source for number in sorted(found)]
            for obj in shown:
                context.out(mutating.printer_for(flags)(obj))
            continue
        if not found:
            what = f" with revision #{revision}" if revision else " "
            context.out(f"{info.label()}{what}\nNo rollout history found.\n")
            continue
        if revision:
            if revision not in found:
                raise CLIError("unable to find the specified revision")
            from pybernetes.kubectl.describing.pods import template_text

            context.out(f"{info.label()} with revision #{revision}\n{template_text(found[revision].template)}\n")
            continue
        context.out(f"{info.label()} \nREVISION  CHANGE-CAUSE\n")
        for number in sorted(found):
            context.out(f"{number:<9} {found[number].cause or '<none>'}\n")
        context.out("\n")
    raise_all(errors)
    return None


def undo(context: Context, arguments: list[str]) -> int | None:
    """`rollout undo`."""
    flags = context.flags
    dry = mutating.dry_run(flags)
    errors: list[CLIError] = []
    for info in _infos(context, arguments, errors):
        annotations = dig(info.object, "metadata", "annotations", default={})
        if mutating.LAST_APPLIED in annotations:
            context.err(
                f"Warning: resource {info.mapping.resource}/{info.name} was previously managed with 'kubectl apply'."
                f" Rolling back will not update the {mutating.LAST_APPLIED} annotation, which may cause unexpected"
                " behavior on future 'kubectl apply' operations. Consider using 'kubectl apply' with your previous"
                " configuration file instead.\n"
            )
        try:
            message = rollouts.undo(context, info, flags.number("to-revision"), dry)
        except CLIError as error:
            errors.append(error)
            continue
        context.out(mutating.printer_for(flags, message, dry)(info.object))
    raise_all(errors)
    return None


def pause(context: Context, arguments: list[str]) -> int | None:
    """`rollout pause`."""
    return _toggle(context, arguments, True)


def resume(context: Context, arguments: list[str]) -> int | None:
    """`rollout resume`."""
    return _toggle(context, arguments, False)


def _toggle(context: Context, arguments: list[str], paused: bool) -> int | None:
    verb = "paused" if paused else "resumed"
    errors: list[CLIError] = []
    for info in _infos(context, arguments, errors):
        label = f"{info.mapping.resource}.{info.mapping.group}" if info.mapping.group else info.mapping.resource
        if info.mapping.kind != "Deployment":
            what = "pausing" if paused else "resuming"
            errors.append(CLIError(f'error: {label} "{info.name}" {what} is not supported'))
            continue
        if bool(dig(info.object, "spec", "paused", default=False)) == paused:
            word = "is already paused" if paused else "is not paused"
            errors.append(CLIError(f'error: {label} "{info.name}" {word}'))
            continue
        _patch(context, info, {"spec": {"paused": paused or None}}, verb, errors)
    raise_all(errors)
    return None


def restart(context: Context, arguments: list[str]) -> int | None:
    """`rollout restart`."""
    errors: list[CLIError] = []
    now = time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime()) + _zone()
    for info in _infos(context, arguments, errors):
        label = f"{info.mapping.resource}.{info.mapping.group}" if info.mapping.group else info.mapping.resource
        if info.mapping.kind not in ("Deployment", "DaemonSet", "StatefulSet"):
            errors.append(CLIError(f'error: {label} "{info.name}" restarting is not supported'))
            continue
        if info.mapping.kind == "Deployment" and dig(info.object, "spec", "paused", default=False):
            why = "can't restart paused deployment (run rollout resume first)"
            errors.append(CLIError(f'error: {label} "{info.name}" {why}'))
            continue
        annotations = {"kubectl.kubernetes.io/restartedAt": now}
        if dig(info.object, "spec", "template", "metadata", "annotations", default={}).get(*annotations) == now:
            errors.append(
                CLIError(
                    f"failed to create patch for {info.name}: if restart has already been triggered within the past"
                    " second, please wait before attempting to trigger another"
                )
            )
            continue
        _patch(context, info, {"spec": {"template": {"metadata": {"annotations": annotations}}}}, "restarted", errors)
    raise_all(errors)
    return None


def _zone() -> str:
    text = time.strftime("%z")
    return "Z" if text in ("+0000", "") else f"{text[:3]}:{text[3:]}"


def _patch(context: Context, info: Info, patch: dict[str, object], verb: str, errors: list[CLIError]) -> None:
    """Patches one object and prints it; the others go on where the server refuses it."""
    if context.flags.on("record"):
        patch["metadata"] = {"annotations": {mutating.CHANGE_CAUSE: mutating.change_cause(context)}}
    try:
        after = mutating.patch(context, info, "strategic", patch)
    except StatusError as error:
        errors.append(CLIError(f"failed to patch: {error.message}"))
        return
    context.out(mutating.printer_for(context.flags, verb)(after))


_COMMON = (*mutating.FILENAME_FLAGS, mutating.SELECTOR)
_CHANGE = (*mutating.PRINT_FLAGS, *_COMMON, mutating.RECORD)
COMMAND = Command(
    "rollout SUBCOMMAND",
    "Manage the rollout of a resource",
    help_on_stdout=True,
    children={
        "status": Command(
            "status (TYPE NAME | TYPE/NAME) [flags]",
            "Show the status of the rollout",
            status,
            flags=(
                *_COMMON,
                Flag("revision", "int", help="Watch this revision; fail when another one is rolled out."),
                Flag("timeout", "duration", help="How long to wait; 0 has no limit."),
                Flag("watch", "bool", True, "Wait until the rollout is done.", short="w"),
            ),
        ),
        "history": Command(
            "history (TYPE NAME | TYPE/NAME) [flags]",
            "View rollout history",
            history,
            flags=(*mutating.PRINT_FLAGS, *_COMMON, Flag("revision", "int", help="Details of this revision.")),
        ),
        "undo": Command(
            "undo (TYPE NAME | TYPE/NAME) [flags]",
            "Undo a previous rollout",
            undo,
            flags=(*_CHANGE, mutating.DRY_RUN, Flag("to-revision", "int", help="0 is the one before.")),
        ),
        "pause": Command(
            "pause RESOURCE",
            "Mark the provided resource as paused",
            pause,
            flags=(*_CHANGE, mutating.field_manager("kubectl-rollout")),
        ),
        "resume": Command(
            "resume RESOURCE",
            "Resume a paused resource",
            resume,
            flags=(*_CHANGE, mutating.field_manager("kubectl-rollout")),
        ),
        "restart": Command(
            "restart RESOURCE",
            "Restart a resource",
            restart,
            flags=(*_CHANGE, mutating.field_manager("kubectl-rollout")),
        ),
    },
)
