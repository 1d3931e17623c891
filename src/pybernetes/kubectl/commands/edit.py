"""`kubectl edit`: opens objects in an editor and sends what was changed."""

from __future__ import annotations

import os
import tempfile

from pybernetes.kubectl import mutating
from pybernetes.kubectl.builder import Builder, Info
from pybernetes.kubectl.command import Command
from pybernetes.kubectl.data import copy, loads
from pybernetes.kubectl.errors import CLIError, StatusError, raise_all
from pybernetes.kubectl.flags import Flag
from pybernetes.kubectl.manifests import documents
from pybernetes.kubectl.printers import yaml_text
from pybernetes.kubectl.strategic import two_way, type_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pybernetes.kubectl.context import Context

_HEAD = """# Please edit the object below. Lines beginning with a '#' will be ignored,
# and an empty file will abort the edit. If an error occurs while saving this file will be
# reopened with the relevant failures.
#
"""


def run(context: Context, arguments: list[str]) -> int | None:
    """`edit`."""
    flags = context.flags
    builder = Builder(context).files(flags.words("filename"), flags.on("recursive"), flags.text("kustomize"))
    builder.arguments(arguments)
    if flags.text("output") not in ("", "json", "yaml", "kyaml"):
        name = flags.text("output")
        raise CLIError(
            f'unable to match a printer suitable for the output format "{name}", allowed formats are: json,kyaml,yaml'
        )
    builder.subresource = flags.text("subresource")
    infos = builder.checked()
    if not infos:
        context.err("edit cancelled, no objects found\n")
        return None
    return _loop(context, infos, _save)


def _text(context: Context, objects: list[dict[str, Any]], problem: str = "") -> str:
    from pybernetes.kubectl.data import pretty
    from pybernetes.kubectl.printing import hide_managed_fields

    shown = [copy(obj) for obj in objects]
    if not context.flags.on("show-managed-fields"):
        shown = [hide_managed_fields(obj) for obj in shown]
    head = _HEAD + "".join(f"# {line}\n" for line in problem.split("\n") if line)
    head += "#\n" if problem else ""
    if context.flags.text("output") == "json":
        whole = shown[0] if len(shown) == 1 else {"apiVersion": "v1", "kind": "List", "metadata": {}, "items": shown}
        return head + pretty(whole) + "\n"
    whole = shown[0] if len(shown) == 1 else {"apiVersion": "v1", "items": shown, "kind": "List", "metadata": {}}
    return head + yaml_text.dumps(whole)


def without_comments(text: str) -> str:
    """The lines of an edited file that count."""
    return "\n".join(line for line in text.split("\n") if not line.startswith("#"))


def _suffix(context: Context) -> str:
    return ".json" if context.flags.text("output") == "json" else ".yaml"


def _loop(context: Context, infos: list[Info], save: Any) -> int | None:
    text = _text(context, [info.object for info in infos])
    refused = ""
    while True:
        edited = edit_text(text, _suffix(context), context.flags.on("windows-line-endings"))
        bare, before = without_comments(edited), without_comments(text)
        if refused and bare.strip() == refused:
            context.err(f'A copy of your changes has been stored to "{_keep(bare)}"\n')
            raise CLIError("Edit cancelled, no valid changes were saved.")
        if not bare.strip():
            context.err("Edit cancelled, saved file was empty.\n")
            return None
        if bare.strip() == before.strip():
            context.err("Edit cancelled, no changes made.\n")
            return None
        try:
            found = list(documents(bare.encode()))
        except ValueError as error:
            text = _HEAD + f"# The edited file had a syntax error: {error}\n#\n" + bare
            refused = bare.strip()
            continue
        objects: list[dict[str, Any]] = []
        for document in found:
            objects += document["items"] if document.get("kind") == "List" else [document]
        try:
            for obj in objects:
                save(context, infos, obj)
        except StatusError as error:
            if error.reason in ("Invalid", "BadRequest"):
                context.err(error.text() if error.text().endswith("\n") else error.text() + "\n")
                text = _text(context, objects, error.text())
                refused = bare.strip()
                if os.environ.get("KUBE_EDITOR_ONCE") or not os.isatty(0):
                    path = _keep(bare)
                    raise CLIError(f'A copy of your changes has been stored to "{path}"\n{error.bare()}') from None
                continue
            path = _keep(bare)
            context.err(f'A copy of your changes has been stored to "{path}"\n')
            raise
        return None


def _keep(text: str) -> str:
    with tempfile.NamedTemporaryFile("w", prefix="kubectl-edit-", suffix=".yaml", delete=False) as file:
        file.write(text)
    return file.name


def edit_text(text: str, suffix: str, windows: bool = False) -> str:
    """Open a text in the user's editor and return the result; `windows`: with CRLF line ends there. Raises CLIError."""
    import subprocess

    editor = os.environ.get("KUBE_EDITOR") or os.environ.get("EDITOR") or "vi"
    with tempfile.NamedTemporaryFile(
        "w", prefix="kubectl-edit-", suffix=suffix, delete=False, encoding="utf-8", newline="\r\n" if windows else "\n"
    ) as file:
        file.write(text)
    try:
        # A plain program is run as it is: its absence is then our message, and not one of the shell beside it.
        plain = not any(char in " \"'\\" for char in editor)
        command = [editor, file.name] if plain else ["/bin/sh", "-c", f'{editor} "$1"', "sh", file.name]
        try:
            failed = subprocess.run(command, check=False).returncode != 0
        except OSError:
            failed = True
        if failed:
            raise CLIError(f'there was a problem with the editor "{editor}"')
        with open(file.name, encoding="utf-8") as edited:
            return edited.read()
    finally:
        os.unlink(file.name)


def _matching(infos: list[Info], obj: dict[str, Any]) -> Info:
    metadata = obj.get("metadata") or {}
    for info in infos:
        if info.name == metadata.get("name") and info.mapping.kind == obj.get("kind"):
            return info
    raise CLIError("at least one of apiVersion, kind and name was changed")


def _save(context: Context, infos: list[Info], obj: dict[str, Any]) -> None:
    flags = context.flags
    info = _matching(infos, obj)
    before = copy(info.object)
    if not flags.on("show-managed-fields"):
        (before.get("metadata") or {}).pop("managedFields", None)
    if flags.on("save-config"):
        mutating.set_last_applied(obj)
    mutating.record(context, obj)
    cls = type_of(info.mapping.api_version, info.mapping.kind)
    patch = two_way(before, obj, cls)
    if not patch:
        context.out(f"{info.label()} skipped\n")
        return
    if flags.on("output-patch"):
        from pybernetes.kubectl.data import dumps

        context.out(f"Patch: {dumps(patch)}\n")
    kind = "strategic" if cls else "merge"
    after = mutating.patch(context, info, kind, patch, sub=flags.text("subresource"))
    context.out(mutating.printer_for(flags, "edited")(after))


def create_edited(context: Context) -> int | None:
    """`create --edit`."""
    flags = context.flags
    builder = Builder(context).files(flags.words("filename"), flags.on("recursive"), flags.text("kustomize"))
    builder.latest = False
    infos = builder.checked()
    printer = mutating.printer_for(flags, "created")
    text = _text(context, [info.object for info in infos])
    edited = edit_text(text, _suffix(context), context.flags.on("windows-line-endings"))
    bare = without_comments(edited)
    if not bare.strip():
        context.err("Edit cancelled, saved file was empty.\n")
        return None
    if bare.strip() == without_comments(text).strip():
        context.err("Edit cancelled, no changes made.\n")
        return None
    for document in documents(bare.encode()):
        for obj in document["items"] if document.get("kind") == "List" else [document]:
            mutating.create(context, builder._info(obj, "edited-file"), "none", printer)
    return None


def edit_last_applied(context: Context, arguments: list[str]) -> int | None:
    """`apply edit-last-applied`."""
    flags = context.flags
    builder = Builder(context).files(flags.words("filename"), flags.on("recursive"), flags.text("kustomize"))
    infos = builder.arguments(arguments).checked()
    errors: list[CLIError] = []
    for info in infos:
        text = ((info.object.get("metadata") or {}).get("annotations") or {}).get(mutating.LAST_APPLIED)
        if not text:
            errors.append(CLIError(f"The resource {info.name} doesn't have the last applied configuration annotation"))
            continue
        before = _text(context, [loads(text)])
        edited = edit_text(before, ".yaml", context.flags.on("windows-line-endings"))
        if edited == before:
            context.err("Edit cancelled, no changes made.\n")
            continue
        obj = next(iter(documents(edited.encode())))
        annotation = mutating.last_applied(obj)
        patch = {"metadata": {"annotations": {mutating.LAST_APPLIED: annotation}}}
        after = mutating.patch(context, info, "merge", patch)
        context.out(mutating.printer_for(flags, "edited")(after))
    raise_all(errors)
    return None


COMMAND = Command(
    "edit (RESOURCE/NAME | -f FILENAME)",
    "Edit a resource on the server",
    run,
    flags=(
        *mutating.PRINT_FLAGS,
        *mutating.FILENAME_FLAGS,
        mutating.VALIDATE,
        mutating.SAVE_CONFIG,
        mutating.RECORD,
        mutating.field_manager("kubectl-edit"),
        Flag("output-patch", "bool", help="Print the patch."),
        Flag("subresource", help="Subresource to edit."),
        Flag("windows-line-endings", "bool", help="Line endings of Windows."),
    ),
)
