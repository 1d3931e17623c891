"""The facts about a pod when the question is asked, the answer to it, and how both are read and shown."""

from __future__ import annotations

import datetime
import signal
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from pybernetes.terminal import escaped

Object = dict[str, Any]
LOG_LINES = 10


@dataclass(frozen=True, slots=True)
class Facts:
    """The facts about a pod: None stands for an object that does not exist."""

    pod: Object
    events: list[Object] = field(default_factory=list)
    """Of the pod, the oldest first."""
    claims: dict[str, Object | None] = field(default_factory=dict)
    claim_events: dict[str, list[Object]] = field(default_factory=dict)
    volumes: dict[str, Object | None] = field(default_factory=dict)
    """PersistentVolumes that its claims name."""
    classes: dict[str, Object] | None = field(default_factory=dict)
    """StorageClasses; None if the user may not read them."""
    resource_claims: dict[str, Object | None] = field(default_factory=dict)
    node: Object | None = None
    logs: dict[str, str] = field(default_factory=dict)
    """The end of the last log of containers that ended."""
    now: str = ""
    """The time, as the API writes it."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The sentence, and the lines below it; `ask_scheduler` if it has more to say."""

    sentence: str
    details: tuple[str, ...] = ()
    ask_scheduler: bool = False
    healthy: bool = False
    """Nothing is wrong."""
    fix: str = ""
    """The smallest change that would help, where one is known."""

    def text(self, title: str) -> str:
        """The lines for a terminal; they quote events, logs and names that any user may write."""
        lines = [f"{title}: {self.sentence.rstrip('. ')}.", *self.details]
        if self.fix:
            lines.append(f"What would help: {self.fix}.")
        return escaped("\n".join(lines))


def utc(now: datetime.datetime) -> str:
    """A time as the API writes it, so that it compares with others as text."""
    return now.astimezone(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def statuses(pod: Object) -> Iterator[Object]:
    """Of all containers, init containers first."""
    status = pod.get("status") or {}
    yield from status.get("initContainerStatuses") or ()
    yield from status.get("containerStatuses") or ()
    yield from status.get("ephemeralContainerStatuses") or ()


def container_of(pod: Object, name: str) -> Object:
    """A container's part of the spec."""
    spec = pod["spec"]
    every = [*(spec.get("initContainers") or ()), *(spec.get("containers") or ())]
    return next((each for each in every if each["name"] == name), {})


def condition(thing: Object, kind: str) -> Object:
    """A condition of the status, empty if it has none of that type."""
    conditions = (thing.get("status") or {}).get("conditions") or ()
    return next((each for each in conditions if each.get("type") == kind), {})


def is_ready(thing: Object | None) -> bool:
    """Whether its condition Ready is True."""
    return thing is not None and condition(thing, "Ready").get("status") == "True"


def about(events: Iterable[Object], container: str) -> list[Object]:
    """The events that are about a container, or do not say about which."""
    found = []
    for each in events:
        path = str((each.get("involvedObject") or {}).get("fieldPath") or "")
        if not path or path.endswith(f"{{{container}}}"):
            found.append(each)
    return found


def message_of(event: Object) -> str:
    """The message of an event."""
    return str(event.get("message") or "").strip()


def recent(events: list[Object], count: int = 5) -> tuple[str, ...]:
    """The last events, as lines."""
    if not events:
        return ()
    lines = (f"  {each.get('type', '')} {each.get('reason', '')}: {message_of(each)}" for each in events[-count:])
    return ("Its last events:", *lines)


def last_lines(facts: Facts, container: str) -> tuple[str, ...]:
    """The end of a container's log, as lines."""
    lines = facts.logs.get(container, "").splitlines()[-LOG_LINES:]
    return (f"The last lines of {container}:", *(f"  {line}" for line in lines)) if lines else ()


def listed(names: list[str]) -> str:
    """Containers by name."""
    return f"container{'s' if len(names) > 1 else ''} {', '.join(names)}"


def exit_text(ended: Object) -> str:
    """How a container ended."""
    code = ended.get("exitCode", 0)
    reason = ended.get("reason")
    text = f"exit code {code}"
    number = ended.get("signal") or (code - 128 if 128 < code < 193 else 0)
    if number:
        try:
            text += f" ({signal.Signals(number).name})"
        except ValueError:
            text += f" (signal {number})"
    if reason == "OOMKilled":
        text += ", killed because it exceeded its memory limit"
    if ended.get("message"):
        text += f", saying: {ended['message'].strip()}"
    return text
