"""Exceptions in validation for pods that were stored before a rule was made.

Rules became stricter over the years. A new object must obey; an object that already breaks a rule may keep doing so,
or its labels could never be updated again.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import msgspec

from ...field import Path
from ...meta.v1.objectmeta import ObjectMeta
from ...meta.validation import has_invalid_label_value, validate_label_selector
from ...names import is_label_value
from ...quantity import QuantityError, parse
from ..podresources import is_sidecar
from ..resourcenames import HUGEPAGES_PREFIX, is_hugepages
from ..v1.affinity import PodAffinityTerm
from ..v1.pod import PodSpec
from .common import validate_local_non_reserved_path

DELETION_COST: Final = "controller.kubernetes.io/pod-deletion-cost"
_NOWHERE: Final = Path("")
"""For errors that are only counted."""


class PodOptions(msgspec.Struct, frozen=True):
    """Exceptions to the rules; the plain object has none."""

    is_pod: bool = False
    """A pod itself and not the template of one."""
    invalid_deletion_cost: bool = False
    invalid_selector_values: bool = False
    """Values that no label can have, in the selectors of pod affinity."""
    invalid_node_affinity_values: bool = False
    invalid_spread_selectors: bool = False
    legacy_match_label_keys: bool = False
    """Keys in `matchLabelKeys` of a spread constraint were not merged into the selector."""
    indivisible_hugepages: bool = False
    non_local_token_path: bool = False
    host_sysctls: bool = False
    any_selinux_change_policy: bool = False
    restart_container_for_init: bool = False
    devices_in_user_namespace: bool = False
    host_network_in_user_namespace: bool = False
    comparing_tolerations: bool = False


TEMPLATE: Final = PodOptions()
POD: Final = PodOptions(is_pod=True)


def options_for_update(old: PodSpec | None, old_meta: ObjectMeta | None, *, is_pod: bool) -> PodOptions:
    """The exceptions an existing object has earned."""
    if old is None:
        return POD if is_pod else TEMPLATE
    security = old.security_context
    in_user_namespace = old.host_users is False
    return PodOptions(
        is_pod=is_pod,
        invalid_deletion_cost=old_meta is not None
        and not is_deletion_cost((old_meta.annotations or {}).get(DELETION_COST)),
        invalid_selector_values=_has_invalid_selector_values(old),
        invalid_node_affinity_values=_has_invalid_node_affinity_values(old),
        invalid_spread_selectors=any(
            validate_label_selector(each.label_selector, _NOWHERE) for each in old.topology_spread_constraints or ()
        ),
        legacy_match_label_keys=_has_unmerged_match_label_keys(old),
        indivisible_hugepages=_has_indivisible_hugepages(old),
        non_local_token_path=_has_non_local_token_path(old),
        host_sysctls=security is not None
        and any(is_host_sysctl(each.name or "", old) for each in security.sysctls or ()),
        any_selinux_change_policy=security is not None and security.se_linux_change_policy is not None,
        restart_container_for_init=any(
            policy.restart_policy == "RestartContainer"
            for container in old.init_containers or ()
            if not is_sidecar(container)
            for policy in container.resize_policy or ()
        ),
        devices_in_user_namespace=in_user_namespace
        and any(each.volume_devices for each in (*(old.containers or ()), *(old.init_containers or ()))),
        host_network_in_user_namespace=in_user_namespace and bool(old.host_network),
        comparing_tolerations=any(each.operator in ("Lt", "Gt") for each in old.tolerations or ()),
    )


def is_deletion_cost(value: str | None) -> bool:
    """Whether an annotation says a 32-bit number in the form Go prints it; absent is fine."""
    if value is None:
        return True
    if not value.isascii() or value.startswith("+") or (value.startswith("0") and value != "0") or "_" in value:
        return False
    try:
        number = int(value) if value == value.strip() else None
    except ValueError:
        return False
    return number is not None and -(1 << 31) <= number < 1 << 31


_IPC_SYSCTLS: Final = frozenset(
    [
        "kernel.sem",
        "kernel.shmall",
        "kernel.shmmax",
        "kernel.shmmni",
        "kernel.shm_rmid_forced",
        "kernel.shm",
        "kernel.msgmax",
        "kernel.msgmnb",
        "kernel.msgmni",
        "kernel.msg",
    ]
)


def sysctl_namespace(name: str) -> str:
    """Which kernel namespace a sysctl belongs to: `net`, `ipc` or none that is known."""
    normal = _normalize_sysctl(name).partition("*")[0]
    if normal in _IPC_SYSCTLS or normal.startswith("fs.mqueue."):
        return "ipc"
    return "net" if normal.startswith("net.") else ""


def is_host_sysctl(name: str, spec: PodSpec) -> bool:
    """Whether setting it in this pod would set it for the host."""
    namespace = sysctl_namespace(name)
    return (namespace == "net" and bool(spec.host_network)) or (namespace == "ipc" and bool(spec.host_ipc))


def _normalize_sysctl(name: str) -> str:
    """Slashes and dots mean each other if a slash is the first separator."""
    separator = next((char for char in name if char in "./"), "")
    if separator != "/":
        return name
    return name.translate(str.maketrans("./", "/."))


def _affinity_terms(spec: PodSpec) -> Iterator[PodAffinityTerm]:
    if spec.affinity is None:
        return
    for each in (spec.affinity.pod_affinity, spec.affinity.pod_anti_affinity):
        if each is not None:
            yield from each.required_during_scheduling_ignored_during_execution or ()
            for weighted in each.preferred_during_scheduling_ignored_during_execution or ():
                if weighted.pod_affinity_term is not None:
                    yield weighted.pod_affinity_term


def _has_invalid_selector_values(spec: PodSpec) -> bool:
    return any(has_invalid_label_value(term.label_selector) for term in _affinity_terms(spec))


def _has_invalid_node_affinity_values(spec: PodSpec) -> bool:
    affinity = spec.affinity.node_affinity if spec.affinity is not None else None
    required = affinity.required_during_scheduling_ignored_during_execution if affinity is not None else None
    if required is None:
        return False
    return any(
        is_label_value(value)
        for term in required.node_selector_terms or ()
        for expression in term.match_expressions or ()
        for value in expression.values or ()
    )


def _has_unmerged_match_label_keys(spec: PodSpec) -> bool:
    from .scheduling import validate_match_label_keys

    return any(
        validate_match_label_keys(each.match_label_keys, None, each.label_selector, _NOWHERE)
        for each in spec.topology_spread_constraints or ()
    )


def _has_indivisible_hugepages(spec: PodSpec) -> bool:
    for container in (*(spec.containers or ()), *(spec.init_containers or ()), *(spec.ephemeral_containers or ())):
        resources = container.resources
        for part in (resources.limits, resources.requests) if resources is not None else ():
            for name, value in (part or {}).items():
                if is_hugepages(name) and not is_divisible_by_page(name, str(value)):
                    return True
    return False


def is_divisible_by_page(name: str, value: str) -> bool:
    """Whether an amount of huge pages is a whole number of pages."""
    try:
        size = parse(name.removeprefix(HUGEPAGES_PREFIX))
    except QuantityError:
        return False
    if size.sign() <= 0 or not size.is_whole():
        return False
    return parse(value).value() % size.value() == 0


def _has_non_local_token_path(spec: PodSpec) -> bool:
    for volume in spec.volumes or ():
        for source in (volume.projected.sources if volume.projected is not None else None) or ():
            token = source.service_account_token
            if token is not None and validate_local_non_reserved_path(token.path or "", _NOWHERE):
                return True
    return False
