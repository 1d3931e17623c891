"""What a terminating namespace says about itself."""

from __future__ import annotations

from pybernetes.controllers.namespace.conditions import Findings, update_conditions

THEN, NOW = "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"


def test_all_five_conditions_are_there_when_all_is_well() -> None:
    conditions = update_conditions(None, Findings(), NOW)
    assert conditions is not None
    assert [(each.type, each.status, each.reason) for each in conditions] == [
        ("NamespaceDeletionDiscoveryFailure", "False", "ResourcesDiscovered"),
        ("NamespaceDeletionGroupVersionParsingFailure", "False", "ParsedGroupVersions"),
        ("NamespaceDeletionContentFailure", "False", "ContentDeleted"),
        ("NamespaceContentRemaining", "False", "ContentRemoved"),
        ("NamespaceFinalizersRemaining", "False", "ContentHasNoFinalizers"),
    ]


def test_what_remains_is_named_and_counted() -> None:
    findings = Findings(
        remaining={("pods", ""): 2, ("deployments", "apps"): 1, ("secrets", ""): 0},
        finalizers={"custom.io/finalizer": 1, "a/b": 2},
    )
    conditions = {each.type: each for each in update_conditions(None, findings, NOW) or ()}
    assert conditions["NamespaceContentRemaining"].message == (
        "Some resources are remaining: deployments.apps has 1 resource instances, pods. has 2 resource instances"
    )
    assert conditions["NamespaceFinalizersRemaining"].message == (
        "Some content in the namespace has finalizers remaining: "
        "a/b in 2 resource instances, custom.io/finalizer in 1 resource instances"
    )
    assert conditions["NamespaceFinalizersRemaining"].reason == "SomeFinalizersRemain"


def test_failures_are_sorted_and_counted() -> None:
    conditions = {each.type: each for each in update_conditions(None, Findings(failures=["b", "a"]), NOW) or ()}
    failure = conditions["NamespaceDeletionContentFailure"]
    assert (failure.status, failure.reason) == ("True", "ContentDeletionFailed")
    assert failure.message == "Failed to delete all resource types, 2 remaining: a, b"


def test_the_same_findings_are_no_change_and_others_keep_the_time_until_the_status_turns() -> None:
    first = update_conditions(None, Findings(remaining={("pods", ""): 2}), THEN)
    assert update_conditions(first, Findings(remaining={("pods", ""): 2}), NOW) is None
    fewer = update_conditions(first, Findings(remaining={("pods", ""): 1}), NOW)
    assert fewer is not None
    assert fewer[3].last_transition_time == THEN
    done = update_conditions(fewer, Findings(), NOW)
    assert done is not None
    assert (done[3].status, done[3].last_transition_time) == ("False", NOW)


def test_conditions_of_others_stay() -> None:
    first = update_conditions(None, Findings(), THEN)
    assert first is not None
    first[0].type = "Mine"
    after = update_conditions(first, Findings(), NOW)
    assert after is not None
    assert after[0].type == "Mine"
    assert len(after) == 6
