"""`kubectl attach`: joins the main process of a container."""

from __future__ import annotations

import sys

from pybernetes.kubectl.attaching import container_of, detach_keys, running_pod, session
from pybernetes.kubectl.command import Command
from pybernetes.kubectl.errors import CLIError
from pybernetes.kubectl.flags import Flag

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pybernetes.kubectl.context import Context


def run(context: Context, arguments: list[str]) -> int | None:
    """`attach`."""
    flags = context.flags
    if not arguments:
        raise CLIError("at least 1 argument is required for attach")
    if len(arguments) > 2:
        shown = " ".join(arguments)
        raise CLIError(f"expected POD, TYPE/NAME, or TYPE NAME, (at most 2 arguments) saw {len(arguments)}: [{shown}]")
    keys = detach_keys(flags.text("detach-keys"))
    pod = running_pod(context, "/".join(arguments), "attach")
    try:
        container = container_of(context, pod, flags.text("container"), flags.on("quiet"))
    except CLIError as error:
        raise CLIError(f"cannot attach to the container: {error.message}") from None
    stdin, tty = flags.on("stdin"), flags.on("tty")
    if tty and not container.get("tty"):
        tty = False
        if not flags.on("quiet"):
            context.err(f"error: Unable to use a TTY - container {container['name']} did not allocate one\n")
    elif not tty and container.get("tty"):
        tty = True
    if stdin and tty and not flags.on("quiet") and sys.stdin.isatty():
        context.err("If you don't see a command prompt, try pressing enter.\n")
    return session(context, pod, "attach", {"container": container["name"]}, stdin, tty, keys)


COMMAND = Command(
    "attach (POD | TYPE/NAME) -c CONTAINER",
    "Attach to a running container",
    run,
    flags=(
        Flag("container", short="c", help="Name of the container."),
        Flag("detach-keys", default="ctrl-p,ctrl-q", help="Keys that end the session."),
        Flag("pod-running-timeout", "duration", 60.0, "How long to wait until a pod runs."),
        Flag("quiet", "bool", short="q", help="Only the output of the container."),
        Flag("stdin", "bool", short="i", help="Pass stdin to the container."),
        Flag("tty", "bool", short="t", help="Stdin is a terminal."),
    ),
)
