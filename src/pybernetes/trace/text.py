"""Trees of spans as text: when each began, how long it took, how much of that by itself, who, what."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from itertools import pairwise

from .span import Span
from .tree import Node, mark_critical

_HEADER = f"{'start':>9} {'took':>9} {'self':>9}  "
_WIDTH = 26
SHORTEST = 0.1  # milliseconds of a stage that is worth showing
LONGEST = 160  # characters of an error or mark


def render(roots: Iterable[Node], *, stages: bool = True) -> Iterator[str]:
    """Lines. `*` is on the critical path: the chain of causes of what ended last."""
    for root in roots:
        last = mark_critical(root)
        begin = root.span.start
        count = sum(1 for _ in root.walk())
        services = len({node.span.service for node in root.walk()})
        yield (
            f"trace {root.span.trace}: {count} span{'s' * (count > 1)} of {services} "
            f"component{'s' * (services > 1)} in {_ms(last.end - begin).strip()}"
        )
        yield f"{_HEADER}{'component':<{_WIDTH}}"
        waiting: list[tuple[Node, str, str]] = [(root, "", "")]
        while waiting:
            node, lead, below = waiting.pop()
            yield _line(node, begin, lead)
            yield from _notes(node, below, begin, stages)
            children = [
                (child, f"{below}{'└─ ' if child is node.children[-1] else '├─ '}", below + _bar(child, node))
                for child in node.children
            ]
            waiting += reversed(children)


def _bar(child: Node, parent: Node) -> str:
    return "   " if child is parent.children[-1] else "│  "


def _line(node: Node, begin: int, lead: str) -> str:
    span = node.span
    took = _ms(node.duration) if span.end > 0 else "goes on".rjust(9)
    star = "*" if node.critical else " "
    return (
        f"{_ms(span.start - begin)} {took} {_ms(node.self_time)} {star}"
        f"{span.service[:_WIDTH]:<{_WIDTH}} {lead}{title(span)}{_outcome(node)}"
    )


def title(span: Span) -> str:
    """The action and its object."""
    found = span.attributes.get("object") or span.attributes.get("name") or ""
    thing = str(found)
    if thing.startswith("/registry/"):
        thing = "/".join(_unregistered(thing.split("/")[2:]))
    elif thing and span.attributes.get("namespace") and not span.attributes.get("object"):
        thing = f"{span.attributes['namespace']}/{thing}"
    return f"{span.name} {thing}".rstrip()


def _unregistered(parts: list[str]) -> list[str]:
    """The namespace and name of a key; groups that are not built in are one part more."""
    return parts[2:] if len(parts) > 3 or "." in parts[0] else parts[1:]


def _outcome(node: Node) -> str:
    span = node.span
    parts = []
    if span.revisions:
        shown = ", ".join(map(str, span.revisions[:3])) + (", ..." if len(span.revisions) > 3 else "")
        parts.append(f"→ revision{'s' * (len(span.revisions) > 1)} {shown}")
    if node.links:
        parts.append(f"(and {len(node.links)} other cause{'s' * (len(node.links) > 1)})")
    if span.error:
        parts.append(f"✗ {span.error[:LONGEST]}")
    return "  " + "  ".join(parts) if parts else ""


def _notes(node: Node, below: str, begin: int, stages: bool) -> Iterator[str]:
    """Stages of a request on one line; marks of other work one a line."""
    span = node.span
    if not span.marks:
        return
    indent = " " * (len(_HEADER) - 1 + _WIDTH) + f" {below}{'│  ' if node.children else '   '}"
    if any(name == "authenticated" for _, name, _ in span.marks):
        if stages:
            times = [span.start, *(at for at, _, _ in span.marks)]
            took = [(b - a) / 1e6 for a, b in pairwise(times)]
            stages_of = zip(span.marks, took, strict=True)
            spent = [f"{name} {each:.1f}" for (_, name, _), each in stages_of if each >= SHORTEST]
            if spent:
                yield f"{indent}{', '.join(spent)} ms"
        return
    for at, name, more in span.marks:
        text = f"{name}: {more}" if more else name
        yield f"{indent}{_ms(at - begin).strip()} {text[:LONGEST]}"


def excerpt(roots: Iterable[Node], most: int) -> list[str]:
    """The newest trees, as many lines as are allowed; of a tree that has more, its beginning."""
    shown: list[str] = []
    for root in sorted(roots, key=lambda node: node.span.start, reverse=True):
        lines = list(render([root], stages=False)) if root.children else [line(root.span)]
        lines[0] += _by(root.span)
        left = most - len(shown)
        if left < len(lines):
            if not shown:
                shown = [*lines[:left], f"... and {len(lines) - left} more lines"]
            break
        shown = [*lines, *shown]
    return shown


def _by(span: Span) -> str:
    program = str(span.attributes.get("agent", "")).partition("/")[0]
    return f"  by {program}" if program else ""


def outline(nodes: Iterable[Node], depth: int = 0) -> Iterator[str]:
    """The tree of causes without times and names of objects; repeated steps in a place are one line."""
    found: dict[tuple[str, str], list[Node]] = {}
    for node in nodes:
        found.setdefault((node.span.service, node.span.name), []).append(node)
    for (service, name), same in found.items():
        yield f"{'  ' * depth}{service}: {name}"
        yield from outline([child for node in same for child in node.children], depth + 1)


def line(span: Span) -> str:
    """A span by itself."""
    seconds, nanoseconds = divmod(span.start, 10**9)
    clock = time.strftime("%H:%M:%S", time.localtime(seconds))
    took = _ms(max(span.end - span.start, 0))
    what = f"{title(span)}{_outcome(Node(span))}"
    return f"{clock}.{nanoseconds // 10**6:03} {took}  {span.service[:_WIDTH]:<{_WIDTH}} {what}"


def _ms(nanoseconds: int) -> str:
    value = nanoseconds / 1e6
    return f"{value:>6.1f} ms" if value < 9999.95 else f"{value / 1000:>7.2f} s"
