"""Objects that are being deleted and stay: which finalizer, and who should remove it."""

from __future__ import annotations

from .cluster import Answer, Cluster, Object, condition, text_of

_OWNERS = {
    "foregroundDeletion": "the garbage collector, when all dependents with blockOwnerDeletion are gone",
    "orphan": "the garbage collector, when the dependents have lost their owner",
    "kubernetes": "the namespace controller, when the namespace is empty",
    "kubernetes.io/pvc-protection": "the controller pvc-protection, when no pod uses the claim",
    "kubernetes.io/pv-protection": "the controller pv-protection, when no claim is bound to the volume",
    "kubernetes.io/vac-protection": "the controller vac-protection, when no volume or claim uses the class",
    "batch.kubernetes.io/job-tracking": "the Job controller, when it has counted the pod",
    "customresourcecleanup.apiextensions.k8s.io": "the API server, when all objects of the kind are gone",
    "service.kubernetes.io/load-balancer-cleanup": "the controller of load balancers, when it has removed the balancer",
    "resource.kubernetes.io/delete-protection": "the controller of ResourceClaims, when no pod uses the claim",
}


async def explain_deletion(cluster: Cluster, thing: Object) -> Answer:
    """Why an object with a deletion timestamp is still there."""
    metadata = thing["metadata"]
    since = f"it is being deleted since {metadata['deletionTimestamp']}"
    finalizers = list(metadata.get("finalizers") or ())
    if not finalizers:
        return Answer(f"{since}, and has no finalizers: it will be gone in a moment")
    details = []
    for each in finalizers:
        owner = _OWNERS.get(each) or _external(each)
        details.append(f"{each}: removed by {owner}.")
    blocking = await _dependents(cluster, thing) if "foregroundDeletion" in finalizers else []
    if blocking:
        details.append(f"Dependents that are still there: {', '.join(blocking)}.")
    if "kubernetes.io/pvc-protection" in finalizers:
        users = await _users(cluster, thing)
        if users:
            details.append(f"Pods that use it: {', '.join(users)}.")
    for kind in ("Terminating", "NamesAccepted"):
        found = condition(thing, kind)
        if kind == "Terminating" and found.get("message"):
            details.append(text_of(found))
    unknown = [each for each in finalizers if each not in _OWNERS]
    fix = ""
    if unknown:
        fix = f"start the controller that owns {unknown[0]}; if it is gone for good, remove the finalizer by a patch"
    return Answer(
        f"{since} and waits until its finalizers are removed: {', '.join(finalizers)}", tuple(details), fix=fix
    )


def _external(finalizer: str) -> str:
    domain = finalizer.partition("/")[0]
    return f"whatever put it there, by its name a controller of {domain}"


async def _dependents(cluster: Cluster, thing: Object) -> list[str]:
    """Dependents among the kinds that mostly are."""
    namespace, uid = thing["metadata"].get("namespace", ""), thing["metadata"].get("uid")
    found = []
    for base, plural in (
        ("/api/v1", "pods"),
        ("/apis/apps/v1", "replicasets"),
        ("/apis/batch/v1", "jobs"),
        ("/api/v1", "persistentvolumeclaims"),
    ):
        for each in await cluster.list(base, plural, namespace):
            for owner in each["metadata"].get("ownerReferences") or ():
                if owner.get("uid") == uid and owner.get("blockOwnerDeletion"):
                    found.append(f"{plural}/{each['metadata']['name']}")
    return found[:10]


async def _users(cluster: Cluster, claim: Object) -> list[str]:
    pods = await cluster.list("/api/v1", "pods", claim["metadata"].get("namespace", ""))
    return [
        pod["metadata"]["name"]
        for pod in pods
        for volume in (pod.get("spec") or {}).get("volumes") or ()
        if (volume.get("persistentVolumeClaim") or {}).get("claimName") == claim["metadata"]["name"]
    ]
