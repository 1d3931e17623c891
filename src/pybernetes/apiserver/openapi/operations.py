"""The paths of a resource and their operations, independent of the version of OpenAPI.

Paths, ids and actions are those that upstream generates, because generated clients name their methods by them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pybernetes.api import scheme
from pybernetes.api.resources import Group, Resource, Subresource

from ..negotiation import CUSTOM_PATCHES, MEDIA, PATCHES
from . import parameters
from .names import capitalized, group_words, operation_prefix
from .parameters import Parameter

if TYPE_CHECKING:
    from pybernetes.api.base import Struct

STATUS, PATCH_BODY, DELETE_OPTIONS, WATCH_EVENT, TEXT = "Status", "Patch", "DeleteOptions", "WatchEvent", "string"
"""The types of bodies and responses that are not a class or the list of a resource."""
_ANY_MEDIA = ("*/*",)
_WATCHES = ("application/json;stream=watch",)
_METHODS = {"get": "get", "create": "post", "update": "put", "patch": "patch", "delete": "delete"}
_WORDS = {"get": "read", "create": "create", "update": "replace", "patch": "patch", "delete": "delete"}
_METHODS_OF_PROXY = ("get", "put", "post", "delete", "options", "head", "patch")


@dataclass(frozen=True, slots=True)
class Operation:
    """A method of a path."""

    method: str
    id: str
    description: str
    tag: str
    answers: dict[str, type[Struct] | Resource | str | None]
    action: str = ""
    kind: tuple[str, str, str] | None = None
    """Group, version, kind."""
    parameters: tuple[Parameter, ...] = ()
    body: type[Struct] | str | None = None
    body_required: bool = True
    consumes: tuple[str, ...] = _ANY_MEDIA
    produces: tuple[str, ...] = MEDIA


Path = tuple[str, list[Operation]]


def resource_paths(resource: Resource, *, returns_deleted: bool = False) -> Iterator[Path]:
    """All paths of a resource and its subresources. A delete answers with the object if its kind does so."""
    maker = _Maker(resource, returns_deleted)
    yield from maker.collection()
    if {"get", "delete", "patch", "update"} & set(resource.verbs):
        yield maker.item()
    for subresource in resource.subresources:
        yield from maker.subresource(subresource)
    if "watch" in resource.verbs:
        yield from maker.watches()


def version_path(path: str, group: str, version: str) -> Path:
    """The list of resources of a group's version."""
    from pybernetes.api.meta.v1 import APIResourceList

    name = f"get{operation_prefix(group, version)}APIResources"
    return f"{path}/", [_document(name, "The resources of this version.", _tag(group, version), APIResourceList)]


def group_path(group: Group) -> Path:
    """The versions of a group."""
    from pybernetes.api.meta.v1 import APIGroup, APIVersions

    tag = group_words(group.name)
    if not group.name:
        return "/api/", [_document("getCoreAPIVersions", "The versions of the core group.", tag, APIVersions)]
    name = f"get{operation_prefix(group.name)}APIGroup"
    return f"/apis/{group.name}/", [_document(name, "The versions of this group.", tag, APIGroup)]


def root_paths() -> Iterator[Path]:
    """The paths outside of groups."""
    from pybernetes.api.meta.v1 import APIGroupList

    from .definitions import Info

    yield "/apis/", [_document("getAPIVersions", "All groups.", "apis", APIGroupList)]
    json = MEDIA[:1]
    version = Operation(
        "get",
        "getCodeVersion",
        "The version of this server.",
        "version",
        {"200": Info, "401": None},
        consumes=json,
        produces=json,
    )
    yield "/version/", [version]


def _document(name: str, words: str, tag: str, answer: type[Struct]) -> Operation:
    return Operation("get", name, words, tag, {"200": answer, "401": None}, consumes=MEDIA)


def _tag(group: str, version: str) -> str:
    return f"{group_words(group)}_{version}"


class _Maker:
    """Makes the operations of one resource."""

    def __init__(self, resource: Resource, returns_deleted: bool) -> None:
        self.resource = resource
        self.kind = resource.kind
        self.returns_deleted = returns_deleted
        self.tag = _tag(resource.group, resource.version)
        self.prefix = operation_prefix(resource.group, resource.version)
        self.scope = "Namespaced" if resource.namespaced else ""
        self.in_path = (parameters.NAMESPACE,) if resource.namespaced else ()
        self.named = (*self.in_path, parameters.name_of(self.kind))
        inside = "/namespaces/{namespace}" if resource.namespaced else ""
        self.inside = f"{inside}/{resource.plural}"

    def collection(self) -> Iterator[Path]:
        verbs = self.resource.verbs
        base = self.resource.path
        operations = []
        if "list" in verbs:
            operations.append(self._list(self.scope, "", self.in_path))
        if "create" in verbs:
            operations.append(self._create())
        if "deletecollection" in verbs:
            operations.append(self._delete_collection())
        if "list" in verbs and self.resource.namespaced:
            yield f"{base}/{self.resource.plural}", [self._list("", "ForAllNamespaces", ())]
        yield base + self.inside, operations

    def item(self) -> Path:
        verbs = [verb for verb in ("get", "update", "patch", "delete") if verb in self.resource.verbs]
        return f"{self.resource.path}{self.inside}/{{name}}", [self._verb(verb) for verb in verbs]

    def subresource(self, sub: Subresource) -> Iterator[Path]:
        path = f"{self.resource.path}{self.inside}/{{name}}/{sub.name}"
        if sub.kind and sub.kind.endswith("Options"):
            yield path, self._connect(sub, "")
            if sub.name == "proxy":
                yield f"{path}/{{path}}", self._connect(sub, "WithPath")
        else:
            verbs = [verb for verb in ("get", "create", "update", "patch", "delete") if verb in sub.verbs]
            yield path, [self._verb(verb, sub) for verb in verbs]

    def watches(self) -> Iterator[Path]:
        base = f"{self.resource.path}/watch"
        yield f"{base}{self.inside}", [self._watch("watchlist", self.scope, "List", self.in_path)]
        yield f"{base}{self.inside}/{{name}}", [self._watch("watch", self.scope, "", self.named)]
        if self.resource.namespaced:
            yield f"{base}/{self.resource.plural}", [self._watch("watchlist", "", "ListForAllNamespaces", ())]

    def _operation(
        self,
        method: str,
        name: str,
        action: str,
        words: str,
        answers: dict[str, type[Struct] | Resource | str | None],
        given: tuple[Parameter, ...],
        *,
        body: type[Struct] | str | None = None,
        body_required: bool = True,
        consumes: tuple[str, ...] = _ANY_MEDIA,
        produces: tuple[str, ...] = MEDIA,
        kind: tuple[str, str, str] | None = None,
    ) -> Operation:
        return Operation(
            method,
            name,
            words,
            self.tag,
            {**answers, "401": None},
            action,
            kind or (self.resource.group, self.resource.version, self.kind),
            given,
            body,
            body_required,
            consumes,
            produces,
        )

    def _list(self, scope: str, suffix: str, in_path: tuple[Parameter, ...]) -> Operation:
        return self._operation(
            "get",
            f"list{self.prefix}{scope}{self.kind}{suffix}",
            "list",
            f"List or watch {self.resource.plural}.",
            {"200": self.resource},
            (*in_path, *parameters.LIST, parameters.PRETTY),
            produces=MEDIA + _WATCHES,
        )

    def _create(self) -> Operation:
        answers = dict.fromkeys(("200", "201", "202"), self.resource.type)
        return self._operation(
            "post",
            f"create{self.prefix}{self.scope}{self.kind}",
            "post",
            f"Create a {self.kind}.",
            {**answers},
            (*self.in_path, *parameters.CREATE, parameters.PRETTY),
            body=self.resource.type,
        )

    def _delete_collection(self) -> Operation:
        return self._operation(
            "delete",
            f"delete{self.prefix}Collection{self.scope}{self.kind}",
            "deletecollection",
            f"Delete {self.resource.plural}.",
            {"200": STATUS},
            (*self.in_path, *parameters.DELETE_COLLECTION, parameters.PRETTY),
            body=DELETE_OPTIONS,
            body_required=False,
        )

    def _verb(self, verb: str, sub: Subresource | None = None) -> Operation:
        """get, create, update, patch or delete of an object or a part of it."""
        resource = self.resource
        cls: type[Struct] = resource.type
        kind = None
        suffix = capitalized(sub.name) if sub else ""
        if sub and sub.kind:
            kind = (sub.group if sub.group is not None else resource.group, sub.version or resource.version, sub.kind)
            cls = _class(*kind)
        given = {"create": parameters.CREATE, "update": parameters.CREATE, "patch": parameters.PATCH}.get(verb, ())
        what = f"{sub.name} of a {self.kind}" if sub else f"a {self.kind}"
        words = f"{capitalized(_WORDS[verb])} {what if sub is None else 'the ' + what}."
        answers: dict[str, type[Struct] | Resource | str | None] = {"200": cls}
        body: type[Struct] | str | None = None
        consumes: tuple[str, ...] = _ANY_MEDIA
        produces: tuple[str, ...] = MEDIA
        match verb:
            case "create":
                answers, body = dict.fromkeys(("200", "201", "202"), cls), cls
            case "update":
                answers, body = dict.fromkeys(("200", "201"), cls), cls
            case "patch":
                answers, body, consumes = dict.fromkeys(("200", "201"), cls), PATCH_BODY, PATCHES
                if isinstance(resource.type, str):  # no class, no strategic merge
                    consumes = CUSTOM_PATCHES
            case "delete":
                answers = dict.fromkeys(("200", "202"), cls if self.returns_deleted else STATUS)
                body, given = DELETE_OPTIONS, parameters.DELETE
        if sub and sub.name in parameters.SUBRESOURCES:  # a log is text
            given, answers, produces = parameters.SUBRESOURCES[sub.name], {"200": TEXT}, ("text/plain", *MEDIA)
        return self._operation(
            _METHODS[verb],
            f"{_WORDS[verb]}{self.prefix}{self.scope}{self.kind}{suffix}",
            {"update": "put", "create": "post"}.get(verb, verb),
            words,
            answers,
            (*self.named, *given, parameters.PRETTY),
            body=body,
            body_required=verb != "delete",
            consumes=consumes,
            produces=produces,
            kind=kind,
        )

    def _connect(self, sub: Subresource, suffix: str) -> list[Operation]:
        """A way into a pod, service or node: all methods of a proxy, two of the others."""
        assert sub.kind
        methods = _METHODS_OF_PROXY if sub.name == "proxy" else ("get", "post")
        in_path = (parameters.PATH,) if suffix else ()
        return [
            self._operation(
                method,
                f"connect{self.prefix}{capitalized(method)}{self.scope}{self.kind}{capitalized(sub.name)}{suffix}",
                "connect",
                f"Connect to the {sub.name} of a {self.kind}.",
                {"200": TEXT},
                (*self.named, *in_path, *parameters.SUBRESOURCES[sub.kind]),
                produces=_ANY_MEDIA,
                kind=(self.resource.group, self.resource.version, sub.kind),
            )
            for method in methods
        ]

    def _watch(self, action: str, scope: str, suffix: str, in_path: tuple[Parameter, ...]) -> Operation:
        return self._operation(
            "get",
            f"watch{self.prefix}{scope}{self.kind}{suffix}",
            action,
            f"Watch {self.resource.plural}. Deprecated: list them with watch=true.",
            {"200": WATCH_EVENT},
            (*in_path, *parameters.LIST, parameters.PRETTY),
            produces=MEDIA + _WATCHES,
        )


def _class(group: str, version: str, kind: str) -> type[Struct]:
    found = scheme.type_for(f"{group}/{version}" if group else version, kind)
    assert found is not None, kind
    return found
