"""The YAML of resources, read by the rules of YAML 1.2 as kustomize does: `yes` and `on` are text, `010` is 8.

The rules of the kustomization file itself are those of the API server, where `yes` is true.
"""

from __future__ import annotations

from pybernetes.kubectl.errors import CLIError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def documents(text: bytes) -> list[Any]:
    """The values of a stream of documents; empty ones are left out. Raises ValueError."""
    from pybernetes.api.yaml import YAMLProblem, yaml12_to_value
    from pybernetes.kubectl.manifests import split

    found = []
    for document in split(text):
        try:
            value = yaml12_to_value(document, texts=("metadata", "annotations"))
        except YAMLProblem as error:
            raise ValueError(str(error)) from None
        if value is not None and value != {}:
            found.append(value)
    return found


def objects(text: bytes) -> list[dict[str, Any]]:
    """The objects of a file, with those of lists in the list's place. Raises ValueError with kustomize's words."""
    waiting, found = documents(text), []
    for value in waiting:
        _check(value)
    while waiting:
        value = waiting.pop(0)
        if not str(value["kind"]).endswith("List") or "items" not in value:
            found.append(value)
            continue
        items = value["items"]
        if items is not None and not isinstance(items, list):
            raise ValueError(f"expected array in {value['kind']}/items, but found {type(items).__name__}")
        for each in items or ():
            _check(each)
            waiting.append(each)
    return [each for each in found if not _local(each)]


def _check(value: Any) -> None:
    if not isinstance(value, dict):
        raise ValueError("missing Resource metadata")
    metadata = value.get("metadata") if isinstance(value.get("metadata"), dict) else {}
    assert isinstance(metadata, dict)
    version, kind, name = (
        str(each or "") for each in (value.get("apiVersion"), value.get("kind"), metadata.get("name"))
    )
    if not kind or (not name and not kind.endswith("List")):
        shown = [_go_map(metadata.get(key)) for key in ("labels", "annotations")]
        names = f"{name} {metadata.get('namespace') or ''}"
        what = "{{" + f"{version} {kind}" + "} {{" + names + "} " + " ".join(shown) + "}}"
        raise ValueError(f"missing {'metadata.name' if kind else 'kind'} in object {what}")


def _go_map(value: Any) -> str:
    pairs = sorted(value.items()) if isinstance(value, dict) else ()
    return f"map[{' '.join(f'{key}:{each}' for key, each in pairs)}]"


def _local(value: dict[str, Any]) -> bool:
    """Whether an object is only configuration of the build, and no part of its result."""
    annotations = (value.get("metadata") or {}).get("annotations")
    if not isinstance(annotations, dict) or "config.kubernetes.io/local-config" not in annotations:
        return False
    return str(annotations["config.kubernetes.io/local-config"]) != "false"


def parsed(text: bytes, what: str) -> Any:
    """One document by the rules of the kustomization file. Raises CLIError."""
    from pybernetes.kubectl.manifests import parse_yaml

    try:
        return parse_yaml(text)
    except ValueError as error:
        raise CLIError(f"{what}: {error}") from None
