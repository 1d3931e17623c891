"""Ingresses and their classes, network policies, addresses and ranges of services."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pybernetes.api.networking.v1 import (
    Ingress,
    IngressClass,
    IngressClassSpec,
    IngressRule,
    IngressSpec,
    IPAddress,
    NetworkPolicy,
    ServiceCIDR,
)

from . import formats
from .printer import AGE, NAME, NONE, Cells, Printer, age, annotation, name, text

_HOSTS_SHOWN: Final = 3
_DEFAULT_CLASS: Final = "ingressclass.kubernetes.io/is-default-class"


def _ingress(ingress: Ingress, now: float) -> Cells:
    spec = ingress.spec or IngressSpec()
    return [
        name(ingress),
        NONE if spec.ingress_class_name is None else spec.ingress_class_name,
        _hosts(spec.rules or ()),
        _addresses(ingress),
        "80, 443" if spec.tls else "80",
        age(ingress, now),
    ]


def _hosts(rules: Sequence[IngressRule]) -> str:
    """The first hosts; the rules after them are counted, whether they name a host or not."""
    shown: list[str] = []
    for rule in rules:
        if len(shown) == _HOSTS_SHOWN:
            return f"{','.join(shown)} + {len(rules) - _HOSTS_SHOWN} more..."
        if rule.host:
            shown.append(rule.host)
    return ",".join(shown) or "*"


def _addresses(ingress: Ingress) -> str:
    balancer = ingress.status.load_balancer if ingress.status else None
    points = (balancer.ingress if balancer else None) or ()
    return ",".join(sorted({each.ip or each.hostname or "" for each in points} - {""}))


def _ingress_class(ingress_class: IngressClass, now: float) -> Cells:
    spec = ingress_class.spec or IngressClassSpec()
    default = " (default)" if annotation(ingress_class, _DEFAULT_CLASS) == "true" else ""
    return [f"{name(ingress_class)}{default}", spec.controller or "", _parameters(spec), age(ingress_class, now)]


def _parameters(spec: IngressClassSpec) -> str:
    given = spec.parameters
    if given is None:
        return NONE
    group = "" if given.api_group is None else f".{given.api_group}"
    return f"{given.kind or ''}{group}/{given.name or ''}"


def _network_policy(policy: NetworkPolicy, now: float) -> Cells:
    selector = policy.spec.pod_selector if policy.spec else None
    return [name(policy), formats.label_selector(selector), age(policy, now)]


def _ip_address(address: IPAddress, now: float) -> Cells:
    """One cell more than columns, as upstream has it; clients drop the age."""
    return [name(address), _parent(address), age(address, now)]


def _parent(address: IPAddress) -> str:
    parent = address.spec.parent_ref if address.spec else None
    if parent is None:
        return NONE
    resource = f"{parent.resource or ''}.{parent.group}" if parent.group else parent.resource or ""
    return "/".join([resource.lower(), *([parent.namespace] if parent.namespace else []), parent.name or ""])


def _service_cidr(cidr: ServiceCIDR, now: float) -> Cells:
    return [name(cidr), ",".join((cidr.spec.cidrs if cidr.spec else None) or ()), age(cidr, now)]


PRINTERS: Final[dict[str, Printer]] = {
    "IPAddress": Printer((NAME, text("ParentRef", "Who has the address")), _ip_address),
    "Ingress": Printer(
        (
            NAME,
            text("Class", "Which controller implements it"),
            text("Hosts", "Names it answers to"),
            text("Address", "Where it is reached"),
            text("Ports", "Ports it listens on"),
            AGE,
        ),
        _ingress,
    ),
    "IngressClass": Printer(
        (
            NAME,
            text("Controller", "Who implements ingresses of this class"),
            text("Parameters", "Object with settings for the controller"),
            AGE,
        ),
        _ingress_class,
    ),
    "NetworkPolicy": Printer((NAME, text("Pod-Selector", "Pods it applies to"), AGE), _network_policy),
    "ServiceCIDR": Printer((NAME, text("CIDRs", "Ranges of addresses"), AGE), _service_cidr),
}
