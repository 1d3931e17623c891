"""The explanation functions by kind."""

from __future__ import annotations

import dataclasses
from collections.abc import Awaitable, Callable
from typing import Final

from . import asking, machinery, network, storage, workloads
from .cluster import Answer, Cluster, Object
from .deleting import explain_deletion

Explain = Callable[[Cluster, Object], Awaitable[Answer]]
_RBAC, _STORAGE, _NETWORKING = "rbac.authorization.k8s.io", "storage.k8s.io", "networking.k8s.io"
BY_KIND: Final[dict[tuple[str, str], Explain]] = {
    ("", "Service"): network.explain_service,
    ("", "PersistentVolume"): storage.explain_volume,
    ("", "ResourceQuota"): machinery.explain_quota,
    ("", "ServiceAccount"): machinery.explain_account,
    ("batch", "CronJob"): workloads.explain_cronjob,
    ("autoscaling", "HorizontalPodAutoscaler"): workloads.explain_autoscaler,
    (_NETWORKING, "Ingress"): network.explain_ingress,
    (_NETWORKING, "NetworkPolicy"): network.explain_policy,
    ("policy", "PodDisruptionBudget"): machinery.explain_budget,
    (_STORAGE, "VolumeAttachment"): storage.explain_attachment,
    (_STORAGE, "StorageClass"): storage.explain_class,
    (_RBAC, "RoleBinding"): machinery.explain_binding,
    (_RBAC, "ClusterRoleBinding"): machinery.explain_binding,
    ("certificates.k8s.io", "CertificateSigningRequest"): machinery.explain_request,
    ("apiextensions.k8s.io", "CustomResourceDefinition"): machinery.explain_definition,
    ("apiregistration.k8s.io", "APIService"): machinery.explain_api,
    ("admissionregistration.k8s.io", "ValidatingWebhookConfiguration"): machinery.explain_webhooks,
    ("admissionregistration.k8s.io", "MutatingWebhookConfiguration"): machinery.explain_webhooks,
}
OWN_DELETION: Final = (("", "Pod"), ("", "Namespace"))
"""Kinds whose explanation includes their deletion."""
_FIXES: Final = (
    ("scheduling gates", "remove the gates, or start the controller that does"),
    ("when a pod that uses it is scheduled", "start a pod that uses the claim"),
    ("names no StorageClass", "create a PersistentVolume that fits, or make a StorageClass the default"),
    ('names the StorageClass ""', "create a PersistentVolume that fits"),
    ("StorageClass", "create the StorageClass, or name one that exists"),
    ("untolerated taint", "add a toleration to the pod, or remove the taint from a node"),
    ("node affinity/selector", "label a node as the pod asks, or change its nodeSelector or affinity"),
    ("Insufficient", "lower the pod's requests, end other pods, or add a node"),
    ("exceeded quota", "raise the ResourceQuota, or ask for less"),
    ("violates PodSecurity", "change the securityContext as the message says, or the namespace's pod-security label"),
    ("denied the request", "change the object as the webhook's message says"),
    ("DiscoveryFailure", "repair or delete the APIService that does not answer"),
    ("silent since", "see that the machine, its network and its kubelet run"),
    ("not found", "create what is not found, or correct its name"),
    ("does not exist", "create it, or correct its name"),
    ("401", "give the pod (or its ServiceAccount) an imagePullSecret for the registry"),
    ("exceeded its memory limit", "raise the container's memory limit"),
    ("DeadlineExceeded: Job", "raise the deadline, or make the work shorter"),
    ("is suspended", "set spec.suspend to false"),
    ("is paused", "kubectl rollout resume"),
    ("is cordoned", "kubectl uncordon"),
)
"""Fixes, by words of a sentence, for explanations without one."""


async def explain(reader: asking.Reader, thing: Object) -> Answer:
    """Why an object is as it is. It needs `apiVersion` and `kind`."""
    cluster = Cluster(reader)
    group, kind = thing["apiVersion"].rpartition("/")[0], thing["kind"]
    if thing["metadata"].get("deletionTimestamp") and (group, kind) not in OWN_DELETION:
        answer = await explain_deletion(cluster, thing)
    elif group in ("", "apps", "batch") and kind.lower() in asking.KINDS:
        answer = await cluster.explain(kind.lower(), thing)
    else:
        answer = await BY_KIND.get((group, kind), machinery.explain_any)(cluster, thing)
    if cluster.unread:
        note = f"You may not read {', '.join(sorted(cluster.unread))}: there may be more to say."
        answer = dataclasses.replace(answer, details=(*answer.details, note))
    return _helped(answer)


async def explain_pod(reader: asking.Reader, namespace: str, name: str) -> tuple[str, Answer]:
    """The title of a pod, and why it is as it is; also of one that is not initialized yet."""
    title, answer = await asking.Asked(reader, namespace).explain("pod", name)
    return title, _helped(answer)


def _helped(answer: Answer) -> Answer:
    if answer.fix or answer.healthy:
        return answer
    return dataclasses.replace(answer, fix=next((fix for part, fix in _FIXES if part in answer.sentence), ""))
