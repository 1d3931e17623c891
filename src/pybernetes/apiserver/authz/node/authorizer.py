"""The Node authorizer: kubelets report on themselves and their pods, and read what these need. Allows or has no
opinion.

A kubelet is who is called `system:node:NAME` and is in the group `system:nodes`. What it may write is limited further
by the admission plugin NodeRestriction, which sees the objects.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pybernetes.api.authorization.v1 import SubjectRulesReviewStatus
from pybernetes.api.fields import EQUALS
from pybernetes.api.gocompat.quote import quote
from pybernetes.api.rbac.v1 import ClusterRole

from ...requestinfo import RequestInfo
from ...user import User
from ..authorizer import ALLOW, NO_OPINION, Answer
from ..bootstrap_policy import bootstrap_policy
from ..resolver import Grants
from ..selectors import selectors_of
from .graph import Graph

if TYPE_CHECKING:
    from ...registry.registry import Registry

NODES = "system:nodes"
_PREFIX = "system:node:"
_LEASES = "kube-node-lease"
_WRITES = ("get", "create", "update", "patch", "delete")
_READS = ("get", "list", "watch")
_READ = frozenset((("", "secrets"), ("", "configmaps")))
_GET = frozenset(
    (("", "persistentvolumes"), ("resource.k8s.io", "resourceclaims"), ("storage.k8s.io", "volumeattachments"))
)

_ALLOW: Answer = (ALLOW, "")


def node_name(user: User) -> str | None:
    """The node a user is; "" = one without a name, None = it is none."""
    if not user.name.startswith(_PREFIX) or NODES not in user.groups:
        return None
    return user.name.removeprefix(_PREFIX)


class NodeAuthorizer:
    """Decides for kubelets."""

    kind = "Node"
    name = "node"

    def __init__(self, registry: Registry) -> None:
        self._graph = Graph(registry)
        self._rules: Grants | None = None

    def authorize(self, user: User, info: RequestInfo) -> Answer:
        """Allowed if the node needs it."""
        node = node_name(user)
        if node is None:
            return NO_OPINION, ""
        if not node:
            return _no(f"unknown node for user {quote(user.name)}")
        if info.is_resource:
            answer = self._subdivided(node, info)
            if answer is not None:
                return answer
            return _ALLOW if self._allowed_for_all(info) else _no("")
        return _no("")

    def rules(self, user: User, namespace: str) -> SubjectRulesReviewStatus:
        """Not listed: a node's permissions depend on its pods."""
        node = node_name(user) is not None
        error = "node authorizer does not support user rule resolution" if node else None
        return SubjectRulesReviewStatus(
            resource_rules=[], non_resource_rules=[], incomplete=node, evaluation_error=error
        )

    def _allowed_for_all(self, info: RequestInfo) -> bool:
        if self._rules is None:
            roles = [each for each in bootstrap_policy() if isinstance(each, ClusterRole)]
            rules = next(each.rules for each in roles if each.metadata and each.metadata.name == "system:node")
            self._rules = Grants([("", rules or [])], [])
        return self._rules.resource((info.verb, info.group, info.resource, info.subresource), info.name) is not None

    def _subdivided(self, node: str, info: RequestInfo) -> Answer | None:
        """For resources of which a node may see a part; None = no such resource."""
        resource = (info.group, info.resource)
        if resource in _READ:
            return self._read(node, info)
        if resource in _GET:
            return self._get(node, info)
        match resource:
            case ("", "pods"):
                return self._pod(node, info)
            case ("", "nodes"):
                return _node(node, info)
            case ("coordination.k8s.io", "leases"):
                return _lease(node, info)
            case ("", "persistentvolumeclaims"):
                return self._claim_status(node, info) if info.subresource == "status" else self._get(node, info)
            case ("", "serviceaccounts"):
                return self._service_account(node, info)
            case ("storage.k8s.io", "csinodes"):
                return _csi_node(node, info)
            case ("resource.k8s.io", "resourceslices"):
                return self._resource_slice(node, info)
            case ("certificates.k8s.io", "podcertificaterequests"):
                return _no("")
        return None

    def _related(self, node: str, info: RequestInfo) -> Answer:
        name = info.object_name
        if not name:
            return _no("No Object name found")
        if self._graph.leads_to(node, info.resource, info.namespace, name):
            return _ALLOW
        return _no(f"no relationship found between node '{node}' and this object")

    def _read(self, node: str, info: RequestInfo) -> Answer:
        if info.verb not in _READS:
            return _no("can only read resources of this type")
        if info.subresource:
            return _no("cannot read subresource")
        if not info.namespace:
            return _no("can only read namespaced object of this type")
        return self._related(node, info)

    def _get(self, node: str, info: RequestInfo) -> Answer:
        if info.verb != "get":
            return _no("can only get individual resources of this type")
        if info.subresource:
            return _no("cannot get subresource")
        return self._related(node, info)

    def _claim_status(self, node: str, info: RequestInfo) -> Answer:
        if info.verb not in ("update", "patch"):
            return _no("can only get/update/patch this type")
        return self._related(node, info)

    def _service_account(self, node: str, info: RequestInfo) -> Answer:
        if info.verb == "get" and not info.subresource:
            return self._read(node, info)
        if info.verb != "create" or not info.name:
            return _no("can only create tokens for individual service accounts")
        if info.subresource != "token":
            return _no("can only create token subresource of serviceaccount")
        return self._related(node, info)

    def _resource_slice(self, node: str, info: RequestInfo) -> Answer:
        verb = info.verb
        if info.subresource:
            return _no("cannot authorize ResourceSlice subresources")
        if verb == "create":
            return _ALLOW
        if verb in ("get", "update", "patch", "delete"):
            return self._related(node, info)
        if verb not in ("watch", "list", "deletecollection"):
            verbs = "get, watch, list, create, update, patch, delete, deletecollection"
            return _no(f"only the following verbs are allowed for a ResourceSlice: {verbs}")
        if _selects(info, "spec.nodeName", node):
            return _ALLOW
        return _no("can only list/watch/deletecollection resourceslices with nodeName field selector")

    def _pod(self, node: str, info: RequestInfo) -> Answer:
        verb = info.verb
        match info.subresource:
            case "":
                if verb == "get":
                    return self._get(node, info)
                if verb in ("list", "watch"):
                    if _selects(info, "spec.nodeName", node):
                        return _ALLOW
                    if info.object_name:
                        return self._related(node, info)
                    return _no("can only list/watch pods with spec.nodeName field selector")
                if verb in ("create", "delete"):
                    return _ALLOW
            case "status" if verb in ("update", "patch"):
                return _ALLOW
            case "eviction" if verb == "create":
                return _ALLOW
        return _no("")


def _node(node: str, info: RequestInfo) -> Answer:
    verb = info.verb
    if info.subresource == "status":
        return _ALLOW if verb in ("update", "patch") else _no("")
    if info.subresource:
        return _no("")
    if verb in ("create", "update", "patch"):
        return _ALLOW
    if verb not in _READS:
        return _no("")
    name = info.object_name
    if name == node:
        return _ALLOW
    what = f"'{name}'" if name else "all nodes"
    return _no(f"node '{node}' cannot read {what}, only its own Node object")


def _lease(node: str, info: RequestInfo) -> Answer:
    if info.verb not in _WRITES:
        return _no("can only get, create, update, patch, or delete a node lease")
    if info.namespace != _LEASES:
        return _no(f"can only access leases in the {quote(_LEASES)} system namespace")
    if info.verb != "create" and info.name != node:
        return _no("can only access node lease with the same name as the requesting node")
    return _ALLOW


def _csi_node(node: str, info: RequestInfo) -> Answer:
    if info.verb not in _WRITES:
        return _no("can only get, create, update, patch, or delete a CSINode")
    if info.subresource:
        return _no("cannot authorize CSINode subresources")
    if info.verb != "create" and info.name != node:
        return _no("can only access CSINode with the same name as the requesting node")
    return _ALLOW


def _selects(info: RequestInfo, field: str, value: str) -> bool:
    return (field, EQUALS, value) in selectors_of(info).fields


def _no(reason: str) -> Answer:
    return NO_OPINION, reason
