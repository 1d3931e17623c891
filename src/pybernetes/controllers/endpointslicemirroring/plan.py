"""Plans the slices that mirror an Endpoints object: one slice for each family and set of ports. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from pybernetes.api.addresses import parse_ip
from pybernetes.api.core.v1 import Endpoints
from pybernetes.api.core.v1.service import EndpointAddress
from pybernetes.api.discovery.v1 import Endpoint, EndpointConditions, EndpointPort, EndpointSlice
from pybernetes.api.meta.v1 import ObjectMeta
from pybernetes.client.keys import controller_reference, uid_of

from ..common.meta import annotations_of, is_deleting, labels_of, meta, name_of
from ..common.pods import pod_name_prefix
from ..endpoints.subsets import repack
from ..endpointslice.endpoints import (
    MANAGED_BY_LABEL,
    SERVICE_NAME_LABEL,
    EndpointKey,
    Ports,
    endpoint_key,
    ports_key,
    same_endpoint,
)
from ..endpointslice.packing import Changes
from ..endpointslice.plan import TRIGGER_TIME

CONTROLLER: Final = "endpointslicemirroring-controller.k8s.io"
SKIP_MIRROR: Final = "endpointslice.kubernetes.io/skip-mirror"
LEADER: Final = "control-plane.alpha.kubernetes.io/leader"
LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
MAX_ENDPOINTS: Final = 1000

_SliceKey = tuple[str, Ports]


@dataclass
class Plan:
    """Writes, and addresses that were left out: how many are no addresses, and how many were too many."""

    changes: Changes = field(default_factory=Changes)
    invalid: int = 0
    skipped: int = 0


def should_mirror(endpoints: Endpoints) -> bool:
    """Whether they are to be mirrored: not those of old leader elections, nor those that say no."""
    return labels_of(endpoints).get(SKIP_MIRROR) != "true" and LEADER not in annotations_of(endpoints)


def plan(endpoints: Endpoints, slices: Iterable[EndpointSlice], *, maximum: int = MAX_ENDPOINTS) -> Plan:
    """The writes for one Endpoints object."""
    result = Plan()
    changes = result.changes
    desired, ports = _desired(endpoints, maximum, result)
    existing: dict[_SliceKey, list[EndpointSlice]] = {}
    for each in slices:
        existing.setdefault((each.address_type or "", ports_key(each.ports)), []).append(each)
    for key, wanted in desired.items():
        present = existing.pop(key, [])
        if not wanted:
            changes.delete += present
            continue
        changes.delete += present[1:]
        if present and _is_mirror(present[0], endpoints, wanted):
            continue
        new = _new_slice(endpoints, ports[key], key[0], list(wanted.values())[:maximum])
        if present:
            meta(new).name, meta(new).generate_name = name_of(present[0]), None
            changes.update.append(new)
        else:
            changes.create.append(new)
    for outdated in existing.values():
        changes.delete += outdated
    changes.reuse(lambda doomed, new: doomed.address_type == new.address_type)
    if is_deleting(endpoints):
        changes.create = []
    return result


def _desired(
    endpoints: Endpoints, maximum: int, result: Plan
) -> tuple[dict[_SliceKey, dict[EndpointKey, Endpoint]], dict[_SliceKey, list[EndpointPort]]]:
    desired: dict[_SliceKey, dict[EndpointKey, Endpoint]] = {}
    ports: dict[_SliceKey, list[EndpointPort]] = {}
    for subset in repack(endpoints.subsets or ()):
        numbers = [
            EndpointPort(name=each.name or "", port=each.port, protocol=each.protocol, app_protocol=each.app_protocol)
            for each in subset.ports or ()
        ]
        for family in ("IPv4", "IPv6"):
            desired.setdefault((family, ports_key(numbers)), {})
            ports[family, ports_key(numbers)] = numbers
        added = 0
        listed = [(True, each) for each in subset.addresses or ()]
        listed += [(False, each) for each in subset.not_ready_addresses or ()]
        for ready, address in listed:
            if added >= maximum:
                break
            found = _endpoint(address, ready)
            if found is None:
                result.invalid += 1
                continue
            family, endpoint = found
            desired[family, ports_key(numbers)][endpoint_key(endpoint)] = endpoint
            added += 1
        result.skipped += len(listed) - added
    return desired, ports


def _endpoint(address: EndpointAddress, ready: bool) -> tuple[str, Endpoint] | None:
    ip = parse_ip(address.ip or "")
    if ip is None:
        return None
    endpoint = Endpoint(
        addresses=[str(ip)],
        conditions=EndpointConditions(ready=ready),
        hostname=address.hostname or None,
        node_name=address.node_name,
        target_ref=address.target_ref,
    )
    return f"IPv{ip.version}", endpoint


def _is_mirror(current: EndpointSlice, endpoints: Endpoints, wanted: Mapping[EndpointKey, Endpoint]) -> bool:
    have = {endpoint_key(each): each for each in current.endpoints or ()}
    if have.keys() != wanted.keys() or not all(same_endpoint(have[key], each) for key, each in wanted.items()):
        return False
    owners = meta(current).owner_references or ()
    if any(o.kind == "Endpoints" and o.name == name_of(endpoints) and o.uid != uid_of(endpoints) for o in owners):
        return False
    return labels_of(current) == _labels(endpoints) and annotations_of(current) == _annotations(endpoints)


def _new_slice(endpoints: Endpoints, ports: list[EndpointPort], family: str, wanted: list[Endpoint]) -> EndpointSlice:
    return EndpointSlice(
        metadata=ObjectMeta(
            generate_name=pod_name_prefix(name_of(endpoints)),
            namespace=meta(endpoints).namespace,
            labels=_labels(endpoints),
            annotations=_annotations(endpoints) or None,
            owner_references=[controller_reference(endpoints)],
        ),
        address_type=family,
        endpoints=wanted,
        ports=ports,
    )


def _labels(endpoints: Endpoints) -> dict[str, str]:
    return {**labels_of(endpoints), SERVICE_NAME_LABEL: name_of(endpoints), MANAGED_BY_LABEL: CONTROLLER}


def _annotations(endpoints: Endpoints) -> dict[str, str]:
    return {key: value for key, value in annotations_of(endpoints).items() if key not in (TRIGGER_TIME, LAST_APPLIED)}
