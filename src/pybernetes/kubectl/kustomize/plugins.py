"""The built-in generators and transformers, configured by files of `generators`, `transformers` and `validators`."""

from __future__ import annotations

from pybernetes.kubectl.errors import CLIError
from pybernetes.kubectl.kustomize import generators, patches, transformers
from pybernetes.kubectl.kustomize.field_specs import spec_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from pybernetes.kubectl.kustomize.field_specs import FieldSpec
    from pybernetes.kubectl.kustomize.files import Folder
    from pybernetes.kubectl.kustomize.patches import Schema
    from pybernetes.kubectl.kustomize.resources import Resource, Resources

    Object = dict[str, Any]


def generated(configs: list[Resource], folder: Folder) -> Iterator[Resource]:
    """The objects of generators. Raises CLIError for generators that are programs."""
    for each in configs:
        config = each.object
        kind = str(config.get("kind"))
        if config.get("apiVersion") != "builtin":
            raise _external(kind)
        if kind not in ("ConfigMapGenerator", "SecretGenerator"):
            raise CLIError(f"unable to load builtin {each.kind}")
        settings = {
            **config,
            "name": config.get("name") or each.name,
            "namespace": config.get("namespace") or each.namespace,
        }
        if config.get("env"):
            settings["envs"] = [*(config.get("envs") or ()), config["env"]]
        made = generators.generate(kind.removesuffix("Generator"), settings, {}, folder)
        made.origin = origin(each)
        yield made


def origin(config: Resource) -> Object | None:
    """Where the configuration of a generator or transformer lies, for annotations that tell it."""
    if config.origin is None:
        return None
    rest = {key: value for key, value in config.origin.items() if key != "path"}
    by = {"apiVersion": config.object.get("apiVersion"), "kind": config.kind.kind, "name": config.name}
    by |= {"namespace": config.namespace} if config.namespace else {}
    return {**rest, "configuredIn": config.origin.get("path", ""), "configuredBy": by}


def _external(kind: str) -> CLIError:
    return CLIError(f"external plugins disabled; unable to load external plugin '{kind}'")


def transform(config: Object, resources: Resources, folder: Folder, schema: Schema) -> None:
    """Runs a transformer. Raises CLIError for transformers that are programs."""
    kind = str(config.get("kind"))
    if config.get("apiVersion") != "builtin":
        raise _external(kind)
    step = _STEPS.get(kind)
    if step is None:
        raise CLIError(f"unable to load builtin {kind}.[noVer].[noGrp]")
    step(config, resources, folder, schema)


def _specs(config: Object) -> list[FieldSpec]:
    from pybernetes.kubectl.kustomize.settings import CONFIGURATION, decoded

    return [spec_of(each) for each in decoded(config.get("fieldSpecs"), CONFIGURATION["images"], "fieldSpecs") or ()]


def _namespace(config: Object, resources: Resources, folder: Folder, schema: Schema) -> None:
    namespace = str((config.get("metadata") or {}).get("namespace") or "")
    if namespace:
        subjects = str(config.get("setRoleBindingSubjects") or "")
        transformers.set_namespace(resources, namespace, _specs(config), subjects, bool(config.get("unsetOnly")))


def _prefix(config: Object, resources: Resources, folder: Folder, schema: Schema) -> None:
    transformers.rename(resources, str(config.get("prefix") or ""), _needed(config), at_end=False)
    transformers.rename(resources, str(config.get("suffix") or ""), _needed(config), at_end=True)


def _needed(config: Object) -> list[FieldSpec]:
    if config.get("fieldSpecs") is None:
        raise CLIError("fieldSpecs is not expected to be nil")
    return _specs(config)


def _only_prefix(config: Object, resources: Resources, folder: Folder, schema: Schema) -> None:
    transformers.rename(resources, str(config.get("prefix") or ""), _needed(config), at_end=False)


def _only_suffix(config: Object, resources: Resources, folder: Folder, schema: Schema) -> None:
    transformers.rename(resources, str(config.get("suffix") or ""), _needed(config), at_end=True)


def _labels(config: Object, resources: Resources, folder: Folder, schema: Schema) -> None:
    transformers.set_entries(resources, _texts(config.get("labels")), _specs(config))


def _annotations(config: Object, resources: Resources, folder: Folder, schema: Schema) -> None:
    transformers.set_entries(resources, _texts(config.get("annotations")), _specs(config))


def _texts(value: Any) -> dict[str, str]:
    from pybernetes.kubectl.kustomize.field_paths import text_of

    return {key: text_of(each) for key, each in (value or {}).items()}


def _images(config: Object, resources: Resources, folder: Folder, schema: Schema) -> None:
    transformers.set_image(resources, config.get("imageTag") or {}, _specs(config))


def _replicas(config: Object, resources: Resources, folder: Folder, schema: Schema) -> None:
    replica = config.get("replica") or {}
    transformers.set_replicas(resources, str(replica.get("name") or ""), int(replica.get("count") or 0), _specs(config))


def _patch(config: Object, resources: Resources, folder: Folder, schema: Schema) -> None:
    patches.Patch(config, folder, schema).apply(resources)


def _strategic(config: Object, resources: Resources, folder: Folder, schema: Schema) -> None:
    names = list(config.get("paths") or ())
    if config.get("patches"):
        names.append(str(config["patches"]))
    patches.strategic_files(names, folder, resources, schema)


def _json(config: Object, resources: Resources, folder: Folder, schema: Schema) -> None:
    entry = {"target": config.get("target"), "path": config.get("path"), "patch": config.get("jsonOp")}
    patches.json6902(entry, folder, resources)


def _replacements(config: Object, resources: Resources, folder: Folder, schema: Schema) -> None:
    from pybernetes.kubectl.kustomize import replacements

    for rule in replacements.rules(config.get("replacements") or [], folder):
        replacements.replace(resources, rule)


def _hashes(config: Object, resources: Resources, folder: Folder, schema: Schema) -> None:
    for resource in resources.items:
        if resource.hashed:
            suffix = generators.content_hash(resource.object)
            resource.remember()
            resource.metadata["name"] = f"{resource.name}-{suffix}"


def _order(config: Object, resources: Resources, folder: Folder, schema: Schema) -> None:
    from pybernetes.kubectl.kustomize import order

    order.apply(resources, config.get("sortOptions") or {"order": "fifo"})


_STEPS: dict[str, Callable[[Object, Resources, Folder, Schema], None]] = {
    "AnnotationsTransformer": _annotations,
    "HashTransformer": _hashes,
    "ImageTagTransformer": _images,
    "LabelTransformer": _labels,
    "NamespaceTransformer": _namespace,
    "PatchJson6902Transformer": _json,
    "PatchStrategicMergeTransformer": _strategic,
    "PatchTransformer": _patch,
    "PrefixSuffixTransformer": _prefix,
    "PrefixTransformer": _only_prefix,
    "ReplacementTransformer": _replacements,
    "ReplicaCountTransformer": _replicas,
    "SortOrderTransformer": _order,
    "SuffixTransformer": _only_suffix,
}
