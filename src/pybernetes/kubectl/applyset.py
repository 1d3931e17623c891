"""ApplySets: a Secret, ConfigMap or custom object that keeps which objects `apply --prune` applied together.

The parent's label is the set's ID, its annotations are the kinds and namespaces of the members; every member has the
label `part-of`. The annotations are widened before anything is applied and narrowed after pruning, so that an apply
that breaks off leaves nothing that the next one does not find.
"""

from __future__ import annotations

from pybernetes.kubectl import deleting, mutating
from pybernetes.kubectl.builder import Info
from pybernetes.kubectl.data import dumps
from pybernetes.kubectl.errors import CLIError, NoMatch, StatusError, not_found

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pybernetes.kubectl.context import Context
    from pybernetes.kubectl.mapper import Mapping

_TOOLING = "applyset.kubernetes.io/tooling"
_KINDS = "applyset.kubernetes.io/contains-group-kinds"
_RESOURCES = "applyset.kubernetes.io/contains-group-resources"
_NAMESPACES = "applyset.kubernetes.io/additional-namespaces"
_ID = "applyset.kubernetes.io/id"
_MEMBER = "applyset.kubernetes.io/part-of"
_PARENT_TYPE = "applyset.kubernetes.io/is-parent-type"
_TOOL = "kubectl"
_VERSION = "v1.36.4"


class ApplySet:
    """The set of `--applyset`: read from its parent object, checked, and written back."""

    def __init__(self, context: Context) -> None:
        reference = context.flags.text("applyset")
        word, slash, name = reference.partition("/")
        if not slash:
            word, name = "secrets", reference
        try:
            if not name:
                raise CLIError("name cannot be blank")
            self.mapping = context.mapper.resource(word)
        except NoMatch:
            resource, _, group = word.partition(".")
            what = f"no matches for {group}/, Resource={resource}"
            raise CLIError(f'invalid parent reference "{reference}": {what}') from None
        except CLIError as error:
            raise CLIError(f'invalid parent reference "{reference}": {error.message}') from None
        self._context = context
        self.name = name
        namespaced = self.mapping.namespaced and context.explicit_namespace()
        self.namespace = context.namespace() if namespaced else ""
        self._kinds: dict[str, Mapping] = {}
        self._namespaces: set[str] = set()
        self._new_kinds: dict[str, Mapping] = {}
        self._new_namespaces: set[str] = set()
        self._check()

    @property
    def id(self) -> str:
        """The value of the parent's `id` label and of the members' `part-of` label."""
        from base64 import urlsafe_b64encode
        from hashlib import sha256

        text = ".".join((self.name, self.namespace, self.mapping.kind, self.mapping.group))
        return f"applyset-{urlsafe_b64encode(sha256(text.encode()).digest()).decode().rstrip('=')}-v1"

    def _label(self) -> str:
        return f"{self.mapping.resource}.{self.mapping.group}/{self.name}"

    def _built_in(self) -> bool:
        return self.mapping.group_resource in ("secrets", "configmaps")

    def _check(self) -> None:
        problems = []
        if self.mapping.namespaced and not self.namespace:
            problems.append("namespace is required to use namespace-scoped ApplySet")
        if not self._built_in():
            path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
            listed = self._context.client.list(path, {"labelSelector": _PARENT_TYPE}).get("items") or ()
            if self.mapping.group_resource not in [each["metadata"]["name"] for each in listed]:
                mapping = self.mapping
                what = f"{mapping.group}/{mapping.version}, Resource={mapping.resource}"
                problems.append(f'resource "{what}" is not permitted as an ApplySet parent')
        if problems:
            raise CLIError(problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]")

    # -- before the objects are applied

    def begin(self, infos: list[Info], dry: str) -> None:
        """Labels the members and widens the parent to what was in the set and what is applied now."""
        for info in infos:
            labels = info.object.setdefault("metadata", {}).setdefault("labels", {})
            if _MEMBER in labels:
                raise CLIError(f'ApplySet label "{_MEMBER}" already set in input data')
            labels[_MEMBER] = self.id
        self._read()
        for info in infos:
            self._new_kinds.setdefault(_group_kind(info.mapping), info.mapping)
            if info.mapping.namespaced and info.namespace:
                self._new_namespaces.add(info.namespace)
        self._write({**self._kinds, **self._new_kinds}, self._namespaces | self._new_namespaces, dry)

    def _read(self) -> None:
        """Reads the parent. Raises CLIError where the object is not a parent of this set."""
        label = self._label()
        try:
            parent = self._context.client.get(self.mapping.path(self.namespace, self.name))
        except StatusError as error:
            if not_found(error):
                if not self._built_in():
                    raise CLIError("custom resource ApplySet parents cannot be created automatically") from None
                return
            raise CLIError(f'failed to fetch ApplySet parent object "{label}": {error.message}') from None
        metadata = parent.get("metadata") or {}
        annotations, labels = metadata.get("annotations") or {}, metadata.get("labels") or {}
        tooling = annotations.get(_TOOLING)
        found = labels.get(_ID)
        head = f'ApplySet parent object "{label}"'
        if tooling is None:
            raise CLIError(f'{head} already exists and is missing required annotation "{_TOOLING}"')
        owner = tooling.rpartition("/")[0] or tooling
        if owner != _TOOL:
            raise CLIError(f'{head} already exists and is managed by tooling "{owner}" instead of "{_TOOL}"')
        if found is None:
            raise CLIError(f"{head} exists and does not have required label {_ID}")
        if found != self.id:
            raise CLIError(f'{head} exists and has incorrect value for label "{_ID}" (got: {found}, want: {self.id})')
        try:
            self._kinds = self._members(annotations)
        except CLIError as error:
            raise CLIError(f'parsing ApplySet annotation on "{label}": {error.message}') from None
        self._namespaces = set(filter(None, annotations.get(_NAMESPACES, "").split(",")))
        if self.mapping.namespaced:
            self._namespaces.add(self.namespace)

    def _members(self, annotations: dict[str, str]) -> dict[str, Mapping]:
        mapper = self._context.mapper
        found: dict[str, Mapping] = {}
        if _KINDS not in annotations:
            if not annotations.get(_RESOURCES):
                raise CLIError(f'kubectl requires the "{_KINDS}" annotation to be set on all ApplySet parent objects')
            for word in annotations[_RESOURCES].split(","):
                try:
                    mapping = mapper.resource(word)
                except NoMatch as error:
                    raise CLIError(f'invalid group resource in "{_RESOURCES}" annotation: {error.message}') from None
                found[_group_kind(mapping)] = mapping
            return found
        for word in filter(None, annotations[_KINDS].split(",")):
            kind, _, group = word.partition(".")
            known = mapper.group_kind(group, kind)
            if known is None:
                where = f'kind "{kind}" in group "{group}"' if group else f'kind "{kind}" in version ""'
                raise CLIError(f'could not find mapping for kind in "{_KINDS}" annotation: no matches for {where}')
            found[word] = known
        return found

    # -- after the objects are applied

    def finish(self, applied: list[Info], dry: str) -> None:
        """Deletes the members that were not applied this time, then narrows the parent to the others."""
        context = self._context
        flags = context.flags
        kept = {(info.object.get("metadata") or {}).get("uid") for info in applied}
        options = deleting.options(flags.number("grace-period"), deleting.cascade(context), dry)
        for info in self._surplus(kept):
            if dry != "client":
                try:
                    context.client.delete(info.path(), options)
                except StatusError as error:
                    where = f"{info.namespace}/{info.name}" if info.namespace else info.name
                    raise CLIError(f"pruning {_group_kind(info.mapping)} {where}: {error.message}") from None
            suffix = {"client": " (dry run)", "server": " (server dry run)"}.get(dry, "")
            context.out(mutating.printer_for(flags, f"pruned{suffix}")(info.object))
        try:
            self._write(self._new_kinds, self._new_namespaces, dry)
        except CLIError as error:
            raise CLIError(f"apply and prune succeeded, but ApplySet update failed: {error.message}") from None

    def _surplus(self, kept: set[Any]) -> list[Info]:
        found = []
        for kind in sorted(self._kinds):
            mapping = self._kinds[kind]
            for namespace in sorted(self._namespaces) if mapping.namespaced else [""]:
                selector = {"labelSelector": f"{_MEMBER}={self.id}"}
                listed = self._context.client.list(mapping.path(namespace), selector).get("items") or ()
                for item in listed:
                    if item["metadata"].get("uid") not in kept:
                        item = {"apiVersion": mapping.api_version, "kind": mapping.kind, **item}
                        found.append(Info(mapping, namespace, item["metadata"]["name"], item))
        return found

    def _write(self, kinds: dict[str, Mapping], namespaces: set[str], dry: str) -> None:
        if dry == "client":
            return
        annotations = {
            _TOOLING: f"{_TOOL}/{_VERSION}",
            _KINDS: ",".join(sorted(kinds)),
            _NAMESPACES: ",".join(sorted(namespaces - {self.namespace})),
        }
        metadata: dict[str, Any] = {"name": self.name, "annotations": annotations, "labels": {_ID: self.id}}
        if self.namespace:
            metadata["namespace"] = self.namespace
        parent = {"apiVersion": self.mapping.api_version, "kind": self.mapping.kind, "metadata": metadata}
        parameters = {**mutating.parameters(self._context.flags, dry), "fieldManager": f"{_TOOL}-applyset"}
        path = self.mapping.path(self.namespace, self.name)
        for force in (False, True):
            try:
                self._context.client.json(
                    "PATCH",
                    path,
                    {**parameters, "force": force},
                    dumps(parent).encode(),
                    content_type="application/apply-patch+yaml",
                )
                return
            except StatusError as error:
                if error.reason != "Conflict" or force:
                    raise CLIError(f"failed to update ApplySet: {error.message}") from None


def _group_kind(mapping: Mapping) -> str:
    return f"{mapping.kind}.{mapping.group}" if mapping.group else mapping.kind
