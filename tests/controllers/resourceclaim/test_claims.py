"""Which claims a pod has and needs."""

from __future__ import annotations

import pytest

from pybernetes.api.core.v1 import (
    Pod,
    PodExtendedResourceClaimStatus,
    PodResourceClaim,
    PodResourceClaimStatus,
    PodSpec,
    PodStatus,
)
from pybernetes.api.meta.v1 import ObjectMeta, OwnerReference
from pybernetes.api.resource.v1 import (
    AllocationResult,
    ResourceClaim,
    ResourceClaimConsumerReference,
    ResourceClaimStatus,
    ResourceClaimTemplate,
    ResourceClaimTemplateSpec,
)
from pybernetes.controllers.resourceclaim.claims import (
    FINALIZER,
    ClaimError,
    ClaimName,
    base_name,
    claim_name,
    claim_names,
    from_template,
    is_done,
    needs_work,
    released,
    reserved,
)

NAMED = PodResourceClaim(name="gpu", resource_claim_name="shared")
MADE = PodResourceClaim(name="gpu", resource_claim_template_name="template")


def pod(entry: PodResourceClaim, claim: str | None = "", *, node: str | None = None, **metadata: str) -> Pod:
    """`claim`: what the status says of the entry: a name, None = not needed, empty = nothing."""
    told = [PodResourceClaimStatus(name="gpu", resource_claim_name=claim)] if claim != "" else None
    return Pod(
        metadata=ObjectMeta(name="p", namespace="ns", uid="1", **metadata),  # type: ignore[arg-type]
        spec=PodSpec(resource_claims=[entry], node_name=node),
        status=PodStatus(resource_claim_statuses=told),
    )


def claim(owner: str | None = None, allocated: bool = False, *users: str) -> ResourceClaim:
    references = [OwnerReference(api_version="v1", kind="Pod", name="p", uid=owner, controller=True)] if owner else None
    return ResourceClaim(
        metadata=ObjectMeta(name="shared", namespace="ns", owner_references=references, finalizers=[FINALIZER]),
        status=ResourceClaimStatus(
            allocation=AllocationResult() if allocated else None,
            reserved_for=[ResourceClaimConsumerReference(resource="pods", name="x", uid=uid) for uid in users],
        ),
    )


def test_the_name_of_a_claim() -> None:
    assert claim_name(pod(NAMED), NAMED) == ClaimName("shared")
    assert claim_name(pod(MADE), MADE) == ClaimName(None, made=False)
    assert claim_name(pod(MADE, "p-gpu-x"), MADE) == ClaimName("p-gpu-x", generated=True)
    assert claim_name(pod(MADE, None), MADE) == ClaimName(None, generated=True)
    with pytest.raises(ClaimError, match="none of the supported fields are set"):
        claim_name(pod(MADE), PodResourceClaim(name="odd"))


def test_all_names_of_a_pod() -> None:
    whole = pod(MADE, "p-gpu-x")
    assert whole.status
    whole.status.extended_resource_claim_status = PodExtendedResourceClaimStatus(resource_claim_name="extended")
    assert list(claim_names(whole)) == ["p-gpu-x", "extended"]
    assert list(claim_names(pod(MADE))) == []


@pytest.mark.parametrize(
    ("it", "existing", "expected"),
    [
        (pod(NAMED), None, False),  # the user's to make
        (pod(NAMED), claim(), False),
        (pod(NAMED, node="n"), claim(), False),
        (pod(NAMED, node="n"), claim(None, True), True),
        (pod(NAMED, node="n"), claim(None, True, "1"), False),
        (pod(NAMED, node="n"), claim(None, True, "2"), True),
        (pod(NAMED), claim(None, True), False),  # the scheduler's to reserve
        (pod(MADE), None, True),
        (pod(MADE, None), None, False),
        (pod(MADE, "shared"), None, True),
        (pod(MADE, "shared"), claim("1"), False),
        (pod(MADE, "shared", node="n"), claim("2", True), False),
        (pod(MADE, deletion_timestamp="2024-01-01T00:00:00Z"), None, False),
        (pod(PodResourceClaim(name="odd")), None, True),
    ],
)
def test_whether_there_is_work(it: Pod, existing: ResourceClaim | None, expected: bool) -> None:
    assert needs_work(it, lambda _: existing) is expected


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (("web", "gpu"), "web-gpu-"),
        (("p" * 50, "gpu"), f"{'p' * 51}"[:50] + "-gpu-"),
        (("p" * 60, "c" * 20), "p" * 41 + "-" + "c" * 13),
    ],
)
def test_long_names_are_shortened_both(names: tuple[str, str], expected: str) -> None:
    assert base_name(*names) == expected
    assert len(expected) <= 57


def test_a_claim_is_what_the_template_says_and_belongs_to_the_pod() -> None:
    template = ResourceClaimTemplate(
        spec=ResourceClaimTemplateSpec(metadata=ObjectMeta(labels={"l": "1"}, annotations={"a": "2"}))
    )
    made = from_template(pod(MADE), MADE, template).metadata
    assert made
    assert (made.generate_name, made.namespace, made.labels) == ("p-gpu-", "ns", {"l": "1"})
    assert made.annotations == {"a": "2", "resource.kubernetes.io/pod-claim-name": "gpu"}
    owner = OwnerReference(api_version="v1", kind="Pod", name="p", uid="1", controller=True)
    assert made.owner_references == [owner]
    assert template.spec
    assert template.spec.metadata == ObjectMeta(labels={"l": "1"}, annotations={"a": "2"})


def test_the_last_user_takes_the_devices_with_him() -> None:
    used = claim(None, True, "1", "2")
    assert used.status
    assert used.status.reserved_for
    one = released(used, used.status.reserved_for[:1])
    assert one.status
    assert one.status.allocation is not None
    none = released(used, [])
    assert none.status == ResourceClaimStatus()
    assert len(used.status.reserved_for) == 2
    again = reserved(none, pod(NAMED))
    assert again.status
    assert again.status.reserved_for == [ResourceClaimConsumerReference(resource="pods", name="p", uid="1")]


def test_nothing_is_made_for_a_pod_that_has_ended() -> None:
    ended = pod(MADE, "shared", node="n")
    assert ended.status
    ended.status.phase = "Succeeded"
    assert not needs_work(ended, lambda _: None)


def test_who_is_done() -> None:
    gone = "2024-01-01T00:00:00Z"
    assert not is_done(pod(NAMED))
    assert is_done(pod(NAMED, deletion_timestamp=gone))
    assert not is_done(pod(NAMED, node="n", deletion_timestamp=gone))
    ended = pod(NAMED, node="n")
    ended.status = PodStatus(phase="Succeeded")
    assert is_done(ended)
