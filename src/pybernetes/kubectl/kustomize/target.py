"""Goes through a kustomization and what it is made of, and returns the objects of the build.

A base is built to its end before the kustomization that uses it goes on; a component works on the objects that are
there already. Hashes, references and variables come last, once for the whole build.
"""

from __future__ import annotations

import os

from pybernetes.kubectl.errors import CLIError
from pybernetes.kubectl.kustomize import field_specs, generators, nodes, order, patches, references, transformers
from pybernetes.kubectl.kustomize import replacements as replacing
from pybernetes.kubectl.kustomize import variables as variable_values
from pybernetes.kubectl.kustomize.field_paths import text_of
from pybernetes.kubectl.kustomize.field_specs import Configuration, FieldSpec
from pybernetes.kubectl.kustomize.files import Folder, confirmed, parse_repository
from pybernetes.kubectl.kustomize.resources import Resource, Resources
from pybernetes.kubectl.kustomize.settings import Settings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    Object = dict[str, Any]

_ORIGIN = "config.kubernetes.io/origin"
_TRANSFORMATIONS = "alpha.config.kubernetes.io/transformations"


def run(path: str, restricted: bool) -> list[Object]:
    """The objects of a kustomization, in the order that it wants. Raises CLIError."""
    cleanup: list[Callable[[], None]] = []
    try:
        return _run(path, restricted, cleanup)
    finally:
        for each in cleanup:
            each()


def _run(path: str, restricted: bool, cleanup: list[Callable[[], None]]) -> list[Object]:
    repository = parse_repository(path)
    if repository is not None:
        root = confirmed(os.path.join(repository.clone(cleanup), repository.path))
        folder = Folder(root, True, (), root)
    else:
        folder = Folder(confirmed(path, path), restricted)
    build = Build(cleanup)
    settings = Settings(folder)
    build.metadata = settings.texts("buildMetadata")
    target = Target(build, folder, settings, {} if build.metadata else None)
    target.accumulate()
    for resource in target.resources.items:
        if resource.hashed:
            suffix = generators.content_hash(resource.object)
            resource.remember()
            resource.metadata["name"] = f"{resource.name}-{suffix}"
    references.fix(target.resources, target.configuration)
    variable_values.resolve(target.resources, target.variables, target.configuration.specs["varReference"])
    order.apply(target.resources, settings.fields.get("sortOptions"))
    if "managedByLabel" in build.metadata:
        spec = FieldSpec("metadata/labels", create=True)
        transformers.set_entries(target.resources, {"app.kubernetes.io/managed-by": "kustomize-(devel)"}, [spec])
    return [_finished(each, build.metadata) for each in target.resources.items]


def _finished(resource: Resource, metadata: list[str]) -> Object:
    from pybernetes.kubectl.printers import yaml_text

    annotations: dict[str, str] = {}
    if "originAnnotations" in metadata and resource.origin:
        annotations[_ORIGIN] = yaml_text.dumps(resource.origin, sort=False)
    if "transformerAnnotations" in metadata and resource.transformations:
        annotations[_TRANSFORMATIONS] = yaml_text.dumps(resource.transformations, sort=False)
    present = resource.metadata.get("annotations")
    if isinstance(present, dict):  # a JSON patch may have put numbers there
        annotations = {**{key: text_of(value) for key, value in present.items()}, **annotations}
    if annotations:
        resource.metadata["annotations"] = annotations
    return resource.object


class Build:
    """The state that all kustomizations of a build share."""

    def __init__(self, cleanup: list[Callable[[], None]]) -> None:
        self.cleanup = cleanup
        self.schema = patches.Schema()
        self.metadata: list[str] = []


class Target:
    """One kustomization. `origin` is where it lies from the first one, for annotations that tell it, or None."""

    def __init__(self, build: Build, folder: Folder, settings: Settings, origin: Object | None) -> None:
        self.build, self.folder, self.settings, self.origin = build, folder, settings, origin
        self.resources = Resources()
        self.configuration = Configuration()
        self.variables: list[Object] = []
        path = (settings.fields.get("openapi") or {}).get("path")
        if path:
            build.schema.use(folder.load(path))

    def accumulate(self) -> None:
        """Collects and transforms the objects. Raises CLIError."""
        settings = self.settings
        try:
            self._collect(settings.texts("resources"), self.resources)
        except CLIError as error:
            raise CLIError(f"accumulating resources: {error.message}") from None
        self.configuration.merge(field_specs.configured(settings.texts("configurations"), self.folder.load))
        self._definitions()
        self._generate()
        try:
            for name in settings.texts("components"):
                self._component(name)
        except CLIError as error:
            raise CLIError(f"accumulating components: {error.message}") from None
        for kind, step in self._steps():
            step()
            self._mark(kind)
        self._plug_in()
        variable_values.attach(self.resources, settings.entries("vars"), self.variables)

    # -- what comes in

    def _collect(self, names: list[str], into: Resources) -> None:
        for name in names:
            try:
                self._file(name, into)
            except CLIError as error:
                self._base(name, into, error)

    def _file(self, name: str, into: Resources) -> None:
        try:
            found = nodes.objects(self.folder.load(name))
        except ValueError as error:
            raise _Malformed(f"accumulating resources from '{name}': {_in_file(str(error), name)}") from None
        except CLIError as error:
            raise CLIError(f"accumulating resources from '{name}': {error.message}") from None
        origin = self._origin_of(name)
        read, before = Resources(), list(into.items)
        try:
            read.extend(Resource(each, origin) for each in found)
        except CLIError as error:
            raise CLIError(f"accumulating resources from '{name}': {error.message}") from None
        try:
            into.extend(read.items)
        except CLIError as error:
            into.items = before
            raise CLIError(f"merging resources from '{name}': {error.message}") from None

    def _base(self, name: str, into: Resources, problem: CLIError) -> None:
        try:
            folder = self.folder.enter(name, self.build.cleanup)
        except CLIError as error:
            if isinstance(problem, _Malformed) and problem.message.find("MalformedYAMLError") >= 0:
                raise problem from None
            raise CLIError(f"accumulation err='{problem.message}': {error.message}") from None
        try:
            base = self._target(folder, name)
            if base.settings.component:
                raise CLIError(f"expected kind != 'Component' for path '{folder.root}'")
            _recursed(base)
            try:
                into.extend(base.resources.items)
                self._take(base)
            except CLIError as error:
                raise CLIError(f"recursed merging from path '{folder.root}': {error.message}") from None
        except CLIError as error:
            raise CLIError(f"accumulation err='{problem.message}': {error.message}") from None

    def _target(self, folder: Folder, name: str) -> Target:
        try:
            settings = Settings(folder)
        except CLIError as error:
            raise CLIError(f"couldn't make target for path '{folder.root}': {error.message}") from None
        return Target(self.build, folder, settings, self._origin_of(name))

    def _take(self, other: Target) -> None:
        self.configuration.merge(other.configuration)
        for each in other.variables:
            if any(each["name"] == known["name"] for known in self.variables):
                raise CLIError(f"var '{each['name']}' already encountered")
            self.variables.append(each)

    def _component(self, name: str) -> None:
        from pybernetes.kubectl.data import go_quote

        try:
            folder = self.folder.enter(name, self.build.cleanup)
        except CLIError as error:
            raise CLIError(f"loader.New {go_quote(error.message)}") from None
        try:
            part = self._target(folder, name)
            if not part.settings.component:
                kind = part.settings.text("kind") or "Kustomization"
                raise CLIError(f"expected kind 'Component' for path '{folder.root}' but got '{kind}'")
            part.resources, part.configuration, part.variables = self.resources, self.configuration, self.variables
            _recursed(part)
        except CLIError as error:
            raise CLIError(f"accumulateDirectory: {go_quote(error.message)}") from None
        self.resources = part.resources

    def _origin_of(self, name: str) -> Object | None:
        """Where a file or folder lies, from the first kustomization or from a repository."""
        if self.origin is None:
            return None
        repository = parse_repository(name)
        if repository is not None:
            found = {"path": repository.path, "repo": repository.url, "ref": repository.ref}
            return {key: value for key, value in found.items() if value}
        return {**self.origin, "path": os.path.normpath(os.path.join(self.origin.get("path", ""), name))}

    def _definitions(self) -> None:
        from pybernetes.kubectl.kustomize.definitions import configuration

        for name in self.settings.texts("crds"):
            try:
                self.configuration.merge(configuration(self.folder.load(name), name))
            except CLIError as error:
                crds = " ".join(self.settings.texts("crds"))
                raise CLIError(f"loading CRDs [{crds}]: {error.message}") from None

    def _generate(self) -> None:
        defaults = self.settings.fields.get("generatorOptions") or {}
        for field, kind in (("configMapGenerator", "ConfigMap"), ("secretGenerator", "Secret")):
            for each in self.settings.entries(field):
                made = generators.generate(kind, each, defaults, self.folder)
                made.origin = self._configured(f"{kind}Generator")
                self._absorb(made)
        if self.settings.fields.get("helmCharts") or self.settings.fields.get("helmChartInflationGenerator"):
            raise CLIError("helm charts are not supported by this kubectl, which does not run helm")
        if self.settings.texts("generators"):
            from pybernetes.kubectl.kustomize import plugins

            try:
                for made in plugins.generated(self._plugin_configs("generators"), self.folder):
                    self._absorb(made)
            except CLIError as error:
                raise CLIError(f"loading generator plugins: failed to load generator: {error.message}") from None

    def _absorb(self, made: Resource) -> None:
        try:
            self.resources.absorb(made)
        except CLIError as error:
            raise CLIError(f"merging from generator: {error.message}") from None

    def _configured(self, plugin: str) -> Object | None:
        if self.origin is None:
            return None
        place = os.path.normpath(os.path.join(self.origin.get("path", ""), self.settings.file))
        rest = {key: value for key, value in self.origin.items() if key != "path"}
        return {**rest, "configuredIn": place, "configuredBy": {"apiVersion": "builtin", "kind": plugin}}

    # -- what changes them

    def _steps(self) -> Iterator[tuple[str, Callable[[], None]]]:
        """The transformers that the kustomization asks for, in kustomize's order."""
        settings, resources, folder, schema = self.settings, self.resources, self.folder, self.build.schema
        specs = self.configuration.specs
        names = settings.texts("patchesStrategicMerge")
        if names:
            yield "PatchStrategicMergeTransformer", lambda: patches.strategic_files(names, folder, resources, schema)
        read = [patches.Patch(each, folder, schema) for each in settings.entries("patches")]
        for patch in read:
            yield "PatchTransformer", lambda patch=patch: patch.apply(resources)  # type: ignore[misc]
        namespace = settings.text("namespace")
        if namespace:
            yield "NamespaceTransformer", lambda: transformers.set_namespace(resources, namespace, specs["namespace"])
        for field, plugin, at_end in (
            ("namePrefix", "PrefixTransformer", False),
            ("nameSuffix", "SuffixTransformer", True),
        ):
            text = settings.text(field)
            if text:
                yield (
                    plugin,
                    lambda text=text, field=field, at_end=at_end: transformers.rename(  # type: ignore[misc]
                        resources, text, specs[field], at_end
                    ),
                )
        for pairs, fields in self._labels():
            yield (
                "LabelTransformer",
                lambda pairs=pairs, fields=fields: transformers.set_entries(resources, pairs, fields),  # type: ignore[misc]
            )
        annotations = settings.fields.get("commonAnnotations")
        if annotations:
            yield (
                "AnnotationsTransformer",
                lambda: transformers.set_entries(resources, annotations, specs["commonAnnotations"]),
            )
        for entry in settings.entries("patchesJson6902"):
            yield "PatchJson6902Transformer", lambda entry=entry: patches.json6902(entry, folder, resources)  # type: ignore[misc]
        for each in settings.entries("replicas"):
            yield (
                "ReplicaCountTransformer",
                lambda each=each: transformers.set_replicas(  # type: ignore[misc]
                    resources, str(each.get("name") or ""), each.get("count") or 0, specs["replicas"]
                ),
            )
        for image in settings.entries("images"):
            yield (
                "ImageTagTransformer",
                lambda image=image: transformers.set_image(resources, image, specs["images"]),  # type: ignore[misc]
            )
        rules = replacing.rules(settings.entries("replacements"), folder)
        for rule in rules:
            yield "ReplacementTransformer", lambda rule=rule: replacing.replace(resources, rule)  # type: ignore[misc]

    def _labels(self) -> Iterator[tuple[dict[str, str], list[FieldSpec]]]:
        settings, specs = self.settings, self.configuration.specs
        for entry in settings.entries("labels"):
            fields = field_specs.merged(map(field_specs.spec_of, entry.get("fields") or ()), specs["labels"])
            if entry.get("includeSelectors"):
                fields = field_specs.merged(fields, specs["commonLabels"])
            else:
                if entry.get("includeTemplates"):
                    fields = field_specs.merged(fields, specs["templateLabels"])
                fields = field_specs.merged(fields, [FieldSpec("metadata/labels", create=True)])
            yield entry.get("pairs") or {}, fields
        if settings.entries("labels") or settings.fields.get("commonLabels"):
            yield settings.fields.get("commonLabels") or {}, specs["commonLabels"]

    def _mark(self, plugin: str, by: Object | None = None) -> None:
        """Notes the transformer at every object, for the annotations that tell it."""
        origin = by or self._configured(plugin)
        if origin is None or "transformerAnnotations" not in self.build.metadata:
            return
        for resource in self.resources.items:
            if resource.origin is None:
                resource.origin = origin
            else:
                resource.transformations.append(origin)

    # -- generators, transformers and validators from files

    def _plugin_configs(self, field: str) -> list[Resource]:
        found, names = Resources(), []
        for text in self.settings.texts(field):
            try:
                inline = nodes.objects(text.encode("utf-8", "surrogateescape"))
            except ValueError:
                inline = []
            for each in inline:
                found.append(Resource(each, self._origin_of(self.settings.file)))
            if not inline:
                names.append(text)
        self._collect(names, found)
        return found.items

    def _plug_in(self) -> None:
        from pybernetes.kubectl.kustomize import plugins

        for each in self._plugin_configs("transformers"):
            plugins.transform(each.object, self.resources, self.folder, self.build.schema)
            self._mark(each.kind.kind, plugins.origin(each))
        for each in self._plugin_configs("validators"):
            checked = self.resources.clone()
            plugins.transform(each.object, checked, self.folder, self.build.schema)
            if [one.object for one in checked.items] != [one.object for one in self.resources.items]:
                raise CLIError("validator shouldn't modify the resource map")


def _recursed(target: Target) -> None:
    try:
        target.accumulate()
    except CLIError as error:
        raise CLIError(f"recursed accumulation of path '{target.folder.root}': {error.message}") from None


class _Malformed(CLIError):
    """A file that is no YAML."""


def _in_file(problem: str, name: str) -> str:
    if problem.startswith("yaml:"):
        return f"MalformedYAMLError: {problem} in File: {name}"
    return problem
