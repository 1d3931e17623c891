"""`kubectl tree`: what owns an object and what it owns, as a tree."""

from __future__ import annotations

from pybernetes.kubectl.ages import age
from pybernetes.kubectl.builder import Builder, resource_label
from pybernetes.kubectl.command import Command
from pybernetes.kubectl.data import dig
from pybernetes.kubectl.errors import CLIError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pybernetes.kubectl.context import Context
    from pybernetes.kubectl.mapper import Mapping


def run(context: Context, arguments: list[str]) -> int | None:
    """`tree TYPE/NAME`."""
    infos = Builder(context).arguments(arguments, allow_empty=False).checked()
    if len(infos) != 1:
        raise CLIError("tree takes one object: TYPE/NAME")
    info = infos[0]
    known: dict[str, tuple[Mapping, dict[str, Any]]] = {}
    children: dict[str, list[str]] = {}
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
    root = info.object["metadata"]["uid"]
    known.setdefault(root, (info.mapping, info.object))
    while True:
        owners = [o["uid"] for o in dig(known[root][1], "metadata", "ownerReferences", default=[]) if o["uid"] in known]
        if not owners:
            break
        root = owners[0]
    _print(context, known, children, root, "", "")
    return None


def _print(context: Context, known: Any, children: dict[str, list[str]], uid: str, head: str, pad: str) -> None:
    mapping, obj = known[uid]
    created = obj["metadata"].get("creationTimestamp")
    phase = dig(obj, "status", "phase", default="")
    context.out(
        f"{head}{resource_label(mapping, obj['metadata']['name'])}  {phase + '  ' if phase else ''}{age(created)}\n"
    )
    below = children.get(uid) or []
    for at, child in enumerate(below):
        last = at == len(below) - 1
        _print(context, known, children, child, f"{pad}{'└─' if last else '├─'}", f"{pad}{'  ' if last else '│ '}")


COMMAND = Command("tree TYPE/NAME", "Show what owns an object and what it owns", run)
