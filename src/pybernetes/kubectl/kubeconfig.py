"""Loading of kubeconfig files: `--kubeconfig`, else the files of $KUBECONFIG, else ~/.kube/config, merged.

The first file that defines a cluster, user, context or the current context wins. Relative paths are relative to the
file they stand in. A parsed file is kept under ~/.kube/cache/pyb/kubeconfig (mode 0600) with the original's mtime and
size, so that reading it needs no YAML parser.
"""

from __future__ import annotations

import os

from pybernetes.kubectl import data
from pybernetes.kubectl.errors import CLIError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

SECTIONS = ("clusters", "users", "contexts")
_INNER = {"clusters": "cluster", "users": "user", "contexts": "context"}
_PATHS = {"clusters": ("certificate-authority",), "users": ("client-certificate", "client-key", "tokenFile")}


class Kubeconfig:
    """A merged kubeconfig: sections by name, and the file that each entry came from."""

    def __init__(self) -> None:
        self.clusters: dict[str, dict[str, Any]] = {}
        self.users: dict[str, dict[str, Any]] = {}
        self.contexts: dict[str, dict[str, Any]] = {}
        self.current_context = ""
        self.preferences: dict[str, Any] = {}
        self.extensions: list[Any] = []
        self.origin: dict[tuple[str, str], str] = {}
        self.files: list[str] = []
        self.missing: list[str] = []

    def section(self, name: str) -> dict[str, dict[str, Any]]:
        """The entries of `clusters`, `users` or `contexts`."""
        return {"clusters": self.clusters, "users": self.users, "contexts": self.contexts}[name]


def home() -> str:
    """The home folder of the user."""
    return os.environ.get("HOME") or os.path.expanduser("~")


def paths(explicit: str = "") -> list[str]:
    """The files to load, in order of precedence."""
    if explicit:
        return [explicit]
    variable = os.environ.get("KUBECONFIG", "")
    if variable:
        return list(dict.fromkeys(each for each in variable.split(os.pathsep) if each))
    return [os.path.join(home(), ".kube", "config")]


def load(explicit: str = "") -> Kubeconfig:
    """Loads and merges the files. Raises CLIError for one that cannot be read."""
    merged = Kubeconfig()
    for path in paths(explicit):
        try:
            parsed = read(path)
        except FileNotFoundError:
            if explicit:
                raise CLIError(f"stat {path}: no such file or directory") from None
            merged.missing.append(path)
            continue
        except (OSError, ValueError) as error:
            if isinstance(error, OSError):
                what = f"open {path}: {(error.strerror or str(error)).lower()}"
                if isinstance(error, IsADirectoryError):
                    what = f"read {path}: is a directory"
                raise CLIError(f'error loading config file "{path}": {what}') from None
            raise CLIError(f'error loading config file "{path}": {error}') from None
        merged.files.append(path)
        _merge(merged, parsed, path)
    return merged


def _merge(into: Kubeconfig, parsed: dict[str, Any], path: str) -> None:
    folder = os.path.dirname(os.path.abspath(path))
    for section in SECTIONS:
        entries = into.section(section)
        for entry in parsed.get(section) or ():
            name = str(entry.get("name", ""))
            if name in entries:
                continue
            value = dict(entry.get(_INNER[section]) or {})
            for key in _PATHS.get(section, ()):
                if value.get(key) and not os.path.isabs(value[key]):
                    value[key] = os.path.join(folder, value[key])
            entries[name] = value
            into.origin[section, name] = path
    into.current_context = into.current_context or str(parsed.get("current-context") or "")
    into.preferences = into.preferences or dict(parsed.get("preferences") or {})
    into.extensions = into.extensions or list(parsed.get("extensions") or [])


def read(path: str) -> dict[str, Any]:
    """The content of one file, from the cache where it is current. Raises OSError, ValueError."""
    status = os.stat(path)
    key = [status.st_mtime_ns, status.st_size, status.st_ino]
    cached = _cache_file(path)
    try:
        with open(cached, "rb") as file:
            found = data.loads(file.read())
        if found["key"] == key:
            content: dict[str, Any] = found["content"]
            return content
    except (OSError, ValueError, KeyError, TypeError):
        pass
    with open(path, "rb") as file:
        content = parse(file.read())
    _remember(cached, {"key": key, "content": content})
    return content


def parse(raw: bytes) -> dict[str, Any]:
    """A kubeconfig document, JSON or YAML. Raises ValueError."""
    if raw.lstrip()[:1] == b"{":
        try:
            value = data.loads(raw)
            if isinstance(value, dict):
                return value
        except ValueError:
            pass
    from pybernetes.kubectl import simple_yaml

    value = simple_yaml.parse(raw)
    if not isinstance(value, dict):
        from pybernetes.kubectl.manifests import parse_yaml

        value = parse_yaml(raw)
    if value is None:
        return {}
    version = value.get("apiVersion") if isinstance(value, dict) else None
    if version not in (None, "", "v1"):
        kind = value.get("kind") or "Config"
        raise ValueError(
            f'no kind "{kind}" is registered for version "{version}" in scheme'
            ' "k8s.io/client-go/tools/clientcmd/api/latest/latest.go:50"'
        )
    if not isinstance(value, dict):
        raise ValueError(
            "couldn't get version/kind; json parse error: json: cannot unmarshal"
            f" {'string' if isinstance(value, str) else 'array' if isinstance(value, list) else 'number'}"
            ' into Go value of type struct { APIVersion string "json:\\"apiVersion,omitempty\\"";'
            ' Kind string "json:\\"kind,omitempty\\"" }'
        )
    return value


def _cache_file(path: str) -> str:
    name = os.path.abspath(path).replace("_", "__").replace("/", "_")
    return os.path.join(home(), ".kube", "cache", "pyb", "kubeconfig", f"{name}.json")


def _remember(path: str, value: dict[str, Any]) -> None:
    """Writes the cache for its owner only; a folder that cannot be written means no cache."""
    temporary = f"{path}.{os.getpid()}"
    try:
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        with open(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
            file.write(data.dumps(value, sort=False))
        os.replace(temporary, path)
    except OSError:
        pass
