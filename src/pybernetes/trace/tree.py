"""From spans to trees: who caused what.

A span hangs below its parent: the span it is part of, or, where it was woken by revisions, the request that wrote the
first of them. All further causes are links. What names a cause that is not known (it was dropped, or is too old)
begins a tree of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from .span import Span


@dataclass(eq=False, slots=True)
class Node:
    """A span in its tree."""

    span: Span
    parent: Node | None = None
    children: list[Node] = field(default_factory=list)
    links: list[Node] = field(default_factory=list)
    """Further causes."""
    critical: bool = False
    """On the way from the root to what ended last."""

    @property
    def end(self) -> int:
        """When it ended; its begin while it goes on."""
        return max(self.span.end, self.span.start)

    @property
    def duration(self) -> int:
        """Nanoseconds."""
        return self.end - self.span.start

    @property
    def self_time(self) -> int:
        """Nanoseconds of its own time in which none of its children was at work."""
        covered, until = 0, self.span.start
        for child in self.children:  # in the order of their begin
            begin, end = max(child.span.start, until), min(child.end, self.end)
            if end > begin:
                covered += end - begin
                until = end
        return self.duration - covered

    def walk(self) -> Iterator[Node]:
        """This span and all below it, as they are shown."""
        waiting = [self]
        while waiting:
            node = waiting.pop()
            yield node
            waiting += reversed(node.children)


class Spans:
    """Spans and what caused each."""

    def __init__(self, spans: Iterable[Span]) -> None:
        self.by_id: dict[tuple[str, str], Span] = {}
        for span in spans:
            known = self.by_id.get((span.trace, span.id))
            if known is None or span.end > 0:  # what has ended replaces what was going on
                self.by_id[span.trace, span.id] = span
        self.writers: dict[int, Span] = {}
        for span in self.by_id.values():
            for revision in span.revisions:
                self.writers[revision] = span

    def causes(self, span: Span) -> list[Span]:
        """The known causes of a span, what it is part of first. A cause begins before its effect."""
        found: list[Span] = []
        if span.parent and (parent := self.by_id.get((span.trace, span.parent))) is not None:
            found.append(parent)
        writers = (self.writers.get(revision) for revision in span.causes)
        others = (self.by_id.get(link) for link in span.links)
        for cause in (*writers, *others):
            if cause is not None and cause is not span and cause not in found and _before(cause, span):
                found.append(cause)
        return found

    def trees(self, belongs: Callable[[Span], bool] | None = None) -> list[Node]:
        """All trees, the earliest first; or what the spans that `belongs` picks have led to, as trees of them."""
        causes = {key: self.causes(span) for key, span in self.by_id.items()}
        chosen = self.by_id if belongs is None else self._reached(causes, belongs)
        nodes = {key: Node(span) for key, span in chosen.items()}
        roots = []
        for key, node in nodes.items():
            known = [nodes[each.trace, each.id] for each in causes[key] if (each.trace, each.id) in nodes]
            if known:
                node.parent, node.links = known[0], known[1:]
                known[0].children.append(node)
            else:
                roots.append(node)
        for node in nodes.values():
            node.children.sort(key=lambda each: each.span.start)
        roots.sort(key=lambda each: each.span.start)
        return roots

    def _reached(
        self, causes: dict[tuple[str, str], list[Span]], belongs: Callable[[Span], bool]
    ) -> dict[tuple[str, str], Span]:
        effects: dict[tuple[str, str], list[Span]] = {}
        for key, found in causes.items():
            for cause in found:
                effects.setdefault((cause.trace, cause.id), []).append(self.by_id[key])
        waiting = [span for span in self.by_id.values() if belongs(span)]
        reached: dict[tuple[str, str], Span] = {}
        while waiting:
            span = waiting.pop()
            if (span.trace, span.id) not in reached:
                reached[span.trace, span.id] = span
                waiting += effects.get((span.trace, span.id), ())
        return reached

    def root_of(self, span: Span) -> Span:
        """The span that a span goes back to."""
        seen = set()
        while (span.trace, span.id) not in seen:
            seen.add((span.trace, span.id))
            found = self.causes(span)
            if not found:
                break
            span = found[0]
        return span


COMPONENTS = ("system:kube-controller-manager", "system:kube-scheduler", "system:apiserver")


def begun_by_users(roots: Iterable[Node]) -> list[Node]:
    """The trees that begin with a request of a client other than the cluster's own components."""

    def own(user: str) -> bool:
        return user in COMPONENTS or user.startswith(("system:node:", "system:serviceaccount:kube-system:"))

    return [each for each in roots if "code" in (of := each.span.attributes) and not own(str(of.get("user", "")))]


def mark_critical(root: Node) -> Node:
    """Mark the chain of causes that ends with what ended last; that span."""
    last = max(root.walk(), key=lambda node: (node.end, node.span.start))
    node: Node | None = last
    while node is not None:
        node.critical = True
        node = node.parent
    return last


def _before(cause: Span, effect: Span) -> bool:
    """Whether one began before the other; this keeps trees free of circles."""
    return (cause.start, cause.trace, cause.id) < (effect.start, effect.trace, effect.id)
