"""Patches of a build: strategic merge as kustomize does it, and JSON patches.

kustomize merges lists in its own way: the items of the patch come first, a list whose items kubectl knows by a port and
a protocol is matched by both, and directives other than `$patch` stay in the object.
"""

from __future__ import annotations

from pybernetes.kubectl.data import copy
from pybernetes.kubectl.errors import CLIError
from pybernetes.kubectl.kustomize import nodes
from pybernetes.kubectl.kustomize.resources import Kind, Resource, group_version

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from pybernetes.kubectl.kustomize.files import Folder
    from pybernetes.kubectl.kustomize.resources import Resources

    Object = dict[str, Any]
    Fields = Callable[[str, str], tuple[str, str, str]]
    """Strategy, merge key and type of a type's field."""

_PROTOCOL = ("containerPort", "port")
"""The merge keys that need the protocol beside them."""


class Schema:
    """Which lists merge by which key: the built-in kinds, or those of a kustomization's `openapi`."""

    def __init__(self) -> None:
        self._definitions: Object | None = None

    def use(self, content: bytes) -> None:
        """Takes the definitions of an OpenAPI document in place of the built-in ones. Raises CLIError."""
        document = nodes.parsed(content, "parsing openapi")
        definitions = document.get("definitions") if isinstance(document, dict) else None
        if not isinstance(definitions, dict):
            raise CLIError("no definitions in the file of openapi.path")
        self._definitions = definitions

    def type_of(self, api_version: str, kind: str) -> str | None:
        """The type of a kind, or None."""
        from pybernetes.kubectl import strategic

        if self._definitions is None:
            return strategic.type_of(api_version, kind)
        group, version = group_version(api_version)
        for name, definition in self._definitions.items():
            kinds = definition.get("x-kubernetes-group-version-kind") if isinstance(definition, dict) else None
            for each in kinds if isinstance(kinds, list) else ():
                if isinstance(each, dict) and (each.get("group"), each.get("version"), each.get("kind")) == (
                    group,
                    version,
                    kind,
                ):
                    return str(name)
        return None

    def field(self, cls: str, key: str) -> tuple[str, str, str]:
        """Strategy, merge key and type of a field."""
        from pybernetes.kubectl import strategic

        if self._definitions is None:
            return strategic.field(cls, key)
        at = self._at(cls)
        found = self._resolve((at.get("properties") or {}).get(key) or at.get("additionalProperties"))
        merge_key = str(found.get("x-kubernetes-patch-merge-key") or "-")
        path = f"{cls}\0{key}"
        return str(found.get("x-kubernetes-patch-strategy") or "-"), merge_key, path

    def _at(self, cls: str) -> Object:
        assert self._definitions is not None
        name, *keys = cls.split("\0")
        at = self._resolve(self._definitions.get(name))
        for key in keys:
            at = self._resolve((at.get("properties") or {}).get(key) or at.get("additionalProperties"))
            if "items" in at:
                at = self._resolve(at["items"])
        return at

    def _resolve(self, value: Any) -> Object:
        assert self._definitions is not None
        seen: set[str] = set()
        while isinstance(value, dict) and "$ref" in value:
            name = str(value["$ref"]).removeprefix("#/definitions/")
            if name in seen:
                return {}
            seen.add(name)
            value = self._definitions.get(name)
        return value if isinstance(value, dict) else {}


# -- merging


class _Remove:
    """The value of what the patch deletes."""


_REMOVE = _Remove()


def merge(obj: Object, patch: Object, schema: Schema) -> Object | None:
    """The object after a strategic merge patch; None if the patch deletes it. Raises CLIError."""
    cls = schema.type_of(str(obj.get("apiVersion")), str(obj.get("kind")))
    found = _map(obj, copy(patch), cls, schema, "")
    return found if isinstance(found, dict) else None


def _directive(patch: Any) -> str:
    if not isinstance(patch, dict) or "$patch" not in patch:
        return ""
    value = patch.pop("$patch")
    if value not in ("delete", "replace", "merge"):
        raise CLIError(f"unknown patch strategy '{value}'")
    return str(value)


def _map(dest: Any, patch: Object, cls: str | None, schema: Schema, path: str) -> Object | _Remove:
    directive = _directive(patch)
    if directive == "delete":
        return _REMOVE
    if directive == "replace":
        dest = {}
    elif dest is not None and not isinstance(dest, dict):
        kind = "SequenceNode" if isinstance(dest, list) else "ScalarNode"
        raise CLIError(f"wrong node kind: expected MappingNode but was {kind}: node contents:\n{dest}\n")
    found = dict(dest or {})
    for key, value in patch.items():
        strategy, merge_key, child = schema.field(cls, key) if cls else ("-", "-", "-")
        here = found.get(key)
        merged: Any
        if value is None:
            merged = _REMOVE
        elif isinstance(value, dict):
            merged = _map(here, value, child if cls and child != "-" else None, schema, f"{path}.{key}")
        elif isinstance(value, list):
            merged = _list(here, value, (strategy, merge_key, child if cls else ""), schema, f"{path}.{key}")
        else:
            merged = value
        if merged is _REMOVE:
            found.pop(key, None)
        else:
            found[key] = merged
    return found


def _list(here: Any, patch: list[Any], how: tuple[str, str, str], schema: Schema, path: str) -> Any:
    strategy, key, child = how
    if "merge" not in strategy:
        return patch
    if isinstance(here, dict | str):
        raise CLIError(
            "wrong node kind: expected SequenceNode but was "
            + ("MappingNode" if isinstance(here, dict) else "ScalarNode")
        )
    items = [each for each in patch if not (isinstance(each, dict) and set(each) == {"$patch"})]
    directives = {_directive(each) for each in patch if isinstance(each, dict) and set(each) == {"$patch"}}
    if "delete" in directives:
        return _REMOVE
    there: list[Any] = [] if "replace" in directives or here is None else list(here)
    if key == "-":
        return [*dict.fromkeys(items), *(each for each in there if each not in items)]
    keys = _keys(key, [*items, *there])
    first, used, replaced = [], set(), {}
    for each in items:
        at = _index(there, each, keys)
        merged = _map(there[at] if at is not None else None, each, child or None, schema, path)
        if at is not None:
            used.add(at)
        if merged is _REMOVE or not merged:
            continue
        if len(keys) > 1 and at is not None:
            replaced[at] = merged
        else:
            first.append(merged)
    rest = [replaced.get(at, each) for at, each in enumerate(there) if at not in used or at in replaced]
    return [*first, *rest]


def _keys(key: str, items: list[Any]) -> tuple[str, ...]:
    if key in _PROTOCOL and any(isinstance(each, dict) and each.get("protocol") for each in items):
        return (key, "protocol")
    return (key,)


def _index(items: list[Any], wanted: Any, keys: tuple[str, ...]) -> int | None:
    if not isinstance(wanted, dict):
        raise CLIError("wrong node kind: expected MappingNode but was ScalarNode")
    for exact in (True, False):  # an item without a protocol is taken for one of any, where none fits better
        for index, each in enumerate(items):
            pairs = [(each.get(key) if isinstance(each, dict) else None, wanted.get(key)) for key in keys]
            fits = all(left == right or (not exact and None in (left, right)) for left, right in pairs)
            if fits and pairs[0][0] is not None:
                return index
    return None


# -- one entry of `patches`


class Patch:
    """An entry of `patches`, read; `field` names where it stands, for messages. Raises CLIError."""

    def __init__(self, entry: Object, folder: Folder, schema: Schema) -> None:
        self._schema = schema
        self._target: Object | None = entry.get("target")
        options = entry.get("options") or {}
        self._renames, self._changes_kind = bool(options.get("allowNameChange")), bool(options.get("allowKindChange"))
        text, path = str(entry.get("patch") or "").strip(), str(entry.get("path") or "")
        if not text and not path:
            raise _config("PatchTransformer", entry, "must specify one of patch and path in\n" + _yaml(entry))
        if text and path:
            raise _config("PatchTransformer", entry, "patch and path can't be set at the same time\n" + _yaml(entry))
        from pybernetes.kubectl.data import go_quote

        if text:
            self._source, self._text = f"[patch: {go_quote(text)}]", text.encode("utf-8", "surrogateescape")
        else:
            self._source = f"[path: {go_quote(path)}]"
            try:
                self._text = folder.load(path)
            except CLIError as error:
                problem = f"failed to get the patch file from path({path}): {error.message}"
                raise _config("PatchTransformer", entry, problem) from None
        self._operations: list[Any] | None = None
        self._objects: list[Resource] = []
        problem = f"unable to parse SM or JSON patch from {self._source}"
        value = self._parsed()
        if isinstance(value, list) and all(isinstance(each, dict) for each in value):
            self._operations = value
            return
        try:
            self._objects = [Resource(each) for each in nodes.objects(self._text)]
        except ValueError:
            raise _config("PatchTransformer", entry, problem) from None

    def _parsed(self) -> Any:
        from pybernetes.kubectl.manifests import parse_yaml

        try:
            return parse_yaml(self._text)
        except ValueError:
            return None

    def apply(self, resources: Resources) -> None:
        """Changes the objects that the patch is for. Raises CLIError."""
        if self._operations is not None:
            if self._target is None:
                raise CLIError(f"must specify a target for JSON patch {self._source}")
            apply_operations(resources, self._operations, self._target)
            return
        if self._target is not None:
            if len(self._objects) > 1:
                raise CLIError(
                    "Multiple Strategic-Merge Patches in one `patches` entry is not allowed to set `patches.target`"
                    f" field: {self._source}"
                )
            for patch in self._objects:
                for resource in resources.selected(self._target):
                    self._merge(resource, patch)
        else:
            for patch in self._objects:
                identity = patch.current()
                try:
                    found = resources.one(identity)
                except CLIError as error:
                    raise CLIError(f'no resource matches strategic merge patch "{identity}": {error.message}') from None
                self._merge(found, patch)
        resources.items = [each for each in resources.items if not each.deleted]

    def _merge(self, resource: Resource, patch: Resource) -> None:
        merge_into(resource, patch.object, self._schema, self._renames, self._changes_kind)


def merge_into(resource: Resource, patch: Object, schema: Schema, renames: bool = False, rekinds: bool = False) -> None:
    """Merges a patch into an object, which keeps its name and kind unless the patch may change them."""
    name, namespace, kind = resource.name, resource.namespace, resource.kind.kind
    if renames or rekinds:
        resource.remember()
    body = dict(patch)
    body["apiVersion"] = resource.object.get("apiVersion")
    merged = merge(resource.object, body, schema)
    if not merged:
        resource.deleted = True
        return
    resource.object = merged
    if not rekinds:
        merged["kind"] = kind
    if not renames:
        resource.metadata["name"] = name
    if namespace:
        resource.metadata["namespace"] = namespace
    else:
        resource.metadata.pop("namespace", None)


def apply_operations(resources: Resources, operations: list[Any], target: Object) -> None:
    """Applies a JSON patch to what a selector names. Raises CLIError."""
    from pybernetes.kubectl.commands.patch import apply_locally

    for resource in resources.selected(target):
        resource.remember()
        resource.object = apply_locally(copy(resource.object), operations, "json")


def strategic_files(names: list[str], folder: Folder, resources: Resources, schema: Schema) -> None:
    """`patchesStrategicMerge`: files, or patches themselves. Raises CLIError."""
    patches = []
    for name in names:
        try:
            text = folder.load(name) if "\n" not in name else name.encode()
        except CLIError:
            text = name.encode()
        try:
            patches += [Resource(each) for each in nodes.objects(text)]
        except ValueError as error:
            raise CLIError(f"unable to parse SM or JSON patch from [{name}]: {error}") from None
    for patch in patches:
        identity = patch.current()
        try:
            found = resources.one(identity)
        except CLIError as error:
            raise CLIError(f'no resource matches strategic merge patch "{identity}": {error.message}') from None
        merge_into(found, patch.object, schema)
    resources.items = [each for each in resources.items if not each.deleted]


def json6902(entry: Object, folder: Folder, resources: Resources) -> None:
    """An entry of `patchesJson6902`. Raises CLIError."""
    target = entry.get("target")
    if not target or not target.get("name"):
        raise CLIError("must specify the target name" if target else "must specify a target for patch")
    text, path = entry.get("patch"), entry.get("path")
    if text and path:
        raise CLIError("must specify a file path or a json patch, not both")
    if not text and not path:
        raise CLIError("must specify a json patch or the path of one")
    content = str(text).encode() if text else folder.load(str(path))
    operations = nodes.parsed(content, "unable to parse JSON patch")
    if not isinstance(operations, list):
        raise CLIError("a JSON patch is a list of operations")
    group, version, kind = (str(target.get(key) or "") for key in ("group", "version", "kind"))
    from pybernetes.kubectl.kustomize.resources import Identity

    found = resources.one(Identity(Kind(group, version, kind), str(target["name"]), str(target.get("namespace") or "")))
    from pybernetes.kubectl.commands.patch import apply_locally

    found.remember()
    found.object = apply_locally(copy(found.object), operations, "json")


def _yaml(entry: Object) -> str:
    from pybernetes.kubectl.printers import yaml_text

    return yaml_text.dumps(entry)


def _config(plugin: str, entry: Object, problem: str) -> CLIError:
    return CLIError(f"trouble configuring builtin {plugin} with config: `\n{_yaml(entry)}`: {problem}")
