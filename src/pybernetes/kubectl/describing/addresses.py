"""Descriptions of IngressClasses, ServiceCIDRs and IPAddresses."""

from __future__ import annotations

from pybernetes.kubectl.describing.description import Description
from pybernetes.kubectl.describing.text import when


def ingress_class(this: Description) -> None:
    """An IngressClass with the object that holds its parameters."""
    this.head(namespace=False)
    this.write(0, f"Controller:\t{this.get('spec', 'controller', default='')}\n")
    parameters = this.get("spec", "parameters")
    if parameters:
        this.write(0, "Parameters:\n")
        if parameters.get("apiGroup") is not None:
            this.write(1, f"APIGroup:\t{parameters['apiGroup']}\n")
        this.write(1, f"Kind:\t{parameters.get('kind', '')}\n")
        this.write(1, f"Name:\t{parameters.get('name', '')}\n")
    this.events()


def service_cidr(this: Description) -> None:
    """A ServiceCIDR with its conditions."""
    this.head(namespace=False)
    this.write(0, f"CIDRs:\t{', '.join(this.get('spec', 'cidrs', default=[]))}\n")
    conditions = this.get("status", "conditions", default=[])
    if conditions:
        this.write(0, "Status:\nConditions:\n")
        this.write(1, "Type\tStatus\tLastTransitionTime\tReason\tMessage\n")
        this.write(1, "----\t------\t------------------\t------\t-------\n")
    for each in conditions:
        changed = when(each.get("lastTransitionTime"))
        columns = (each.get("type"), each.get("status"), changed, each.get("reason"), each.get("message"))
        this.write(1, "\t".join(str(column or "") for column in columns) + "\n")
    this.events()


def ip_address(this: Description) -> None:
    """An IPAddress with the Service that it belongs to."""
    this.head(namespace=False)
    parent = this.get("spec", "parentRef")
    if parent:
        this.write(0, "Parent Reference:\n")
        for title in ("Group", "Resource", "Namespace", "Name"):
            this.write(1, f"{title}:\t{parent.get(title.lower(), '')}\n")
    this.events()
