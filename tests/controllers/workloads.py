"""Short ways to make the objects that tests of workloads need."""

from __future__ import annotations

from typing import Any

from pybernetes.api.core.v1.container import Container
from pybernetes.api.core.v1.pod import Pod, PodSpec, PodTemplateSpec
from pybernetes.api.meta.v1.labelselector import LabelSelector
from pybernetes.api.meta.v1.objectmeta import ObjectMeta

LABELS = {"app": "web"}
SELECTOR = LabelSelector(match_labels=LABELS)


def template(image: str = "registry.example/web:1", **spec: Any) -> PodTemplateSpec:
    """A template with one container; annotations for the fake kubelet by `told`."""
    told = spec.pop("told", None)
    return PodTemplateSpec(
        metadata=ObjectMeta(labels=dict(LABELS), annotations=told),
        spec=PodSpec(containers=[Container(name="web", image=image)], **spec),
    )


def bare_pod(name: str, namespace: str, labels: dict[str, str] | None = None) -> Pod:
    """A pod without a controller."""
    made = template()
    return Pod(metadata=ObjectMeta(name=name, namespace=namespace, labels=labels or dict(LABELS)), spec=made.spec)


def image_of(pod: Pod) -> str:
    """The image of the first container."""
    assert pod.spec is not None
    assert pod.spec.containers
    return pod.spec.containers[0].image or ""
