"""YAML at the edge: the same data as JSON, in the YAML that upstream reads and writes."""

from __future__ import annotations

import msgspec
import yaml

_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_Dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)


class _KubernetesLoader(_Loader):  # type: ignore[misc,valid-type]
    """YAML as a superset of JSON: dates stay text and keys become text."""


_KubernetesLoader.yaml_implicit_resolvers = {
    first: [(tag, regexp) for tag, regexp in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in _Loader.yaml_implicit_resolvers.items()
}


def yaml_to_json(body: bytes) -> bytes:
    """One YAML document as JSON. Raises ValueError with the place of the mistake."""
    try:
        value = yaml.load(body, Loader=_KubernetesLoader)
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError, ValueError) as error:
        raise ValueError(" ".join(str(error).split())) from error
    try:
        return msgspec.json.encode(_text_keys(value))
    except (TypeError, RecursionError, ValueError) as error:
        raise ValueError(str(error)) from error


def _text_keys(value: object) -> object:
    if isinstance(value, dict):
        return {_key(key): _text_keys(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_text_keys(each) for each in value]
    if (isinstance(value, float) and value in (float("inf"), float("-inf"))) or value != value:
        raise ValueError("a number must be finite")
    return value


def _key(key: object) -> str:
    if key is True or key is False:
        return "true" if key else "false"
    if isinstance(key, str | int | float):
        return str(key)
    raise ValueError(f"a key must be text, not {key!r}")


def json_to_yaml(raw: bytes) -> bytes:
    """JSON as one YAML document, keys sorted."""
    text: bytes = yaml.dump(
        msgspec.json.decode(raw), Dumper=_Dumper, encoding="utf-8", allow_unicode=True, default_flow_style=False
    )
    return text
