"""Validation of NetworkPolicies."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, Final

from ...addresses import is_valid_cidr_for_legacy_field, parse_cidr
from ...field import FieldError, Path, forbidden, invalid, not_supported, required
from ...meta.validation import validate_label_selector, validate_object_meta, validate_object_meta_update
from ...names import is_port_name, is_port_number, name_is_dns_subdomain
from ..v1 import IPBlock, NetworkPolicy, NetworkPolicyPeer, NetworkPolicyPort, NetworkPolicySpec

PROTOCOLS: Final = ("TCP", "UDP", "SCTP")
_META: Final = Path("metadata")
_SPEC: Final = Path("spec")


def validate_network_policy(obj: NetworkPolicy) -> list[FieldError]:
    """Validate a new policy."""
    errors = validate_object_meta(obj.metadata, True, name_is_dns_subdomain, _META)
    return errors + _validate_spec(obj.spec or NetworkPolicySpec(), invalid_values=False, known=())


def validate_network_policy_update(new: NetworkPolicy, old: NetworkPolicy) -> list[FieldError]:
    """Everything may change; what was accepted before stays accepted."""
    before = old.spec or NetworkPolicySpec()
    errors = validate_object_meta_update(new.metadata, old.metadata, _META)
    invalid_values = bool(validate_label_selector(before.pod_selector, _SPEC))
    return errors + _validate_spec(
        new.spec or NetworkPolicySpec(), invalid_values=invalid_values, known=_blocks(before)
    )


def _blocks(spec: NetworkPolicySpec) -> set[str]:
    peers = [peer for rule in spec.ingress or () for peer in rule.from_ or ()]
    peers += [peer for rule in spec.egress or () for peer in rule.to or ()]
    blocks = [peer.ip_block for peer in peers if peer.ip_block is not None]
    return {cidr for block in blocks for cidr in (block.cidr or "", *(block.except_ or ()))}


def _validate_spec(spec: NetworkPolicySpec, *, invalid_values: bool, known: Collection[str]) -> list[FieldError]:
    errors = validate_label_selector(spec.pod_selector, _SPEC.child("podSelector"), allow_invalid_values=invalid_values)
    rules: list[tuple[Path, str, list[NetworkPolicyPort] | None, list[NetworkPolicyPeer] | None]] = []
    for index, ingress in enumerate(spec.ingress or ()):
        rules.append((_SPEC.child("ingress").index(index), "from", ingress.ports, ingress.from_))
    for index, egress in enumerate(spec.egress or ()):
        rules.append((_SPEC.child("egress").index(index), "to", egress.ports, egress.to))
    for path, name, ports, peers in rules:
        for index, port in enumerate(ports or ()):
            errors += _validate_port(port, path.child("ports").index(index))
        for index, peer in enumerate(peers or ()):
            errors += _validate_peer(peer, path.child(name).index(index), invalid_values, known)
    types = spec.policy_types or []
    if len(types) > 2:
        errors.append(invalid(_SPEC.child("policyTypes"), types, "may not specify more than two policyTypes"))
        return errors
    for index, kind in enumerate(types):
        if kind not in ("Ingress", "Egress"):
            errors.append(not_supported(_SPEC.child("policyTypes").index(index), kind, ("Ingress", "Egress")))
    return errors


def _validate_port(port: NetworkPolicyPort, path: Path) -> list[FieldError]:
    errors: list[FieldError] = []
    if port.protocol is not None and port.protocol not in PROTOCOLS:
        errors.append(not_supported(path.child("protocol"), port.protocol, PROTOCOLS))
    number, end = port.port, port.end_port
    if number is None:
        if end is not None:
            errors.append(invalid(path.child("endPort"), end, "may not be specified when `port` is not specified"))
    elif isinstance(number, int):
        errors += [invalid(path.child("port"), number, problem) for problem in is_port_number(number)]
        if end is not None:
            if end < number:
                errors.append(invalid(path.child("endPort"), number, "must be greater than or equal to `port`"))
            errors += [invalid(path.child("endPort"), end, problem) for problem in is_port_number(end)]
    else:
        if end is not None:
            errors.append(invalid(path.child("endPort"), end, "may not be specified when `port` is non-numeric"))
        errors += [invalid(path.child("port"), number, problem) for problem in is_port_name(number)]
    return errors


def _validate_peer(
    peer: NetworkPolicyPeer, path: Path, invalid_values: bool, known: Collection[str]
) -> list[FieldError]:
    errors: list[FieldError] = []
    for selector, name in ((peer.pod_selector, "podSelector"), (peer.namespace_selector, "namespaceSelector")):
        errors += validate_label_selector(selector, path.child(name), allow_invalid_values=invalid_values)
    if peer.ip_block is not None:
        errors += _validate_block(peer.ip_block, path.child("ipBlock"), known)
    selects = peer.pod_selector is not None or peer.namespace_selector is not None
    if not selects and peer.ip_block is None:
        errors.append(required(path, "must specify a peer"))
    elif selects and peer.ip_block is not None:
        errors.append(forbidden(path, "may not specify both ipBlock and another peer"))
    return errors


def _validate_block(block: IPBlock, path: Path, known: Collection[str]) -> list[FieldError]:
    """Exceptions lie inside the block."""
    if not block.cidr:
        return [required(path.child("cidr"))]
    errors = is_valid_cidr_for_legacy_field(path.child("cidr"), block.cidr, old=known)
    parsed = parse_cidr(block.cidr)
    if parsed is None:
        return errors
    network = parsed[1]
    for index, text in enumerate(block.except_ or ()):
        at = path.child("except").index(index)
        errors += is_valid_cidr_for_legacy_field(at, text, old=known)
        exception = parse_cidr(text)
        if exception is None:
            continue
        inside = exception[1].network_address in network and network.prefixlen < exception[1].prefixlen
        if not inside:
            errors.append(invalid(at, text, "must be a strict subset of `cidr`"))
    return errors


CREATE: Final[dict[str, Callable[[Any], list[FieldError]]]] = {"NetworkPolicy": validate_network_policy}
UPDATE: Final[dict[str, Callable[[Any, Any], list[FieldError]]]] = {"NetworkPolicy": validate_network_policy_update}
