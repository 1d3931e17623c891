"""ConfigMaps and Secrets from files, literals and env files, and the hash of their content in their names."""

from __future__ import annotations

from pybernetes.kubectl.errors import CLIError
from pybernetes.kubectl.kustomize.resources import Resource

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pybernetes.kubectl.kustomize.files import Folder

    Object = dict[str, Any]


def generate(kind: str, settings: Object, defaults: Object, folder: Folder) -> Resource:
    """The object of one entry of configMapGenerator or secretGenerator. Raises CLIError."""
    from base64 import b64encode

    options = settings.get("options") or {}
    name = str(settings.get("name") or "")
    if not name:
        raise CLIError("a configmap must have a name")
    metadata: Object = {"name": name}
    if settings.get("namespace"):
        metadata["namespace"] = settings["namespace"]
    for field in ("labels", "annotations"):
        merged = {**(defaults.get(field) or {}), **(options.get(field) or {})}
        if merged:
            metadata[field] = merged
    obj: Object = {"apiVersion": "v1", "kind": kind, "metadata": metadata}
    values = _values(name, settings, folder)
    if kind == "Secret":
        obj["type"] = settings.get("type") or "Opaque"
        if values:
            obj["data"] = {key: b64encode(value).decode() for key, value in values.items()}
    for key, value in () if kind == "Secret" else values.items():
        try:
            obj.setdefault("data", {})[key] = value.decode()
        except UnicodeDecodeError:
            obj.setdefault("binaryData", {})[key] = b64encode(value).decode()
    if defaults.get("immutable") or options.get("immutable"):
        obj["immutable"] = True
    made = Resource(obj)
    made.behavior = str(settings.get("behavior") or "")
    made.hashed = not (defaults.get("disableNameSuffixHash") or options.get("disableNameSuffixHash"))
    return made


def _values(name: str, settings: Object, folder: Folder) -> dict[str, bytes]:
    from pybernetes.kubectl.key_values import check_key

    pairs: list[tuple[str, bytes]] = []
    for field, what, read in (
        ("envs", "env source files:", _environment),
        ("literals", "literal sources", _literal),
        ("files", "file sources:", _file),
    ):
        sources = settings.get(field) or []
        try:
            for source in sources:
                pairs += read(source, folder)
        except CLIError as error:
            raise CLIError(f"loading KV pairs: {what} [{' '.join(sources)}]: {error.message}") from None
    found: dict[str, bytes] = {}
    for key, value in pairs:
        check_key(key)
        if key in found:
            raise CLIError(f"configmap {name} illegally repeats the key `{key}`")
        found[key] = value
    return dict(sorted(found.items()))


def _literal(source: str, folder: Folder) -> list[tuple[str, bytes]]:
    key, equals, value = source.partition("=")
    if not key or not equals:
        raise CLIError(f"invalid literal source {source}, expected key=value")
    if len(value) > 1 and value[0] == value[-1] and value[0] in "\"'":
        value = value[1:-1]
    return [(key, value.encode("utf-8", "surrogateescape"))]


def _file(source: str, folder: Folder) -> list[tuple[str, bytes]]:
    key, equals, path = source.partition("=")
    if "=" in path:
        raise CLIError(f"source \"{source}\" key name or file path contains '='")
    if equals and not key:
        raise CLIError(f'missing key name for file path "{path}" in source "{source}"')
    if equals and not path:
        raise CLIError(f'missing file path for key name "{key}" in source "{source}"')
    path = path if equals else source
    return [(key if equals else source.rstrip("/").rpartition("/")[2], folder.load(path))]


def _environment(source: str, folder: Folder) -> list[tuple[str, bytes]]:
    found = []
    for number, line in enumerate(folder.load(source).splitlines()):
        try:
            text = line.decode()
        except UnicodeDecodeError:
            raise CLIError(f"line {list(line)} has invalid utf8 bytes : {line.decode('utf-8', 'replace')}") from None
        text = (text.removeprefix("\ufeff") if number == 0 else text).lstrip()
        if not text or text.startswith("#"):
            continue
        key, _, value = text.partition("=")
        if not key or any(char.isspace() for char in key):
            raise CLIError(f'"{key}" is not a valid environment variable name')
        found.append((key, value.encode()))
    return found


def content_hash(obj: Object) -> str:
    """The suffix of a generated object's name; for other kinds than these two, of the whole object."""
    import hashlib

    from pybernetes.kubectl import data

    content: Object = {"kind": obj["kind"], "name": "", "data": obj.get("data") or ""}
    if obj["kind"] == "ConfigMap":
        if isinstance(obj.get("binaryData"), dict):
            content["binaryData"] = obj["binaryData"]
    elif obj["kind"] == "Secret":
        content["type"] = obj.get("type") or ""
        if isinstance(obj.get("stringData"), dict):
            content["stringData"] = obj["stringData"]
    else:
        content = obj
    digest = hashlib.sha256(data.dumps(content).encode("utf-8", "surrogatepass")).hexdigest()[:10]
    return digest.translate(str.maketrans("013ae", "ghkmt"))
