"""`kubectl kustomize`: prints what a kustomization builds."""

from __future__ import annotations

import os

from pybernetes.kubectl.command import Command
from pybernetes.kubectl.errors import CLIError
from pybernetes.kubectl.flags import Flag
from pybernetes.kubectl.kustomize import build

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pybernetes.kubectl.context import Context


def run(context: Context, arguments: list[str]) -> int | None:
    """`kustomize`."""
    if len(arguments) > 1:
        raise CLIError("specify one path to kustomization.yaml")
    text = build(arguments[0] if arguments else ".").decode()
    target = context.flags.text("output")
    if not target:
        context.out(text)
        return None
    path = os.path.join(target, "kustomization-output.yaml") if os.path.isdir(target) else target
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    return None


COMMAND = Command(
    "kustomize DIR",
    "Build a kustomization target from a directory or URL",
    run,
    flags=(Flag("output", short="o", help="File or folder to write to."),),
)
