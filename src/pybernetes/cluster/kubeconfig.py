"""The user's kubeconfig: our context goes in, and exactly that comes out again.

The file belongs to the user. It is edited as a tree of YAML nodes, so every scalar keeps its spelling, its quotes and
its order (only comments are lost); a file that cannot be read as a kubeconfig is left alone. The lock file is the one
kubectl itself takes (`<file>.lock`, created exclusively), so the two never write at the same time.
"""

from __future__ import annotations

import base64
import contextlib
import os
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import yaml

from pybernetes.cluster import files
from pybernetes.cluster.errors import ClusterError

LOCK_TIMEOUT = 5.0
_LISTS = ("clusters", "contexts", "users")


def user_file() -> Path:
    """The file kubectl would write to: the first of $KUBECONFIG, else ~/.kube/config."""
    listed = [entry for entry in os.environ.get("KUBECONFIG", "").split(os.pathsep) if entry]
    return Path(os.path.abspath(listed[0])) if listed else Path.home() / ".kube" / "config"


def document(name: str, server: str, pki: Path) -> dict[str, object]:
    """A kubeconfig for the administrator of one cluster, with the certificates inside."""

    def inline(file: str) -> str:
        return base64.b64encode((pki / file).read_bytes()).decode()

    user = {"client-certificate-data": inline("admin.crt"), "client-key-data": inline("admin.key")}
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": name, "cluster": {"certificate-authority-data": inline("ca.crt"), "server": server}}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
        "users": [{"name": name, "user": user}],
        "current-context": name,
        "preferences": {},
    }


def write(path: Path, content: dict[str, object]) -> None:
    """Writes a kubeconfig of its own."""
    files.write_private(path, yaml.safe_dump(content, sort_keys=False).encode())


def check(path: Path) -> None:
    """Raises ClusterError if the file exists and is no kubeconfig we could add to."""
    _load(path)


def merge(path: Path, content: dict[str, object]) -> str:
    """Adds the entries of `content`, replacing those of the same name, and makes its context the current one.

    Returns the context that was current before.
    """
    with _locked(path) as real:
        root = _load(real)
        former = _find(root, "current-context")
        for key in _LISTS:
            entries = content[key]
            assert isinstance(entries, list)
            existing = _list(root, key)
            for entry in entries:
                _drop(existing, entry["name"])
                existing.value.append(_node(entry))
        for key in ("apiVersion", "kind", "preferences"):
            if _find(root, key) is None:
                _set(root, key, content[key])
        _set(root, "current-context", content["current-context"])
        _save(real, root)
    return former.value if isinstance(former, yaml.ScalarNode) and not _is_null(former) else ""


def unmerge(path: Path, name: str, others: Sequence[str] = ()) -> bool:
    """Takes out the cluster, context and user of this name; answers whether anything was there.

    If its context was the current one, the first of `others` that the file has becomes it.
    """
    if not path.exists():
        return False
    with _locked(path) as real:
        root = _load(real)
        changed = False
        for key in _LISTS:
            existing = _find(root, key)
            if isinstance(existing, yaml.SequenceNode):
                changed |= _drop(existing, name)
        current = _find(root, "current-context")
        if current is not None and current.value == name:
            there = _names(_find(root, "contexts"))
            _set(root, "current-context", next((each for each in others if each in there), ""))
            changed = True
        if changed:
            _save(real, root)
    return changed


def _names(entries: yaml.Node | None) -> set[str]:
    found = entries.value if isinstance(entries, yaml.SequenceNode) else ()
    names = [_find(entry, "name") for entry in found if isinstance(entry, yaml.MappingNode)]
    return {name.value for name in names if isinstance(name, yaml.ScalarNode)}


def _load(path: Path) -> yaml.MappingNode:
    try:
        root = yaml.compose(path.read_text(encoding="utf-8"), Loader=yaml.SafeLoader)
    except FileNotFoundError:
        root = None
    except OSError as error:
        hint = "$KUBECONFIG may name another file"
        raise ClusterError(f"cannot read the kubeconfig {path}: {error.strerror}; {hint}") from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ClusterError(f"{path} is left alone, it cannot be parsed: {' '.join(str(error).split())}") from None
    if root is None or (isinstance(root, yaml.ScalarNode) and root.value in ("", "null", "~")):
        return yaml.MappingNode("tag:yaml.org,2002:map", [], flow_style=False)
    if not isinstance(root, yaml.MappingNode):
        raise ClusterError(f"{path} is left alone, it is not a kubeconfig: a mapping is expected at the top")
    for key in _LISTS:
        found = _find(root, key)
        if found is not None and not isinstance(found, yaml.SequenceNode) and not _is_null(found):
            raise ClusterError(f"{path} is left alone, it is not a kubeconfig: {key!r} is not a list")
    return root


def _save(path: Path, root: yaml.MappingNode) -> None:
    files.write_private(path, yaml.serialize(root, Dumper=yaml.SafeDumper, width=1 << 20, allow_unicode=True).encode())


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[Path]:
    real = Path(os.path.realpath(path))  # A linked kubeconfig stays a link.
    try:
        files.make_private_folder(real.parent)
    except OSError as error:
        raise _unwritable(path, error) from None
    lock = Path(f"{real}.lock")
    deadline = time.monotonic() + LOCK_TIMEOUT
    while True:
        try:
            os.close(os.open(lock, os.O_CREAT | os.O_EXCL, 0o600))
            break
        except FileExistsError:
            if time.monotonic() > deadline:
                raise ClusterError(f"{path} is locked; if no kubectl is writing it, remove {lock}") from None
            time.sleep(0.02)
        except OSError as error:
            raise _unwritable(path, error) from None
    try:
        yield real
    except OSError as error:
        raise _unwritable(path, error) from None
    finally:
        lock.unlink(missing_ok=True)


def _unwritable(path: Path, error: OSError) -> ClusterError:
    hint = "$KUBECONFIG may name another file"
    return ClusterError(f"cannot write the kubeconfig {path}: {error.strerror}; {hint}")


def _node(value: object) -> yaml.Node:
    node = yaml.compose(yaml.safe_dump(value, sort_keys=False), Loader=yaml.SafeLoader)
    assert node is not None  # None is for a text without a document
    return node


def _is_null(node: yaml.Node) -> bool:
    return bool(node.tag == "tag:yaml.org,2002:null")


def _find(mapping: yaml.MappingNode, key: str) -> yaml.Node | None:
    return next((value for name, value in mapping.value if name.value == key), None)


def _set(mapping: yaml.MappingNode, key: str, value: object) -> None:
    node = value if isinstance(value, yaml.Node) else _node(value)
    for index, (name, _) in enumerate(mapping.value):
        if name.value == key:
            mapping.value[index] = (name, node)
            return
    mapping.value.append((_node(key), node))


def _list(root: yaml.MappingNode, key: str) -> yaml.SequenceNode:
    found = _find(root, key)
    if isinstance(found, yaml.SequenceNode):
        if not found.value:
            found.flow_style = False  # `clusters: []` would otherwise grow on one line.
        return found
    fresh = yaml.SequenceNode("tag:yaml.org,2002:seq", [], flow_style=False)
    _set(root, key, fresh)
    return fresh


def _drop(entries: yaml.SequenceNode, name: str) -> bool:
    def is_named(entry: yaml.Node) -> bool:
        found = _find(entry, "name") if isinstance(entry, yaml.MappingNode) else None
        return found is not None and found.value == name

    kept = [entry for entry in entries.value if not is_named(entry)]
    dropped = len(kept) != len(entries.value)
    entries.value[:] = kept
    return dropped
