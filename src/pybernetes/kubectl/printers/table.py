"""Columns for people: the server's Table, aligned as Go's tabwriter does with the padding of kubectl."""

from __future__ import annotations

from pybernetes.terminal import escaped

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

_PADDING = 3
_MINIMUM = 6


class Columns:
    """Aligns rows; remembers the widths between flushes, so that the rows of a watch stay in line."""

    def __init__(self) -> None:
        self._rows: list[list[str]] = []
        self._widths: list[int] = []

    def row(self, cells: Sequence[str]) -> None:
        """Adds a row; a line break within a cell ends up as a space-free new line as kubectl prints it."""
        self._rows.append(list(cells))

    def forget(self) -> None:
        """New widths for the next rows."""
        self._widths = []

    def flush(self) -> str:
        """The rows since the last flush."""
        rows, self._rows = self._rows, []
        if not rows:
            return ""
        widths = self._widths
        for row in rows:
            for index, cell in enumerate(row):
                if index >= len(widths):
                    widths.append(_MINIMUM)
                if index < len(row) - 1 and len(cell) + _PADDING > widths[index]:
                    widths[index] = len(cell) + _PADDING
        out = []
        for row in rows:
            last = len(row) - 1
            out.append("".join([cell.ljust(widths[i]) if i < last else cell for i, cell in enumerate(row)]))
        return "\n".join(out) + "\n"


def cell_text(value: Any) -> str:
    """A cell of a Table as text; line breaks would break the row."""
    if value is None:
        return ""
    if value is True:
        return "true"
    if value is False:
        return "false"
    if isinstance(value, str):
        if "\n" in value or "\r" in value or "\f" in value:
            for at, char in enumerate(value):
                if char in "\f\n\r":
                    return escaped(value[:at]) + "..."
        return escaped(value)
    if isinstance(value, float):
        from pybernetes.kubectl.data import number

        return number(value)
    if isinstance(value, int):
        return str(value)
    return _go_value(value)


def _go_value(value: Any) -> str:
    if isinstance(value, list):
        return "[" + " ".join(_go_value(each) for each in value) + "]"
    if isinstance(value, dict):
        return "map[" + " ".join(f"{key}:{_go_value(value[key])}" for key in sorted(value)) + "]"
    return cell_text(value)


def labels_text(labels: dict[str, str] | None) -> str:
    """Labels in one cell."""
    if not labels:
        return "<none>"
    return ",".join(f"{key}={labels[key]}" for key in sorted(labels))


class TableOptions:
    """The options of a Table that flags of `get` set."""

    __slots__ = ("kind_prefix", "label_columns", "no_headers", "show_kind", "show_labels", "wide", "with_namespace")

    def __init__(self) -> None:
        self.wide = False
        self.no_headers = False
        self.show_labels = False
        self.label_columns: list[str] = []
        self.with_namespace = False
        self.show_kind = False
        self.kind_prefix = ""


class TablePrinter:
    """Prints Tables of one resource; headers once, until the columns change."""

    def __init__(self, options: TableOptions, columns: Columns) -> None:
        self.options = options
        self.columns = columns
        self._definitions: list[dict[str, Any]] | None = None

    def _name_column(self) -> int:
        for index, each in enumerate(self._definitions or ()):
            if each.get("format") == "name" and each.get("type") == "string":
                return index
        return -1

    def print(self, table: dict[str, Any], event: str = "") -> None:
        """Adds the rows of a Table; those of a watch carry the type of their event."""
        options = self.options
        definitions = table.get("columnDefinitions") or []
        if definitions and self._definitions != definitions:
            self._definitions = definitions
            headers = [each["name"].upper() for each in definitions if options.wide or not each.get("priority")]
            if not options.no_headers and table.get("rows"):
                self.columns.row(
                    [
                        *(["EVENT"] if event else []),
                        *(["NAMESPACE"] if options.with_namespace else []),
                        *headers,
                        *(label.rpartition("/")[2].upper() for label in options.label_columns),
                        *(["LABELS"] if options.show_labels else []),
                    ]
                )
        shown = [
            index for index, each in enumerate(self._definitions or ()) if options.wide or not each.get("priority")
        ]
        prefix = f"{options.kind_prefix}/" if options.show_kind and options.kind_prefix else ""
        for row in table.get("rows") or ():
            self.columns.row(self._cells(row, shown, prefix, event))

    def _cells(self, row: dict[str, Any], shown: list[int], prefix: str, event: str) -> list[str]:
        options = self.options
        metadata = (row.get("object") or {}).get("metadata") or {}
        labels = metadata.get("labels") or {}
        cells = row["cells"]
        name = self._name_column() if prefix else -1
        found = [event] if event else []
        if options.with_namespace:
            found.append(metadata.get("namespace") or "")
        for index in shown:
            text = cell_text(cells[index]) if index < len(cells) else ""
            found.append(prefix + text if index == name else text)
        found += [str(labels.get(label, "")) for label in options.label_columns]
        if options.show_labels:
            found.append(labels_text(labels))
        return found
