"""`kubectl exec`: runs a command in a container."""

from __future__ import annotations

import sys

from pybernetes.kubectl.attaching import container_of, running_pod, session
from pybernetes.kubectl.command import Command
from pybernetes.kubectl.errors import CLIError
from pybernetes.kubectl.flags import Flag

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pybernetes.kubectl.context import Context


def run(context: Context, arguments: list[str]) -> int | None:
    """`exec`."""
    flags = context.flags
    files = flags.words("filename")
    usage = f"\nSee '{context.path} -h' for help and examples"
    if flags.dash < 0 and len(arguments) > 1:
        raise CLIError("exec [POD] [COMMAND] is not supported anymore. Use exec [POD] -- [COMMAND] instead" + usage)
    if flags.dash >= 0:
        target, command = arguments[: flags.dash], arguments[flags.dash :]
    else:
        target, command = arguments, []
    if not target and not files:
        raise CLIError("pod, type/name or --filename must be specified")
    if not command:
        raise CLIError("you must specify at least one command for the container")
    pod = running_pod(context, target[0] if target else "", "exec into", files)
    container = container_of(context, pod, flags.text("container"), flags.on("quiet"))["name"]
    stdin, tty = flags.on("stdin"), flags.on("tty")
    if tty and not (stdin and sys.stdin.isatty()):
        if stdin:
            context.err("Unable to use a TTY - input is not a terminal or the right kind of file\n")
        tty = tty and sys.stdin.isatty() and stdin
    return session(context, pod, "exec", {"container": container, "command": command}, stdin, tty)


COMMAND = Command(
    "exec (POD | TYPE/NAME) [-c CONTAINER] [flags] -- COMMAND [args...]",
    "Execute a command in a container",
    run,
    flags=(
        Flag("container", short="c", help="Name of the container."),
        Flag("filename", "list", short="f", help="File that names the pod."),
        Flag("pod-running-timeout", "duration", 60.0, "How long to wait until a pod runs."),
        Flag("quiet", "bool", short="q", help="Only the output of the command."),
        Flag("stdin", "bool", short="i", help="Pass stdin to the container."),
        Flag("tty", "bool", short="t", help="Stdin is a terminal."),
    ),
)
