"""Explains the cluster's own objects: quotas, budgets, roles, certificates, extensions; and any other kind."""

from __future__ import annotations

import re
from typing import Any

from .cluster import (
    CORE,
    Answer,
    Cluster,
    Object,
    condition,
    events_of,
    is_true,
    name_of,
    names,
    namespace_of,
    selects,
    text_of,
    warnings_of,
)
from .facts import is_ready, recent

_RBAC = "/apis/rbac.authorization.k8s.io/v1"
_UNITS = {"": 1.0, "n": 1e-9, "u": 1e-6, "m": 1e-3, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15, "E": 1e18} | {
    f"{prefix}i": 1024.0**power for power, prefix in enumerate("KMGTPE", 1)
}


async def explain_quota(cluster: Cluster, thing: Object) -> Answer:
    """A ResourceQuota: what is used up."""
    status = thing.get("status") or {}
    hard, used = status.get("hard") or {}, status.get("used") or {}
    if not hard:
        return Answer("its controller has not counted yet")
    full = [key for key, limit in hard.items() if number(used.get(key, "0")) >= number(limit)]
    if full:
        shown = ", ".join(f"{key} ({used.get(key)} of {hard[key]})" for key in sorted(full))
        return Answer(
            f"it is used up: {shown}; objects that need more of it are refused",
            fix="raise spec.hard, or delete what is not needed",
        )
    return Answer(
        f"nothing is wrong: {names([f'{key} {used.get(key, 0)} of {hard[key]}' for key in sorted(hard)], 5)}",
        healthy=True,
    )


def number(text: Any) -> float:
    """A quantity as a number; 0 for what is none."""
    found = re.fullmatch(r"([+-]?[\d.]+(?:[eE][+-]?\d+)?)([A-Za-z]*)", str(text))
    try:
        return float(found[1]) * _UNITS.get(found[2], 1.0) if found else 0.0
    except ValueError:
        return 0.0


async def explain_budget(cluster: Cluster, thing: Object) -> Answer:
    """A PodDisruptionBudget: why evictions are refused."""
    status, spec = thing.get("status") or {}, thing["spec"]
    pods = [
        each
        for each in await cluster.list(CORE, "pods", namespace_of(thing))
        if selects(spec.get("selector"), each["metadata"].get("labels"))
    ]
    if not pods:
        return Answer("it has no effect: its selector matches no pods", fix="correct spec.selector")
    allowed = status.get("disruptionsAllowed", 0)
    if is_true(thing, "DisruptionAllowed") or allowed > 0:
        healthy = status.get("currentHealthy")
        return Answer(f"nothing is wrong: {allowed} of {healthy} healthy pods may be evicted", healthy=True)
    failed = condition(thing, "DisruptionAllowed")
    if failed.get("reason") == "SyncFailed":
        return Answer(f"no pod may be evicted: {text_of(failed)}")
    sick = [name_of(each) for each in pods if not is_ready(each)]
    want, have = status.get("desiredHealthy", 0), status.get("currentHealthy", 0)
    if sick:
        return Answer(
            f"no pod may be evicted: {have} pods are healthy and {want} have to be; not healthy: {names(sick)}",
            fix=f"see `why pod/{sick[0]}`",
        )
    if want >= status.get("expectedPods", have):
        return Answer(
            f"no pod may be evicted: all {want} pods have to be healthy, so none can ever be spared",
            fix="run one replica more, or lower minAvailable (raise maxUnavailable)",
        )
    return Answer(f"no pod may be evicted: {have} pods are healthy and {want} have to be")


async def explain_binding(cluster: Cluster, thing: Object) -> Answer:
    """RoleBinding, ClusterRoleBinding: whether the role and the accounts exist."""
    role, namespace = thing["roleRef"], namespace_of(thing)
    of_namespace = role.get("kind") == "Role"
    plural = "roles" if of_namespace else "clusterroles"
    if await cluster.get(_RBAC, plural, namespace if of_namespace else "", role["name"]) is None:
        return Answer(
            f"it grants nothing: the {role.get('kind')} {role['name']} does not exist",
            fix=f"create the {role.get('kind')}, or delete this binding and make another (roleRef cannot be changed)",
        )
    for each in thing.get("subjects") or ():
        if each.get("kind") == "ServiceAccount":
            place = each.get("namespace") or namespace
            if await cluster.get(CORE, "serviceaccounts", place, each["name"]) is None:
                return Answer(
                    f"its ServiceAccount {place}/{each['name']} does not exist",
                    fix="create the ServiceAccount, or correct the subject's namespace and name",
                )
    if not thing.get("subjects"):
        return Answer("it grants nothing: it has no subjects", fix="add subjects")
    return Answer(
        f"nothing is wrong: it grants {role.get('kind')} {role['name']} to {len(thing['subjects'])} subjects",
        healthy=True,
    )


async def explain_request(cluster: Cluster, thing: Object) -> Answer:
    """A CertificateSigningRequest."""
    status = thing.get("status") or {}
    for kind, verb in (("Denied", "was denied"), ("Failed", "could not be signed")):
        if is_true(thing, kind):
            return Answer(f"it {verb}: {text_of(condition(thing, kind))}")
    if status.get("certificate"):
        return Answer("nothing is wrong: its certificate is issued", healthy=True)
    if is_true(thing, "Approved"):
        return Answer(
            f"it is approved, and the signer {thing['spec'].get('signerName')} has issued no certificate",
            fix="see that this signer runs; kubernetes.io/ signers are the controller manager's",
        )
    return Answer("it has been neither approved nor denied yet", fix=f"kubectl certificate approve {name_of(thing)}")


async def explain_definition(cluster: Cluster, thing: Object) -> Answer:
    """A CustomResourceDefinition."""
    for kind in ("NamesAccepted", "Established", "NonStructuralSchema", "KubernetesAPIApprovalPolicyConformant"):
        found = condition(thing, kind)
        bad = found.get("status") == ("True" if kind == "NonStructuralSchema" else "False")
        if bad:
            return Answer(
                f"it is not served: {text_of(found)}"
                if kind != "NonStructuralSchema"
                else f"its schema is not structural: {text_of(found)}"
            )
    webhook = ((thing["spec"].get("conversion") or {}).get("webhook") or {}).get("clientConfig") or {}
    if wrong := await _unreachable(cluster, webhook.get("service")):
        return Answer(f"its objects cannot be converted: {wrong}")
    if is_true(thing, "Established"):
        return Answer("nothing is wrong: it is established", healthy=True)
    return Answer("its controller has not looked at it yet")


async def explain_api(cluster: Cluster, thing: Object) -> Answer:
    """An APIService."""
    found = condition(thing, "Available")
    if found.get("status") == "True":
        return Answer("nothing is wrong: it is available", healthy=True)
    wrong = await _unreachable(cluster, thing["spec"].get("service"))
    api = f"{thing['spec'].get('version')}.{thing['spec'].get('group')}"
    return Answer(
        f"the API {api} is not available: {wrong or text_of(found)}",
        fix="start the server behind it, or delete the APIService: namespaces cannot be deleted meanwhile",
    )


async def explain_webhooks(cluster: Cluster, thing: Object) -> Answer:
    """ValidatingWebhookConfiguration, MutatingWebhookConfiguration: whether the webhooks can be reached."""
    for each in thing.get("webhooks") or ():
        wrong = await _unreachable(cluster, (each.get("clientConfig") or {}).get("service"))
        if wrong:
            refused = each.get("failurePolicy", "Fail") == "Fail"
            effect = "requests that match it are refused" if refused else "requests that match it go on without it"
            return Answer(
                f"its webhook {each.get('name')} cannot be reached, and {effect}: {wrong}",
                fix="start the webhook's pods, or set failurePolicy: Ignore" if refused else "",
            )
    return Answer("nothing is wrong: the Services of its webhooks have endpoints", healthy=True)


async def _unreachable(cluster: Cluster, reference: Object | None) -> str:
    """Why a Service that the API server calls cannot be reached; empty if it can, or none is named."""
    if not reference:
        return ""
    namespace, name = str(reference.get("namespace")), str(reference.get("name"))
    service = await cluster.get(CORE, "services", namespace, name)
    if service is None:
        return f"the Service {namespace}/{name} does not exist"
    from .network import explain_service

    service.setdefault("kind", "Service")
    why = await explain_service(cluster, service)
    return "" if why.healthy or "endpoints" not in why.sentence else f"the Service {namespace}/{name}: {why.sentence}"


async def explain_account(cluster: Cluster, thing: Object) -> Answer:
    """A ServiceAccount: the secrets that it names."""
    for each in thing.get("imagePullSecrets") or ():
        if await cluster.get(CORE, "secrets", namespace_of(thing), each.get("name", "")) is None:
            return Answer(
                f"its image pull secret {each.get('name')} does not exist: pods pull images without it",
                fix=f"kubectl create secret docker-registry {each.get('name')} -n {namespace_of(thing)} ...",
            )
    return Answer("nothing is wrong: the secrets that it names exist", healthy=True)


async def explain_any(cluster: Cluster, thing: Object) -> Answer:
    """Any other kind, custom ones too: conditions that say so, then events that warn."""
    bad = [each for each in (thing.get("status") or {}).get("conditions") or () if _is_bad(each)]
    events = await events_of(cluster, thing)
    generation, observed = thing["metadata"].get("generation"), (thing.get("status") or {}).get("observedGeneration")
    if bad:
        each = bad[0]
        return Answer(
            f"its condition {each.get('type')} is {each.get('status')}: {text_of(each)}",
            recent(warnings_of(events)),
        )
    if generation and observed and observed < generation:
        return Answer(
            "its controller has not acted on the last change of its spec "
            f"(generation {generation}, observed {observed})",
            recent(events),
            fix="see that its controller runs",
        )
    warned = warnings_of(events)
    if warned and warned[-1] is events[-1]:
        return Answer(f"its last event warns: {warned[-1].get('reason')}: {warned[-1].get('message')}", recent(events))
    return Answer("nothing is wrong: no condition and no event says otherwise", healthy=True)


_GOOD_WHEN_TRUE = (
    "Ready",
    "Available",
    "Synced",
    "Established",
    "Accepted",
    "Programmed",
    "Healthy",
    "Progressing",
    "ResolvedRefs",
    "Reconciled",
    "Complete",
    "Succeeded",
)
_BAD_WHEN_TRUE = ("Failed", "Failure", "Degraded", "Stalled", "Error", "ReplicaFailure", "Unhealthy", "Blocked")


def _is_bad(found: Object) -> bool:
    kind, status = str(found.get("type")), found.get("status")
    return (kind in _GOOD_WHEN_TRUE and status in ("False", "Unknown")) or (kind in _BAD_WHEN_TRUE and status == "True")
