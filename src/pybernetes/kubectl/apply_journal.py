"""Keeps an object's configuration from before the last `apply` from this machine, for `kubectl undo`.

One file for each object under ~/.kube/cache/pyb/applied, readable by its owner only. Secrets are not kept. The newest
thousand files stay. A folder that cannot be written means that there is nothing to undo, never that apply fails.
"""

from __future__ import annotations

import os

from pybernetes.kubectl import data

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pybernetes.kubectl.builder import Info
    from pybernetes.kubectl.context import Context

_MOST = 1000


def _folder(context: Context) -> str:
    host = context.client.config.server.partition("://")[2]
    safe = "".join(char if char.isalnum() or char in ".-" else "_" for char in host)
    return os.path.join(context.cache_dir(), "pyb", "applied", safe)


def _file(context: Context, info: Info) -> str:
    uid = str((info.object.get("metadata") or {}).get("uid") or "")
    return os.path.join(_folder(context), f"{uid}.json") if uid and uid.replace("-", "").isalnum() else ""


def keep(context: Context, info: Info, previous: str) -> None:
    """Keeps the configuration that an apply has just replaced; "" where the apply made the object."""
    path = _file(context, info)
    if not path or (info.mapping.kind == "Secret" and not info.mapping.group):
        return
    content = data.dumps({"name": info.name, "previous": previous}, sort=False)
    temporary = f"{path}.{os.getpid()}"
    try:
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        with open(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
            file.write(content)
        os.replace(temporary, path)
        _bound(os.path.dirname(path))
    except OSError:
        pass


def _bound(folder: str) -> None:
    names = os.listdir(folder)
    if len(names) > _MOST:
        paths = [os.path.join(folder, name) for name in names]
        for path in sorted(paths, key=lambda each: os.stat(each).st_mtime)[: len(paths) - _MOST]:
            os.unlink(path)


def previous(context: Context, info: Info) -> str | None:
    """The configuration before the last apply, "" where that made the object, None where none is known."""
    path = _file(context, info)
    try:
        with open(path, "rb") as file:
            found: Any = data.loads(file.read())
        return str(found["previous"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
