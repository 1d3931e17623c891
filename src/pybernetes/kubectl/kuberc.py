"""kuberc: a user's preferences, aliases of commands and defaults of flags, kept apart from the kubeconfig."""

from __future__ import annotations

from pybernetes.kubectl.errors import CLIError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pybernetes.kubectl.flags import Flags

_loaded: dict[str, Any] = {}


def load(path: str) -> dict[str, Any]:
    """The Preference document of a file. Raises CLIError."""
    from pybernetes.kubectl.manifests import parse_yaml

    try:
        with open(path, "rb") as file:
            found = parse_yaml(file.read())
    except (OSError, ValueError) as error:
        raise CLIError(f"kuberc: {error}") from None
    if not isinstance(found, dict) or found.get("kind") != "Preference":
        raise CLIError(f"kuberc: {path} holds no Preference")
    return found


def expand(argv: list[str], path: str) -> list[str]:
    """The command line with an alias replaced by its command, arguments and flags."""
    global _loaded
    _loaded = load(path)
    at = next((index for index, word in enumerate(argv) if not word.startswith("-")), None)
    if at is None:
        return argv
    for alias in _loaded.get("aliases") or ():
        if alias.get("name") == argv[at]:
            options = [f"--{each['name']}={each.get('default', '')}" for each in alias.get("options") or ()]
            given = {word.lstrip("-").split("=")[0] for word in argv[at + 1 :] if word.startswith("-")}
            options = [option for option in options if option[2:].split("=")[0] not in given]
            words = str(alias.get("command", "")).split()
            before = [str(each) for each in alias.get("prependArgs") or ()]
            after = [str(each) for each in alias.get("appendArgs") or ()]
            return [*argv[:at], *words, *before, *argv[at + 1 :], *after, *options]
    return argv


def apply_defaults(flags: Flags, path: list[str]) -> None:
    """Sets the flags of a command that the user left out."""
    name = " ".join(path[1:])
    for each in _loaded.get("defaults") or ():
        if each.get("command") != name:
            continue
        for option in each.get("options") or ():
            key = str(option.get("name", ""))
            if key in flags and not flags.changed(key):
                flags.set(key, str(option.get("default", "")))
