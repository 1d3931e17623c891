"""What a pod asks for as a whole, and the class of service that follows."""

from __future__ import annotations

import pytest

from pybernetes.api.core.podresources import aggregate_container_limits, aggregate_container_requests, qos_class
from pybernetes.api.core.v1 import Container, PodSpec, ResourceRequirements

SMALL = {"cpu": "100m", "memory": "1Gi"}


def container(requests: dict[str, str] | None = None, limits: dict[str, str] | None = None, **more: str) -> Container:
    return Container(name="c", resources=ResourceRequirements(requests=requests, limits=limits), **more)


def pod(*containers: Container, init: tuple[Container, ...] = (), whole: ResourceRequirements | None = None) -> PodSpec:
    return PodSpec(containers=list(containers), init_containers=list(init), resources=whole)


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        (PodSpec(), "BestEffort"),
        (pod(container()), "BestEffort"),
        (pod(container({"example.com/gpu": "1"}, {"example.com/gpu": "1"})), "BestEffort"),
        (pod(container({"cpu": "0"})), "BestEffort"),
        (pod(container({"cpu": "1"})), "Burstable"),
        (pod(container(SMALL, SMALL)), "Guaranteed"),
        (pod(container({"cpu": "0.1", "memory": "1024Mi"}, SMALL)), "Guaranteed"),
        (pod(container(SMALL, SMALL), container()), "Burstable"),
        (pod(container(SMALL, SMALL), init=(container(),)), "Burstable"),
        (pod(container({"cpu": "1"}, {"cpu": "1"})), "Burstable"),
        (pod(container(SMALL, {"cpu": "1", "memory": "1Gi"})), "Burstable"),
        (pod(container(), whole=ResourceRequirements(requests=SMALL, limits=SMALL)), "Guaranteed"),
        (pod(container(SMALL, SMALL), whole=ResourceRequirements(requests={"cpu": "1"})), "Burstable"),
    ],
)
def test_the_class_of_service_follows_from_requests_and_limits(spec: PodSpec, expected: str) -> None:
    assert qos_class(spec) == expected


def test_containers_add_up_and_init_containers_run_before_them() -> None:
    spec = pod(
        container({"cpu": "1", "memory": "1Gi"}),
        container({"cpu": "500m"}),
        init=(container({"cpu": "4"}), container({"memory": "512Mi"})),
    )
    assert {name: str(value) for name, value in aggregate_container_requests(spec).items()} == {
        "cpu": "4",
        "memory": "1Gi",
    }


def test_sidecars_count_with_what_runs_beside_and_after_them() -> None:
    spec = pod(
        container(limits={"cpu": "1"}),
        init=(
            container(limits={"cpu": "1"}, restart_policy="Always"),
            container(limits={"cpu": "3"}),
            container(limits={"cpu": "1"}, restart_policy="Always"),
        ),
    )
    # The second init container needs 3 while the first sidecar needs 1; the rest together need 3.
    assert str(aggregate_container_limits(spec)["cpu"]) == "4"
