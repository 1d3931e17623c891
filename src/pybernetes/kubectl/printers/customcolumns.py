"""`-o custom-columns=HEADER:PATH,...` and `-o custom-columns-file=FILE`, and the field expressions of `--sort-by`."""

from __future__ import annotations

from pybernetes.kubectl.errors import CLIError
from pybernetes.kubectl.printers.jsonpath import JSONPath, JSONPathError, _text
from pybernetes.terminal import escaped

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def relaxed(expression: str) -> str:
    """`metadata.name`, `.metadata.name`, `{metadata.name}` and `{.metadata.name}` as a template. Raises CLIError."""
    if not expression:
        return expression
    inner = expression
    if inner.startswith("{") and inner.endswith("}"):
        inner = inner[1:-1]
    elif "{" in inner or "}" in inner:
        raise CLIError(
            "unexpected path string, expected a 'name1.name2' or '.name1.name2' or '{name1.name2}' or '{.name1.name2}'"
        )
    return "{" + (inner if inner.startswith((".", "$", "@")) else f".{inner}") + "}"


class CustomColumns:
    """Rows of values found by JSONPath."""

    def __init__(self, columns: list[tuple[str, str]], no_headers: bool) -> None:
        self.headers = [header for header, _ in columns]
        self.no_headers = no_headers
        self.paths = []
        for _, path in columns:
            try:
                self.paths.append(JSONPath(relaxed(path)))
            except JSONPathError as error:
                raise CLIError(str(error)) from None

    @classmethod
    def of_spec(cls, spec: str, no_headers: bool) -> CustomColumns:
        """`HEADER:PATH,HEADER:PATH`."""
        if not spec:
            raise CLIError("custom-columns format specified but no custom columns given")
        columns = []
        for part in spec.split(","):
            header, colon, path = part.partition(":")
            if not colon:
                raise CLIError(f"unexpected custom-columns spec: {part}, expected <header>:<json-path-expr>")
            columns.append((header, path))
        return cls(columns, no_headers)

    @classmethod
    def of_file(cls, path: str, no_headers: bool) -> CustomColumns:
        """A file with a line of headers and a line of paths."""
        if not path:
            raise CLIError("custom-columns format specified but no custom columns given")
        try:
            with open(path, encoding="utf-8") as file:
                lines = [line for line in file.read().split("\n") if line.strip()]
        except OSError as error:
            raise CLIError(f"error reading template {path}, open {path}: {(error.strerror or '').lower()}\n") from None
        missing = (
            "invalid template, missing {} line. Expected format is one line of space separated headers,"
            " one line of space separated column specs."
        )
        if not lines:
            raise CLIError(missing.format("header"))
        if len(lines) < 2:
            raise CLIError(missing.format("spec"))
        headers, specs = lines[0].split(), lines[1].split()
        if len(headers) != len(specs):
            raise CLIError(f"number of headers ({len(headers)}) and field specifications ({len(specs)}) don't match")
        return cls(list(zip(headers, specs, strict=True)), no_headers)

    def cells(self, obj: dict[str, Any]) -> list[str]:
        """One row. Raises CLIError."""
        found = []
        for path in self.paths:
            try:
                values = [value for group in path.results(obj) for value in group]
            except JSONPathError as error:
                raise CLIError(str(error)) from None
            found.append(escaped(",".join(_shown(value) for value in values)) if values else "<none>")
        return found


def _shown(value: Any) -> str:
    if value is None:
        return "<none>"
    if isinstance(value, dict | list):
        return go_print(value)
    return _text(value)


def go_print(value: Any) -> str:
    """Go's %v: `map[a:b c:1]`, `[1 2]`."""
    if isinstance(value, dict):
        return "map[" + " ".join(f"{key}:{go_print(value[key])}" for key in sorted(value)) + "]"
    if isinstance(value, list):
        return "[" + " ".join(go_print(each) for each in value) + "]"
    if value is None:
        return "<nil>"
    return _text(value)
