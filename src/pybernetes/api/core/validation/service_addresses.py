"""How the addresses and IP families of a Service hang together.

`clusterIPs` has at most one address of each family, the first is also in `clusterIP`, and `ipFamilies` names the
families in the same order. Clients may give some of these fields; the allocator fills in the rest and asks these rules
before.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from ...addresses import is_valid_ip_for_legacy_field, parse_ip
from ...field import FieldError, Path, duplicate, invalid, not_supported, repeated, required
from ..v1.service import ServiceSpec

FAMILIES: Final = ("IPv4", "IPv6")
POLICIES: Final = ("PreferDualStack", "RequireDualStack", "SingleStack")

_CLUSTER_IPS: Final = Path("spec", "clusterIPs")
_FAMILIES: Final = Path("spec", "ipFamilies")
_POLICY: Final = Path("spec", "ipFamilyPolicy")
_FIXED: Final = "may not change once set"


def is_headless(spec: ServiceSpec) -> bool:
    """A Service that has no address of its own."""
    return spec.cluster_ips == ["None"]


def family_of(ip: str) -> str:
    """The family of an address."""
    address = parse_ip(ip)
    return "unknown" if address is None else f"IPv{address.version}"


def validate_address_fields(spec: ServiceSpec, old: ServiceSpec | None) -> list[FieldError]:
    """Whether the fields of one Service fit together; for an ExternalName other rules forbid them all."""
    if spec.type == "ExternalName":
        return []
    errors: list[FieldError] = []
    ips = spec.cluster_ips or []
    if spec.cluster_ip:
        if not ips:
            errors.append(required(_CLUSTER_IPS))
        elif ips[0] != spec.cluster_ip:
            errors.append(invalid(_CLUSTER_IPS, ips, "first value must match `clusterIP`"))
    elif ips:
        errors.append(invalid(_CLUSTER_IPS, ips, "must be empty when `clusterIP` is not specified"))
    families = spec.ip_families or []
    again = repeated(families)
    for index, family in enumerate(families):
        if family not in FAMILIES:
            errors.append(not_supported(_FAMILIES.index(index), family, FAMILIES))
        if index in again:
            errors.append(duplicate(_FAMILIES.index(index), family))
    if spec.ip_family_policy is not None and spec.ip_family_policy not in POLICIES:
        errors.append(not_supported(_POLICY, spec.ip_family_policy, POLICIES))
    wrong = _validate_ips(ips, frozenset((old and old.cluster_ips) or ()), errors)
    if len(ips) > 2:
        errors.append(invalid(_CLUSTER_IPS, ips, "may only hold up to 2 values"))
    if wrong:
        return errors  # families of what is no address would only confuse
    if len(ips) > 1 and len({family_of(ip) for ip in ips}) < 2:
        errors.append(invalid(_CLUSTER_IPS, ips, "may specify no more than one IP for each IP family"))
    if not is_headless(spec):
        for index, (ip, family) in enumerate(zip(ips, families, strict=False)):
            if family in FAMILIES and family_of(ip) != family:
                detail = f"expected an {family} value as indicated by `ipFamilies[{index}]`"
                errors.append(invalid(_CLUSTER_IPS.index(index), ip, detail))
    return errors


def _validate_ips(ips: list[str], existing: Collection[str], errors: list[FieldError]) -> bool:
    wrong = False
    for index, ip in enumerate(ips):
        if index == 0 and ip == "None":
            if len(ips) > 1:
                wrong = True
                errors.append(invalid(_CLUSTER_IPS, ips, "'None' must be the first and only value"))
            continue
        problems = is_valid_ip_for_legacy_field(_CLUSTER_IPS.index(index), ip, old=existing)
        wrong = wrong or bool(problems)
        errors += problems
    return wrong


def validate_addresses_update(new: ServiceSpec, old: ServiceSpec) -> list[FieldError]:
    """The first address stays; the second comes and goes with the policy."""
    if "ExternalName" in (new.type, old.type) or (is_headless(new) and is_headless(old)):
        return []
    errors: list[FieldError] = []
    before, after = old.cluster_ips or [], new.cluster_ips or []
    first = _CLUSTER_IPS.index(0)
    if len(before) == len(after):
        for index, (ip, now) in enumerate(zip(before, after, strict=True)):
            if ip != now:
                errors.append(invalid(_CLUSTER_IPS.index(index), after, _FIXED))
        return errors
    if not after:
        errors.append(invalid(first, new.cluster_ips, "primary clusterIP can not be unset"))
    elif before and before[0] != after[0]:
        errors.append(invalid(first, after, _FIXED))
    if len(after) == 1 < len(before) and new.ip_family_policy != "SingleStack":
        detail = "must be set to 'SingleStack' when releasing the secondary clusterIP"
        errors.append(invalid(_POLICY, new.ip_family_policy, detail))
    return errors


def validate_families_update(new: ServiceSpec, old: ServiceSpec) -> list[FieldError]:
    """The first family stays, unless the Service has no addresses anyway."""
    if "ExternalName" in (new.type, old.type) or is_headless(new) or is_headless(old):
        return []
    errors: list[FieldError] = []
    before, after = old.ip_families or [], new.ip_families or []
    first = _FAMILIES.index(0)
    if len(before) == len(after):
        return [invalid(first, after, _FIXED) for family, now in zip(before, after, strict=True) if family != now]
    if len(before) > len(after) and not new.cluster_ips:
        errors.append(invalid(first, new.ip_families, "primary ipFamily can not be unset"))
    if before and after and before[0] != after[0]:
        errors.append(invalid(first, new.cluster_ips, _FIXED))  # upstream prints the addresses here
    if len(after) == 1 < len(before) and new.ip_family_policy != "SingleStack":
        detail = "must be set to 'SingleStack' when releasing the secondary ipFamily"
        errors.append(invalid(_POLICY, new.ip_family_policy, detail))
    return errors
