"""Builds kustomizations: resources, components, generators, transformers and patches, to one stream of YAML.

Supported: resources and bases, components, namespace, namePrefix, nameSuffix, labels, commonLabels, commonAnnotations,
images, replicas, configMapGenerator, secretGenerator, generatorOptions, patches, patchesStrategicMerge,
patchesJson6902, replacements. Another field is an error, not something that is silently left out.
"""

from __future__ import annotations

import os
import sys

from pybernetes.kubectl.data import copy, dig
from pybernetes.kubectl.errors import CLIError
from pybernetes.kubectl.printers import yaml_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeAlias

    Object: TypeAlias = dict[str, Any]

_NAMES = ("kustomization.yaml", "kustomization.yml", "Kustomization")
_KNOWN = {
    "apiVersion", "kind", "metadata", "resources", "bases", "components", "namespace", "namePrefix", "nameSuffix",
    "labels",
    "commonLabels", "commonAnnotations", "images", "replicas", "configMapGenerator", "secretGenerator",
    "generatorOptions", "patches", "patchesStrategicMerge", "patchesJson6902", "replacements", "openapi",
    "sortOptions", "buildMetadata",
}  # fmt: skip
_CLUSTER = frozenset(
    (
        "Namespace", "Node", "PersistentVolume", "ClusterRole", "ClusterRoleBinding", "CustomResourceDefinition",
        "StorageClass", "PriorityClass", "IngressClass", "APIService", "ValidatingWebhookConfiguration",
        "MutatingWebhookConfiguration", "RuntimeClass", "CSIDriver",
    )
)  # fmt: skip
_ORDER = (
    "Namespace", "ResourceQuota", "StorageClass", "CustomResourceDefinition", "ServiceAccount", "PodSecurityPolicy",
    "Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding", "ConfigMap", "Secret", "Endpoints", "Service",
    "LimitRange", "PriorityClass", "PersistentVolume", "PersistentVolumeClaim", "Deployment", "StatefulSet", "CronJob",
    "PodDisruptionBudget",
)  # fmt: skip
_LAST = ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")


def build(folder: str, restricted: bool = True) -> bytes:
    """The YAML of a kustomization; `restricted`: it may read no files outside its folder. Raises CLIError."""
    objects = Kustomization(folder, restricted).objects()
    return "---\n".join(yaml_text.dumps(obj) for obj in _sorted(objects)).encode()


def _sorted(objects: list[Object]) -> list[Object]:
    def rank(obj: Object) -> tuple[Any, ...]:
        kind = str(obj.get("kind"))
        place = _ORDER.index(kind) if kind in _ORDER else 1000 if kind in _LAST else 500
        group, _, version = str(obj.get("apiVersion")).rpartition("/")
        metadata = obj.get("metadata") or {}
        tie = (group, version, kind, metadata.get("namespace", ""), metadata.get("name", ""))
        return (place, *tie)

    return sorted(objects, key=rank)


class Kustomization:
    """One folder with a kustomization file."""

    def __init__(self, folder: str, restricted: bool = True) -> None:
        self.folder = folder
        self._restricted = restricted
        if not os.path.isdir(folder):
            path = os.path.abspath(folder)
            problem = f"evalsymlink failure on '{folder}' : lstat {path}: no such file or directory"
            if os.path.exists(folder):
                problem = f"'{folder}' is not a directory"
            raise CLIError(f"must build at directory: not a valid directory: {problem}")
        found = [name for name in _NAMES if os.path.exists(os.path.join(folder, name))]
        if not found:
            names = "'kustomization.yaml', 'kustomization.yml' or 'Kustomization'"
            raise CLIError(f"unable to find one of {names} in directory '{os.path.abspath(folder)}'")
        content = self._documents(found[0])
        self.spec: Object = content[0] if content else {}
        if self.spec.get("commonLabels"):
            sys.stderr.write(
                "# Warning: 'commonLabels' is deprecated. Please use 'labels' instead."
                " Run 'kustomize edit fix' to update your Kustomization automatically.\n"
            )
        known = {name.lower(): name for name in _KNOWN}  # upstream reads the names of fields in any case
        self.spec = {known.get(str(key).lower(), key): value for key, value in self.spec.items()}
        unknown = sorted(set(self.spec) - _KNOWN)
        if unknown:
            raise CLIError(f'invalid Kustomization: json: unknown field "{unknown[0]}"')

    def _read(self, name: str) -> bytes:
        path = os.path.join(self.folder, name)
        root, real = os.path.realpath(self.folder), os.path.realpath(path)
        if self._restricted and not real.startswith(root.rstrip(os.sep) + os.sep):
            raise CLIError(f"accumulating resources: security; file '{real}' is not in or below '{root}'")
        try:
            with open(path, "rb") as file:
                return file.read()
        except OSError as error:
            raise CLIError(f"accumulating resources: open {path}: {(error.strerror or '').lower()}") from None

    def _documents(self, name: str) -> list[Any]:
        from pybernetes.kubectl.manifests import documents

        try:
            return list(documents(self._read(name)))
        except ValueError as error:
            raise CLIError(f"{os.path.join(self.folder, name)}: {error}") from None

    # -- accumulating

    def objects(self, inherited: list[Object] | None = None) -> list[Object]:
        """The objects after this kustomization's transformations; a component starts from those it is given."""
        from pybernetes.kubectl.builder import flatten

        spec = self.spec
        found: list[Object] = list(inherited or ())
        for name in [*(spec.get("resources") or ()), *(spec.get("bases") or ())]:
            path = os.path.join(self.folder, name)
            if os.path.isdir(path):
                found += Kustomization(path, self._restricted).objects()
            elif name.startswith(("http://", "https://")):
                from pybernetes.kubectl.manifests import documents, fetch

                found += [each for document in documents(fetch(name)) for each in flatten(document)]
            else:
                found += [each for document in self._documents(name) for each in flatten(document)]
        for name in spec.get("components") or ():
            found = Kustomization(os.path.join(self.folder, name), self._restricted).objects(found)
        generated = self._generate()
        found = _merge_generated(found, generated)
        self._patch(found)
        self._transform(found)
        self._hash(found)
        self._replace(found)
        for obj in found:
            _stringify(obj)
        return [obj for obj in found if not obj.get("$deleted")]

    def _generate(self) -> list[Object]:
        from pybernetes.kubectl.flags import Flags
        from pybernetes.kubectl.key_values import entries

        result = []
        defaults = self.spec.get("generatorOptions") or {}
        for field, kind in (("configMapGenerator", "ConfigMap"), ("secretGenerator", "Secret")):
            for each in self.spec.get(field) or ():
                flags = Flags(_GENERATOR_FLAGS)
                flags.put("from-literal", each.get("literals") or [])
                files = []
                for source in each.get("files") or ():
                    key, equals, path = source.partition("=")
                    files.append(
                        f"{key}={os.path.join(self.folder, path)}" if equals else os.path.join(self.folder, key)
                    )
                flags.put("from-file", files)
                values = dict(entries(flags))
                for name in [*(each.get("envs") or ()), *([each["env"]] if each.get("env") else ())]:
                    flags = Flags(_GENERATOR_FLAGS)
                    flags.put("from-env-file", [os.path.join(self.folder, name)])
                    values.update(entries(flags))
                result.append(_generated(kind, each, values, defaults))
        return result

    # -- changing

    def _patch(self, found: list[Object]) -> None:
        for each in self.spec.get("patchesStrategicMerge") or ():
            content = (
                self._documents(each)
                if "\n" not in each and os.path.exists(os.path.join(self.folder, each))
                else _inline(each)
            )
            for patch in content:
                _strategic(found, patch, None)
        for each in [*(self.spec.get("patches") or ()), *(self.spec.get("patchesJson6902") or ())]:
            content = _inline(each["patch"]) if each.get("patch") else self._documents(each["path"])
            for patch in content:
                if isinstance(patch, list):
                    _json6902(found, patch, each.get("target") or {})
                else:
                    _strategic(found, patch, each.get("target"))

    def _transform(self, found: list[Object]) -> None:
        spec = self.spec
        renamed: dict[tuple[str, str], str] = {}
        for obj in found:
            metadata = obj.setdefault("metadata", {})
            kind = str(obj.get("kind"))
            if spec.get("namespace") and kind not in _CLUSTER:
                metadata["namespace"] = spec["namespace"]
            if spec.get("namespace") and kind == "Namespace":
                metadata["name"] = spec["namespace"]
            if (spec.get("namePrefix") or spec.get("nameSuffix")) and kind not in (
                "Namespace",
                "CustomResourceDefinition",
            ):
                old = metadata["name"]
                metadata["name"] = f"{spec.get('namePrefix') or ''}{old}{spec.get('nameSuffix') or ''}"
                renamed[kind, old] = metadata["name"]
            for labels, selectors, templates in self._labels():
                _label(obj, labels, selectors, templates)
            if spec.get("commonAnnotations"):
                _annotate(obj, spec["commonAnnotations"])
            for image in spec.get("images") or ():
                _walk(obj, lambda each, image=image: _image(each, image))  # type: ignore[misc]
            scales = "replicas" in (obj.get("spec") or {}) or kind in ("Deployment", "StatefulSet", "ReplicaSet")
            for each in spec.get("replicas") or ():
                if scales and each["name"] in (metadata["name"], _original(metadata["name"], spec)):
                    obj.setdefault("spec", {})["replicas"] = each["count"]
        if spec.get("namespace"):
            for obj in found:
                for subject in obj.get("subjects") or ():
                    if subject.get("kind") == "ServiceAccount" and subject.get("name") == "default":
                        subject["namespace"] = spec["namespace"]
        _rename(found, renamed)

    def _labels(self) -> list[tuple[dict[str, str], bool, bool]]:
        result: list[tuple[dict[str, str], bool, bool]] = []
        if self.spec.get("commonLabels"):
            result.append((self.spec["commonLabels"], True, True))
        for each in self.spec.get("labels") or ():
            selectors = bool(each.get("includeSelectors"))
            result.append((each.get("pairs") or {}, selectors, selectors or bool(each.get("includeTemplates"))))
        return result

    def _hash(self, found: list[Object]) -> None:
        from pybernetes.kubectl.key_values import append_hash

        renamed = {}
        for obj in found:
            if obj.pop("$hash", False):
                old = obj["metadata"]["name"]
                append_hash(obj, name="")  # kustomize leaves the name out of the hash
                renamed[str(obj["kind"]), old] = obj["metadata"]["name"]
        _rename(found, renamed)

    def _replace(self, found: list[Object]) -> None:
        for each in self.spec.get("replacements") or ():
            rules = self._documents(each["path"]) if each.get("path") else [each]
            for rule in rules:
                for one in rule if isinstance(rule, list) else [rule]:
                    _replacement(found, one)


def _stringify(obj: Object) -> None:
    """Values of labels and annotations are strings, whatever YAML made of them."""
    metadata = obj.get("metadata") or {}
    for field in ("labels", "annotations"):
        for key, value in (metadata.get(field) or {}).items():
            if not isinstance(value, str):
                shown = ("true" if value else "false") if isinstance(value, bool) else str(value)
                metadata[field][key] = shown


def _inline(text: str) -> list[Any]:
    from pybernetes.kubectl.manifests import documents, parse_yaml

    try:
        return [parse_yaml(text.encode())] if text.lstrip().startswith(("-", "[")) else list(documents(text.encode()))
    except ValueError as error:
        raise CLIError(f"unable to parse patch: {error}") from None


def _generated(kind: str, spec: Object, values: dict[str, bytes], defaults: Object) -> Object:
    from base64 import b64encode

    options = {**defaults, **(spec.get("options") or {})}
    obj: Object = {"apiVersion": "v1", "kind": kind, "metadata": {"name": spec["name"]}}
    if spec.get("namespace"):
        obj["metadata"]["namespace"] = spec["namespace"]
    for key in ("labels", "annotations"):
        merged = {**(defaults.get(key) or {}), **((spec.get("options") or {}).get(key) or {})}
        if merged:
            obj["metadata"][key] = merged
    if kind == "Secret":
        obj["type"] = spec.get("type") or "Opaque"
        obj["data"] = {key: b64encode(value).decode() for key, value in values.items()}
    else:
        for key, value in values.items():
            try:
                obj.setdefault("data", {})[key] = value.decode()
            except UnicodeDecodeError:
                obj.setdefault("binaryData", {})[key] = b64encode(value).decode()
    if options.get("immutable"):
        obj["immutable"] = True
    obj["$hash"] = not options.get("disableNameSuffixHash")
    obj["$behavior"] = spec.get("behavior") or "create"
    return obj


def _merge_generated(found: list[Object], generated: list[Object]) -> list[Object]:
    for obj in generated:
        behavior = obj.pop("$behavior")
        same = next(
            (e for e in found if e.get("kind") == obj["kind"] and e["metadata"]["name"] == obj["metadata"]["name"]),
            None,
        )
        if behavior == "create" or same is None:
            found.append(obj)
        elif behavior == "replace":
            found[found.index(same)] = obj
        else:
            same["data"] = {**(same.get("data") or {}), **(obj.get("data") or {})}
            same["$hash"] = obj["$hash"]
    return found


def _matches(obj: Object, target: Object) -> bool:
    import re

    group, _, version = str(obj.get("apiVersion")).rpartition("/")
    metadata = obj.get("metadata") or {}
    facts = {
        "group": group,
        "version": version,
        "kind": str(obj.get("kind")),
        "name": str(metadata.get("name", "")),
        "namespace": str(metadata.get("namespace", "")),
    }
    for key, value in facts.items():
        if target.get(key) and not re.fullmatch(str(target[key]), value):
            return False
    for key in ("labelSelector", "annotationSelector"):
        if target.get(key):
            from pybernetes.kubectl.selectors import matches

            if not matches(target[key], metadata.get("labels" if key == "labelSelector" else "annotations") or {}):
                return False
    return True


def _strategic(found: list[Object], patch: Object, target: Object | None) -> None:
    from pybernetes.kubectl.strategic import merge, type_of

    if target is None:
        metadata = patch.get("metadata") or {}
        group, _, version = str(patch.get("apiVersion")).rpartition("/")
        target = {"group": group, "version": version, "kind": patch.get("kind"), "name": metadata.get("name")}
    hits = [obj for obj in found if _matches(obj, target)]
    if not hits:
        name = (patch.get("metadata") or {}).get("name", "")
        what = f"{patch.get('kind')}.{patch.get('apiVersion')}/{name}"
        raise CLIError(f'no resource matches strategic merge patch "{what}": no matches for Id')
    for obj in hits:
        if patch.get("$patch") == "delete":
            obj["$deleted"] = True
            continue
        body = {key: value for key, value in patch.items() if key not in ("apiVersion", "kind")}
        metadata = {
            key: value for key, value in (body.get("metadata") or {}).items() if key not in ("name", "namespace")
        }
        if metadata:
            body["metadata"] = metadata
        else:
            body.pop("metadata", None)
        merged = merge(obj, body, type_of(str(obj.get("apiVersion")), str(obj.get("kind"))))
        obj.clear()
        obj.update(merged)


def _json6902(found: list[Object], patch: list[Any], target: Object) -> None:
    from pybernetes.kubectl.commands.patch import apply_locally

    for obj in found:
        if _matches(obj, target):
            after = apply_locally(copy(obj), patch, "json")
            obj.clear()
            obj.update(after)


def _walk(value: Any, visit: Callable[[Object], None]) -> None:
    if isinstance(value, dict):
        visit(value)
        for each in list(value.values()):
            _walk(each, visit)
    elif isinstance(value, list):
        for each in value:
            _walk(each, visit)


def _image(container: Object, image: Object) -> None:
    current = container.get("image")
    if not isinstance(current, str) or "name" not in container:
        return
    base, at, digest = current.partition("@")
    head, slash, tail = base.rpartition("/")
    name, colon, tag = tail.partition(":")
    if f"{head}{slash}{name}" != image.get("name"):
        return
    result = image.get("newName") or f"{head}{slash}{name}"
    if image.get("digest"):
        container["image"] = f"{result}@{image['digest']}"
    elif image.get("newTag") is not None:
        container["image"] = f"{result}:{image['newTag']}"
    else:
        container["image"] = result + (f":{tag}" if colon else "") + (f"@{digest}" if at else "")


def _label(obj: Object, labels: dict[str, str], selectors: bool, templates: bool) -> None:
    metadata = obj.setdefault("metadata", {})
    metadata["labels"] = {**(metadata.get("labels") or {}), **labels}
    spec = obj.get("spec")
    if not isinstance(spec, dict):
        return
    kind = obj.get("kind")
    for path in (("template",), ("jobTemplate",), ("jobTemplate", "spec", "template")):
        template = dig(spec, *path)
        if templates and isinstance(template, dict) and kind != "Pod":
            inner = template.setdefault("metadata", {})
            inner["labels"] = {**(inner.get("labels") or {}), **labels}
    if not selectors:
        return
    if kind in ("Service", "ReplicationController") and spec.get("selector") is not None:
        spec["selector"] = {**spec["selector"], **labels}
    elif kind in ("Deployment", "ReplicaSet", "StatefulSet", "DaemonSet") or (
        kind in ("Job", "PodDisruptionBudget", "NetworkPolicy") and "matchLabels" in (spec.get("selector") or {})
    ):
        selector = spec.setdefault("selector", {})
        selector["matchLabels"] = {**(selector.get("matchLabels") or {}), **labels}


def _annotate(obj: Object, annotations: dict[str, str]) -> None:
    for holder in (obj, dig(obj, "spec", "template"), dig(obj, "spec", "jobTemplate")):
        if isinstance(holder, dict):
            metadata = holder.setdefault("metadata", {})
            metadata["annotations"] = {**(metadata.get("annotations") or {}), **annotations}


def _original(name: str, spec: Object) -> str:
    return name.removeprefix(spec.get("namePrefix") or "").removesuffix(spec.get("nameSuffix") or "")


_REFERENCES = (
    ("configMapRef", "name", "ConfigMap"), ("configMapKeyRef", "name", "ConfigMap"), ("configMap", "name", "ConfigMap"),
    ("secretRef", "name", "Secret"), ("secretKeyRef", "name", "Secret"), ("secret", "secretName", "Secret"),
    ("secret", "name", "Secret"), ("persistentVolumeClaim", "claimName", "PersistentVolumeClaim"),
    ("service", "name", "Service"),
)  # fmt: skip


def _rename(found: list[Object], renamed: dict[tuple[str, str], str]) -> None:
    """Follows new names in the places that refer to objects."""
    if not renamed:
        return

    def visit(each: Object) -> None:
        for holder, field, kind in _REFERENCES:
            inner = each.get(holder)
            if isinstance(inner, dict) and (kind, inner.get(field)) in renamed:
                inner[field] = renamed[kind, inner[field]]
        for field, kind in (("serviceAccountName", "ServiceAccount"), ("serviceName", "Service")):
            if (kind, each.get(field)) in renamed:
                each[field] = renamed[kind, each[field]]
        for reference in ("roleRef", "scaleTargetRef"):
            inner = each.get(reference)
            if isinstance(inner, dict) and (str(inner.get("kind")), str(inner.get("name"))) in renamed:
                inner["name"] = renamed[str(inner["kind"]), str(inner["name"])]
        for subject in each.get("subjects") or ():
            if isinstance(subject, dict) and ("ServiceAccount", subject.get("name")) in renamed:
                subject["name"] = renamed["ServiceAccount", subject["name"]]

    for obj in found:
        _walk(obj, visit)


def _replacement(found: list[Object], rule: Object) -> None:
    source = rule.get("source") or {}
    origin = next((obj for obj in found if _matches(obj, source)), None)
    if origin is None:
        raise CLIError("nothing selected by replacement source")
    value = _at(origin, str(source.get("fieldPath") or "metadata.name"))
    options = source.get("options") or {}
    if options.get("delimiter"):
        value = str(value).split(options["delimiter"])[options.get("index", 0)]
    for target in rule.get("targets") or ():
        for obj in found:
            if _matches(obj, target.get("select") or {}) and not any(
                _matches(obj, each) for each in target.get("reject") or ()
            ):
                for path in target.get("fieldPaths") or ["metadata.name"]:
                    _put(obj, path, value, target.get("options") or {})


def _parts(path: str) -> list[str]:
    import re

    return [part.replace("\\.", ".") for part in re.split(r"(?<!\\)\.(?![^\[]*\])", path)]


def _at(obj: Any, path: str) -> Any:
    for part in _parts(path):
        obj = _item(obj, part) if isinstance(obj, list) else (obj or {}).get(part)
    return obj


def _item(items: list[Any], part: str) -> Any:
    if part.startswith("["):
        key, _, value = part.strip("[]").partition("=")
        return next((each for each in items if str(each.get(key)) == value), None)
    return items[int(part)] if part.isdigit() and int(part) < len(items) else None


def _put(obj: Any, path: str, value: Any, options: Object) -> None:
    *parents, last = _parts(path)
    holders = [obj]
    for part in parents:
        following = []
        for holder in holders:
            if isinstance(holder, list):
                following += holder if part == "*" else [_item(holder, part)]
            elif isinstance(holder, dict):
                if part not in holder and options.get("create"):
                    holder[part] = {}
                following.append(holder.get(part))
        holders = [each for each in following if each is not None]
    for holder in holders:
        if not isinstance(holder, dict) or (last not in holder and not options.get("create")):
            continue
        if options.get("delimiter"):
            pieces = str(holder.get(last, "")).split(options["delimiter"])
            index = options.get("index", 0)
            if 0 <= index < len(pieces):
                pieces[index] = str(value)
            holder[last] = options["delimiter"].join(pieces)
        else:
            holder[last] = copy(value)


def _generator_flags() -> tuple[Any, ...]:
    from pybernetes.kubectl.flags import Flag

    return tuple(Flag(name, "array") for name in ("from-file", "from-literal", "from-env-file"))


_GENERATOR_FLAGS = _generator_flags()
