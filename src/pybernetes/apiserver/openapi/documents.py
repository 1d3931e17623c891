"""The documents: operations and definitions, in the words of OpenAPI v2 and v3.

A document is a plain dict, made on demand and thrown away once it is encoded.
"""

from __future__ import annotations

from base64 import urlsafe_b64encode
from collections.abc import Iterable
from hashlib import sha256
from typing import Any

import msgspec

from pybernetes.api import scheme
from pybernetes.api.base import Struct
from pybernetes.api.meta.v1 import DeleteOptions, Status, WatchEvent
from pybernetes.api.resources import Resource
from pybernetes.version import GIT_VERSION

from .definitions import Definitions
from .descriptions import Descriptions
from .names import META
from .operations import (
    DELETE_OPTIONS,
    PATCH_BODY,
    STATUS,
    TEXT,
    WATCH_EVENT,
    Operation,
    Path,
    group_path,
    resource_paths,
    root_paths,
    version_path,
)
from .parameters import Parameter

Document = dict[str, Any]

INFO = {"title": "Kubernetes", "version": ".".join(GIT_VERSION.removeprefix("v").split(".")[:2])}
SECURITY = {
    "BearerToken": {
        "type": "apiKey",
        "name": "authorization",
        "in": "header",
        "description": "A bearer token: the word Bearer, a blank, and the token.",
    }
}
# Whose delete answers with the object. Their strategies say so too, but with them comes all of validation, which takes
# longer to load than the documents to make. Namespaces do so too, but clients are generated to expect a Status.
RETURNS_DELETED = frozenset(
    {
        *("persistentvolumeclaims", "persistentvolumes", "pods", "podtemplates", "resourcequotas"),
        *("serviceaccounts", "services"),
        *("csidrivers", "csinodes", "storageclasses", "volumeattachments", "volumeattributesclasses"),
        *("deviceclasses", "resourceclaims", "resourceclaimtemplates", "resourceslices"),
    }
)
_PHRASES = {"200": "OK", "201": "Created", "202": "Accepted", "401": "Unauthorized"}
_META: dict[str, type[Struct]] = {STATUS: Status, DELETE_OPTIONS: DeleteOptions, WATCH_EVENT: WatchEvent}
# Kept out of the shared parameters: old versions of kubectl look for them where they are used.
_NEVER_SHARED = ("name", "dryRun", "fieldValidation")


def v2(custom: Iterable[Document] = ()) -> Document:
    """Everything in one document. `custom` adds paths and definitions to it, for kinds that are not built in."""
    versions = [(group.name, version) for group in scheme.groups() for version in group.versions]
    writer = WriterV2(Definitions(2, versions, Descriptions()))
    paths: Document = dict(writer.path(each) for each in _all_paths())
    definitions = writer.definitions.schemas
    for document in custom:
        paths |= document["paths"]
        definitions |= document["definitions"]
    return {
        "swagger": "2.0",
        "info": INFO,
        "paths": dict(sorted(paths.items())),
        "definitions": dict(sorted(definitions.items())),
        "parameters": dict(sorted(writer.shared.items())),
        "securityDefinitions": SECURITY,
        "security": [{"BearerToken": []}],
    }


def v3() -> dict[str, Document]:
    """A document for each group and version, for each group, and for what is above them, by their paths."""
    documents: dict[str, Document] = {}
    descriptions = Descriptions()
    for group in scheme.groups():
        documents[group_path(group)[0].strip("/")] = _v3_document([group_path(group)], ("", "v1"), descriptions)
        for version in group.versions:
            prefix = f"apis/{group.name}/{version}" if group.name else f"api/{version}"
            paths = _version_paths(group.name, version)
            documents[prefix] = _v3_document(paths, (group.name, version), descriptions)
    for path in root_paths():
        documents[path[0].strip("/")] = _v3_document([path], ("", "v1"), descriptions)
    return documents


def _all_paths() -> Iterable[Path]:
    for group in scheme.groups():
        yield group_path(group)
        for version in group.versions:
            yield from _version_paths(group.name, version)
    yield from root_paths()


def _version_paths(group: str, version: str) -> Iterable[Path]:
    yield version_path(f"/apis/{group}/{version}" if group else f"/api/{version}", group, version)
    for resource in scheme.resources():
        if (resource.group, resource.version) == (group, version):
            yield from resource_paths(resource, returns_deleted=resource.plural in RETURNS_DELETED)


def _v3_document(paths: Iterable[Path], group_version: tuple[str, str], descriptions: Descriptions) -> Document:
    writer = WriterV3(Definitions(3, [group_version], descriptions))
    written = dict(sorted(writer.path(path) for path in paths))
    schemas = dict(sorted(writer.definitions.schemas.items()))
    components = {"schemas": schemas, "securitySchemes": SECURITY}
    return {"openapi": "3.0.0", "info": INFO, "paths": written, "components": components}


class Named(str):
    """As a body or an answer: the definition of this name, which is written elsewhere."""

    __slots__ = ()


class _Writer:
    """Shared by the writers of both versions."""

    def __init__(self, definitions: Definitions) -> None:
        self.definitions = definitions

    def path(self, path: Path) -> tuple[str, Document]:
        """A path item; parameters that all operations share belong to the path."""
        name, operations = path
        common = [each for each in operations[0].parameters if all(each in other.parameters for other in operations)]
        item: Document = {}
        for operation in operations:
            own = [each for each in operation.parameters if each not in common]
            item[operation.method] = self.operation(operation, sorted(own))
        if common:
            item["parameters"] = [self.parameter(each) for each in sorted(common)]
        return name, item

    def operation(self, operation: Operation, own: list[Parameter]) -> Document:
        raise NotImplementedError

    def parameter(self, parameter: Parameter) -> Document:
        raise NotImplementedError

    def schema(self, content: Any) -> Document:
        """The schema of a body or an answer."""
        if isinstance(content, Named):
            return self.definitions.elsewhere(content)
        if content == TEXT:
            return {"type": "string"}
        if content == PATCH_BODY:
            return self.definitions.named(f"{META}.Patch")
        if isinstance(content, Resource):
            return self.definitions.list_reference(content)
        return self.definitions.reference(_META[content] if isinstance(content, str) else content)

    @staticmethod
    def extensions(operation: Operation) -> Document:
        if not operation.kind:
            return {}
        group, version, kind = operation.kind
        return {
            "x-kubernetes-action": operation.action,
            "x-kubernetes-group-version-kind": {"group": group, "kind": kind, "version": version},
        }


class WriterV2(_Writer):
    """In the words of version 2. Parameters are written once for all who use them, but not in a part."""

    def __init__(self, definitions: Definitions, *, share: bool = True) -> None:
        super().__init__(definitions)
        self._shares = share
        self.shared: dict[str, Document] = {}

    def operation(self, operation: Operation, own: list[Parameter]) -> Document:
        given = [self.parameter(each) for each in own]
        if operation.body:
            given.insert(0, self._body(operation))
        answers = {
            code: {"description": _PHRASES[code]} | ({"schema": self.schema(content)} if content else {})
            for code, content in operation.answers.items()
        }
        return {
            "description": operation.description,
            "consumes": operation.consumes,
            "produces": operation.produces,
            "schemes": ["https"],
            "tags": [operation.tag],
            "operationId": operation.id,
            **({"parameters": given} if given else {}),
            "responses": answers,
            **self.extensions(operation),
        }

    def _body(self, operation: Operation) -> Document:
        body: Document = {"name": "body", "in": "body", "schema": self.schema(operation.body)}
        if operation.body_required:
            body["required"] = True
        return self._share(body) if isinstance(operation.body, str) else body

    def parameter(self, parameter: Parameter) -> Document:
        written: Document = {
            "uniqueItems": True,
            "type": parameter.type,
            "description": parameter.description,
            "name": parameter.name,
            "in": parameter.place,
        }
        if parameter.place == "path":
            written["required"] = True
        return written if parameter.name in _NEVER_SHARED else self._share(written)

    def _share(self, parameter: Document) -> Document:
        if not self._shares:
            return parameter
        digest = sha256(msgspec.json.encode(parameter)).digest()[:6]
        name = f"{parameter['name']}-{urlsafe_b64encode(digest).decode()}"
        self.shared[name] = parameter
        return {"$ref": f"#/parameters/{name}"}


class WriterV3(_Writer):
    """In the words of version 3."""

    def operation(self, operation: Operation, own: list[Parameter]) -> Document:
        given = [self.parameter(each) for each in own]
        written: Document = {
            "tags": [operation.tag],
            "description": operation.description,
            "operationId": operation.id,
            **({"parameters": given} if given else {}),
        }
        if operation.body:
            written["requestBody"] = {"content": self._content(operation.consumes, operation.body)}
            if operation.body_required:
                written["requestBody"]["required"] = True
        written["responses"] = {
            code: {"description": _PHRASES[code]}
            | ({"content": self._content(operation.produces, content)} if content else {})
            for code, content in operation.answers.items()
        }
        return written | self.extensions(operation)

    def _content(self, media: tuple[str, ...], content: Any) -> Document:
        return {each: {"schema": self.schema(content)} for each in sorted(media)}

    def parameter(self, parameter: Parameter) -> Document:
        written: Document = {
            "name": parameter.name,
            "in": parameter.place,
            "description": parameter.description,
            "schema": {"type": parameter.type, "uniqueItems": True},
        }
        if parameter.place == "path":
            written["required"] = True
        return written
