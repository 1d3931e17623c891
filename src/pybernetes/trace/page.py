"""Trees of spans as one HTML page: a waterfall that opens anywhere, without scripts and without a server."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from html import escape

from .text import title
from .tree import Node, mark_critical

_STYLE = """
:root { color-scheme: light dark; --bar: #4a78b5; --self: #7ba3d6; --critical: #d9822b; --error: #c23030 }
body { font: 13px/1.5 system-ui, sans-serif; margin: 1.5em }
h2 { font-size: 15px; margin: 1.5em 0 .5em }
.row { display: grid; grid-template-columns: minmax(26em, 45%) 1fr; gap: 1em; align-items: center }
.row:hover { background: color-mix(in srgb, currentColor 8%, transparent) }
.name { overflow: hidden; text-overflow: ellipsis; white-space: nowrap }
.service { opacity: .65; margin-right: .5em }
.lane { position: relative; height: 1.3em }
.bar { position: absolute; top: .2em; height: .9em; min-width: 2px; border-radius: 2px; background: var(--bar) }
.critical .bar { background: var(--critical) }
.error .name { color: var(--error) }
.time { position: absolute; left: 100%; padding-left: .4em; white-space: nowrap; opacity: .75; font-size: 11px }
.before .time { left: auto; right: 100%; padding-right: .4em }
details > summary { cursor: pointer; list-style: none }
pre { margin: .2em 0 .6em 2em; font-size: 12px; opacity: .85; white-space: pre-wrap }
"""
_HALF = 60.0  # per cent from which on the time stands before its bar


def render(roots: Iterable[Node]) -> str:
    """The page."""
    body = "".join(piece for root in roots for piece in _tree(root))
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>pyb trace</title>'
        '<meta name="viewport" content="width=device-width">'
        f"<style>{_STYLE}</style></head><body><h1>pyb trace</h1>"
        "<p>A row is a span; orange rows are the critical path. Open a row to see its details.</p>"
        f"{body}</body></html>\n"
    )


def _tree(root: Node) -> Iterator[str]:
    last = mark_critical(root)
    begin = root.span.start
    whole = max(last.end - begin, 1)
    yield f"<h2>{escape(title(root.span))}: {whole / 1e6:,.1f} ms, trace {escape(root.span.trace)}</h2>"
    waiting = [(root, 0)]
    while waiting:
        node, depth = waiting.pop()
        yield _row(node, depth, begin, whole)
        waiting += [(child, depth + 1) for child in reversed(node.children)]


def _row(node: Node, depth: int, begin: int, whole: int) -> str:
    span = node.span
    left = (span.start - begin) * 100 / whole
    width = node.duration * 100 / whole
    classes = " ".join(
        name
        for name, holds in (("row", True), ("critical", node.critical), ("error", span.error), ("before", left > _HALF))
        if holds
    )
    details = [f"{key}: {value}" for key, value in span.attributes.items()]
    details += [f"revisions written: {', '.join(map(str, span.revisions))}"] if span.revisions else []
    details += [f"woken by revisions: {', '.join(map(str, span.causes))}"] if span.causes else []
    details += [f"also caused by: {title(each.span)}" for each in node.links]
    details += [f"{(at - begin) / 1e6:.1f} ms {name} {text}" for at, name, text in span.marks]
    details += [f"error: {span.error}"] if span.error else []
    return (
        f'<details><summary class="{classes}"><span class="name" style="padding-left:{depth * 1.2:.1f}em">'
        f'<span class="service">{escape(span.service)}</span>{escape(title(span))}</span>'
        f'<span class="lane"><span class="bar" style="left:{left:.2f}%;width:{width:.2f}%">'
        f'<span class="time">{node.duration / 1e6:,.1f} ms</span></span></span></summary>'
        f"<pre>{escape(chr(10).join(details))}</pre></details>"
    )
