"""Records this process's finished spans, and those still running.

`span(...)` is a context manager around a piece of work. The span is in `CURRENT` while it goes on, as a revision is
while an informer delivers it: requests name it as their parent, queues keep it with what is put into them, and tasks
and timers that are started meanwhile inherit it.

Off (nothing called `start`), `span` returns a shared object that does nothing and `CURRENT` is always None.

Spans wait in a list of bounded length until `client.tracing` sends them to the API server, or the API server puts its
own into its store. Work on an item of a queue of which nothing came (`Active.done`) leaves nothing.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable, Iterable
from contextvars import ContextVar, Token
from itertools import count
from types import TracebackType
from typing import Final, TypeVar

from . import VARIABLE
from .context import ANNOTATION, SpanContext, format_header, parse
from .span import CAUSES, DROPPED, MARKS, Span, Value

LIMIT: Final = 20_000  # spans that wait to be sent; further ones are dropped, and counted

LONGEST_ERROR: Final = 512  # characters
QUICK: Final = 1_000_000  # nanoseconds
Cause = Span | int | SpanContext
"""Why something is done: a span of this process, a revision, a span of another process."""
CURRENT: ContextVar[Cause | None] = ContextVar("trace", default=None)
SERVICE: ContextVar[str] = ContextVar("service", default="")
"""The component of this task, in a process with several components; empty = the recorder's."""


class Recorder:
    """The spans of this process."""

    def __init__(self, service: str, limit: int = LIMIT) -> None:
        self.service = service
        self.limit = limit
        self.dropped = 0
        self.finished: list[Span] = []
        self.open: dict[str, Span] = {}
        """The running spans, by id."""
        self.notify: Callable[[], None] = _ignore
        """Called for each finished span. Replaced by what sends them."""
        # A forked process makes a recorder of its own, so no two processes count alike.
        self._ids = count(random.SystemRandom().getrandbits(63)).__next__
        self._traces = f"{random.SystemRandom().getrandbits(64):016x}"

    def new_id(self) -> str:
        """The id of another span."""
        return f"{self._ids() & 0xFFFFFFFFFFFFFFFF:016x}"

    def new_trace(self) -> str:
        """The id of another trace."""
        return f"{self._traces}{self._ids() & 0xFFFFFFFFFFFFFFFF:016x}"

    def begin(self, name: str, causes: Iterable[Cause] = (), *, service: str = "") -> Span:
        """Begin a span: part of the current one if there are no causes. `finish` must follow."""
        trace = parent = ""
        revisions: list[int] = []
        links: list[tuple[str, str]] = []
        for cause in [origin for given in causes or (CURRENT.get(),) for origin in _origins(given)]:
            if isinstance(cause, int):
                if cause not in revisions:
                    revisions.append(cause)
                continue
            found = (cause.trace, cause.id if isinstance(cause, Span) else cause.span)
            if not trace:
                trace, parent = found
            elif found not in links and found != (trace, parent):
                links.append(found)
        span = Span(
            trace or self.new_trace(),
            self.new_id(),
            parent,
            name,
            service or SERVICE.get() or self.service,
            time.time_ns(),
            0,
            {},
            revisions[:CAUSES],
            [],
            links[:CAUSES],
            [],
        )
        self.open[span.id] = span
        return span

    def finish(self, span: Span) -> None:
        """The work is done."""
        span.end = time.time_ns()
        self.open.pop(span.id, None)
        self.add(span)

    def add(self, span: Span) -> None:
        """Keep a finished span until it is sent."""
        if len(self.finished) >= self.limit:
            self.dropped += 1
            return
        self.finished.append(span)
        self.notify()

    def drop(self, span: Span) -> None:
        """Nothing came of the work. Should something come of it after all (a task goes on), the span is kept then."""
        span.end = DROPPED
        self.open.pop(span.id, None)

    def revive(self, span: Span) -> None:
        """Keep a span that was dropped."""
        span.end = time.time_ns()
        self.add(span)

    def take(self) -> list[Span]:
        """All that has finished since the last time."""
        taken, self.finished = self.finished, []
        return taken


RECORDER: Recorder | None = None
"""Of this process; None = nothing is recorded."""


R = TypeVar("R", bound=Recorder)


def start(service: str) -> Recorder:
    """Record from now on what this process does, under the name of its component."""
    return install(Recorder(service))


def install(made: R) -> R:
    """Record with this recorder from now on."""
    global RECORDER
    RECORDER = made
    return made


def stop() -> None:
    """Record nothing more."""
    global RECORDER
    RECORDER = None


def wanted() -> bool:
    """Whether this process was started to record."""
    return os.environ.get(VARIABLE) == "1"


class Active:
    """A piece of work that is recorded; an exception that leaves it is its error."""

    __slots__ = ("_kept", "_recorder", "_token", "span")

    def __init__(self, recorder: Recorder, span: Span) -> None:
        self._recorder = recorder
        self.span: Span | None = span
        self._kept = True
        self._token: Token[Cause | None] | None = None

    def __enter__(self) -> Active:
        self._token = CURRENT.set(self.span)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._token is not None
        assert self.span is not None
        CURRENT.reset(self._token)
        if error is not None and not self.span.error:
            self.span.error = str(error)[:LONGEST_ERROR] or type(error).__name__
        if not self._kept:
            self._recorder.drop(self.span)
            return
        outer = self._token.old_value
        if isinstance(outer, Span):
            outer.effects += 1
            if outer.end == DROPPED:
                self._recorder.revive(outer)
        self._recorder.finish(self.span)

    def set(self, name: str, value: Value) -> None:
        """An attribute of the span."""
        if self.span is not None:
            self.span.attributes[name] = value

    def fail(self, error: BaseException) -> None:
        """The work has failed with an error that was handled."""
        if self.span is not None:
            self.span.error = str(error)[:LONGEST_ERROR] or type(error).__name__

    def done(self, item: str) -> None:
        """The work on an item of a queue has ended; it is kept only if anything came of it."""
        if self.span is not None:
            self.span.attributes["object"] = item
            self._kept = self.span.effective

    def mark(self, name: str, text: str = "") -> None:
        """Note what happened."""
        if self.span is not None:
            self.span.mark(time.time_ns(), name, text)

    def discard(self) -> None:
        """Do not keep it."""
        self._kept = False

    def discard_if_quick(self) -> None:
        """Keep it only if it took long, or something came of it."""
        if self.span is not None:
            self._kept = self.span.effective or time.time_ns() - self.span.start > QUICK


class _Nothing(Active):
    """Stands for a piece of work that is not recorded."""

    __slots__ = ()

    def __init__(self) -> None:
        self.span = None

    def __enter__(self) -> Active:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pass

    def discard(self) -> None:
        pass

    def discard_if_quick(self) -> None:
        pass


_NOTHING: Final = _Nothing()


def span(name: str, causes: Iterable[Cause] = (), *, service: str = "", **attributes: Value) -> Active:
    """A piece of work: part of the current one, or what the causes have led to."""
    recorder = RECORDER
    if recorder is None:
        return _NOTHING
    begun = recorder.begin(name, causes, service=service)
    begun.attributes.update(attributes)
    return Active(recorder, begun)


def child(name: str, **attributes: Value) -> Active:
    """A piece of work that is worth recording only as part of another one."""
    if RECORDER is None or not isinstance(CURRENT.get(), (Span, SpanContext)):
        return _NOTHING
    active = span(name)
    for key, value in attributes.items():
        active.set(key, value)
    return active


def mark(name: str, text: str = "") -> None:
    """Note in the current span what happened."""
    current = CURRENT.get()
    if current is not None and type(current) is Span and not current.end and len(current.marks) < MARKS:
        current.marks.append((time.time_ns(), name, text))


def wrote(key: str, revision: int) -> None:
    """Note in the current span that it changed an object."""
    current = CURRENT.get()
    if isinstance(current, Span):
        current.wrote(time.time_ns(), key, revision)


def adopt(annotations: dict[str, str] | None) -> None:
    """Make the current request part of the span that an object's annotation names, if its client names none."""
    current = CURRENT.get()
    if annotations and isinstance(current, Span) and not current.parent and ANNOTATION in annotations:
        parent = parse(annotations[ANNOTATION])
        if parent is not None and parent.sampled:
            current.trace, current.parent = parent.trace, parent.span


def header() -> str:
    """The `traceparent` of a request that is made now; empty if nothing is recorded."""
    current = CURRENT.get()
    if current is None or isinstance(current, int):
        return ""
    if not isinstance(current, Span):
        return format_header(current.trace, current.span)
    if current.end == DROPPED and RECORDER is not None:
        RECORDER.revive(current)
    current.effects += 1
    return format_header(current.trace, current.id)


def _origins(cause: Cause | None) -> list[Cause]:
    """A cause, or what led to it if it was dropped."""
    if not isinstance(cause, Span) or cause.end != DROPPED:
        return [] if cause is None else [cause]
    spans: list[Cause] = [SpanContext(*each) for each in cause.links]
    if cause.parent:
        spans.insert(0, SpanContext(cause.trace, cause.parent))
    return [*cause.causes, *spans]


def _ignore() -> None:
    pass
