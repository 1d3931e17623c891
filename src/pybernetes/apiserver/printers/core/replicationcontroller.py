"""ReplicationControllers and pod templates."""

from __future__ import annotations

from typing import Final

from pybernetes.api.core.v1 import (
    PodTemplate,
    ReplicationController,
    ReplicationControllerSpec,
    ReplicationControllerStatus,
)

from .. import formats
from ..printer import AGE, CONTAINERS, IMAGES, NAME, SELECTOR, Cells, Printer, age, integer, name, text


def _controller(controller: ReplicationController, now: float) -> Cells:
    spec = controller.spec or ReplicationControllerSpec()
    status = controller.status or ReplicationControllerStatus()
    return [
        name(controller),
        spec.replicas or 0,
        status.replicas or 0,
        status.ready_replicas or 0,
        age(controller, now),
        *formats.containers(spec.template),
        formats.label_set(spec.selector),
    ]


def _template(template: PodTemplate, now: float) -> Cells:
    pod = template.template
    labels = pod.metadata.labels if pod and pod.metadata else None
    return [name(template), *formats.containers(pod), formats.label_set(labels)]


REPLICATION_CONTROLLER: Final = Printer(
    (
        NAME,
        integer("Desired", "Pods that are asked for"),
        integer("Current", "Pods that there are"),
        integer("Ready", "Pods that are ready"),
        AGE,
        CONTAINERS,
        IMAGES,
        SELECTOR,
    ),
    _controller,
)
POD_TEMPLATE: Final = Printer(
    (
        NAME,
        text("Containers", "Names of the template's containers"),
        text("Images", "Images of the template's containers"),
        text("Pod Labels", "Labels of the pods made from it"),
    ),
    _template,
)
