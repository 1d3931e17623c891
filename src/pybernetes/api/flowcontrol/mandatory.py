"""The immutable schemas and levels that every cluster has: `exempt` and `catch-all`."""

from __future__ import annotations

from functools import cache

from .v1 import (
    ExemptPriorityLevelConfiguration,
    FlowDistinguisherMethod,
    FlowSchemaSpec,
    GroupSubject,
    LimitedPriorityLevelConfiguration,
    LimitResponse,
    NonResourcePolicyRule,
    PolicyRulesWithSubjects,
    PriorityLevelConfigurationReference,
    PriorityLevelConfigurationSpec,
    ResourcePolicyRule,
    Subject,
)

EXEMPT = "exempt"
CATCH_ALL = "catch-all"


@cache
def flow_schemas() -> dict[str, FlowSchemaSpec]:
    """Specs by name. Read only."""
    return {
        EXEMPT: FlowSchemaSpec(
            priority_level_configuration=PriorityLevelConfigurationReference(name=EXEMPT),
            matching_precedence=1,
            rules=_everything("system:masters"),
        ),
        CATCH_ALL: FlowSchemaSpec(
            priority_level_configuration=PriorityLevelConfigurationReference(name=CATCH_ALL),
            matching_precedence=10000,
            distinguisher_method=FlowDistinguisherMethod(type="ByUser"),
            rules=_everything("system:unauthenticated", "system:authenticated"),
        ),
    }


@cache
def priority_level_configurations() -> dict[str, PriorityLevelConfigurationSpec]:
    """Specs by name. Read only."""
    return {
        EXEMPT: PriorityLevelConfigurationSpec(
            type="Exempt", exempt=ExemptPriorityLevelConfiguration(nominal_concurrency_shares=0, lendable_percent=0)
        ),
        CATCH_ALL: PriorityLevelConfigurationSpec(
            type="Limited",
            limited=LimitedPriorityLevelConfiguration(
                nominal_concurrency_shares=5, limit_response=LimitResponse(type="Reject"), lendable_percent=0
            ),
        ),
    }


def _everything(*groups: str) -> list[PolicyRulesWithSubjects]:
    resources = ResourcePolicyRule(verbs=["*"], api_groups=["*"], resources=["*"], cluster_scope=True, namespaces=["*"])
    return [
        PolicyRulesWithSubjects(
            subjects=[Subject(kind="Group", group=GroupSubject(name=name)) for name in groups],
            resource_rules=[resources],
            non_resource_rules=[NonResourcePolicyRule(verbs=["*"], non_resource_urls=["*"])],
        )
    ]
