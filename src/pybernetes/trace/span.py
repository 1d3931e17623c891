"""A span: one request, one reconcile, one attempt, one call of a component."""

from __future__ import annotations

import msgspec

Value = str | int | float | bool


Mark = tuple[int, str, str]
"""An event in a span: its time (nanoseconds since 1970), its name, a text. A plain tuple, as there are many."""


class Span(msgspec.Struct, array_like=True, eq=False):
    """One piece of work of one component. On the wire an array, in the order of the fields."""

    trace: str
    id: str
    parent: str
    """The span that it is part of; empty for the first one of a trace."""
    name: str
    service: str
    start: int
    """Nanoseconds since 1970."""
    end: int = 0
    """0 while it goes on, DROPPED if nothing came of it."""
    attributes: dict[str, Value] = {}
    causes: list[int] = []
    """The revisions that woke it."""
    revisions: list[int] = []
    """The revisions that it wrote."""
    links: list[tuple[str, str]] = []
    """Other spans that caused it: trace and id."""
    marks: list[Mark] = []
    error: str = ""
    effects: int = 0
    """How many requests and spans it has led to."""

    @property
    def effective(self) -> bool:
        """Whether anything came of it."""
        return bool(self.effects or self.marks or self.error or self.revisions)

    def mark(self, at: int, name: str, text: str = "") -> None:
        """Note what happened while the span goes on; at most MARKS of a span are kept."""
        if not self.end and len(self.marks) < MARKS:
            self.marks.append((at, name, text))

    def wrote(self, at: int, key: str, revision: int) -> None:
        """Note that the span changed an object. A task that outlives its span adds nothing to it."""
        if not self.end:
            self.attributes.setdefault("object", key)
            self.revisions.append(revision)
            self.mark(at, "stored")


DROPPED = -1
MARKS = 64  # of a span
CAUSES = 16  # of a span, and of an item that waits in a queue


class Batch(msgspec.Struct):
    """Spans of one process, as they are sent to the API server."""

    spans: list[Span]


encoder = msgspec.json.Encoder()
decoder = msgspec.json.Decoder(Batch)
