"""Resolves a command's arguments to objects: `TYPE NAME...`, `TYPE/NAME`, selectors, files.

`Builder` collects what the user gave, checks it before any request, and `infos()` fetches or reads the objects.
"""

from __future__ import annotations

from pybernetes.kubectl.errors import CLIError, DecodeError, NoMatch, StatusError, raise_all

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from pybernetes.kubectl.context import Context
    from pybernetes.kubectl.mapper import Mapping

FILENAME_FLAGS_HELP = "File, folder or URL with the objects."


class Info:
    """One object, or one list of them where the request was for a list."""

    __slots__ = ("mapping", "name", "namespace", "object", "source")

    def __init__(self, mapping: Mapping, namespace: str, name: str, obj: dict[str, Any], source: str = "") -> None:
        self.mapping = mapping
        self.namespace = namespace if mapping.namespaced else ""
        self.name = name
        self.object = obj
        self.source = source

    def path(self, subresource: str = "") -> str:
        """The URL path of the object."""
        return self.mapping.path(self.namespace, self.name, subresource)

    def collection(self) -> str:
        """The URL path of the resource in the object's namespace."""
        return self.mapping.path(self.namespace)

    def label(self) -> str:
        """`pod/web`, `deployment.apps/web`."""
        return resource_label(self.mapping, self.name)

    def refresh(self, obj: dict[str, Any]) -> None:
        """Takes the server's object."""
        self.object = obj
        metadata = obj.get("metadata") or {}
        self.name = metadata.get("name") or self.name
        if self.mapping.namespaced:
            self.namespace = metadata.get("namespace") or self.namespace


def resource_label(mapping: Mapping, name: str) -> str:
    """How messages and `-o name` call an object."""
    singular = mapping.kind.lower()
    return f"{singular}.{mapping.group}/{name}" if mapping.group else f"{singular}/{name}"


class Query:
    """A request for one object (`name`) or a list (no name) of a resource."""

    __slots__ = ("mapping", "name", "namespace")

    def __init__(self, mapping: Mapping, namespace: str, name: str = "") -> None:
        self.mapping = mapping
        self.namespace = namespace if mapping.namespaced else ""
        self.name = name

    def path(self, subresource: str = "") -> str:
        """The URL path."""
        return self.mapping.path(self.namespace, self.name, subresource)


class Builder:
    """Collects arguments and files, then finds the objects. `single` is True when exactly one object was asked for."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.namespace = context.namespace()
        self.explicit = context.explicit_namespace()
        self.all_namespaces = False
        self.may_take_everything = False
        """Whether the word `everything` stands for all resources: for commands that only read."""
        self.everything = False
        self.filenames: list[str] = []
        self.recursive = False
        self.kustomize = ""
        self.label_selector = ""
        self.field_selector = ""
        self.select_all = False
        self.chunk = 500
        self.subresource = ""
        self.latest = True
        """Files only name objects: fetch them. False: the objects of the files themselves are wanted."""
        self.fetch = True
        """False: objects that the arguments name are not read, because the command needs only their names."""
        self.validates = False
        """Whether documents of files are checked by --validate: for commands that create or change what they hold."""
        self.local = False
        self.allow_empty_names = True
        """Whether `TYPE` without a name or selector means all of them."""
        self.single = False
        self.ignore_not_found = False
        self.errors: list[CLIError] = []
        self._types: list[str] = []
        self._names: list[str] = []
        self._pairs: list[tuple[str, str]] = []

    def files(self, filenames: list[str], recursive: bool = False, kustomize: str = "") -> Builder:
        """Takes `-f`, `-R` and `-k`."""
        self.filenames, self.recursive, self.kustomize = filenames, recursive, kustomize
        if filenames and kustomize:
            raise CLIError("only one of -f or -k can be specified")
        return self

    def selectors(self, labels: str = "", fields: str = "", everything: bool = False) -> Builder:
        """Takes `-l`, `--field-selector` and `--all`."""
        self.label_selector, self.field_selector, self.select_all = labels.strip(), fields, everything
        return self

    def arguments(self, arguments: list[str], allow_empty: bool = True) -> Builder:
        """Takes `TYPE NAME...`, `TYPE,TYPE`, `TYPE/NAME...`. Raises CLIError for a mixture."""
        self.allow_empty_names = allow_empty
        words = _trim(arguments)
        if len(words) > 1 and any("/" in word for word in words):
            for word in words:
                if "/" not in word:
                    raise CLIError(
                        "there is no need to specify a resource type as a separate argument when passing arguments in"
                        " resource/name form (e.g. 'kubectl get resource/<resource_name>'"
                        " instead of 'kubectl get resource resource/<resource_name>'"
                    )
        if words and "/" in words[0]:
            self._pairs = [_pair(word) for word in words]
            return self
        if len(words) == 1:
            self._types = _types(words[0])
        elif words:
            self._types = _types(words[0])
            self._names = words[1:]
        if words and any("/" in word for word in words):
            raise CLIError("when passing arguments in resource/name form, all arguments must include the resource")
        return self

    def given(self) -> bool:
        """Whether the user named anything."""
        return bool(self.filenames or self.kustomize or self._types or self._pairs)

    # -- what is asked for

    def queries(self) -> list[Query]:
        """The requests that the arguments mean; files are not among them. Raises CLIError."""
        namespace = "" if self.all_namespaces else self.namespace
        mapper = self.context.mapper
        found: list[Query] = []
        if self._pairs:
            if self.label_selector or self.field_selector or self.select_all:
                self._refuse_mixture()
            if self.all_namespaces:
                raise CLIError("a resource cannot be retrieved by name across all namespaces")
            found = [Query(mapper.resource(kind), namespace, name) for kind, name in self._pairs]
            self.single = len(found) == 1
            return found
        if self._names:
            if self.label_selector or self.field_selector or self.select_all:
                self._refuse_mixture()
            mappings = self._mappings()
            if self.all_namespaces and any(mapping.namespaced for mapping in mappings):
                raise CLIError("a resource cannot be retrieved by name across all namespaces")
            self.single = len(self._names) == 1 and len(mappings) == 1
            return [Query(mapping, namespace, name) for mapping in mappings for name in self._names]
        if self._types:
            mappings = self._mappings()
            chosen = self.label_selector or self.field_selector or self.select_all or self.allow_empty_names
            if not chosen:
                raise CLIError("resource(s) were provided, but no name was specified")
            if self.field_selector and len(mappings) > 1:
                raise CLIError("field selectors cannot be used with multiple types")
            found = [Query(mapping, namespace) for mapping in mappings]
        return found

    def _refuse_mixture(self) -> None:
        raise CLIError("name cannot be provided when a selector is specified")

    def _mappings(self) -> list[Mapping]:
        mapper = self.context.mapper
        found: list[Mapping] = []
        seen = set()
        for word in self._types:
            every = mapper.category(word) if word in _categories(mapper) else []
            if word == "everything" and self.may_take_everything and not every:
                self.everything = True
                every = [each for each in mapper.everything() if each.namespaced or self.all_namespaces]
            for mapping in every or [mapper.resource(word)]:
                if mapping.api_version + mapping.resource not in seen:
                    seen.add(mapping.api_version + mapping.resource)
                    found.append(mapping)
        return found

    # -- objects

    def infos(self) -> list[Info]:
        """The objects. Errors of single objects are collected in `errors` (or raised where nothing was found)."""
        return list(self.visit())

    def checked(self) -> list[Info]:
        """The objects; the first error is raised."""
        found = self.infos()
        raise_all(self.errors)
        return found

    def visit(self) -> Iterator[Info]:
        """The objects one after another."""
        if self.filenames or self.kustomize:
            if self._types or self._pairs:
                raise CLIError(
                    "when paths, URLs, or stdin is provided as input, you may not specify resource arguments as well"
                )
            if self.label_selector and not self.local and self.latest is None:
                raise CLIError("a selector may not be specified when path, URL, or stdin is provided as input")
            yield from self._from_files()
            return
        if not (self._types or self._pairs):
            raise CLIError(
                "You must provide one or more resources by argument or filename.\n"
                "Example resource specifications include:\n   '-f rsrc.yaml'\n   '--filename=rsrc.json'\n"
                "   '<resource> <name>'\n   '<resource>'"
            )
        for query in self.queries():
            try:
                if query.name:
                    if not self.fetch:
                        metadata = {"name": query.name, **({"namespace": query.namespace} if query.namespace else {})}
                        yield Info(query.mapping, query.namespace, query.name, {"metadata": metadata})
                        continue
                    obj = self.context.client.get(query.path(self.subresource))
                    yield Info(query.mapping, query.namespace, query.name, obj)
                else:
                    yield from self._listed(query)
            except StatusError as error:
                if self.ignore_not_found and error.reason == "NotFound":
                    continue
                self.errors.append(error)

    def _listed(self, query: Query) -> Iterator[Info]:
        parameters = {"labelSelector": self.label_selector, "fieldSelector": self.field_selector}
        try:
            answer = self.context.client.list(query.path(), parameters, self.chunk)
        except StatusError as error:
            raise list_error(error, query.mapping, self) from None
        for item in answer.get("items") or ():
            item.setdefault("apiVersion", query.mapping.api_version)
            item.setdefault("kind", query.mapping.kind)
            metadata = item.get("metadata") or {}
            yield Info(query.mapping, metadata.get("namespace", ""), metadata.get("name", ""), item)

    def _from_files(self) -> Iterator[Info]:
        from pybernetes.kubectl import manifests

        found = 0
        for source, raw in manifests.sources(self.filenames, self.recursive, self.kustomize):
            for obj in self._objects(source, raw):
                if self.label_selector and not self._selected(obj):
                    continue
                try:
                    info = self._info(obj, source)
                    found += 1
                    if self.latest:
                        info.refresh(self.context.client.get(info.path(self.subresource)))
                except (StatusError, NoMatch, DecodeError) as error:
                    if self.ignore_not_found and isinstance(error, StatusError) and error.reason == "NotFound":
                        continue
                    self.errors.append(error)
                    continue
                yield info
        self.single = found == 1

    def _objects(self, source: str, raw: bytes) -> Iterator[dict[str, Any]]:
        """The objects of one source; a document that cannot be read ends it, and the other sources go on."""
        from pybernetes.kubectl import manifests

        try:
            for document in manifests.objects(source or self.kustomize, raw):
                yield from flatten(document)
        except DecodeError as error:
            self.errors.append(error)

    def _selected(self, obj: dict[str, Any]) -> bool:
        from pybernetes.kubectl.selectors import matches

        return matches(self.label_selector, (obj.get("metadata") or {}).get("labels") or {})

    def _info(self, obj: dict[str, Any], source: str) -> Info:
        api_version, kind = obj.get("apiVersion"), obj.get("kind")
        self._check_kind(obj, source)
        _check_texts(obj, source)
        metadata = obj.get("metadata")
        if not isinstance(metadata, dict):
            metadata = {}
        name = metadata.get("name") or ""
        if self.local:
            return Info(
                _local_mapping(str(api_version), str(kind)),
                metadata.get("namespace") or self.namespace,
                name,
                obj,
                source,
            )
        try:
            mapping = self.context.mapper.kind(str(api_version), str(kind))
        except NoMatch as error:
            raise NoMatch(
                f'resource mapping not found for name: "{name}" namespace: "{metadata.get("namespace") or ""}" from'
                f' "{source}": {error.message}\nensure CRDs are installed first'
            ) from None
        namespace = ""
        if mapping.namespaced:
            namespace = metadata.get("namespace") or ""
            if self.explicit and namespace and namespace != self.namespace:
                raise CLIError(
                    "the namespace from the provided object"
                    f' "{namespace}" does not match the namespace "{self.namespace}". You must pass'
                    f" '--namespace={namespace}' to perform this operation."
                )
            namespace = namespace or self.namespace
        return Info(mapping, namespace, name, obj, source)

    def _check_kind(self, obj: dict[str, Any], source: str) -> None:
        """Refuses an object without apiVersion or kind: as data that is not valid, where the command validates."""
        missing = [f"{key} not set" for key in ("apiVersion", "kind") if not obj.get(key)]
        if missing and self.validates and self.context.flags.text("validate") not in ("ignore", "false"):
            problem = missing[0] if len(missing) == 1 else f"[{', '.join(missing)}]"
            raise DecodeError(
                f'error validating "{source}": error validating data: {problem}; if you choose to'
                " ignore these errors, turn validation off with --validate=false"
            )
        if not obj.get("kind"):
            raise DecodeError(f"unable to decode \"{source}\": Object 'Kind' is missing in '{_compact(obj)}'")


def _check_texts(obj: dict[str, Any], source: str) -> None:
    """Refuses labels and annotations that are not text, such as a bare `yes` in YAML."""
    metadata = obj.get("metadata")
    if metadata is not None and not isinstance(metadata, dict):
        what = f"{_json_type(metadata)} into Go struct field metadataOnlyObject.metadata of type v1.ObjectMeta"
        raise DecodeError(f'unable to decode "{source}": json: cannot unmarshal {what}')
    if metadata is None:
        return
    for field in ("name", "namespace", "generateName"):
        if metadata.get(field) is not None and not isinstance(metadata[field], str):
            what = f"{_json_type(metadata[field])} into Go struct field ObjectMeta.metadata.{field} of type string"
            raise DecodeError(f'unable to decode "{source}": json: cannot unmarshal {what}')
    for field in ("annotations", "labels"):
        values = metadata.get(field)
        if values is None:
            continue
        if not isinstance(values, dict):
            what = f"{_json_type(values)} into Go struct field ObjectMeta.metadata.{field} of type map[string]string"
            raise DecodeError(f'unable to decode "{source}": json: cannot unmarshal {what}')
        for value in values.values():
            if not isinstance(value, str) and value is not None:
                what = f"{_json_type(value)} into Go struct field ObjectMeta.metadata.{field} of type string"
                raise DecodeError(f'unable to decode "{source}": json: cannot unmarshal {what}')


def _json_type(value: Any) -> str:
    return {bool: "bool", int: "number", float: "number", str: "string", list: "array"}.get(type(value), "object")


def list_error(error: StatusError, mapping: Mapping, builder: Builder) -> StatusError:
    """A refused list says which selectors it was for."""
    if error.reason not in ("BadRequest", "NotFound"):
        return error
    from pybernetes.kubectl.data import go_quote

    subject = f'"{mapping.group}/{mapping.version}, Resource={mapping.resource}"'
    if not builder.label_selector and not builder.field_selector:
        return StatusError({**error.status, "message": f"Unable to list {subject}: {error.message}"})
    what = f"Unable to find {subject} that match label selector"
    selectors = f"{go_quote(builder.label_selector)}, field selector {go_quote(builder.field_selector)}"
    return StatusError({**error.status, "message": f"{what} {selectors}: {error.message}"})


def _compact(obj: dict[str, Any]) -> str:
    from pybernetes.kubectl.data import dumps

    return dumps(obj)


def _local_mapping(api_version: str, kind: str) -> Mapping:
    """A mapping made up from a kind, for commands that may not ask the server."""
    from pybernetes.kubectl.mapper import Mapping

    group, _, version = api_version.rpartition("/")
    lower = kind.lower()
    plural = lower + "es" if lower.endswith("s") else lower[:-1] + "ies" if lower.endswith("y") else lower + "s"
    return Mapping(group, version, {"name": plural, "kind": kind, "namespaced": True})


def flatten(document: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The items of a List, each with its kind; another object as it is."""
    items = document.get("items")
    kind = str(document.get("kind") or "")
    if not (kind.endswith("List") and isinstance(items, list)):
        yield document
        return
    for item in items:
        if isinstance(item, dict):
            if kind != "List":
                item.setdefault("apiVersion", document.get("apiVersion"))
                item.setdefault("kind", kind.removesuffix("List"))
            yield from flatten(item)


def _categories(mapper: Any) -> set[str]:
    return {category for mapping in mapper.all() for category in mapping.categories}


def _trim(words: list[str]) -> list[str]:
    return [word for word in words if word]


def _types(word: str) -> list[str]:
    found = [part.strip() for part in word.split(",")]
    if not all(found):
        raise CLIError('the server doesn\'t have a resource type ""')
    return found


def _pair(word: str) -> tuple[str, str]:
    parts = word.split("/")
    if len(parts) != 2:
        raise CLIError("arguments in resource/name form may not have more than one slash")
    kind, name = parts
    if not kind or not name or "," in kind:
        raise CLIError("arguments in resource/name form must have a single resource and name")
    return kind, name
