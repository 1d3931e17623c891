"""`kubectl version`."""

from __future__ import annotations

import sys

from pybernetes.kubectl.command import Command
from pybernetes.kubectl.context import platform
from pybernetes.kubectl.errors import CLIError
from pybernetes.kubectl.flags import Flag

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pybernetes.kubectl.context import Context

CLIENT = "v1.36.4"
"""The release of kubectl whose commands, flags and messages these are."""
KUSTOMIZE = "v5.8.1"


def run(context: Context, arguments: list[str]) -> int | None:
    """`version`."""
    flags = context.flags
    if arguments:
        raise CLIError(f"extra arguments: [{' '.join(arguments)}]")
    output = flags.text("output")
    if output not in ("", "yaml", "json"):
        raise CLIError("--output must be 'yaml' or 'json'")
    found: dict[str, Any] = {"clientVersion": client(), "kustomizeVersion": KUSTOMIZE}
    error: CLIError | None = None
    if not flags.on("client"):
        try:
            found["serverVersion"] = context.client.get("/version")
        except CLIError as problem:
            error = problem
    if output == "yaml":
        from pybernetes.kubectl.printers import yaml_text

        context.out(yaml_text.dumps(found) + "\n")
    elif output == "json":
        from pybernetes.kubectl.data import pretty

        context.out(pretty(found, "  ", sort=False) + "\n")
    else:
        context.out(f"Client Version: {CLIENT}\nKustomize Version: {KUSTOMIZE}\n")
        if "serverVersion" in found:
            context.out(f"Server Version: {found['serverVersion'].get('gitVersion')}\n")
            _warn(context, found["serverVersion"])
    if error is not None:
        raise error
    return None


def client() -> dict[str, str]:
    """The version of this client."""
    python = ".".join(map(str, sys.version_info[:3]))
    return {
        "major": "1",
        "minor": "36",
        "gitVersion": CLIENT,
        "gitCommit": "",
        "gitTreeState": "",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": f"python{python}",
        "compiler": "CPython",
        "platform": platform(),
    }


def _warn(context: Context, server: dict[str, Any]) -> None:
    try:
        minor = int(str(server.get("minor", "")).rstrip("+"))
    except ValueError:
        return
    if abs(minor - 36) > 1:
        context.err(
            f"WARNING: version difference between client (1.36) and server (1.{minor}) exceeds the supported minor"
            " version skew of +/-1\n"
        )


COMMAND = Command(
    "version",
    "Print the client and server version information",
    run,
    flags=(
        Flag("client", "bool", help="Only the version of the client."),
        Flag("output", short="o", help="yaml or json."),
        Flag("short", "bool", help="Kept for compatibility.", hidden=True),
    ),
)
