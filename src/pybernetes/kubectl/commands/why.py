"""`kubectl why TYPE/NAME`: why an object is not as it should be, in one sentence, then what shows it.

Pods and what makes them are judged as `pyb why` does; any other object by its deletion, conditions, phase and events.
"""

from __future__ import annotations

from pybernetes.kubectl.builder import Builder
from pybernetes.kubectl.command import Command
from pybernetes.kubectl.data import dig
from pybernetes.kubectl.errors import CLIError, StatusError, not_found

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pybernetes.kubectl.builder import Info
    from pybernetes.kubectl.context import Context
    from pybernetes.trace.why.facts import Answer

_NEGATIVE = ("Pressure", "Unavailable", "Failure", "Failed", "Degraded", "Stalled", "Denied", "Corruption", "Dangling")
"""Ends of the names of conditions that are bad when they are True; others are bad when they are False."""
_GOOD_PHASES = ("", "Active", "Bound", "Available", "Running", "Succeeded", "Released")


def run(context: Context, arguments: list[str]) -> int | None:
    """`why TYPE/NAME`."""
    if not arguments:
        raise CLIError("why takes one object: TYPE/NAME, or the NAME of a pod")
    words = ["pods", *arguments] if len(arguments) == 1 and "/" not in arguments[0] else arguments
    infos = Builder(context).arguments(words, allow_empty=False).checked()
    for info in infos:
        found = answer(context, info)
        where = f"{info.namespace}/{info.name}" if info.namespace else info.name
        context.out(found.text(f"{info.mapping.kind} {where}") + "\n")
    return None


def answer(context: Context, info: Info) -> Answer:
    """The sentence and the details for one object."""
    import asyncio

    from pybernetes.trace.why import asking, kinds

    kind = info.mapping.kind
    if info.mapping.group in ("", "apps", "batch") and kind.lower() in asking.KINDS:
        try:
            reader = _Reader(context)
            if kind == "Pod":
                return asyncio.run(kinds.explain_pod(reader, info.namespace, info.name))[1]
            return asyncio.run(kinds.explain(reader, info.object))
        except (LookupError, asking.Forbidden) as error:
            raise CLIError(str(error.args[0])) from None
    if (info.mapping.group, kind) in kinds.BY_KIND:
        return asyncio.run(kinds.explain(_Reader(context), info.object))
    return explain_any(info.object, _events(context, info.namespace, kind, info.name))


class _Reader:
    """Reads with kubectl's client."""

    def __init__(self, context: Context) -> None:
        self._client = context.client

    async def get(self, path: str) -> Any:
        from pybernetes.trace.why import asking

        try:
            return self._client.get(path)
        except CLIError as error:
            if not_found(error):
                return None
            if isinstance(error, StatusError) and error.reason == "Forbidden":
                raise asking.Forbidden(str(error)) from None
            raise

    async def log(self, path: str) -> str | None:
        try:
            return self._client.content(self._client.open("GET", path, accept="*/*")).decode("utf-8", "replace")
        except CLIError:
            return None


def explain_any(obj: dict[str, Any], events: list[dict[str, Any]]) -> Answer:
    """An answer from the metadata, status and events of any object."""
    from pybernetes.trace.why.facts import Answer

    metadata, status = obj.get("metadata") or {}, obj.get("status") or {}
    warnings = [each for each in events if each.get("type") == "Warning"][-5:]
    told = tuple(f"  {each.get('reason', '')}: {str(each.get('message', '')).strip()}" for each in warnings)
    details = ("Its last warnings:", *told) if told else ()
    if metadata.get("deletionTimestamp"):
        since = f"it is being deleted since {metadata['deletionTimestamp']}"
        finalizers = [*(metadata.get("finalizers") or ()), *(dig(obj, "spec", "finalizers", default=[]))]
        if finalizers:
            return Answer(f"{since} and waits until its finalizers are removed: {', '.join(finalizers)}", details)
        return Answer(since, details)
    bad = [each for each in status.get("conditions") or () if _is_bad(each)]
    if bad:
        lines = [f"  {each.get('type')}={each.get('status')} {_reason(each)}" for each in bad[1:]]
        also = ("Also:", *lines) if lines else ()
        return Answer(f"its condition {bad[0].get('type')} is {bad[0].get('status')}{_because(bad[0])}", also + details)
    observed = status.get("observedGeneration")
    if isinstance(observed, int) and observed < metadata.get("generation", 0):
        return Answer("its controller has not seen its last change yet", details)
    if str(status.get("phase", "")) not in _GOOD_PHASES:
        why = f": {warnings[-1].get('message', '').strip()}" if warnings else ""
        return Answer(f"its phase is {status['phase']}{why}", details)
    if warnings:
        return Answer(
            f"its status shows no fault, but it was warned of: {warnings[-1].get('message', '').strip()}", details
        )
    return Answer("nothing in its status or events says that something is wrong")


def _is_bad(condition: dict[str, Any]) -> bool:
    negative = str(condition.get("type", "")).endswith(_NEGATIVE)
    return condition.get("status") == ("True" if negative else "False") or condition.get("status") == "Unknown"


def _reason(condition: dict[str, Any]) -> str:
    return " ".join(str(condition[key]) for key in ("reason", "message") if condition.get(key))


def _because(condition: dict[str, Any]) -> str:
    reason = _reason(condition)
    return f" ({reason.rstrip('.')})" if reason else ""


def _events(context: Context, namespace: str, kind: str, name: str) -> list[dict[str, Any]]:
    """The events of an object, the oldest first; none where they cannot be read."""
    path = f"/api/v1/namespaces/{namespace or 'default'}/events"
    fields = f"involvedObject.kind={kind},involvedObject.name={name}"
    try:
        found = context.client.list(path, {"fieldSelector": fields}).get("items") or []
    except CLIError:
        return []
    return sorted(found, key=lambda each: str(each.get("lastTimestamp") or each.get("eventTime") or ""))


COMMAND = Command("why (NAME | TYPE/NAME)", "Explain why an object is not as it should be", run)
