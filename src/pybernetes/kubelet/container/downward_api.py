"""The downward API: fields of a pod as variables (`environment`) and as files (`volumes`).

Fields of its metadata are for both; addresses and names in its spec and status for variables only. Resources that a
container does not limit are the pod's limit, else what the node can give: a program that asks how much memory it has
must not read 0.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final

from pybernetes.api import names
from pybernetes.api.core.podresources import parsed
from pybernetes.api.core.v1 import Container, ObjectFieldSelector, Pod, PodSpec, ResourceFieldSelector
from pybernetes.api.gocompat.quote import quote
from pybernetes.api.meta.v1 import ObjectMeta
from pybernetes.api.quantity import Quantity, parse

from ..node.facts import NodeFacts
from ..runtime.types import AnyContainer

_DEFAULTED: Final = ("cpu", "memory", "ephemeral-storage")
_ONE: Final = Quantity(1)


class DownwardError(ValueError):
    """Something that a pod cannot know."""


def metadata_field(pod: Pod, path: str) -> str:
    """A field of the pod's metadata, as the downward API writes it."""
    metadata = pod.metadata or ObjectMeta()
    whole, key = split_subscript(path)
    if key is not None:
        if whole not in ("metadata.annotations", "metadata.labels"):
            raise DownwardError(f"fieldPath {quote(whole)} does not support subscript")
        wrong = names.is_qualified_name(key.lower() if whole == "metadata.annotations" else key)
        if wrong:
            raise DownwardError(f"invalid key subscript in {path}: {';'.join(wrong)}")
        values = metadata.annotations if whole == "metadata.annotations" else metadata.labels
        return (values or {}).get(key, "")
    match path:
        case "metadata.annotations":
            return _format_once(metadata.annotations or {})
        case "metadata.labels":
            return _format_once(metadata.labels or {})
        case "metadata.name":
            return metadata.name or ""
        case "metadata.namespace":
            return metadata.namespace or ""
        case "metadata.uid":
            return metadata.uid or ""
    raise DownwardError(f"unsupported fieldPath: {path}")


def field_value(selector: ObjectFieldSelector, pod: Pod, facts: NodeFacts, pod_ips: Sequence[str]) -> str:
    """A `fieldRef` of an environment variable."""
    path = selector.field_path or ""
    if (selector.api_version or "v1") != "v1":
        raise DownwardError(f"unsupported pod version: {selector.api_version}")
    spec = pod.spec or PodSpec()
    match path:
        case "spec.nodeName" | "spec.host":
            return spec.node_name or ""
        case "spec.serviceAccountName":
            return spec.service_account_name or ""
        case "status.hostIP":
            return facts.ips[0] if facts.ips else ""
        case "status.hostIPs":
            return ",".join(facts.ips)
        case "status.podIP":
            return pod_ips[0] if pod_ips else ""
        case "status.podIPs":
            return ",".join(pod_ips)
    whole, key = split_subscript(path)
    if key is not None and whole not in ("metadata.annotations", "metadata.labels"):
        raise DownwardError(f"field label does not support subscript: {path}")
    if not path.startswith("metadata."):
        raise DownwardError(f"field label not supported: {path}")
    return metadata_field(pod, path)


def resource_value(
    selector: ResourceFieldSelector, pod: Pod, container: AnyContainer | None, allocatable: Mapping[str, Quantity]
) -> str:
    """A `resourceFieldRef`, in units of its divisor and rounded up; of a container by name, else of the one given."""
    if selector.container_name:
        container = _container(pod, selector.container_name)
    if container is None:
        raise DownwardError(f"container {selector.container_name or ''} not found")
    which, _, resource = (selector.resource or "").partition(".")
    known = resource in _DEFAULTED or resource.startswith("hugepages-")
    if which not in ("limits", "requests") or not known:
        raise DownwardError(f"unsupported container resource : {selector.resource}")
    resources = container.resources
    own = parsed((resources.limits if which == "limits" else resources.requests) if resources else None)
    value = own.get(resource)
    if which == "limits" and resource in _DEFAULTED and not value:
        value = _usual_limit(pod, resource, allocatable)
    divisor = parse(str(selector.divisor)) if selector.divisor else _ONE
    if not divisor:
        divisor = _ONE
    if value is None:
        return "0"
    if resource == "cpu":
        return str(math.ceil(value.milli_value() / divisor.milli_value()))
    return str(math.ceil(value.value() / divisor.value()))


def format_map(values: Mapping[str, str]) -> str:
    """One `key="value"` a line, sorted."""
    return "\n".join(f"{key}={quote(value)}" for key, value in sorted(values.items()))


_formatted: tuple[Mapping[str, str], str] = {}, ""


def _format_once(values: Mapping[str, str]) -> str:
    """`format_map`; the last one is kept, because hundreds of a pod's items may show the same map."""
    global _formatted
    if _formatted[0] is not values:
        _formatted = values, format_map(values)
    return _formatted[1]


def split_subscript(path: str) -> tuple[str, str | None]:
    """`metadata.labels['a']` is `metadata.labels` and `a`."""
    whole, bracket, key = path.removesuffix("']").partition("['")
    return (whole, key) if path.endswith("']") and bracket and whole else (path, None)


def _usual_limit(pod: Pod, resource: str, allocatable: Mapping[str, Quantity]) -> Quantity | None:
    found = allocatable.get(resource)
    of_pod = pod.spec.resources.limits if pod.spec and pod.spec.resources else None
    pod_limit = parsed(of_pod).get(resource)
    return pod_limit if pod_limit and found is not None else found


def _container(pod: Pod, name: str) -> Container | None:
    spec = pod.spec or PodSpec()
    return next((each for each in [*(spec.containers or ()), *(spec.init_containers or ())] if each.name == name), None)
