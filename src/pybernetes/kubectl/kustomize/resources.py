"""The objects of a build, and the names, namespaces and kinds that each had before it was changed.

Patches, replacements and references may name an object as it was at any step; what it was is kept beside the object.
"""

from __future__ import annotations

import re

from pybernetes.kubectl.data import copy, dumps
from pybernetes.kubectl.errors import CLIError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    Object = dict[str, Any]

_CLUSTER = {
    "": ("ComponentStatus", "Namespace", "Node", "NodeProxyOptions", "PersistentVolume"),
    "admissionregistration.k8s.io": ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"),
    "apiextensions.k8s.io": ("CustomResourceDefinition",),
    "apiregistration.k8s.io": ("APIService",),
    "certificates.k8s.io": ("CertificateSigningRequest",),
    "flowcontrol.apiserver.k8s.io": ("FlowSchema", "PriorityLevelConfiguration"),
    "networking.k8s.io": ("IngressClass",),
    "node.k8s.io": ("RuntimeClass",),
    "policy": ("PodSecurityPolicy",),
    "rbac.authorization.k8s.io": ("ClusterRole", "ClusterRoleBinding"),
    "scheduling.k8s.io": ("PriorityClass",),
    "storage.k8s.io": ("CSIDriver", "CSINode", "StorageClass", "VolumeAttachment"),
}
"""The kinds without a namespace that kustomize knows; every other kind gets the kustomization's namespace."""
_VERSIONS = {"flowcontrol.apiserver.k8s.io": ("v1beta1",), "policy": ("v1beta1",)}


class Kind:
    """A group, a version and a kind; what is empty in a selector matches everything."""

    __slots__ = ("group", "kind", "version")

    def __init__(self, group: str, version: str, kind: str) -> None:
        self.group, self.version, self.kind = group, version, kind

    def selected(self, by: Kind) -> bool:
        """Whether the selector names this kind."""
        return (
            (not by.group or by.group == self.group)
            and (not by.version or by.version == self.version)
            and (not by.kind or by.kind == self.kind)
        )

    def clustered(self) -> bool:
        """Whether objects of the kind are known to have no namespace."""
        versions = _VERSIONS.get(self.group, ("v1", "v1beta1"))
        return self.version in versions and self.kind in _CLUSTER.get(self.group, ())

    def __str__(self) -> str:
        return f"{self.kind or '[noKind]'}.{self.version or '[noVer]'}.{self.group or '[noGrp]'}"


def group_version(api_version: str) -> tuple[str, str]:
    """The group and the version of an apiVersion."""
    group, slash, version = api_version.partition("/")
    return (group, version) if slash else ("", api_version)


class Identity:
    """The identity of an object: its kind, namespace and name."""

    __slots__ = ("kind", "name", "namespace")

    def __init__(self, kind: Kind, name: str, namespace: str) -> None:
        self.kind, self.name, self.namespace = kind, name, namespace

    def effective(self) -> str:
        """The namespace, `default` if none is given, and a mark of its own for what has none."""
        if self.kind.clustered():
            return "_non_namespaceable_"
        return self.namespace or "default"

    def same(self, other: Identity) -> bool:
        """Whether both name the same object."""
        mine, others = self.kind, other.kind
        return (
            self.name == other.name
            and (mine.group, mine.version, mine.kind) == (others.group, others.version, others.kind)
            and self.effective() == other.effective()
        )

    def __str__(self) -> str:
        return f"{self.kind}/{self.name or '[noName]'}.{self.namespace or '[noNs]'}"

    def fields(self) -> str:
        """The identity as Go prints its fields, for messages about generators."""
        kind = self.kind
        return (
            f'resid.ResId{{Gvk:resid.Gvk{{Group:"{kind.group}", Version:"{kind.version}", Kind:"{kind.kind}",'
            f' isClusterScoped:{str(kind.clustered()).lower()}}}, Name:"{self.name}", Namespace:"{self.namespace}"}}'
        )


class Resource:
    """An object of the build."""

    def __init__(self, obj: Object, origin: Object | None = None) -> None:
        self.object = obj
        self.previous: list[tuple[str, str, str]] = []
        """Namespace, name and kind after each step, oldest first."""
        self.prefixes: list[str] = []
        self.suffixes: list[str] = []
        self.variables: list[str] = []
        self.behavior = ""
        self.hashed = False
        """Whether the name gets a hash of the content."""
        self.origin = origin
        self.transformations: list[Object] = []
        self.deleted = False

    @property
    def metadata(self) -> Object:
        found = self.object.get("metadata")
        if not isinstance(found, dict):
            found = self.object["metadata"] = {}
        return found

    @property
    def name(self) -> str:
        return str(self.metadata.get("name") or "")

    @property
    def namespace(self) -> str:
        return str(self.metadata.get("namespace") or "")

    @property
    def kind(self) -> Kind:
        return Kind(*group_version(str(self.object.get("apiVersion") or "")), str(self.object.get("kind") or ""))

    def current(self) -> Identity:
        return Identity(self.kind, self.name, self.namespace)

    def earlier(self) -> list[Identity]:
        """The identities that it had before, oldest first."""
        group, version = group_version(str(self.object.get("apiVersion") or ""))
        return [Identity(Kind(group, version, kind), name, space) for space, name, kind in self.previous]

    def original(self) -> Identity:
        return next(iter(self.earlier()), None) or self.current()

    def remember(self) -> None:
        """Keeps the present identity, because the next step may change it."""
        now = self.current()
        self.previous.append((now.effective(), now.name, now.kind.kind))

    def clone(self) -> Resource:
        other = Resource(copy(self.object), self.origin)
        other.previous, other.behavior, other.hashed = list(self.previous), self.behavior, self.hashed
        other.prefixes, other.suffixes = list(self.prefixes), list(self.suffixes)
        other.variables, other.transformations = list(self.variables), list(self.transformations)
        return other

    def json(self) -> str:
        """The object in one line, for messages."""
        return dumps(self.object, sort=True)


class Resources:
    """The objects of a build in their order; no two have the same identity."""

    def __init__(self, items: Iterable[Resource] = ()) -> None:
        self.items: list[Resource] = list(items)

    def append(self, resource: Resource) -> None:
        """Adds an object. Raises CLIError if there is one of its identity."""
        identity = resource.current()
        if any(each.current().same(identity) for each in self.items):
            raise CLIError(f"may not add resource with an already registered id: {identity}")
        self.items.append(resource)

    def extend(self, others: Iterable[Resource]) -> None:
        for each in others:
            self.append(each)

    def named(self, matches: Callable[[Identity], bool]) -> list[Resource]:
        """The objects that have, or once had, an identity that matches."""
        return [each for each in self.items if any(map(matches, (*each.earlier(), each.current())))]

    def one(self, identity: Identity) -> Resource:
        """The only object that has or had an identity. Raises CLIError."""
        found = self.named(identity.same)
        if len(found) != 1:
            problem = f"{'multiple' if found else 'no'} matches for Id {identity}"
            raise CLIError(f"{problem}; failed to find unique target for patch {identity}")
        return found[0]

    def absorb(self, resource: Resource) -> None:
        """Adds a generated object, or merges it into the one of its name if its behavior says so. Raises CLIError."""
        identity = resource.current()
        found = self.named(identity.same)
        if not found:
            if resource.behavior in ("merge", "replace"):
                raise CLIError(f"id {identity.fields()} does not exist; cannot merge or replace")
            self.append(resource)
            return
        if len(found) > 1:
            raise CLIError(f"found multiple objects {found} that could accept merge of {identity}")
        old = found[0]
        if resource.behavior not in ("merge", "replace"):
            shown = resource.behavior or "unspecified"
            raise CLIError(
                f"id {identity.fields()} exists; can not use behavior: '{shown}', behavior must be merge or replace"
            )
        _take_over(resource, old)
        self.items[self.items.index(old)] = resource

    def selected(self, target: Object) -> list[Resource]:
        """The objects that a selector names, by regular expressions and label selectors. Raises CLIError."""
        return [each for each in self.items if _selected(each, target)]

    def clone(self) -> Resources:
        return Resources(each.clone() for each in self.items)


def _take_over(new: Resource, old: Resource) -> None:
    """Metadata, and for behavior `merge` the data, of the object that a generated one comes in place of."""
    for field in ("labels", "annotations"):
        merged = {**(old.metadata.get(field) or {}), **(new.metadata.get(field) or {})}
        if merged:
            new.metadata[field] = merged
    new.metadata["name"] = old.name
    if old.namespace:
        new.metadata["namespace"] = old.namespace
    else:
        new.metadata.pop("namespace", None)
    new.previous, new.prefixes, new.suffixes = old.previous, old.prefixes, old.suffixes
    new.hashed = new.hashed and old.hashed
    new.variables = old.variables
    if new.behavior == "merge":
        for field in ("data", "binaryData"):
            merged = {**(old.object.get(field) or {}), **(new.object.get(field) or {})}
            if merged:
                new.object[field] = merged
        if old.origin is not None:
            new.origin = old.origin


def pattern(text: Any) -> re.Pattern[str]:
    """A selector's regular expression, which must match as a whole. Raises CLIError."""
    try:
        return re.compile(f"^(?:{text})$")
    except re.error as error:
        raise CLIError(f"error parsing regexp: {error.msg}: `^(?:{text})$`") from None


def _selected(resource: Resource, target: Object) -> bool:
    now, first, kind = resource.current(), resource.original(), resource.kind
    for key, values in (
        ("namespace", (first.effective(), now.effective())),
        ("name", (first.name, now.name)),
        ("group", (kind.group,)),
        ("version", (kind.version,)),
        ("kind", (kind.kind,)),
    ):
        if target.get(key) and not any(pattern(target[key]).match(value) for value in values):
            return False
    return chosen_by_labels(resource, target)


def chosen_by_labels(resource: Resource, target: Object) -> bool:
    """Whether labels and annotations are those that a selector wants. Raises CLIError."""
    from pybernetes.kubectl.selectors import matches

    for key, field in (("labelSelector", "labels"), ("annotationSelector", "annotations")):
        present = resource.metadata.get(field)
        values = {str(name): str(value) for name, value in present.items()} if isinstance(present, dict) else {}
        if target.get(key) and not matches(str(target[key]), values):
            return False
    return True
