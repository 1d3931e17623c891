"""`kubectl explain`: the documentation of a kind's fields, from the server's OpenAPI v3."""

from __future__ import annotations

from pybernetes.kubectl.command import Command
from pybernetes.kubectl.errors import CLIError, NoMatch, PlainError
from pybernetes.kubectl.flags import Flag

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pybernetes.kubectl.context import Context

_WIDTH = 76
"""Of a description, without its indent."""


def run(context: Context, arguments: list[str]) -> int | None:
    """`explain`."""
    flags = context.flags
    if not arguments:
        raise CLIError(
            'You must specify the type of resource to explain. Use "kubectl api-resources" for a complete list of'
            " supported resources."
        )
    if len(arguments) > 1:
        raise CLIError("We accept only this format: explain RESOURCE")
    if flags.text("output") not in ("plaintext", "plaintext-openapiv2", "md"):
        raise CLIError(f"unrecognized format: {flags.text('output')}")
    mapping, fields = _resource(context, arguments[0])
    version = flags.text("api-version")
    if version:
        group, _, short = version.rpartition("/")
        mapping.group, mapping.version = group, short
    path = f"apis/{mapping.group}/{mapping.version}" if mapping.group else f"api/{mapping.version}"
    index = context.client.get("/openapi/v3").get("paths") or {}
    if path not in index:
        shown = f"{mapping.group}/{mapping.version}, Resource={mapping.resource}"
        raise CLIError(f'couldn\'t find resource for "{shown}"')
    document = context.client.get(index[path]["serverRelativeURL"])
    schemas = (document.get("components") or {}).get("schemas") or {}
    schema = _find(schemas, mapping.group, mapping.version, mapping.kind)
    if schema is None:
        raise CLIError(f"GVR ({mapping.api_version}, Resource={mapping.resource}) not found in OpenAPI schema")
    explainer = _Explainer(schemas)
    if flags.text("output") == "plaintext-openapiv2":
        from pybernetes.kubectl.explaining_openapiv2 import page

        text = page(explainer, schema, fields, flags.on("recursive"), _Missing)
        context.out(f"KIND:     {mapping.kind}\nVERSION:  {mapping.api_version}\n\n{text}")
        return None
    context.out(f"GROUP:      {mapping.group}\n" if mapping.group else "")
    context.out(f"KIND:       {mapping.kind}\nVERSION:    {mapping.version}\n\n")
    context.out(explainer.page(schema, fields, flags.on("recursive")))
    return None


def _resource(context: Context, word: str) -> tuple[Any, list[str]]:
    """The longest reading of the word that names a resource, and the fields after it."""
    parts = word.split(".")
    try:
        return context.mapper.resource(parts[0]), [part for part in parts[1:] if part]
    except NoMatch as error:
        for count in range(len(parts), 1, -1):
            try:
                return context.mapper.resource(".".join(parts[:count])), parts[count:]
            except NoMatch:
                continue
        raise PlainError(error.message) from None


def _find(schemas: dict[str, Any], group: str, version: str, kind: str) -> dict[str, Any] | None:
    for schema in schemas.values():
        for each in schema.get("x-kubernetes-group-version-kind") or ():
            if (each.get("group"), each.get("version"), each.get("kind")) == (group, version, kind):
                found: dict[str, Any] = schema
                return found
    return None


class _Explainer:
    """Walks schemas by their references."""

    def __init__(self, schemas: dict[str, Any]) -> None:
        self._schemas = schemas

    def resolve(self, schema: dict[str, Any]) -> dict[str, Any]:
        """The schema behind references; a description beside the reference wins."""
        reference = schema.get("$ref")
        for each in schema.get("allOf") or ():
            reference = reference or each.get("$ref")
        if not reference:
            return schema
        target = self._schemas.get(reference.rpartition("/")[2]) or {}
        merged = dict(self.resolve(target))
        if schema.get("description"):
            merged["description"] = schema["description"]
        return merged

    def type_name(self, schema: dict[str, Any]) -> str:
        """`string`, `[]Container`, `map[string]string`, `Object`."""
        reference = schema.get("$ref")
        for each in schema.get("allOf") or ():
            reference = reference or each.get("$ref")
        if reference:
            target = self._schemas.get(reference.rpartition("/")[2]) or {}
            if target.get("type") not in (None, "object"):
                return self.type_name(target)
            return str(reference).rpartition("/")[2].rpartition(".")[2]
        if schema.get("type") == "array":
            return f"[]{self.type_name(schema.get('items') or {})}"
        if schema.get("type") == "object" or schema.get("additionalProperties"):
            inner = schema.get("additionalProperties")
            if isinstance(inner, dict):
                return f"map[string]{self.type_name(inner)}"
            return "Object"
        if schema.get("x-kubernetes-int-or-string"):
            return "IntOrString"
        return str(schema.get("type") or "Object")

    def inner(self, schema: dict[str, Any]) -> dict[str, Any]:
        """The schema whose properties are the next fields: through lists and maps."""
        found = self.resolve(schema)
        while True:
            if found.get("type") == "array" and found.get("items"):
                found = self.resolve(found["items"])
            elif isinstance(found.get("additionalProperties"), dict) and not found.get("properties"):
                found = self.resolve(found["additionalProperties"])
            else:
                return found

    def page(self, schema: dict[str, Any], fields: list[str], recursive: bool) -> str:
        """The text below the head. Raises CLIError for a field that does not exist."""
        current = schema
        out = ""
        for name in fields:
            properties = self.inner(current).get("properties") or {}
            if name not in properties:
                raise _Missing(f'field "{name}" does not exist')
            current = properties[name]
        resolved = self.resolve(current)
        if fields:
            out += f"FIELD: {fields[-1]} <{self.type_name(current)}>\n"
            out += _enum(resolved["enum"], "") if resolved.get("enum") else "\n"
            out += "\n"
        below = self.inner(current)
        out += "DESCRIPTION:\n" + self._description(current, resolved, below, bool(fields))
        properties = below.get("properties") or {}
        if properties:
            out += "FIELDS:\n" + self._fields(below, recursive, 1, ()) + "\n"
        return out + ("\n" if not properties else "")

    def _parent(self, schema: dict[str, Any], fields: list[str]) -> dict[str, Any]:
        found = self.inner(schema)
        for name in fields[:-1]:
            found = self.inner(found["properties"][name])
        return found

    def _description(self, current: Any, resolved: Any, below: Any, field: bool) -> str:
        texts = []
        for text in (resolved.get("description"), below.get("description") if field else None):
            if text and text not in texts:
                texts.append(text)
        if not texts:
            return "    <empty>\n"
        return "".join(_wrap(text, "    ") + "\n" for text in texts) + "    \n"

    def _fields(self, schema: dict[str, Any], recursive: bool, level: int, path: tuple[int, ...]) -> str:
        pad = "  " * level
        required = schema.get("required") or ()
        out = ""
        for name in sorted(schema.get("properties") or {}):
            each = schema["properties"][name]
            mark = " -required-" if name in required else ""
            out += f"{pad}{name}\t<{self.type_name(each)}>{mark}\n"
            resolved = self.resolve(each)
            if resolved.get("enum"):
                out += _enum(resolved["enum"], pad)
            if recursive:
                below = self.inner(each)
                if below.get("properties") and id(below.get("properties")) not in path:
                    out += self._fields(below, True, level + 1, (*path, id(below["properties"])))
                continue
            text = resolved.get("description") or ""
            out += (_wrap(text, "    ") if text else "    <no description>") + "\n\n"
        return out


class _Missing(CLIError):
    pass


def _enum(values: list[Any], pad: str) -> str:
    if pad:
        shown = ", ".join(str(each) or '""' for each in values[:4])
        return f"{pad}enum: {shown}{', ....' if len(values) > 4 else ''}\n"
    return "ENUM:\n" + "".join(f"    {each}\n" for each in values)


def _wrap(text: str, pad: str) -> str:
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
    return "\n".join(pad + line for line in lines)


COMMAND = Command(
    "explain TYPE [--recursive=FALSE|TRUE] [--api-version=api-version-group]"
    " [-o|--output=plaintext|plaintext-openapiv2]",
    "Get documentation for a resource",
    run,
    flags=(
        Flag("api-version", help="Group and version of the kind."),
        Flag("output", default="plaintext", short="o", help="plaintext or plaintext-openapiv2."),
        Flag("recursive", "bool", short="R", help="Print fields of fields."),
    ),
)
