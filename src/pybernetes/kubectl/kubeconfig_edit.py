"""Changes to kubeconfig files: each entry is written to the file it came from, new ones to the first file."""

from __future__ import annotations

import os

from pybernetes.kubectl import kubeconfig
from pybernetes.kubectl.errors import CLIError
from pybernetes.kubectl.printers import yaml_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_INNER = {"clusters": "cluster", "users": "user", "contexts": "context"}


class Editor:
    """The kubeconfig files of the loading rules, as they are on disk (paths stay relative)."""

    def __init__(self, explicit: str = "") -> None:
        self.paths = kubeconfig.paths(explicit)
        self.files: dict[str, dict[str, Any]] = {}
        for path in self.paths:
            try:
                with open(path, "rb") as file:
                    self.files[path] = kubeconfig.parse(file.read())
            except FileNotFoundError:
                pass
            except (OSError, ValueError) as error:
                raise CLIError(f'error loading config file "{path}": {error}') from None
        self._changed: set[str] = set()

    def default_file(self) -> str:
        """Where new entries go: the first file that exists, or the last of the list."""
        return next((path for path in self.paths if path in self.files), self.paths[-1])

    def find(self, section: str, name: str) -> tuple[str, dict[str, Any]] | None:
        """The file of an entry and the entry."""
        for path in self.paths:
            for entry in (self.files.get(path) or {}).get(section) or ():
                if entry.get("name") == name:
                    return path, entry
        return None

    def names(self, section: str) -> list[str]:
        """The names of a section in all files."""
        found = [
            str(entry.get("name")) for path in self.paths for entry in (self.files.get(path) or {}).get(section) or ()
        ]
        return sorted(dict.fromkeys(found))

    def put(self, section: str, name: str, value: dict[str, Any]) -> None:
        """Writes an entry where it was, or to the default file."""
        if section == "contexts":
            value = {"cluster": "", "user": "", **value}
        found = self.find(section, name)
        path = found[0] if found else self.default_file()
        content = self.files.setdefault(path, {})
        entries = content.get(section) or []
        content[section] = entries
        if found:
            found[1][_INNER[section]] = value
        else:
            entries.append({"name": name, _INNER[section]: value})
        self._changed.add(path)

    def remove(self, section: str, name: str) -> str | None:
        """Takes an entry out; returns the file it was in."""
        found = self.find(section, name)
        if found is None:
            return None
        entries = self.files[found[0]][section]
        entries.remove(found[1])
        self._changed.add(found[0])
        return found[0]

    def current_context(self) -> str:
        """The current context of the first file that has one."""
        for path in self.paths:
            found = (self.files.get(path) or {}).get("current-context")
            if found:
                return str(found)
        return ""

    def set_current_context(self, name: str) -> None:
        """Writes the current context to the file that has one, or to the default file."""
        if not name and not self.files:
            return
        path = next(
            (each for each in self.paths if (self.files.get(each) or {}).get("current-context")), self.default_file()
        )
        self.files.setdefault(path, {})["current-context"] = name
        self._changed.add(path)

    def save(self) -> None:
        """Writes the files that changed."""
        for path in sorted(self._changed):
            write(path, self.files[path])
        self._changed.clear()


def write(path: str, content: dict[str, Any]) -> None:
    """Replaces a kubeconfig file, for its owner only. Raises CLIError."""
    full = {"apiVersion": "v1", "kind": "Config", "current-context": "", **content}
    for section in ("clusters", "contexts", "users"):
        entries = full.get(section)
        full[section] = sorted(entries, key=lambda each: str(each.get("name"))) if entries else None
    full.setdefault("preferences", {})
    if not full["preferences"]:
        full.pop("preferences")
    temporary = f"{path}.{os.getpid()}"
    try:
        os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
        with open(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
            file.write(yaml_text.dumps(full))
        os.replace(temporary, os.path.realpath(path))
    except OSError as error:
        raise CLIError(f"open {path}: {(error.strerror or str(error)).lower()}") from None


def change_user(path: str, name: str, changes: dict[str, Any]) -> None:
    """Updates fields of one user in one file."""
    try:
        with open(path, "rb") as file:
            content = kubeconfig.parse(file.read())
    except (OSError, ValueError):
        return
    for entry in content.get("users") or ():
        if entry.get("name") == name:
            entry["user"] = {**(entry.get("user") or {}), **changes}
            write(path, content)
