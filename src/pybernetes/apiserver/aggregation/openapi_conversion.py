"""From OpenAPI version 2 to 3, for servers that speak only the former. Lossy, as upstream's. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import msgspec

_REFERENCE = re.compile(rb'"\$ref":"#/definitions/((?:[^"\\]|\\.)*)"')
_METHODS = ("get", "put", "post", "delete", "options", "head", "patch")
_SCHEMA = (
    *("type", "format", "items", "default", "maximum", "exclusiveMaximum", "minimum", "exclusiveMinimum", "maxLength"),
    *("minLength", "pattern", "maxItems", "minItems", "uniqueItems", "multipleOf", "enum"),
)

Document = dict[str, Any]


def paths_below(document: Document, prefix: str) -> Document:
    """The paths below a prefix. Raises ValueError for what is no path."""
    found = {}
    for path, item in (document.get("paths") or {}).items():
        if f"{path}/".startswith(f"{prefix}/"):
            if not isinstance(item, dict) or not all(isinstance(item[each], dict) for each in _METHODS if each in item):
                raise ValueError(f"{path} is no path item")
            found[path] = item
    return found


def definitions_of(paths: Any, definitions: Document) -> Document:
    """The definitions that paths refer to, and those that these refer to."""
    needed: Document = {}
    left = list(_references(paths))
    while left:
        name = left.pop()
        if name not in needed and name in definitions:
            needed[name] = definitions[name]
            left += _references(definitions[name])
    return dict(sorted(needed.items()))


def _references(value: Any) -> Iterator[str]:
    for found in _REFERENCE.finditer(msgspec.json.encode(value)):
        yield found.group(1).decode()


def to_v3(document: Document, prefix: str) -> Document:
    """The part of a version 2 document below a prefix, in version 3. Raises ValueError, or what comes of nonsense."""
    paths = paths_below(document, prefix)
    shared = document.get("parameters") or {}
    definitions = definitions_of([paths, shared], document.get("definitions") or {})
    made = {
        "openapi": "3.0.0",
        "info": document.get("info") or {"title": "", "version": ""},
        "paths": {path: _item(item, shared, document) for path, item in sorted(paths.items())},
        "components": {"schemas": definitions},
    }
    text = msgspec.json.encode(made).replace(b'"#/definitions/', b'"#/components/schemas/')
    result: Document = msgspec.json.decode(text)
    return result


def _item(item: Document, shared: Document, document: Document) -> Document:
    made: Document = {}
    given = [_resolved(each, shared) for each in item.get("parameters") or ()]
    common = [_parameter(each) for each in given if each.get("in") != "body"]
    bodies = [each for each in given if each.get("in") == "body"]
    for name, value in item.items():
        if name in _METHODS:
            made[name] = _operation(value, shared, document, bodies)
        elif name.startswith("x-"):
            made[name] = value
    if common:
        made["parameters"] = common
    return made


def _operation(operation: Document, shared: Document, document: Document, bodies: list[Document]) -> Document:
    kept = ("tags", "description", "summary", "operationId", "deprecated", "externalDocs")
    made: Document = {name: operation[name] for name in kept if name in operation}
    made |= {name: value for name, value in operation.items() if name.startswith("x-")}
    given = [*bodies, *(_resolved(each, shared) for each in operation.get("parameters") or ())]
    parameters = [_parameter(each) for each in given if each.get("in") != "body"]
    if parameters:
        made["parameters"] = parameters
    for body in given:
        if body.get("in") == "body":
            media = operation.get("consumes") or document.get("consumes") or ["application/json"]
            content = {each: {"schema": body.get("schema") or {}} for each in media}
            made["requestBody"] = {"content": content, **({"required": True} if body.get("required") else {})}
    media = operation.get("produces") or document.get("produces") or ["application/json"]
    made["responses"] = {
        code: {"description": answer.get("description") or ""}
        | ({"content": {each: {"schema": answer["schema"]} for each in media}} if answer.get("schema") else {})
        for code, answer in (operation.get("responses") or {}).items()
    }
    return made


def _resolved(parameter: Document, shared: Document) -> Document:
    name = str(parameter.get("$ref") or "").removeprefix("#/parameters/")
    found: Document = shared.get(name, {}) if name else parameter
    return found


def _parameter(parameter: Document) -> Document:
    kept = ("name", "in", "description", "required")
    schema = {name: parameter[name] for name in _SCHEMA if name in parameter}
    return {name: parameter[name] for name in kept if name in parameter} | {"schema": schema}
