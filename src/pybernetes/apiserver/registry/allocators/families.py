"""Which IP families a Service has, from what the client says and what the cluster can do.

Pure: works on the spec before addresses are allocated, and reports contradictions in the spec.
"""

from __future__ import annotations

from typing import Final

from pybernetes.api.core.v1.service import ServiceSpec
from pybernetes.api.core.validation.service_addresses import family_of, validate_address_fields
from pybernetes.api.field import FieldError, Path, invalid

_POLICY: Final = Path("spec", "ipFamilyPolicy")


def other_family(family: str) -> str:
    """The one of the two that this is not."""
    return "IPv6" if family == "IPv4" else "IPv4"


def same_addresses(one: ServiceSpec, other: ServiceSpec) -> bool:
    """Whether both have the same `clusterIPs`."""
    return (one.cluster_ips or []) == (other.cluster_ips or [])


def same_families(one: ServiceSpec, other: ServiceSpec) -> bool:
    """Whether both have the same `ipFamilies`."""
    return (one.ip_families or []) == (other.ip_families or [])


def stays_as_preferred(new: ServiceSpec, old: ServiceSpec | None) -> bool:
    """A Service that only prefers two families keeps what it got, even if the cluster has more or fewer by now."""
    return (
        old is not None
        and new.type == old.type
        and new.type in ("ClusterIP", "NodePort", "LoadBalancer")
        and new.ip_family_policy == "PreferDualStack"
        and old.ip_family_policy in (None, "PreferDualStack")
        and same_addresses(new, old)
        and same_families(new, old)
    )


def fill_in_families(spec: ServiceSpec, old: ServiceSpec | None, configured: tuple[str, ...]) -> list[FieldError]:
    """Set `ipFamilyPolicy` and `ipFamilies`, or say why that cannot be; `configured` has the default family first."""
    if spec.type == "ExternalName" or stays_as_preferred(spec, old):
        return []
    selectorless = spec.cluster_ip == "None" and not spec.selector
    if spec.ip_family_policy is None:
        if old is not None and old.ip_family_policy is not None:
            spec.ip_family_policy = old.ip_family_policy
        else:
            # Without a selector the addresses of endpoints are unknown.
            spec.ip_family_policy = "RequireDualStack" if selectorless else "SingleStack"
    errors = validate_address_fields(spec, old)
    if errors:
        return errors
    if old is not None:
        errors += _follow_policy(spec, old)
    errors += _check_policy(spec)
    errors += _infer_from_addresses(spec, configured)
    if errors:
        return errors
    default = configured[0] if configured else "IPv4"
    if selectorless:
        _complete(spec, default)
        return []
    if spec.ip_family_policy == "RequireDualStack" and len(configured) < 2:
        errors.append(invalid(_POLICY, spec.ip_family_policy, "this cluster is not configured for dual-stack services"))
    for index, family in enumerate(spec.ip_families or ()):
        if family not in configured:
            at = Path("spec", "ipFamilies").index(index)
            errors.append(invalid(at, family, "not configured on this cluster"))
    if errors:
        return errors
    if len(configured) == 2:
        _complete(spec, default)
    elif not spec.ip_families:
        spec.ip_families = [default]
    return []


def _follow_policy(spec: ServiceSpec, old: ServiceSpec) -> list[FieldError]:
    """On update: SingleStack alone means to give the second family up; giving it up needs SingleStack."""
    if spec.ip_family_policy == "SingleStack":
        if same_addresses(spec, old) and spec.cluster_ips:
            spec.cluster_ips = spec.cluster_ips[:1]
        if same_families(spec, old) and spec.ip_families:
            spec.ip_families = spec.ip_families[:1]
        return []
    errors: list[FieldError] = []
    if spec.cluster_ips and len(spec.cluster_ips) < len(old.cluster_ips or ()):
        detail = "must be 'SingleStack' to release the secondary cluster IP"
        errors.append(invalid(_POLICY, spec.ip_family_policy, detail))
    if spec.ip_families and len(spec.ip_families) < len(old.ip_families or ()):
        detail = "must be 'SingleStack' to release the secondary IP family"
        errors.append(invalid(_POLICY, spec.ip_family_policy, detail))
    return errors


def _check_policy(spec: ServiceSpec) -> list[FieldError]:
    if spec.ip_family_policy != "SingleStack":
        return []
    return [
        invalid(
            _POLICY,
            spec.ip_family_policy,
            f"must be 'RequireDualStack' or 'PreferDualStack' when multiple {what} are specified",
        )
        for what, given in (("cluster IPs", spec.cluster_ips), ("IP families", spec.ip_families))
        if given and len(given) == 2
    ]


def _infer_from_addresses(spec: ServiceSpec, configured: tuple[str, ...]) -> list[FieldError]:
    errors: list[FieldError] = []
    for index, ip in enumerate(spec.cluster_ips or ()):
        if ip == "None":
            break
        families = spec.ip_families or []
        if index < len(families):
            continue
        family = family_of(ip)
        if family in configured:
            spec.ip_families = [*families, family]
        else:
            at = Path("spec", "clusterIPs").index(index)
            errors.append(invalid(at, spec.cluster_ips, f"{family} is not configured on this cluster"))
    return errors


def _complete(spec: ServiceSpec, default: str) -> None:
    families = spec.ip_families or [default]
    if len(families) == 1 and spec.ip_family_policy != "SingleStack":
        families = [families[0], other_family(families[0])]
    spec.ip_families = families
