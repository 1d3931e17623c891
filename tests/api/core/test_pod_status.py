"""Resources of the node that claims give to a pod's containers, in its status."""

from __future__ import annotations

import pytest

from pybernetes.api.core.v1 import Container, PodSpec, PodStatus
from pybernetes.api.core.v1.pod import NodeAllocatableResourceClaimStatus, PodResourceClaim
from pybernetes.api.core.validation.podstatus import _validate_allocatable_claims

SPEC = PodSpec(
    containers=[Container(name="c")], resource_claims=[PodResourceClaim(name="a", resource_claim_name="known")]
)
WHERE = "status.nodeAllocatableResourceClaimStatuses[0]"


@pytest.mark.parametrize(
    ("resources", "messages"),
    [
        ({"cpu": "1", "memory": "1Mi"}, []),
        (None, [f"{WHERE}.resources: Required value: must not be empty"]),
        ({"cpu": "-1"}, [f'{WHERE}.resources[cpu]: Invalid value: "-1": must be non-negative']),
        (
            {"example.com/gpu": "1"},
            [
                f'{WHERE}.resources[example.com/gpu]: Invalid value: "example.com/gpu": '
                "must be a node allocatable resource name"
            ],
        ),
    ],
)
def test_resources_of_claims_are_the_nodes_own(resources: dict[str, str] | None, messages: list[str]) -> None:
    claim = NodeAllocatableResourceClaimStatus(resource_claim_name="known", containers=["c"], resources=resources)
    found = _validate_allocatable_claims([claim], PodStatus(), SPEC)
    assert [str(each) for each in found] == messages
