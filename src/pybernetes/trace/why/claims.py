"""Why a claim has no volume."""

from __future__ import annotations

from .facts import Answer, Facts, Object, condition, message_of, recent


def claim_name(pod: Object, volume: Object) -> str:
    """The claim of a volume, empty if it has none."""
    if "ephemeral" in volume:
        return f"{pod['metadata']['name']}-{volume['name']}"
    return str((volume.get("persistentVolumeClaim") or {}).get("claimName") or "")


def resource_claim_names(pod: Object) -> dict[str, str]:
    """The ResourceClaims of a pod by the names that its spec has for them; empty for one that is still to be made."""
    made = (pod.get("status") or {}).get("resourceClaimStatuses") or ()
    by_name = {each["name"]: str(each.get("resourceClaimName") or "") for each in made}
    return {
        each["name"]: str(each.get("resourceClaimName") or by_name.get(each["name"], ""))
        for each in pod["spec"].get("resourceClaims") or ()
    }


def unbound(facts: Facts, name: str) -> str:
    """Why a claim is not bound; empty if it is, or if it waits for its pod to be scheduled."""
    claim = facts.claims.get(name, {})
    if claim is None:
        return f"the claim {name} does not exist"
    if not claim:  # the user may not read it
        return ""
    if claim["metadata"].get("deletionTimestamp"):
        return f"the claim {name} is being deleted"
    phase = (claim.get("status") or {}).get("phase")
    if phase == "Lost":
        return f"the claim {name} has lost its volume {claim['spec'].get('volumeName')}"
    if phase == "Bound":
        return ""
    if volume := claim["spec"].get("volumeName"):
        return _named_volume(facts, name, str(volume))
    wanted = claim["spec"].get("storageClassName")
    if not wanted:
        none = "names no StorageClass" if wanted is None else 'names the StorageClass ""'
        return (
            f"the claim {name} {none}, so only a PersistentVolume that fits can be bound to it, and there is none that "
            "fits and is free"
        )
    if facts.classes is None:
        return f"the claim {name} of StorageClass {wanted} is not bound to a volume"
    if wanted not in facts.classes:
        return f"the claim {name} names the StorageClass {wanted}, which does not exist"
    failed = [each for each in facts.claim_events.get(name, ()) if each.get("type") == "Warning"]
    if failed:
        return f"no volume could be made for the claim {name}: {message_of(failed[-1])}"
    storage_class = facts.classes[wanted]
    if storage_class.get("volumeBindingMode") == "WaitForFirstConsumer":
        return ""
    provisioner = storage_class.get("provisioner")
    if provisioner == "kubernetes.io/no-provisioner":
        return (
            f"the claim {name} names the StorageClass {wanted}, for which no volumes are made, and no PersistentVolume "
            "of that class fits and is free"
        )
    return f"the claim {name} waits for the provisioner {provisioner} to make a volume"


def _named_volume(facts: Facts, claim: str, volume: str) -> str:
    """Why a claim is not bound to the volume that it names."""
    found = facts.volumes.get(volume, {})
    if found is None:
        return f"the claim {claim} names the PersistentVolume {volume}, which does not exist"
    if not found:
        return f"the claim {claim} is not bound to the PersistentVolume {volume} that it names"
    owner = found["spec"].get("claimRef") or {}
    namespace = facts.claims[claim]["metadata"].get("namespace")  # type: ignore[index]  # the caller has looked
    if owner and (owner.get("namespace"), owner.get("name")) != (namespace, claim):
        other = f"{owner.get('namespace')}/{owner.get('name')}"
        return f"the claim {claim} names the PersistentVolume {volume}, which belongs to the claim {other}"
    phase = (found.get("status") or {}).get("phase")
    return f"the claim {claim} is not bound to the PersistentVolume {volume} that it names, whose phase is {phase}"


def missing_device(facts: Facts) -> str:
    """The problem with the ResourceClaims of a pod; empty if all exist."""
    for local, name in resource_claim_names(facts.pod).items():
        if not name:
            failed = [each for each in facts.events if each.get("reason") == "FailedResourceClaimCreation"]
            why = f": {message_of(failed[-1])}" if failed else ""
            return f"the ResourceClaim for its {local} has not been made from its template{why}"
        if facts.resource_claims.get(name, {}) is None:
            return f"the ResourceClaim {name} does not exist"
    return ""


def explain_claim(facts: Facts, name: str, used_by: list[str]) -> Answer:
    """Why a claim is as it is; `used_by` are the pods that name it."""
    claim = facts.claims[name]
    assert claim is not None  # the caller has looked
    metadata, events = claim["metadata"], facts.claim_events.get(name, [])
    if metadata.get("deletionTimestamp"):
        left = metadata.get("finalizers") or []
        if "kubernetes.io/pvc-protection" in left and used_by:
            return Answer(f"it is being deleted, and goes when no pod uses it; now {', '.join(used_by)} would")
        return Answer(f"it is being deleted and waits until its finalizers are removed: {', '.join(left)}")
    if why := unbound(facts, name):
        return Answer(why, recent(events))
    if (claim.get("status") or {}).get("phase") != "Bound":
        wanted = claim["spec"].get("storageClassName")
        return Answer(
            f"it is bound when a pod that uses it is scheduled (WaitForFirstConsumer of its StorageClass {wanted})",
            recent(events),
        )
    for kind in ("FileSystemResizePending", "Resizing"):
        if condition(claim, kind).get("status") == "True":
            text = condition(claim, kind).get("message") or "no message"
            return Answer(f"it is bound to {claim['spec'].get('volumeName')}, and its resize goes on: {text}")
    return Answer(f"it is bound to the PersistentVolume {claim['spec'].get('volumeName')}", healthy=True)
