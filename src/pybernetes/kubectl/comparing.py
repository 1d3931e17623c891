"""`kubectl diff TYPE/NAME`: an object here against the same one of another cluster, or two revisions of a workload.

What a server writes by itself (UID, versions, times, managers, status) is left out.
"""

from __future__ import annotations

import os
import tempfile

from pybernetes.kubectl.builder import Builder
from pybernetes.kubectl.data import copy
from pybernetes.kubectl.errors import CLIError, not_found
from pybernetes.kubectl.printers import yaml_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pybernetes.kubectl.builder import Info
    from pybernetes.kubectl.context import Context

_OWN = ("uid", "resourceVersion", "creationTimestamp", "generation", "managedFields", "selfLink")
_ANNOTATIONS = ("kubectl.kubernetes.io/last-applied-configuration", "deployment.kubernetes.io/revision")


def run(context: Context, arguments: list[str]) -> int:
    """Compares and returns the exit code of diff. Raises CLIError."""
    flags = context.flags
    other, revision = flags.text("to-context"), flags.number("revision")
    if bool(other) == bool(revision):
        raise CLIError("objects are compared with those of --to-context, or with a --revision of their own")
    infos = Builder(context).arguments(arguments, allow_empty=False).checked()
    with tempfile.TemporaryDirectory(prefix="HERE-") as here, tempfile.TemporaryDirectory(prefix="THERE-") as there:
        for info in infos:
            name = f"{info.mapping.kind}.{info.namespace}.{info.name}"
            if other:
                pair = (_bare(info.object), _elsewhere(context, info, other))
            else:
                pair = _revisions(context, info, revision, flags.number("to-revision"))
            for folder, obj in zip((here, there), pair, strict=True):
                if obj is not None:
                    with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
                        file.write(yaml_text.dumps(obj))
        from pybernetes.kubectl.commands.diff import compare

        return compare(context, here, there)


def _bare(obj: dict[str, Any]) -> dict[str, Any]:
    """An object without what its server wrote."""
    found: dict[str, Any] = copy(obj)
    found.pop("status", None)
    metadata = found.get("metadata") or {}
    for key in _OWN:
        metadata.pop(key, None)
    annotations = {
        key: each for key, each in (metadata.pop("annotations", None) or {}).items() if key not in _ANNOTATIONS
    }
    if annotations:
        metadata["annotations"] = annotations
    return found


def _elsewhere(context: Context, info: Info, name: str) -> dict[str, Any] | None:
    from pybernetes.kubectl.context import Context as OtherContext
    from pybernetes.kubectl.flags import Flags
    from pybernetes.kubectl.main import GLOBAL_FLAGS

    flags = Flags(GLOBAL_FLAGS)
    for flag in GLOBAL_FLAGS:
        if context.flags.changed(flag.name) and flag.name in ("kubeconfig", "request-timeout", "cache-dir", "v"):
            flags.put(flag.name, context.flags[flag.name])
    flags.put("context", name)
    other = OtherContext(flags, context.path, context.argv)
    try:
        mapping = other.mapper.kind(info.mapping.api_version, info.mapping.kind)
        namespace = info.namespace if context.explicit_namespace() else other.namespace()
        found = _bare(other.client.get(mapping.path(namespace, info.name)))
    except CLIError as error:
        if not_found(error):
            return None
        raise
    if info.mapping.namespaced:
        found["metadata"]["namespace"] = info.namespace  # the namespaces of the two contexts may differ
    return found


def _revisions(context: Context, info: Info, old: int, new: int) -> tuple[Any, Any]:
    from pybernetes.kubectl import rollouts

    found = rollouts.history(context, info)
    numbers = [old, new or max(found, default=0)]
    for number in numbers:
        if number not in found:
            known = ", ".join(map(str, sorted(found))) or "none"
            raise CLIError(f"{info.label()} has no revision {number} (it has: {known})")
    return found[numbers[0]].template, found[numbers[1]].template
