"""How explanations read the cluster: object by object, over whatever client the one who asks has.

What the user may not read is as if it were not there; `Cluster.unread` names it, so that the answer can say so.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import quote, urlencode

from .asking import APPS, BATCH, CORE, Asked, Forbidden, Reader
from .facts import Answer, Object, condition, message_of

__all__ = ["APPS", "BATCH", "CORE", "Answer", "Cluster", "Object", "condition"]

MOST = 500  # objects of a list that are looked at


class Cluster:
    """Reads each object only once; lives as long as one question."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._known: dict[str, Any] = {}
        self.unread: set[str] = set()
        """Resources that the user may not read."""

    async def get(self, base: str, plural: str, namespace: str, name: str) -> Object | None:
        """An object of a resource below `/api/v1` or `/apis/GROUP/VERSION`; None if it is not there."""
        found: Object | None = await self._read(f"{_folder(base, plural, namespace)}/{quote(name, safe=':')}", plural)
        return found

    async def list(self, base: str, plural: str, namespace: str = "", **selectors: str) -> list[Object]:
        """The first MOST objects of a namespace, or all; with `fieldSelector` or `labelSelector`."""
        query = urlencode({**selectors, "limit": MOST})
        return list((await self._read(f"{_folder(base, plural, namespace)}?{query}", plural) or {}).get("items") or ())

    async def explain(self, kind: str, thing: Object) -> Answer:
        """Why a pod, a maker of pods, a claim, node or namespace is as it is (`asking.KINDS`)."""
        return (await Asked(self._reader, namespace_of(thing) or "default").explain(kind, name_of(thing)))[1]

    async def _read(self, path: str, what: str) -> Any:
        if path not in self._known:
            try:
                self._known[path] = await self._reader.get(path)
            except Forbidden:
                self._known[path] = None
                self.unread.add(what)
        return self._known[path]


def _folder(base: str, plural: str, namespace: str) -> str:
    place = f"/namespaces/{quote(namespace)}" if namespace else ""
    return f"{base}{place}/{plural}"


def name_of(thing: Object) -> str:
    """The name of an object."""
    return str(thing["metadata"]["name"])


def namespace_of(thing: Object) -> str:
    """The namespace of an object; empty if it is in none."""
    return str(thing["metadata"].get("namespace") or "")


def is_true(thing: Object, kind: str) -> bool:
    """Whether a condition is True."""
    return condition(thing, kind).get("status") == "True"


def text_of(found: Object) -> str:
    """The text of a condition: its message, else its reason."""
    return str(found.get("message") or found.get("reason") or "no message").strip().rstrip(".")


def owned_by(thing: Object, uid: str) -> bool:
    """Whether an object has this owner."""
    return any(each.get("uid") == uid for each in thing["metadata"].get("ownerReferences") or ())


def selects(selector: Object | None, labels: dict[str, str] | None) -> bool:
    """Whether a label selector (`matchLabels`, `matchExpressions`) matches; an empty one matches all, None nothing."""
    if selector is None:
        return False
    labels = labels or {}
    if any(labels.get(key) != value for key, value in (selector.get("matchLabels") or {}).items()):
        return False
    for each in selector.get("matchExpressions") or ():
        value, values = labels.get(each["key"]), each.get("values") or ()
        holds = {
            "In": value in values,
            "NotIn": value not in values,
            "Exists": value is not None,
            "DoesNotExist": value is None,
        }
        if not holds.get(each.get("operator", ""), True):
            return False
    return True


def names(found: list[str], most: int = 3) -> str:
    """Names as a list, the first ones of many."""
    more = f" and {len(found) - most} more" if len(found) > most else ""
    return ", ".join(found[:most]) + more


async def events_of(cluster: Cluster, thing: Object) -> list[Object]:
    """Events about an object, the oldest first."""
    kind, name = thing.get("kind", ""), name_of(thing)
    chosen = f"involvedObject.kind={kind},involvedObject.name={name}"
    found = await cluster.list(CORE, "events", namespace_of(thing) or "default", fieldSelector=chosen)
    uid = thing["metadata"].get("uid")
    ours = [each for each in found if (each.get("involvedObject") or {}).get("uid") in (None, "", uid) or not uid]
    return sorted(ours, key=lambda each: str(each.get("lastTimestamp") or each.get("eventTime") or ""))


def warnings_of(events: list[Object]) -> list[Object]:
    """Those that warn."""
    return [each for each in events if each.get("type") == "Warning"]


def last_warning(events: list[Object]) -> str:
    """The message of the last Warning event; empty if there is none."""
    warned = warnings_of(events)
    return message_of(warned[-1]) if warned else ""
