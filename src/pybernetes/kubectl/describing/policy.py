"""`kubectl describe networkpolicy`."""

from __future__ import annotations

from pybernetes.kubectl.describing.description import Description
from pybernetes.kubectl.describing.text import selector_text, write_annotations, write_labels

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_PAD = "    "


def network_policy(this: Description) -> None:
    """A NetworkPolicy: which pods it selects and what they may receive and send."""
    spec = this.obj.get("spec") or {}
    created = str(this.get("metadata", "creationTimestamp", default="")).replace("T", " ").replace("Z", " +0000 UTC")
    this.write(0, f"Name:\t{this.info.name}\nNamespace:\t{this.info.namespace}\nCreated on:\t{created}\n")
    write_labels(this, "Labels", this.get("metadata", "labels"))
    write_annotations(this, "Annotations", this.get("metadata", "annotations"))
    this.write(0, "Spec:\n")
    this.write(1, "PodSelector: ")
    nothing = "<none> (Allowing the specific traffic to all pods in this namespace)"
    this.write(2, f"{selector_text(spec.get('podSelector')) or nothing}\n")
    types = spec.get("policyTypes") or []
    for kind, key in (("Ingress", "ingress"), ("Egress", "egress")):
        if kind in types:
            this.write(1, f"Allowing {key} traffic:\n")
            _rules(this, key, spec.get(key) or [])
        else:
            this.write(1, f"Not affecting {key} traffic\n")
    this.write(1, f"Policy Types: {', '.join(types) or '<none>'}\n")


def _rules(this: Description, direction: str, rules: list[dict[str, Any]]) -> None:
    peers, title, end = ("from", "From", "source") if direction == "ingress" else ("to", "To", "destination")
    if not rules:
        this.write(0, f"{_PAD}<none> (Selected pods are isolated for {direction} connectivity)\n")
    for at, rule in enumerate(rules):
        if at:
            this.write(0, f"{_PAD}----------\n")
        for port in rule.get("ports") or ():
            protocol = port.get("protocol") or "TCP"
            number = port.get("port", "<nil>")
            if port.get("endPort") is None:
                this.write(0, f"{_PAD}To Port: {number}/{protocol}\n")
            else:
                this.write(0, f"{_PAD}To Port Range: {number}-{port['endPort']}/{protocol}\n")
        if not rule.get("ports"):
            this.write(0, f"{_PAD}To Port: <any> (traffic allowed to all ports)\n")
        for peer in rule.get(peers) or ():
            this.write(0, f"{_PAD}{title}:\n")
            _peer(this, peer)
        if not rule.get(peers):
            this.write(0, f"{_PAD}{title}: <any> (traffic not restricted by {end})\n")


def _peer(this: Description, peer: dict[str, Any]) -> None:
    for key, title in (("namespaceSelector", "NamespaceSelector"), ("podSelector", "PodSelector")):
        if peer.get(key) is not None:
            this.write(1, f"{_PAD}{title}: {selector_text(peer[key]) or '<none>'}\n")
    block = peer.get("ipBlock")
    if block and peer.get("podSelector") is None and peer.get("namespaceSelector") is None:
        this.write(1, f"{_PAD}IPBlock:\n")
        this.write(2, f"{_PAD}CIDR: {block.get('cidr', '')}\n")
        this.write(2, f"{_PAD}Except: {', '.join(block.get('except') or ())}\n")
