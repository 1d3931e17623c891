"""`kubectl certificate`: approves or denies certificate signing requests."""

from __future__ import annotations

import time

from pybernetes.kubectl import mutating
from pybernetes.kubectl.builder import Builder, Info
from pybernetes.kubectl.command import Command
from pybernetes.kubectl.errors import CLIError, raise_all
from pybernetes.kubectl.flags import Flag
from pybernetes.kubectl.printing import PRINT_FLAGS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pybernetes.kubectl.context import Context


def _decide(context: Context, arguments: list[str], kind: str, verb: str) -> int | None:
    flags = context.flags
    if not arguments and not flags.words("filename") and not flags.get("kustomize"):
        raise CLIError("one or more CSRs must be specified as <name> or -f <filename>")
    builder = Builder(context).files(flags.words("filename"), flags.on("recursive"), flags.text("kustomize"))
    if arguments:
        builder.arguments(["certificatesigningrequests", *arguments])
    for info in builder.infos():
        context.out(mutating.printer_for(flags, verb)(_update(context, info, kind)))
    raise_all(builder.errors)
    return None


def _update(context: Context, info: Info, kind: str) -> dict[str, object]:
    status = info.object.setdefault("status", {})
    conditions = status.get("conditions") or []
    other = "Denied" if kind == "Approved" else "Approved"
    if any(each.get("type") == other for each in conditions):
        raise CLIError(f'certificate signing request "{info.name}" is already {other}')
    if any(each.get("type") == kind for each in conditions) and not context.flags.on("force"):
        return info.object
    conditions = [each for each in conditions if each.get("type") != kind]
    word = "approve" if kind == "Approved" else "deny"
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    conditions.append(
        {
            "type": kind,
            "status": "True",
            "reason": f"Kubectl{'Approve' if kind == 'Approved' else 'Deny'}",
            "message": f"This CSR was {'approved' if word == 'approve' else 'denied'} by kubectl certificate {word}.",
            "lastUpdateTime": now,
        }
    )
    status["conditions"] = conditions
    found: dict[str, object] = context.client.put(info.path("approval"), info.object)
    return found


def approve(context: Context, arguments: list[str]) -> int | None:
    """`certificate approve`."""
    return _decide(context, arguments, "Approved", "approved")


def deny(context: Context, arguments: list[str]) -> int | None:
    """`certificate deny`."""
    return _decide(context, arguments, "Denied", "denied")


_FLAGS = (*PRINT_FLAGS, *mutating.FILENAME_FLAGS, Flag("force", "bool", help="Decide again."))


def run(context: Context, arguments: list[str]) -> int | None:
    """`certificate` without a subcommand: its help."""
    from pybernetes.kubectl import usage

    context.out(usage.command(COMMAND, ["kubectl", "certificate"]))
    return None


COMMAND = Command(
    "certificate SUBCOMMAND",
    "Modify certificate resources",
    run,
    children={
        "approve": Command(
            "approve (-f FILENAME | NAME)", "Approve a certificate signing request", approve, flags=_FLAGS
        ),
        "deny": Command("deny (-f FILENAME | NAME)", "Deny a certificate signing request", deny, flags=_FLAGS),
    },
)
