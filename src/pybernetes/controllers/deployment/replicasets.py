"""Which of a Deployment's ReplicaSets is the new one, what a new one looks like, and sums over them."""

from __future__ import annotations

from collections.abc import Iterable

from pybernetes.api import names
from pybernetes.api.apps.v1 import Deployment, DeploymentSpec, ReplicaSet, ReplicaSetSpec
from pybernetes.api.core.v1.pod import PodTemplateSpec
from pybernetes.api.equality import semantically_equal
from pybernetes.api.meta.v1.labelselector import LabelSelector
from pybernetes.api.meta.v1.objectmeta import ObjectMeta
from pybernetes.client.keys import controller_reference, copy, uid_of

from ..common.meta import by_creation, name_of
from ..common.template_hash import POD_TEMPLATE_HASH, compute_hash


def spec_of(deployment: Deployment) -> DeploymentSpec:
    """The spec, which the server has made sure of."""
    return deployment.spec or DeploymentSpec()


def desired(deployment: Deployment) -> int:
    """How many replicas the Deployment should have."""
    replicas = spec_of(deployment).replicas
    return 1 if replicas is None else replicas


def size(replicaset: ReplicaSet) -> int:
    """How many replicas the ReplicaSet has been asked for."""
    return (replicaset.spec.replicas if replicaset.spec else None) or 0


def actual(replicaset: ReplicaSet) -> int:
    """How many pods the ReplicaSet reports."""
    return (replicaset.status.replicas if replicaset.status else None) or 0


def available(replicaset: ReplicaSet) -> int:
    """How many available pods the ReplicaSet reports."""
    return (replicaset.status.available_replicas if replicaset.status else None) or 0


def ready(replicaset: ReplicaSet) -> int:
    """How many ready pods the ReplicaSet reports."""
    return (replicaset.status.ready_replicas if replicaset.status else None) or 0


def terminating(replicasets: Iterable[ReplicaSet]) -> int | None:
    """How many pods are ending; None if a ReplicaSet has been looked at and does not say."""
    total = 0
    for each in replicasets:
        count = each.status.terminating_replicas if each.status else None
        if count is None and each.status and each.status.observed_generation:
            return None
        total += count or 0
    return total


def active(replicasets: Iterable[ReplicaSet]) -> list[ReplicaSet]:
    """The ReplicaSets that should have pods."""
    return [each for each in replicasets if size(each) > 0]


def equal_ignoring_hash(one: PodTemplateSpec | None, other: PodTemplateSpec | None) -> bool:
    """Whether two templates are the same but for the hash, which a Deployment's own template has not."""
    one, other = one or PodTemplateSpec(), other or PodTemplateSpec()
    return semantically_equal(one.spec, other.spec) and semantically_equal(_without_hash(one), _without_hash(other))


def _without_hash(template: PodTemplateSpec) -> ObjectMeta:
    source = template.metadata or ObjectMeta()
    labels = {key: value for key, value in (source.labels or {}).items() if key != POD_TEMPLATE_HASH}
    plain = {name: getattr(source, name) for name in source.__struct_fields__ if name != "labels"}
    return ObjectMeta(**plain, labels=labels or None)


def find_new(deployment: Deployment, replicasets: Iterable[ReplicaSet]) -> ReplicaSet | None:
    """The ReplicaSet with the Deployment's template; the oldest if there are several."""
    template = spec_of(deployment).template
    for each in sorted(replicasets, key=by_creation):
        if each.spec is not None and equal_ignoring_hash(each.spec.template, template):
            return each
    return None


def find_old(deployment: Deployment, replicasets: Iterable[ReplicaSet]) -> list[ReplicaSet]:
    """All ReplicaSets but the new one, from old to new."""
    ordered = sorted(replicasets, key=by_creation)
    new = find_new(deployment, ordered)
    return [each for each in ordered if new is None or uid_of(each) != uid_of(new)]


def template_hash(deployment: Deployment) -> str:
    """The hash of the Deployment's template."""
    collisions = deployment.status.collision_count if deployment.status else None
    return compute_hash(spec_of(deployment).template, collisions)


def new_replicaset(deployment: Deployment) -> ReplicaSet:
    """The ReplicaSet for the Deployment's template, still empty; its name is the template's, so none is made twice."""
    hashed = template_hash(deployment)
    source = copy(deployment)
    spec = spec_of(source)
    template = spec.template or PodTemplateSpec()
    template.metadata = template.metadata or ObjectMeta()
    template.metadata.labels = {**(template.metadata.labels or {}), POD_TEMPLATE_HASH: hashed}
    selector = spec.selector or LabelSelector()
    selector.match_labels = {**(selector.match_labels or {}), POD_TEMPLATE_HASH: hashed}
    return ReplicaSet(
        metadata=ObjectMeta(
            name=replicaset_name(name_of(deployment), hashed),
            namespace=source.metadata.namespace if source.metadata else None,
            labels=dict(template.metadata.labels),
            owner_references=[controller_reference(deployment)],
        ),
        spec=ReplicaSetSpec(replicas=0, min_ready_seconds=spec.min_ready_seconds, selector=selector, template=template),
    )


def replicaset_name(deployment: str, hashed: str) -> str:
    """The Deployment's name and the hash, the former cut where both are too long."""
    return f"{deployment[: names.DNS1123_SUBDOMAIN_MAX - 1 - len(hashed)]}-{hashed}"
