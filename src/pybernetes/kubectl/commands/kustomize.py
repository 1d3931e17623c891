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


_RESTRICTORS = "[LoadRestrictionsRootOnly LoadRestrictionsNone]"
_UNSUPPORTED = (
    "as-current-user", "enable-alpha-plugins", "enable-helm", "env", "helm-api-versions", "helm-command", "helm-debug",
    "helm-kube-version", "mount", "network", "network-name",
)  # fmt: skip


def run(context: Context, arguments: list[str]) -> int | None:
    """`kustomize`."""
    flags = context.flags
    for name in _UNSUPPORTED:
        if flags.changed(name):
            raise CLIError(f"--{name} is not supported by this kubectl, which runs neither functions nor helm")
    restrictor = flags.text("load-restrictor")
    if restrictor not in ("LoadRestrictionsRootOnly", "LoadRestrictionsNone"):
        raise CLIError(f"illegal flag value --load-restrictor {restrictor}; legal values: {_RESTRICTORS}")
    if len(arguments) > 1:
        raise CLIError("specify one path to kustomization.yaml")
    text = build(arguments[0] if arguments else ".", restrictor == "LoadRestrictionsRootOnly").decode()
    target = flags.text("output")
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
    flags=(
        Flag("as-current-user", "bool", help="Not supported."),
        Flag("enable-alpha-plugins", "bool", help="Not supported."),
        Flag("enable-helm", "bool", help="Not supported."),
        Flag("env", "array", short="e", help="Not supported."),
        Flag("helm-api-versions", "array", help="Not supported."),
        Flag("helm-command", default="helm", help="Not supported."),
        Flag("helm-debug", "bool", help="Not supported."),
        Flag("helm-kube-version", help="Not supported."),
        Flag(
            "load-restrictor",
            default="LoadRestrictionsRootOnly",
            help="LoadRestrictionsNone lets a kustomization read files outside its folder.",
        ),
        Flag("mount", "array", help="Not supported."),
        Flag("network", "bool", help="Not supported."),
        Flag("network-name", default="bridge", help="Not supported."),
        Flag("output", short="o", help="File or folder to write to."),
    ),
)
