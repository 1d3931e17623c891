"""The FlowSchemas and PriorityLevelConfigurations of every new cluster: upstream's mandatory and suggested ones."""

from __future__ import annotations

from collections.abc import Iterator

from pybernetes.api.flowcontrol import mandatory
from pybernetes.api.flowcontrol.v1 import (
    FlowDistinguisherMethod,
    FlowSchema,
    FlowSchemaSpec,
    GroupSubject,
    LimitedPriorityLevelConfiguration,
    LimitResponse,
    NonResourcePolicyRule,
    PolicyRulesWithSubjects,
    PriorityLevelConfiguration,
    PriorityLevelConfigurationReference,
    PriorityLevelConfigurationSpec,
    QueuingConfiguration,
    ResourcePolicyRule,
    ServiceAccountSubject,
    Subject,
    UserSubject,
)
from pybernetes.api.meta.v1 import ObjectMeta

AUTOUPDATE = "apf.kubernetes.io/autoupdate-spec"

_LEVELS = {  # shares, queues, hand size, lendable percent
    "system": (30, 64, 6, 33),
    "node-high": (40, 64, 6, 25),
    "leader-election": (10, 16, 4, 0),
    "workload-high": (40, 128, 6, 50),
    "workload-low": (100, 128, 6, 90),
    "global-default": (20, 128, 6, 50),
}
_QUEUE_LENGTH = 50
_EVERYBODY = ("Group system:unauthenticated", "Group system:authenticated")
_MANAGERS = ("User system:kube-controller-manager", "User system:kube-scheduler")
_SCHEMAS = {  # level, precedence, distinguisher, subjects, resource rules (None = all), paths
    "system-nodes": ("system", 500, "ByUser", ("Group system:nodes",), None, ("*",)),
    "system-node-high": (
        "node-high",
        400,
        "ByUser",
        ("Group system:nodes",),
        (("*", "", "nodes,nodes/status", True), ("*", "coordination.k8s.io", "leases", None)),
        (),
    ),
    "probes": ("exempt", 2, "", _EVERYBODY, (), ("/healthz", "/readyz", "/livez")),
    "system-leader-election": (
        "leader-election",
        100,
        "ByUser",
        (*_MANAGERS, "ServiceAccount kube-system/*"),
        (("get,create,update", "coordination.k8s.io", "leases", None),),
        (),
    ),
    "kube-controller-manager": ("workload-high", 800, "ByNamespace", _MANAGERS[:1], None, ("*",)),
    "kube-scheduler": ("workload-high", 800, "ByNamespace", _MANAGERS[1:], None, ("*",)),
    "kube-system-service-accounts": (
        "workload-high",
        900,
        "ByNamespace",
        ("ServiceAccount kube-system/*",),
        None,
        ("*",),
    ),
    "service-accounts": ("workload-low", 9000, "ByUser", ("Group system:serviceaccounts",), None, ("*",)),
    "global-default": ("global-default", 9900, "ByUser", _EVERYBODY, None, ("*",)),
}


def priority_levels() -> Iterator[PriorityLevelConfiguration]:
    """All of them; new objects at each call."""
    for name, (shares, queues, hand, lendable) in _LEVELS.items():
        queuing = QueuingConfiguration(queues=queues, hand_size=hand, queue_length_limit=_QUEUE_LENGTH)
        limited = LimitedPriorityLevelConfiguration(
            nominal_concurrency_shares=shares,
            limit_response=LimitResponse(type="Queue", queuing=queuing),
            lendable_percent=lendable,
        )
        spec = PriorityLevelConfigurationSpec(type="Limited", limited=limited)
        yield PriorityLevelConfiguration(metadata=_meta(name), spec=spec)
    for name, spec in mandatory.priority_level_configurations().items():
        yield PriorityLevelConfiguration(metadata=_meta(name), spec=spec)


def flow_schemas() -> Iterator[FlowSchema]:
    """All of them; new objects at each call."""
    for name, (level, precedence, method, subjects, resources, paths) in _SCHEMAS.items():
        rule = PolicyRulesWithSubjects(
            subjects=[_subject(each) for each in subjects],
            resource_rules=[
                _resources(*each) for each in ((("*", "*", "*", True),) if resources is None else resources)
            ]
            or None,
            non_resource_rules=[
                NonResourcePolicyRule(verbs=["*" if paths == ("*",) else "get"], non_resource_urls=list(paths))
            ]
            if paths
            else None,
        )
        spec = FlowSchemaSpec(
            priority_level_configuration=PriorityLevelConfigurationReference(name=level),
            matching_precedence=precedence,
            distinguisher_method=FlowDistinguisherMethod(type=method) if method else None,
            rules=[rule],
        )
        yield FlowSchema(metadata=_meta(name), spec=spec)
    for name, spec in mandatory.flow_schemas().items():
        yield FlowSchema(metadata=_meta(name), spec=spec)


def _meta(name: str) -> ObjectMeta:
    return ObjectMeta(name=name, annotations={AUTOUPDATE: "true"})


def _subject(text: str) -> Subject:
    kind, _, name = text.partition(" ")
    if kind == "User":
        return Subject(kind=kind, user=UserSubject(name=name))
    if kind == "Group":
        return Subject(kind=kind, group=GroupSubject(name=name))
    namespace, _, account = name.partition("/")
    return Subject(kind=kind, service_account=ServiceAccountSubject(namespace=namespace, name=account))


def _resources(verbs: str, group: str, resources: str, cluster: bool | None) -> ResourcePolicyRule:
    return ResourcePolicyRule(
        verbs=verbs.split(","),
        api_groups=[group],
        resources=resources.split(","),
        cluster_scope=cluster,
        namespaces=["*"],
    )
