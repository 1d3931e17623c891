"""`kubectl tree`: what owns an object and what it owns, as a tree.

Beside owner references: the claims that a pod mounts, the volume of a claim, and the endpoints and pods of a Service.
"""

from __future__ import annotations

from pybernetes.kubectl.ages import age
from pybernetes.kubectl.builder import Builder, resource_label
from pybernetes.kubectl.command import Command
from pybernetes.kubectl.data import dig
from pybernetes.kubectl.errors import CLIError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from pybernetes.kubectl.context import Context
    from pybernetes.kubectl.mapper import Mapping


def run(context: Context, arguments: list[str]) -> int | None:
    """`tree TYPE/NAME`."""
    infos = Builder(context).arguments(arguments, allow_empty=False).checked()
    if len(infos) != 1:
        raise CLIError("tree takes one object: TYPE/NAME")
    info = infos[0]
    context.client.warnings.silent = True  # of kinds that the user did not ask for
    known: dict[str, tuple[Mapping, dict[str, Any]]] = {}
    children: dict[str, list[str]] = {}
    parents: dict[str, list[str]] = {}
    seen = set()
    for mapping in context.mapper.all():
        if "list" not in mapping.verbs or (mapping.group, mapping.resource) in seen or mapping.resource == "events":
            continue
        seen.add((mapping.group, mapping.resource))
        try:
            listed = context.client.list(mapping.path(info.namespace), {}).get("items") or ()
        except CLIError:
            continue
        for item in listed:
            uid = item["metadata"].get("uid", "")
            known[uid] = (mapping, item)
            for owner in item["metadata"].get("ownerReferences") or ():
                children.setdefault(owner["uid"], []).append(uid)
                parents.setdefault(uid, []).append(owner["uid"])
    root = info.object["metadata"]["uid"]
    known.setdefault(root, (info.mapping, info.object))
    for parent, child in _links(known):
        if child not in children.setdefault(parent, []):
            children[parent].append(child)
            parents.setdefault(child, []).append(parent)
    way = {root}
    while owners := [uid for uid in parents.get(root, ()) if uid in known and uid not in way]:
        root = owners[0]
        way.add(root)
    _print(context, known, children, root, "", "", ())
    return None


def _links(known: dict[str, tuple[Mapping, dict[str, Any]]]) -> Iterator[tuple[str, str]]:
    """Pairs of UIDs, parent and child, of objects that belong together without an owner reference."""
    named = {
        (mapping.group, mapping.kind, obj["metadata"].get("namespace", ""), obj["metadata"]["name"]): uid
        for uid, (mapping, obj) in known.items()
    }
    for uid, (mapping, obj) in known.items():
        namespace, name = obj["metadata"].get("namespace", ""), obj["metadata"]["name"]
        found: list[str | None] = []
        if mapping.group == "" and mapping.kind == "Pod":
            for volume in dig(obj, "spec", "volumes", default=[]):
                claim = dig(volume, "persistentVolumeClaim", "claimName", default="")
                found.append(named.get(("", "PersistentVolumeClaim", namespace, claim)))
        elif mapping.group == "" and mapping.kind == "PersistentVolumeClaim":
            volume_name = dig(obj, "spec", "volumeName", default="")
            found.append(named.get(("", "PersistentVolume", "", volume_name)))
        elif mapping.group == "" and mapping.kind == "Service":
            found.append(named.get(("", "Endpoints", namespace, name)))
        elif mapping.kind == "EndpointSlice":
            for endpoint in obj.get("endpoints") or ():
                target = dig(endpoint, "targetRef", "name", default="")
                found.append(named.get(("", dig(endpoint, "targetRef", "kind", default=""), namespace, target)))
        yield from ((uid, child) for child in found if child is not None)


def _print(
    context: Context, known: Any, children: dict[str, list[str]], uid: str, head: str, pad: str, above: tuple[str, ...]
) -> None:
    mapping, obj = known[uid]
    created = obj["metadata"].get("creationTimestamp")
    phase = dig(obj, "status", "phase", default="")
    context.out(
        f"{head}{resource_label(mapping, obj['metadata']['name'])}  {phase + '  ' if phase else ''}{age(created)}\n"
    )
    below = [child for child in children.get(uid) or () if child in known and child not in above]
    for at, child in enumerate(below):
        last = at == len(below) - 1
        _print(
            context,
            known,
            children,
            child,
            f"{pad}{'└─' if last else '├─'}",
            f"{pad}{'  ' if last else '│ '}",
            (*above, uid),
        )


COMMAND = Command("tree TYPE/NAME", "Show what owns an object and what it owns", run)
