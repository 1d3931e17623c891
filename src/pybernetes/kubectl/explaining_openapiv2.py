"""`kubectl explain --output=plaintext-openapiv2`: the page as kubectl printed it before v1.27."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Protocol

    class Schemas(Protocol):
        """Resolves references to schemas."""

        def resolve(self, schema: dict[str, Any]) -> dict[str, Any]: ...

        def inner(self, schema: dict[str, Any]) -> dict[str, Any]: ...


_WIDTH = 75
_PAD = " " * 5


def page(
    schemas: Schemas, schema: dict[str, Any], fields: list[str], recursive: bool, missing: Callable[[str], Exception]
) -> str:
    """The text below KIND and VERSION; `missing` makes the error for a field that does not exist, which is raised."""
    current = schema
    for name in fields:
        properties = schemas.inner(current).get("properties") or {}
        if name not in properties:
            raise missing(f'field "{name}" does not exist')
        current = properties[name]
    below = schemas.inner(current)
    properties = below.get("properties") or {}
    out = ""
    if fields:
        out += f"{'RESOURCE:' if properties else 'FIELD:   '} {fields[-1]} <{type_name(schemas, current)}>\n\n"
    texts = [schemas.resolve(current).get("description")]
    if fields and properties and not recursive and below.get("description") != texts[0]:
        texts.append(below.get("description"))
    shown = [_wrapped(text) for text in texts if text] or [f"{_PAD}<empty>\n"]
    out += "DESCRIPTION:\n" + "\n".join(shown)
    if properties:
        out += "\nFIELDS:\n" + _fields(schemas, below, recursive, 1, ())
    return out


def type_name(schemas: Schemas, schema: dict[str, Any]) -> str:
    """`string`, `[]Object`, `map[string]string`."""
    found = schemas.resolve(schema)
    if found.get("type") == "array":
        return f"[]{type_name(schemas, found.get('items') or {})}"
    inner = found.get("additionalProperties")
    if isinstance(inner, dict) and not found.get("properties"):
        return f"map[string]{type_name(schemas, inner)}"
    if found.get("oneOf") or found.get("x-kubernetes-int-or-string"):
        return "string"
    kind = str(found.get("type") or "object")
    return "Object" if kind == "object" else kind


def _fields(schemas: Schemas, schema: dict[str, Any], recursive: bool, level: int, path: tuple[int, ...]) -> str:
    required = schema.get("required") or ()
    out = ""
    for name in sorted(schema.get("properties") or {}):
        each = schema["properties"][name]
        mark = " -required-" if name in required and not recursive else ""
        out += f"{'   ' * level}{name}\t<{type_name(schemas, each)}>{mark}\n"
        if recursive:
            below = schemas.inner(each)
            if below.get("properties") and id(below["properties"]) not in path:
                out += _fields(schemas, below, True, level + 1, (*path, id(below["properties"])))
            continue
        text = schemas.resolve(each).get("description") or ""
        out += (_wrapped(text) if text else f"{_PAD}<no description>\n") + "\n"
    return out


def _wrapped(text: str) -> str:
    lines: list[str] = []
    for paragraph in text.split("\n"):
        line = ""
        for word in paragraph.split():
            if line and len(line) + 1 + len(word) > _WIDTH:
                lines.append(line)
                line = word
            else:
                line = f"{line} {word}" if line else word
        lines.append(line)
    return "".join(f"{_PAD}{line}".rstrip() + "\n" for line in lines)
