"""Limits writes of kubelets: their own Node, the status of their own pods, and what these need to run.

A node that has been broken into must not be able to draw other pods to itself, by its labels and taints, nor to reach
what pods of other nodes may reach. The Node authorizer says which objects a kubelet may name; this looks at what it
writes into them.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from typing import Any, Final

import msgspec

from pybernetes.api import pem
from pybernetes.api.core.containers import all_containers
from pybernetes.api.core.podsecrets import secret_names
from pybernetes.api.core.v1 import Node, NodeSpec, PersistentVolumeClaimStatus, Pod, PodSpec, PodStatus
from pybernetes.api.equality import semantically_equal
from pybernetes.api.errors import NotFound
from pybernetes.api.gocompat.quote import quote
from pybernetes.api.meta.v1 import ObjectMeta

from ..authz.node.authorizer import node_name
from ..registry.lister import lister
from .plugin import CREATE, DELETE, UPDATE, Attributes, Plugin, forbidden
from .service_account import MIRROR

_LEASES: Final = "kube-node-lease"
_OWN_LABELS: Final = frozenset(
    (
        "kubernetes.io/hostname",
        "topology.kubernetes.io/zone",
        "topology.kubernetes.io/region",
        "failure-domain.beta.kubernetes.io/zone",
        "failure-domain.beta.kubernetes.io/region",
        "beta.kubernetes.io/instance-type",
        "node.kubernetes.io/instance-type",
        "kubernetes.io/os",
        "kubernetes.io/arch",
        "beta.kubernetes.io/os",
        "beta.kubernetes.io/arch",
    )
)
_OWN_DOMAINS: Final = ("kubelet.kubernetes.io", "node.kubernetes.io")
_RESTRICTED: Final = "node-restriction.kubernetes.io"
_SIGNERS: Final = ("kubernetes.io/kubelet-serving", "kubernetes.io/kube-apiserver-client-kubelet")


class NodeRestriction(Plugin):
    """Upstream's NodeRestriction."""

    name = "NodeRestriction"
    operations = (CREATE, UPDATE, DELETE)
    resources = (
        "pods/*",
        "nodes/*",
        "persistentvolumeclaims/*",
        "serviceaccounts/token",
        "leases.coordination.k8s.io",
        "csinodes.storage.k8s.io",
        "resourceslices.resource.k8s.io",
        "certificatesigningrequests.certificates.k8s.io",
    )

    def admit(self, attributes: Attributes) -> Awaitable[None] | None:
        node = node_name(attributes.user)
        if node is None:
            return None
        if not node:
            raise forbidden(attributes, f"could not determine node from user {quote(attributes.user.name)}")
        return _RULES[attributes.resource.plural](self, node, attributes)

    # -- pods ---------------------------------------------------------------------------------------------------

    def _pod(self, node: str, attributes: Attributes) -> None:
        rule = {"": self._mirror_pod, "status": self._pod_status, "eviction": self._eviction}.get(
            attributes.subresource
        )
        if rule is None:
            sub = quote(attributes.subresource)
            raise forbidden(attributes, f"unexpected pod subresource {sub}, only 'status' and 'eviction' are allowed")
        rule(node, attributes)

    def _mirror_pod(self, node: str, attributes: Attributes) -> None:
        if attributes.operation == DELETE:
            if (attributes.old.spec or PodSpec()).node_name != node:
                why = f"node {quote(node)} can only delete pods with spec.nodeName set to itself"
                raise forbidden(attributes, why)
            return
        if attributes.operation == UPDATE:
            why = f'unexpected operation "UPDATE", node {quote(node)} can only create and delete mirror pods'
            raise forbidden(attributes, why)
        pod: Pod = attributes.new
        meta, spec = pod.metadata or ObjectMeta(), pod.spec or PodSpec()
        if MIRROR not in (meta.annotations or {}):
            why = f"pod does not have {quote(MIRROR)} annotation, node {quote(node)} can only create mirror pods"
            raise forbidden(attributes, why)
        if spec.node_name != node:
            raise forbidden(attributes, f"node {quote(node)} can only create pods with spec.nodeName set to itself")
        self._check_owner(node, meta, attributes)
        referred = next(_references(pod, spec), None)
        if referred is not None:
            raise forbidden(attributes, f"node {quote(node)} can not create pods that reference {referred}")

    def _check_owner(self, node: str, meta: ObjectMeta, attributes: Attributes) -> None:
        """A mirror pod belongs to its node, and goes with it."""
        owners = meta.owner_references or []
        only = f"node {quote(node)} can only create pods with"
        if len(owners) > 1:
            raise forbidden(attributes, f"{only} a single owner reference set to itself")
        owner = owners[0] if owners else None
        if owner is None or (owner.api_version, owner.kind, owner.name) != ("v1", "Node", node):
            raise forbidden(attributes, f"{only} an owner reference set to itself")
        if not owner.controller:
            raise forbidden(attributes, f"{only} a controller owner reference set to itself")
        if owner.block_owner_deletion:
            raise forbidden(attributes, f"node {quote(node)} must not set blockOwnerDeletion on an owner reference")
        present = lister(self.registry, "", "v1", "nodes").get("", node)
        if present is None:
            raise NotFound("", "node", node)
        if owner.uid != present.metadata.uid:
            why = f"node {node} UID mismatch: expected {owner.uid or ''} got {present.metadata.uid}"
            raise forbidden(attributes, why)

    def _pod_status(self, node: str, attributes: Attributes) -> None:
        if attributes.operation != UPDATE:
            raise forbidden(attributes, f"unexpected operation {quote(attributes.operation)}")
        new, old = attributes.new, attributes.old
        if (old.spec or PodSpec()).node_name != node:
            why = f"node {quote(node)} can only update pod status for pods with spec.nodeName set to itself"
            raise forbidden(attributes, why)
        if (new.metadata.labels or {}) != (old.metadata.labels or {}):
            raise forbidden(attributes, f"node {quote(node)} cannot update labels through pod status")
        after, before = new.status or PodStatus(), old.status or PodStatus()
        if (after.resource_claim_statuses or []) != (before.resource_claim_statuses or []):
            raise forbidden(attributes, f"node {quote(node)} cannot update resource claim statues")
        if after.extended_resource_claim_status != before.extended_resource_claim_status:
            raise forbidden(attributes, f"node {quote(node)} cannot update extended resource claim status")

    def _eviction(self, node: str, attributes: Attributes) -> None:
        pod = lister(self.registry, "", "v1", "pods").get(attributes.namespace, attributes.name)
        if pod is None:
            raise NotFound("", "pod", attributes.name)
        if (pod.spec or PodSpec()).node_name != node:
            raise forbidden(attributes, f"node {node} can only evict pods with spec.nodeName set to itself")

    # -- nodes --------------------------------------------------------------------------------------------------

    def _node(self, node: str, attributes: Attributes) -> None:
        if attributes.name != node:
            raise forbidden(attributes, f"node {quote(node)} is not allowed to modify node {quote(attributes.name)}")
        if attributes.operation == DELETE:
            return
        new: Node = attributes.new
        labels = (new.metadata.labels if new.metadata else None) or {}
        source = (new.spec or NodeSpec()).config_source
        if attributes.operation == CREATE:
            if source is not None:
                why = f"node {quote(node)} is not allowed to create pods with a non-nil configSource"
                raise forbidden(attributes, why)
            wrong = _forbidden_labels(labels, {})
            if wrong:
                why = f"node {quote(node)} is not allowed to set the following labels: {', '.join(wrong)}"
                raise forbidden(attributes, why)
            return
        old: Node = attributes.old
        before = old.spec or NodeSpec()
        if source is not None and not semantically_equal(source, before.config_source):
            why = f"node {quote(node)} is not allowed to update configSource to a new non-nil configSource"
            raise forbidden(attributes, why)
        if not semantically_equal((new.spec or NodeSpec()).taints, before.taints):
            raise forbidden(attributes, f"node {quote(node)} is not allowed to modify taints")
        meta, before_meta = new.metadata or ObjectMeta(), old.metadata or ObjectMeta()
        if not semantically_equal(meta.owner_references, before_meta.owner_references):
            raise forbidden(attributes, f"node {quote(node)} is not allowed to modify ownerReferences")
        wrong = _forbidden_labels(labels, (old.metadata.labels if old.metadata else None) or {})
        if wrong:
            raise forbidden(attributes, f"is not allowed to modify labels: {', '.join(wrong)}")

    # -- the rest -----------------------------------------------------------------------------------------------

    def _claim(self, node: str, attributes: Attributes) -> None:
        """A kubelet reports how large a volume has become, and nothing else."""
        if attributes.subresource != "status":
            raise forbidden(attributes, "may only update PVC status")
        if attributes.operation != UPDATE:
            raise forbidden(attributes, f"unexpected operation {quote(attributes.operation)}")
        if not semantically_equal(_rest_of(attributes.new), _rest_of(attributes.old)):
            raise forbidden(
                attributes,
                f"node {quote(node)} is not allowed to update fields other than status.quantity and status.conditions",
            )

    def _token(self, node: str, attributes: Attributes) -> Awaitable[None] | None:
        from .node_tokens import check_token_request

        return check_token_request(self.registry, node, attributes)

    def _lease(self, node: str, attributes: Attributes) -> None:
        if attributes.namespace != _LEASES:
            raise forbidden(attributes, f"can only access leases in the {quote(_LEASES)} system namespace")
        if attributes.name != node:
            raise forbidden(attributes, "can only access node lease with the same name as the requesting node")

    def _csi_node(self, node: str, attributes: Attributes) -> None:
        if attributes.name != node:
            raise forbidden(attributes, "can only access CSINode with the same name as the requesting node")

    def _resource_slice(self, node: str, attributes: Attributes) -> None:
        if attributes.operation == UPDATE:
            return
        obj, verb = (attributes.new, "create") if attributes.operation == CREATE else (attributes.old, "delete")
        if obj.spec is None or obj.spec.node_name != node:
            why = f"can only {verb} ResourceSlice with the same NodeName as the requesting node"
            raise forbidden(attributes, why)

    def _certificate(self, node: str, attributes: Attributes) -> None:
        if attributes.operation != CREATE or attributes.new.spec.signer_name not in _SIGNERS:
            return
        from cryptography import x509
        from cryptography.x509.oid import NameOID

        try:
            subject = x509.load_pem_x509_csr(pem.decoded(attributes.new.spec.request)).subject
        except ValueError as error:
            raise forbidden(attributes, f"unable to parse csr: {error}") from None
        names = [each.value for each in subject.get_attributes_for_oid(NameOID.COMMON_NAME)]
        if names != [f"system:node:{node}"]:
            raise forbidden(attributes, f"can only create a node CSR with CN=system:node:{node}")


_RULES: Final[dict[str, Callable[[NodeRestriction, str, Attributes], Awaitable[None] | None]]] = {
    "pods": NodeRestriction._pod,
    "nodes": NodeRestriction._node,
    "persistentvolumeclaims": NodeRestriction._claim,
    "serviceaccounts": NodeRestriction._token,
    "leases": NodeRestriction._lease,
    "csinodes": NodeRestriction._csi_node,
    "resourceslices": NodeRestriction._resource_slice,
    "certificatesigningrequests": NodeRestriction._certificate,
}


def _forbidden_labels(new: dict[str, str], old: dict[str, str]) -> list[str]:
    """The changed labels that are not a kubelet's to change: those of Kubernetes, but for a few about the machine."""
    changed = sorted(key for key in new.keys() | old.keys() if new.get(key) != old.get(key))
    return [key for key in changed if _is_forbidden(key)]


def _is_forbidden(key: str) -> bool:
    domain, slash, _ = key.partition("/")
    domain = domain if slash else ""
    if _within(domain, _RESTRICTED):
        return True
    if not _within(domain, "kubernetes.io") and not _within(domain, "k8s.io"):
        return False
    return key not in _OWN_LABELS and not any(_within(domain, each) for each in _OWN_DOMAINS)


def _within(domain: str, parent: str) -> bool:
    return domain == parent or domain.endswith(f".{parent}")


def _references(pod: Pod, spec: PodSpec) -> Iterator[str]:
    """The API objects that a pod refers to, which a kubelet's mirror pods must not have."""
    if spec.service_account_name:
        yield "serviceaccounts"
    if next(iter(secret_names(pod)), None) is not None:
        yield "secrets"
    for container in all_containers(spec):
        sources = [each.config_map_ref for each in container.env_from or ()]
        sources += [each.value_from.config_map_key_ref for each in container.env or () if each.value_from]  # type: ignore[misc]
        if any(each is not None for each in sources):
            yield "configmaps"
    if spec.resource_claims:
        yield "resourceclaims"
    for volume in spec.volumes or ():
        yield from (shown for field, shown in _VOLUMES.items() if getattr(volume, field) is not None)
        for source in (volume.projected.sources if volume.projected is not None else None) or ():
            yield from (shown for field, shown in _PROJECTED.items() if getattr(source, field) is not None)


_VOLUMES: Final = {
    "config_map": "configmaps",
    "csi": "csidrivers (via CSI volumes)",
    "glusterfs": "endpoints (via glusterFS volumes)",
    "persistent_volume_claim": "persistentvolumeclaims",
    "ephemeral": "persistentvolumeclaims (via ephemeral volumes)",
}
_PROJECTED: Final = {
    "config_map": "configmaps",
    "service_account_token": "serviceaccounts (via projected volumes)",
    "cluster_trust_bundle": "clustertrustbundles",
    "pod_certificate": "podcertificates",
}


def _rest_of(claim: Any) -> Any:
    """A claim without what a kubelet may report."""
    meta = msgspec.structs.replace(claim.metadata, resource_version=None, managed_fields=None)
    status = msgspec.structs.replace(
        claim.status or PersistentVolumeClaimStatus(),
        capacity=None,
        conditions=None,
        allocated_resources=None,
        allocated_resource_statuses=None,
    )
    return msgspec.structs.replace(claim, kind=None, api_version=None, metadata=meta, status=status)
