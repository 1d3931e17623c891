"""kuberc: a user's preferences, kept apart from the kubeconfig: aliases of commands, defaults of flags, and which
credential plugins may run. `commands/kuberc.py` shows and writes them.
"""

from __future__ import annotations

import os
import sys

from pybernetes.kubectl import data
from pybernetes.kubectl.errors import CLIError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pybernetes.kubectl.flags import Flags

GROUP = "kubectl.config.k8s.io"
_FIELDS = {
    "v1beta1": ("defaults", "aliases", "credentialPluginPolicy", "credentialPluginAllowlist"),
    "v1alpha1": ("overrides", "aliases"),
}


class Preferences:
    """The content of a kuberc, and the alias that the running command line used."""

    def __init__(self, content: dict[str, Any]) -> None:
        self.defaults: list[dict[str, Any]] = content.get("defaults") or content.get("overrides") or []
        self.aliases: list[dict[str, Any]] = content.get("aliases") or []
        self.plugin_policy = str(content.get("credentialPluginPolicy") or "")
        self.plugin_allowlist: list[dict[str, Any]] | None = content.get("credentialPluginAllowlist")
        self.alias: dict[str, Any] | None = None


current = Preferences({})
"""The preferences of this process's command line."""


def location(given: str) -> tuple[str, bool]:
    """The file of the preferences ("" where KUBERC=off) and whether the user named it. Raises CLIError."""
    variable = os.environ.get("KUBERC", "")
    if variable == "off":
        if given:
            raise CLIError(
                "kuberc error disabling kuberc via KUBERC=off and passing kuberc flag are mutually exclusive"
            )
        return "", False
    default = os.path.join(os.environ.get("HOME", ""), ".kube", "kuberc")
    return (given or variable or default), bool(given or variable)


def given_file(argv: list[str]) -> str:
    """The value of `--kuberc`, read before flags are parsed. Raises CLIError."""
    for at, word in enumerate(argv):
        if word == "--":
            break
        value = word[len("--kuberc=") :] if word.startswith("--kuberc=") else None
        if word == "--kuberc":
            value = argv[at + 1] if at + 1 < len(argv) else ""
        if value is not None:
            if not value:
                raise CLIError("kuberc file is not found")
            return value
    return ""


def load(path: str, explicit: bool, verbosity: int = 0) -> dict[str, Any]:
    """The first Preference document of a file that this kubectl understands. Raises CLIError."""
    from pybernetes.kubectl.manifests import parse_yaml, split

    try:
        with open(path, "rb") as file:
            documents = [each for each in split(file.read()) if each.strip()]
    except FileNotFoundError:
        if explicit:
            raise CLIError(f"kuberc error kuberc: open {path}: no such file or directory") from None
        return {}
    except OSError as error:
        return _unusable(f"open {path}: {(error.strerror or str(error)).lower()}", path, explicit)
    for document in documents:
        try:
            found = parse_yaml(document)
        except ValueError as error:
            _log(verbosity, f"kuberc: strict decoding error in {path}: {error}")
            continue
        if not isinstance(found, dict):
            continue
        group, _, version = str(found.get("apiVersion", "")).partition("/")
        if group != GROUP or version not in _FIELDS or found.get("kind") != "Preference":
            _log(verbosity, f"kuberc: unexpected GroupVersionKind in {path}: {found.get('apiVersion')}")
            continue
        unknown = [key for key in found if key not in ("apiVersion", "kind", *_FIELDS[version])]
        if unknown:
            fields = ", ".join(f'unknown field "{key}"' for key in unknown)
            sys.stderr.write(f"kuberc: ignoring strict decoding error in {path}: strict decoding error: {fields}")
        return found
    if documents:
        return _unusable(f"no valid preferences found in {path}, use --v=5 to see details", path, explicit)
    _log(verbosity, f"kuberc: no preferences found in {path}")
    return {}


def _unusable(problem: str, path: str, explicit: bool) -> dict[str, Any]:
    if explicit:
        raise CLIError(f"kuberc error kuberc: {problem}")
    sys.stderr.write(f"kuberc: no preferences loaded from {path}: {problem}")
    return {}


def _log(verbosity: int, text: str) -> None:
    if verbosity >= 5:
        from pybernetes.kubectl.verbose import Log

        Log(verbosity).line("marshal.go:85", text)


def expand(argv: list[str], path: str, explicit: bool) -> list[str]:
    """The command line with an alias replaced by its command and arguments. Raises CLIError."""
    global current
    from pybernetes.kubectl.commands import COMMANDS

    current = Preferences(load(path, explicit, _verbosity(argv)))
    _validate(current)
    at = next((index for index, word in enumerate(argv) if not word.startswith(("-", "__complete"))), None)
    if at is None or argv[at] in COMMANDS:
        return argv
    for alias in current.aliases:
        if alias.get("name") != argv[at]:
            continue
        command = str(alias.get("command", "")).split()
        if not command or command[0] not in COMMANDS:
            raise CLIError(f'command "{alias.get("command", "")}" not found to set alias "{alias["name"]}": []')
        current.alias = alias
        before = [str(each) for each in alias.get("prependArgs") or ()]
        after = [str(each) for each in alias.get("appendArgs") or ()]
        return [*argv[:at], *command, *before, *argv[at + 1 :], *after]
    return argv


def _verbosity(argv: list[str]) -> int:
    for at, word in enumerate(argv):
        if word == "--":
            break
        text = word.lstrip("-")
        if word.startswith("-") and text[:1] == "v":
            value = text[1:].lstrip("=") or (argv[at + 1] if at + 1 < len(argv) else "")
            if value.isdigit():
                return int(value)
    return 0


def _validate(preferences: Preferences) -> None:
    seen = set()
    for alias in preferences.aliases:
        name = str(alias.get("name", ""))
        if not (name.isalpha() and name.isascii()):
            raise CLIError("invalid alias name, can only include alphabetical characters")
        if name in seen:
            raise CLIError(f"duplicate alias name {name}")
        seen.add(name)
    for holder in (*preferences.aliases, *preferences.defaults):
        for option in _options(holder):
            if str(option.get("name", "")).startswith("-"):
                raise CLIError(f"flag name {option['name']} should be in long form without dashes")
    policy, allowlist = preferences.plugin_policy, preferences.plugin_allowlist
    if policy not in ("", "AllowAll", "DenyAll", "Allowlist"):
        raise CLIError(f'unknown plugin policy: "{policy}"')
    if policy != "Allowlist" and allowlist is not None:
        raise CLIError(
            f'misconfigured credential plugin allowlist: plugin policy is "{policy}" but allowlist is non-nil'
        )
    if policy == "Allowlist":
        if allowlist is None:
            raise CLIError('credential plugin policy set to "Allowlist", but allowlist is unspecified')
        if not allowlist:
            raise CLIError(
                'credential plugin policy set to "Allowlist", but allowlist is empty; use "DenyAll" policy instead'
            )
        for number, entry in enumerate(allowlist, 1):
            if not entry.get("command") and not entry.get("name"):
                raise CLIError(f"misconfigured credential plugin allowlist: empty allowlist entry #{number}")


def _options(holder: dict[str, Any]) -> list[dict[str, Any]]:
    return holder.get("options") or holder.get("flags") or []


def apply_defaults(flags: Flags, path: list[str]) -> None:
    """Sets the flags that the user left out: those of the alias, or the defaults of the command. Raises CLIError."""
    if current.alias is not None:
        for option in _options(current.alias):
            key, value = str(option.get("name", "")), str(option.get("default", ""))
            if key not in flags:
                raise CLIError(f"invalid alias flag {key} in alias kubectl")
            if not flags.changed(key):
                flags.set(key, value)
        return
    name = " ".join(path[1:])
    for each in current.defaults:
        if str(each.get("command", "")) != name:
            continue
        for option in _options(each):
            key, value = str(option.get("name", "")), str(option.get("default", ""))
            if key not in flags:
                raise CLIError(f"invalid flag {key} for command {name}")
            if not flags.changed(key):
                flags.set(key, value)


def check_plugin(command: str, resolved: str) -> None:
    """Refuses a credential plugin that the preferences do not allow. Raises CLIError."""
    from shutil import which

    if current.plugin_policy == "DenyAll":
        raise CLIError(f'getting credentials: plugin {data.go_quote(command)} not allowed: policy set to "DenyAll"')
    if current.plugin_policy != "Allowlist":
        return
    for entry in current.plugin_allowlist or ():
        allowed = str(entry.get("command") or entry.get("name") or "")
        if allowed in (command, resolved) or which(allowed) == resolved:
            return
    path = data.go_quote(resolved)
    raise CLIError(f"getting credentials: plugin path {path} is not permitted by the credential plugin allowlist")
