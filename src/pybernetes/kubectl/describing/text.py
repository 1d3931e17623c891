"""Text with tabs as Go's tabwriter aligns it, and the small phrases that descriptions are made of."""

from __future__ import annotations

from pybernetes.kubectl.data import dig
from pybernetes.terminal import escaped

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def align(text: str, minimum: int = 0, padding: int = 2) -> str:
    """Aligns tab-terminated cells: a column reaches over neighbouring lines that have a cell in it."""
    rows = [line.split("\t") for line in text.split("\n")]
    out: list[str] = []
    widths: list[int] = []

    def write(start: int, end: int) -> None:
        for row in rows[start:end]:
            last = len(row) - 1
            parts = []
            for index, cell in enumerate(row):
                parts.append(cell.ljust(widths[index]) if index < last and index < len(widths) else cell)
            out.append("".join(parts))

    def block(start: int, end: int) -> int:
        column = len(widths)
        at = start
        while at < end:
            if column >= len(rows[at]) - 1:
                at += 1
                continue
            write(start, at)
            start = at
            width = minimum
            while at < end and column < len(rows[at]) - 1:
                width = max(width, len(rows[at][column]) + padding)
                at += 1
            widths.append(width)
            start = block(start, at)
            widths.pop()
        write(start, end)
        return end

    block(0, len(rows))
    return "\n".join(out)


class Writer:
    """Collects lines with an indent of two spaces for each level."""

    def __init__(self) -> None:
        self.parts: list[str] = []

    def write(self, level: int, text: str) -> None:
        """Text at a level; levels above 0 are indented."""
        self.parts.append("  " * level + text)

    def line(self, text: str = "") -> None:
        """A line without an indent."""
        self.parts.append(text + "\n")

    def text(self) -> str:
        """Everything, with its tabs."""
        return escaped("".join(self.parts))


def write_labels(
    writer: Writer, title: str, values: dict[str, str] | None, level: int = 0, skip: tuple[str, ...] = ()
) -> None:
    """A multi-line map: the title, then one pair a line."""
    writer.write(level, f"{title}:\t")
    pairs = [f"{key}={values[key]}" for key in sorted(values or {}) if key not in skip] if values else []
    if not pairs:
        writer.line("<none>")
        return
    for at, pair in enumerate(pairs):
        if at:
            writer.write(level, "\t")
        writer.line(pair)


def write_pairs(writer: Writer, title: str, values: dict[str, str] | None, level: int = 0) -> None:
    """A multi-line map whose later lines are indented too, as those of claim templates are."""
    writer.write(level, f"{title}:\t")
    if not values:
        writer.line("<none>")
    for at, key in enumerate(sorted(values or ())):
        if at:
            writer.write(level, "\t")
        writer.line(f"{key}={(values or {})[key]}")


def write_annotations(writer: Writer, title: str, values: dict[str, str] | None, level: int = 0) -> None:
    """Annotations: long or multi-line values start on a line of their own."""
    writer.write(level, f"{title}:\t")
    keys = [key for key in sorted(values or {}) if key != "kubectl.kubernetes.io/last-applied-configuration"]
    if not keys or values is None:
        writer.line("<none>")
        return
    indent = "\t"
    for at, key in enumerate(keys):
        if at:
            writer.write(level, indent)
        value = values[key].removesuffix("\n")
        if len(value) + len(key) + 2 > 140 or "\n" in value:
            writer.line(f"{key}:")
            for line in value.split("\n"):
                writer.write(level, f"{indent}  {cut(line)}\n")
        else:
            writer.line(f"{key}: {value}")


def cut(text: str) -> str:
    """A line that is not too long."""
    return text if len(text) <= 140 else text[:140] + "..."


def joined(values: dict[str, Any] | None, none: str = "<none>") -> str:
    """A map in one line."""
    return ",".join(f"{key}={values[key]}" for key in sorted(values)) if values else none


def selector_text(selector: dict[str, Any] | None, none: str = "") -> str:
    """A LabelSelector (or a plain map) as text."""
    if not selector:
        return none
    if "matchLabels" not in selector and "matchExpressions" not in selector:
        return joined(selector, none)
    found = [(key, f"{key}={value}") for key, value in (selector.get("matchLabels") or {}).items()]
    for each in selector.get("matchExpressions") or ():
        key, values = each["key"], ",".join(sorted(each.get("values") or ()))
        text = {
            "In": f"{key} in ({values})",
            "NotIn": f"{key} notin ({values})",
            "Exists": key,
            "DoesNotExist": f"!{key}",
        }[each["operator"]]
        found.append((key, text))
    return ",".join(text for _, text in sorted(found, key=lambda pair: str(pair[0]))) or none


ZERO = "Mon, 01 Jan 0001 00:00:00 +0000"
"""How Go prints a time that is not set."""


def when(text: Any, unset: str = "<unset>") -> str:
    """A time as descriptions print it: `Wed, 18 Nov 2026 13:21:11 +0000`."""
    from time import localtime, strftime

    from pybernetes.kubectl.ages import timestamp

    seconds = timestamp(text)
    return unset if seconds is None else strftime("%a, %d %b %Y %H:%M:%S %z", localtime(seconds))


def controlled_by(obj: dict[str, Any]) -> str:
    """`Kind/name` of the controller, or nothing."""
    for owner in dig(obj, "metadata", "ownerReferences", default=[]):
        if owner.get("controller"):
            return f"{owner['kind']}/{owner['name']}"
    return ""
