"""Recordings of a cluster (`pyb record`) and what a replay of one is compared with. Pure, but for files.

A recording is what was stored when it began and every change after that, with who wrote it where spans tell
(docs/trace.md). Changes by controllers and the scheduler are their decisions; all others (users, nodes, foreign
controllers) are the input, which a replay applies at the same moments.
"""

from __future__ import annotations

import gzip
import json
import re
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import msgspec

from pybernetes.cluster import files
from pybernetes.cluster.snapshots import KEPT_IN_ANOTHER
from pybernetes.trace.span import Span

FORMAT = "pybernetes-recording/v1"
DECIDING = ("kube-controller-manager", "kube-scheduler")
"""Prefixes of the user agents whose decisions are compared."""
LEASES = "/registry/leases/*"
IGNORED = ("/registry/events/*", "/registry/masterleases/*", LEASES)
"""Keys that are no decision, or differ in every run; leases of nodes are input all the same."""
OWN = tuple(each for each in KEPT_IN_ANOTHER if not each.startswith(("/registry/minions", "/registry/csinodes")))
_UNSTEADY = ("uid", "resourceVersion", "creationTimestamp", "managedFields", "generation", "selfLink")
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_ACCESS = re.compile(r"kube-api-access-\w{5}")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")

Objects = dict[str, Any]
"""The stored objects, by key."""


class RecordingError(ValueError):
    """A file that is no recording."""


class Change(msgspec.Struct):
    """One change of the store."""

    at: float
    """Seconds since 1970."""
    revision: int
    key: str
    value: Any = None
    """None: it was deleted."""
    by: str = ""
    """The client: the program, for a controller its name; empty if it is unknown."""
    decision: bool = False
    """Whether a controller or the scheduler wrote it."""


class Recording(msgspec.Struct):
    """A stretch of a cluster's life."""

    begin: float
    """Seconds since 1970."""
    end: float
    revision: int
    objects: Objects
    """As they were at the beginning."""
    changes: list[Change] = []

    def final(self) -> Objects:
        """The stored objects at the end."""
        found = dict(self.objects)
        for each in self.changes:
            if each.value is None:
                found.pop(each.key, None)
            else:
                found[each.key] = each.value
        return found


def attribute(changes: Iterable[Change], spans: Iterable[Span]) -> None:
    """Note of changes whose they are, and when they happened."""
    writers = {revision: span for span in spans for revision in span.revisions}
    last = 0.0
    for each in changes:
        span = writers.get(each.revision)
        if span is not None:
            agent = str(span.attributes.get("agent", ""))
            user = str(span.attributes.get("user", ""))
            each.decision = agent.startswith(DECIDING)
            controller = user.removeprefix("system:serviceaccount:kube-system:")
            each.by = controller if each.decision and controller != user else agent.partition("/")[0]
            each.at = next((at for at, name, _ in span.marks if name == "stored"), span.end) / 1e9
        each.at = last = max(last, each.at)


def save(recording: Recording, path: Path) -> None:
    """Write a file, for its owner's eyes: it has the cluster's Secrets."""
    head = {"format": FORMAT, "begin": recording.begin, "end": recording.end, "revision": recording.revision}
    lines = [msgspec.json.encode(head)]
    lines += [msgspec.json.encode({"key": key, "value": value}) for key, value in sorted(recording.objects.items())]
    lines += [msgspec.json.encode({"change": each}) for each in recording.changes]
    text = b"\n".join(lines) + b"\n"
    files.write_private(path, gzip.compress(text, mtime=0) if path.suffix == ".gz" else text)


def load(path: Path) -> Recording:
    """Read a file. RecordingError, OSError."""
    content = path.read_bytes()
    try:
        text = gzip.decompress(content) if content[:2] == b"\x1f\x8b" else content
        head, *rest = map(msgspec.json.decode, text.splitlines())
        if not isinstance(head, dict) or head.get("format") != FORMAT:
            raise RecordingError(f"{path}: not a recording in the format {FORMAT}")
        objects = {each["key"]: each["value"] for each in rest if "key" in each}
        changes = msgspec.convert([each["change"] for each in rest if "change" in each], list[Change])
        begin, end = (msgspec.convert(head[name], float) for name in ("begin", "end"))
        return Recording(begin, end, msgspec.convert(head["revision"], int), objects, changes)
    except (msgspec.MsgspecError, KeyError, TypeError, EOFError, zlib.error, gzip.BadGzipFile, ValueError) as error:
        if isinstance(error, RecordingError):
            raise
        raise RecordingError(f"{path}: not a recording: {error}") from None


class Replayed(msgspec.Struct):
    """The result of a replay."""

    objects: Objects
    """As they were at the end."""
    changes: list[Change]
    """Decisions, in order, without their values."""
    skipped: int = 0
    """Changes of the input that had nothing to change: what they were about was not there."""


def differences(recording: Recording, replayed: Replayed) -> Iterator[str]:
    """The differences to today's decisions, as lines; none if there are none."""
    then, now = recording.final(), replayed.objects
    was_made, is_made = (
        {each.key: each.by for each in changes if each.decision} for changes in (recording.changes, replayed.changes)
    )
    for key in sorted(then.keys() | now.keys() | was_made.keys() | is_made.keys()):
        if _ignored(key):
            continue
        name = key.removeprefix("/registry/")
        old, new = steady(then.get(key)), steady(now.get(key))
        if old == new:
            if old is None and (key in was_made) != (key in is_made):  # it came and went
                sign, by = ("-", was_made[key]) if key in was_made else ("+", is_made[key])
                yield f"{sign} {name}, which was deleted again  ({by})"
            continue
        by = is_made.get(key) or was_made.get(key) or ""
        yield f"{'+' if old is None else '-' if new is None else '~'} {name}{f'  ({by})' if by else ''}"
        if old is not None and new is not None:
            yield from (f"    {line}" for line in _fields(old, new, ""))


def counts(changes: Iterable[Change]) -> str:
    """How many writes each of those that decide has made."""
    found = Counter(each.by for each in changes if each.decision and not _ignored(each.key))
    return ", ".join(f"{name} {count}" for name, count in sorted(found.items())) or "none"


def steady(content: Any) -> Any:
    """An object without what differs from run to run; lists of objects in an order of their own."""
    if isinstance(content, dict):
        return {key: steady(value) for key, value in content.items() if key not in _UNSTEADY and value is not None}
    if isinstance(content, list):
        found = [steady(each) for each in content]
        return sorted(found, key=_text) if any(isinstance(each, dict) for each in found) else found
    if not isinstance(content, str):
        return content
    return _ACCESS.sub("kube-api-access-", _UUID.sub("UID", _TIME.sub("TIME", content)))


def merged(current: Any, before: Any, after: Any) -> Any:
    """A value with the change from one value to another applied; lists are changed as a whole."""
    if not (isinstance(current, dict) and isinstance(before, dict) and isinstance(after, dict)):
        return after
    result = dict(current)
    for key in before.keys() | after.keys():
        if key not in after:
            result.pop(key, None)
        elif key not in before or before[key] != after[key]:
            result[key] = merged(current.get(key), before.get(key), after[key])
    return result


def _ignored(key: str) -> bool:
    return any(fnmatchcase(key, pattern) for pattern in (*IGNORED, *OWN))


def _fields(old: Any, new: Any, path: str) -> Iterator[str]:
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        for key in sorted(old.keys() | new.keys()):
            if old.get(key) != new.get(key):
                yield from _fields(old.get(key), new.get(key), f"{path}.{key}" if path else key)
        return
    if isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for index, (one, two) in enumerate(zip(old, new, strict=True)):
            if one != two:
                yield from _fields(one, two, f"{path}[{index}]")
        return
    yield f"{path}: {_text(old)} -> {_text(new)}"


def _text(content: Any) -> str:
    return json.dumps(content, sort_keys=True)
