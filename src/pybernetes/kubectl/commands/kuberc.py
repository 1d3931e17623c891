"""`kubectl kuberc`: shows and writes the file of a user's preferences."""

from __future__ import annotations

import os

from pybernetes.kubectl import kuberc
from pybernetes.kubectl.command import Command
from pybernetes.kubectl.data import in_order
from pybernetes.kubectl.errors import Aggregate, CLIError
from pybernetes.kubectl.flags import Flag
from pybernetes.kubectl.printers import yaml_text
from pybernetes.kubectl.printing import PRINT_FLAGS, generic

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pybernetes.kubectl.context import Context
    from pybernetes.kubectl.flags import Flags

_POLICIES = ("AllowAll", "DenyAll", "Allowlist")
_SECTIONS = ("defaults", "aliases", "credentialplugin")


def _file(context: Context) -> tuple[str, bool]:
    path, explicit = kuberc.location(context.flags.text("kuberc"))
    if not path:
        raise CLIError("KUBERC is disabled via KUBERC=off environment variable")
    return path, explicit


def _read(path: str) -> dict[str, Any] | None:
    """The document of a file, None where there is no file. Raises CLIError."""
    from pybernetes.kubectl.manifests import parse_yaml

    try:
        with open(path, "rb") as file:
            found = parse_yaml(file.read())
    except FileNotFoundError:
        return None
    except OSError as error:
        raise CLIError(f"error reading kuberc file: open {path}: {(error.strerror or '').lower()}") from None
    except ValueError as error:
        raise CLIError(f"error parsing kuberc file: {error}") from None
    if found is not None and not isinstance(found, dict):
        raise CLIError("error parsing kuberc file: it holds no Preference")
    return found or {}


def _save(context: Context, path: str, content: dict[str, Any]) -> None:
    try:
        os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(yaml_text.dumps({"aliases": None, "defaults": None, **content}))
    except OSError as error:
        raise CLIError(f"failed to write kuberc file: open {path}: {(error.strerror or '').lower()}") from None
    context.out(f"Updated {path}\n")


def _empty() -> dict[str, Any]:
    return {"apiVersion": f"{kuberc.GROUP}/v1beta1", "kind": "Preference"}


def view(context: Context, arguments: list[str]) -> int | None:
    """`kuberc view`."""
    path, explicit = _file(context)
    found = _read(path)
    if found is None:
        if explicit:
            raise CLIError(f"kuberc file not found at {path}")
        context.out(f"kuberc file not found at {path}\n")
        context.out("Would you like to generate a default kuberc file with recommended options? (y/N): ")
        context.flush()
        if context.stdin.readline().strip().lower() == b"y":
            options = [("apply", "server-side"), ("delete", "interactive")]
            defaults = [{"command": name, "options": [{"default": "true", "name": key}]} for name, key in options]
            _save(context, path, {**_empty(), "defaults": defaults})
        return None
    shown = {**found, "aliases": found.get("aliases") or [], "defaults": found.get("defaults") or []}
    output = context.flags.text("output") or ("" if context.flags.text("template") else "yaml")
    if output == "json":
        from pybernetes.kubectl.data import pretty

        context.out(pretty(_ordered(shown), sort=False) + "\n")
        return None
    context.out(generic(context.flags, output)(shown))
    return None


_ORDER = (
    "kind", "apiVersion", "defaults", "aliases", "credentialPluginPolicy", "credentialPluginAllowlist", "name",
    "command", "default", "prependArgs", "appendArgs", "options",
)  # fmt: skip


def _ordered(value: Any) -> Any:
    """The fields in the order in which upstream declares them."""
    if isinstance(value, dict):
        return {key: _ordered(each) for key, each in in_order(value, _ORDER).items()}
    return [_ordered(each) for each in value] if isinstance(value, list) else value


def set_(context: Context, arguments: list[str]) -> int | None:
    """`kuberc set`."""
    flags = context.flags
    if not flags.changed("section"):
        raise CLIError('required flag(s) "section" not set')
    path, _ = _file(context)
    _check(flags)
    content = _read(path) or _empty()
    options = [_option(text) for text in flags.words("option")]
    section = flags.text("section")
    if section == "defaults":
        _set_defaults(flags, content, options)
    elif section == "aliases":
        _set_alias(flags, content, options)
    else:
        if flags.text("policy") == "Allowlist":
            content["credentialPluginAllowlist"] = _allowlist(flags)
        content["credentialPluginPolicy"] = flags.text("policy")
    _save(context, path, content)
    return None


def _check(flags: Flags) -> None:
    section, policy = flags.text("section"), flags.text("policy")
    if section not in _SECTIONS:
        raise CLIError(f'--section must be "defaults", "aliases", or "credentialplugin", got: {section}')
    if section == "aliases" and not flags.text("name"):
        raise CLIError("--name is required when --section=aliases")
    if section == "defaults" and flags.text("name"):
        raise CLIError("--name should not be specified when --section=defaults")
    if section == "defaults" and (flags.words("prependarg") or flags.words("appendarg")):
        raise CLIError("--prependarg and --appendarg are only valid for --section=aliases")
    if section != "credentialplugin":
        if not flags.text("command"):
            raise CLIError("--command is required when --section=aliases or --section=defaults")
        return
    if not policy:
        raise CLIError("--policy is required when --section=credentialplugin")
    if policy not in _POLICIES:
        raise CLIError(f' --policy must be  "AllowAll", "DenyAll", or "Allowlist", got: {policy}')
    where = "when --section=credentialplugin and --policy=Allowlist"
    if policy != "Allowlist" and flags.words("allowlist-entry"):
        raise CLIError(f"--allowlist-entry may only be used {where}")
    if policy == "Allowlist" and not flags.words("allowlist-entry"):
        raise CLIError(f"--allowlist-entry is required {where}")


def _option(text: str) -> dict[str, str]:
    name, equals, value = text.partition("=")
    if not equals:
        raise CLIError(f'invalid option format "{text}", expected flag=value')
    return {"default": value, "name": name.lstrip("-")}


def _set_defaults(flags: Flags, content: dict[str, Any], options: list[dict[str, str]]) -> None:
    command = flags.text("command")
    for each in content.get("defaults") or ():
        if each.get("command") == command:
            if not flags.on("overwrite"):
                raise CLIError(f'defaults for command "{command}" already exist, use --overwrite to replace')
            each["options"] = options or each.get("options")
            return
    content["defaults"] = [*(content.get("defaults") or ()), {"command": command, "options": options or None}]


def _set_alias(flags: Flags, content: dict[str, Any], options: list[dict[str, str]]) -> None:
    name = flags.text("name")
    wanted = {
        "appendArgs": flags.words("appendarg"),
        "options": options,
        "prependArgs": flags.words("prependarg"),
    }
    aliases = list(content.get("aliases") or ())
    at = next((at for at, each in enumerate(aliases) if each.get("name") == name), None)
    if at is not None:
        if not flags.on("overwrite"):
            raise CLIError(f'alias "{name}" already exists, use --overwrite to replace')
        wanted = {key: value or aliases[at].get(key) or [] for key, value in wanted.items()}
    alias = {"command": flags.text("command"), "name": name, **{key: each for key, each in wanted.items() if each}}
    aliases[len(aliases) if at is None else at : len(aliases) if at is None else at + 1] = [alias]
    content["aliases"] = aliases


def _allowlist(flags: Flags) -> list[dict[str, str]]:
    entries, errors = [], []
    for pair in ",".join(flags.words("allowlist-entry")).split(","):
        field, equals, value = pair.partition("=")
        if not equals:
            errors.append(f'improperly formatted allowlist entry: "{pair}"')
        elif field == "name":
            errors.append('allowlist entry field "name" is deprecated, use "command" instead')
        elif field != "command":
            errors.append(f'unrecognized allowlist entry field: "{field}"')
        elif not value.strip():
            errors.append('empty value in allowlist entry for field "command"')
        else:
            entries.append({"command": value})
    if errors:
        raise Aggregate([CLIError(text) for text in errors])
    return entries


COMMAND = Command(
    "kuberc SUBCOMMAND",
    "Manage kuberc configuration files",
    children={
        "set": Command(
            "set --section (defaults|aliases) --command COMMAND",
            "Set values in the kuberc configuration",
            set_,
            flags=(
                Flag("section", help="Section to change: defaults, aliases or credentialplugin."),
                Flag("command", help='Command to configure, such as get or "set env".'),
                Flag("name", help="Name of the alias (--section=aliases)."),
                Flag("policy", help="AllowAll, DenyAll or Allowlist (--section=credentialplugin)."),
                Flag("option", "array", help="A flag and its value, flag=value; may be repeated."),
                Flag("prependarg", "array", help="Argument before the user's (--section=aliases); may be repeated."),
                Flag("appendarg", "array", help="Argument after the user's (--section=aliases); may be repeated."),
                Flag("allowlist-entry", "array", help="command=PATH of a plugin that may run; may be repeated."),
                Flag("overwrite", "bool", help="Replace an entry that exists."),
            ),
        ),
        "view": Command("view", "Display the current kuberc configuration", view, flags=PRINT_FLAGS),
    },
)
