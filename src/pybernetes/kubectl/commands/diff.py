"""`kubectl diff`: what apply would change, shown by `diff -u` (or $KUBECTL_EXTERNAL_DIFF)."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile

from pybernetes.kubectl import mutating
from pybernetes.kubectl.builder import Builder, Info
from pybernetes.kubectl.command import Command
from pybernetes.kubectl.data import copy, dumps, loads
from pybernetes.kubectl.errors import CLIError, Exit, StatusError, not_found
from pybernetes.kubectl.flags import Flag
from pybernetes.kubectl.printers import yaml_text
from pybernetes.kubectl.strategic import three_way, type_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pybernetes.kubectl.context import Context


def run(context: Context, arguments: list[str]) -> int | None:
    """`diff`: exit code 0 without differences, 1 with them, 2 and more for errors."""
    flags = context.flags
    try:
        if flags.text("to-context") or flags.number("revision"):
            from pybernetes.kubectl import comparing

            return comparing.run(context, arguments)
        if arguments:
            raise CLIError(f"Unexpected args: [{' '.join(arguments)}]\nSee 'kubectl diff -h' for help and examples")
        if not flags.words("filename") and not flags.get("kustomize"):
            raise CLIError("must specify one of -f and -k")
        if flags.on("server-side") and not flags.changed("field-manager"):
            flags.put("field-manager", "kubectl")
        builder = Builder(context).files(flags.words("filename"), flags.on("recursive"), flags.text("kustomize"))
        builder.selectors(flags.text("selector"))
        builder.latest = False
        with (
            tempfile.TemporaryDirectory(prefix="LIVE-") as live,
            tempfile.TemporaryDirectory(prefix="MERGED-") as merged,
        ):
            kept: set[object] = set()
            namespaces: set[str] = set()
            for info in builder.infos():
                current = _write(context, info, live, merged)
                kept.add(((current or {}).get("metadata") or {}).get("uid"))
                namespaces |= {info.namespace} - {""}
            if flags.on("prune"):
                from pybernetes.kubectl.pruning import candidates

                for gone in candidates(context, kept, namespaces):
                    _save(context, gone, live, gone.object)
            if builder.errors:
                raise builder.errors[0]
            return compare(context, live, merged)
    except CLIError as error:
        if isinstance(error, Exit):
            raise
        raise Exit(error.code + 1, error.text()) from None


def compare(context: Context, live: str, merged: str) -> int:
    """Runs the diff program on two folders and returns its exit code."""
    external = os.environ.get("KUBECTL_EXTERNAL_DIFF", "")
    command = external.split() if external else ["diff", "-u", "-N"]
    sys.stdout.flush()
    try:
        done = subprocess.run([*command, live, merged], check=False)
    except FileNotFoundError:
        raise CLIError(f'failed to run "{command[0]}": executable file not found in $PATH') from None
    if done.returncode > 1:
        raise Exit(done.returncode)
    return done.returncode


def _write(context: Context, info: Info, live: str, merged: str) -> dict[str, Any] | None:
    """Writes an object as it is and as it would be; returns the one on the server."""
    flags = context.flags
    if info.mapping.namespaced:
        info.object.setdefault("metadata", {})["namespace"] = info.namespace
    try:
        current: dict[str, Any] | None = context.client.get(info.path())
    except StatusError as error:
        if not not_found(error):
            raise
        current = None
    after = _after(context, info, current)
    pair = [copy(current) if current else None, copy(after)]
    if info.mapping.kind == "Secret" and not flags.on("show-secrets"):
        _mask(pair)
    for folder, obj in zip((live, merged), pair, strict=True):
        if obj is not None:
            _save(context, info, folder, obj)
    return current


def _save(context: Context, info: Info, folder: str, obj: dict[str, Any]) -> None:
    if not context.flags.on("show-managed-fields"):
        (obj.get("metadata") or {}).pop("managedFields", None)
    group = info.mapping.group + "." if info.mapping.group else ""
    name = f"{group}{info.mapping.version}.{info.mapping.kind}.{info.namespace}.{info.name}"
    with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
        file.write(yaml_text.dumps(obj))


def _mask(pair: list[Any]) -> None:
    before, after = ((obj or {}).get("data") or {} for obj in pair)
    for key in sorted({*before, *after}):
        same = before.get(key) == after.get(key)
        for data, word in ((before, "before"), (after, "after")):
            if key in data:
                data[key] = "***" if same or key not in before or key not in after else f"*** ({word})"


def _after(context: Context, info: Info, current: dict[str, Any] | None) -> dict[str, Any]:
    flags = context.flags
    parameters: dict[str, Any] = {"dryRun": "All", "fieldManager": flags.text("field-manager")}
    found: dict[str, Any]
    if flags.on("server-side"):
        parameters["force"] = True if flags.on("force-conflicts") else None
        found = context.client.json(
            "PATCH", info.path(), parameters, dumps(info.object).encode(), content_type="application/apply-patch+yaml"
        )
        return found
    modified = copy(info.object)
    mutating.set_last_applied(modified)
    if current is None:
        found = context.client.post(info.collection(), modified, parameters)
        return found
    text = ((current.get("metadata") or {}).get("annotations") or {}).get(mutating.LAST_APPLIED)
    cls = type_of(info.mapping.api_version, info.mapping.kind)
    patch = three_way(loads(text) if text else {}, modified, current, cls)
    if not patch:
        return current
    found = context.client.patch(info.path(), "strategic" if cls else "merge", patch, parameters)
    return found


COMMAND = Command(
    "diff -f FILENAME",
    "Diff the live version against a would-be applied version",
    run,
    flags=(
        *mutating.FILENAME_FLAGS,
        mutating.SELECTOR,
        mutating.field_manager("kubectl-client-side-apply"),
        Flag("concurrency", "int", 1, "Kept for compatibility: objects are compared one at a time."),
        Flag("force-conflicts", "bool", help="Take fields over from other managers."),
        Flag("prune", "bool", help="Show objects that --prune would delete."),
        Flag("prune-allowlist", "array", help="group/version/kind for --prune."),
        Flag("server-side", "bool", help="Let the server merge."),
        Flag("show-managed-fields", "bool", help="Keep managedFields."),
        Flag("show-secrets", "bool", help="Show the values of Secrets."),
        Flag("to-context", help="With TYPE/NAME: compare with the object of another context (beyond upstream)."),
        Flag("revision", "int", help="With TYPE/NAME: compare this revision of a workload (beyond upstream)."),
        Flag("to-revision", "int", help="With --revision: the other revision; the newest where it is left out."),
    ),
)
