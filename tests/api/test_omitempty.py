"""What says nothing is left out, and a pointer's zero says something."""

from __future__ import annotations

from pybernetes.api.apps.v1 import Deployment, DeploymentSpec, DeploymentStatus
from pybernetes.api.batch.v1 import Job, JobSpec
from pybernetes.api.core.v1.pod import PodSpec, PodTemplateSpec
from pybernetes.api.meta.v1.labelselector import LabelSelector, LabelSelectorRequirement
from pybernetes.api.meta.v1.objectmeta import ObjectMeta
from pybernetes.api.omitempty import drop


def test_zeroes_go_and_pointers_stay() -> None:
    spec = DeploymentSpec(paused=False, min_ready_seconds=0, replicas=0, revision_history_limit=0)
    status = DeploymentStatus(replicas=0, collision_count=0, conditions=[])
    deployment = Deployment(metadata=ObjectMeta(name="a", labels={}, finalizers=[]), spec=spec, status=status)
    drop(deployment)
    assert deployment == Deployment(
        metadata=ObjectMeta(name="a"),
        spec=DeploymentSpec(replicas=0, revision_history_limit=0),
        status=DeploymentStatus(collision_count=0),
    )


def test_parts_within_lists_are_reached() -> None:
    expressions = [LabelSelectorRequirement(key="a", operator="Exists", values=[])]
    job = Job(spec=JobSpec(suspend=False, selector=LabelSelector(match_labels={}, match_expressions=expressions)))
    drop(job)
    kept = LabelSelector(match_expressions=[LabelSelectorRequirement(key="a", operator="Exists")])
    assert job == Job(spec=JobSpec(suspend=False, selector=kept))


def test_pod_templates_are_left_to_those_who_know_pods() -> None:
    template = PodTemplateSpec(spec=PodSpec(host_network=False))
    deployment = Deployment(spec=DeploymentSpec(template=template))
    drop(deployment)
    assert deployment.spec is not None
    assert deployment.spec.template == PodTemplateSpec(spec=PodSpec(host_network=False))
