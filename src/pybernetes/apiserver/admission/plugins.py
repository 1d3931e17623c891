"""Which admission plugins there are, in the order they run, and which of them are on.

Order and defaults are upstream's; SecurityContextDeny and InitialResources, which upstream has given up, are where
they were. A plugin's module is imported when it is needed, because start-up counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from pybernetes.api.gocompat.quote import quote

from .dormant import dormant
from .plugin import Chain, Later, Plugin

if TYPE_CHECKING:
    from ..registry.registry import Registry


class Entry(NamedTuple):
    """A plugin's name and class; without a class it guards a kind that is not served, and has nothing to do."""

    name: str
    place: str = ""
    """`module:Class`, below this package."""
    default: bool = False
    about: tuple[str, ...] = ()
    """The resources it sees, if they are few: then it is loaded when the first of them is written."""
    follows: str = ""
    """The resource of admissionregistration.k8s.io without whose objects it has nothing to do."""


_PODS: Final = ("pods",)
_CLAIMS: Final = ("persistentvolumeclaims",)
_REQUESTS: Final = ("certificatesigningrequests.certificates.k8s.io",)

PLUGINS: Final = (
    Entry("AlwaysAdmit", "always:AlwaysAdmit"),
    Entry("NamespaceAutoProvision", "namespace_auto_provision:NamespaceAutoProvision"),
    Entry("NamespaceLifecycle", "namespace_lifecycle:NamespaceLifecycle", True),
    Entry("NamespaceExists", "namespace_exists:NamespaceExists"),
    Entry("SecurityContextDeny", "security_context_deny:SecurityContextDeny"),
    Entry("LimitPodHardAntiAffinityTopology", "limit_pod_hard_anti_affinity_topology:LimitPodHardAntiAffinityTopology"),
    Entry("InitialResources", "initial_resources:InitialResources"),
    Entry("LimitRanger", "limit_ranger:LimitRanger", True, ("pods", "persistentvolumeclaims")),
    Entry("ServiceAccount", "service_account:ServiceAccount", True, _PODS),
    Entry("NodeRestriction", "node_restriction:NodeRestriction"),
    Entry("TaintNodesByCondition", "taint_nodes_by_condition:TaintNodesByCondition", True, ("nodes",)),
    Entry("AlwaysPullImages", "always_pull_images:AlwaysPullImages"),
    Entry("ImagePolicyWebhook", "image_policy_webhook:ImagePolicyWebhook"),
    Entry("PodSecurity", "pod_security:PodSecurity", True),
    Entry("PodNodeSelector", "pod_node_selector:PodNodeSelector"),
    Entry("Priority", "priority:Priority", True, ("pods", "priorityclasses.scheduling.k8s.io")),
    Entry("DefaultTolerationSeconds", "default_toleration_seconds:DefaultTolerationSeconds", True, _PODS),
    Entry("PodTolerationRestriction", "pod_toleration_restriction:PodTolerationRestriction"),
    Entry("EventRateLimit", "event_rate_limit:EventRateLimit"),
    Entry("ExtendedResourceToleration", "extended_resource_toleration:ExtendedResourceToleration"),
    Entry("DefaultStorageClass", "default_storage_class:DefaultStorageClass", True, _CLAIMS),
    Entry(
        "StorageObjectInUseProtection",
        "storage_object_in_use_protection:StorageObjectInUseProtection",
        True,
        ("persistentvolumes", "persistentvolumeclaims", "volumeattributesclasses.storage.k8s.io"),
    ),
    Entry("PodGroupProtection", default=True),
    Entry(
        "OwnerReferencesPermissionEnforcement",
        "owner_references_permission_enforcement:OwnerReferencesPermissionEnforcement",
    ),
    Entry("PersistentVolumeClaimResize", "persistent_volume_claim_resize:PersistentVolumeClaimResize", True, _CLAIMS),
    Entry("RuntimeClass", "runtime_class:RuntimeClass", True, _PODS),
    Entry("CertificateApproval", "certificates:CertificateApproval", True, _REQUESTS),
    Entry("CertificateSigning", "certificates:CertificateSigning", True, _REQUESTS),
    Entry("ClusterTrustBundleAttest", default=True),
    Entry("CertificateSubjectRestriction", "certificates:CertificateSubjectRestriction", True, _REQUESTS),
    Entry("DefaultIngressClass", "default_ingress_class:DefaultIngressClass", True, ("ingresses.networking.k8s.io",)),
    Entry("DenyServiceExternalIPs", "deny_service_external_ips:DenyServiceExternalIPs"),
    Entry("PodTopologyLabels", "pod_topology_labels:PodTopologyLabels", True, _PODS),
    Entry("PodGroupWorkloadExists", default=True),
    Entry("NodeDeclaredFeatureValidator", "node_declared_features:NodeDeclaredFeatureValidator", True, _PODS),
    Entry("JobValidation", default=True),
    Entry("PodResizeValidator", "pod_resize_validator:PodResizeValidator", True, _PODS),
    Entry("Initializers", "initializers:Initializers"),
    # Policies, webhooks, quota and AlwaysDeny come last: they judge what all others have made of the object.
    Entry(
        "MutatingAdmissionPolicy",
        "policies.mutating:MutatingAdmissionPolicy",
        True,
        follows="mutatingadmissionpolicies",
    ),
    Entry(
        "MutatingAdmissionWebhook",
        "webhooks.plugins:MutatingAdmissionWebhook",
        True,
        follows="mutatingwebhookconfigurations",
    ),
    Entry(
        "ValidatingAdmissionPolicy",
        "policies.validating:ValidatingAdmissionPolicy",
        True,
        follows="validatingadmissionpolicies",
    ),
    Entry(
        "ValidatingAdmissionWebhook",
        "webhooks.plugins:ValidatingAdmissionWebhook",
        True,
        follows="validatingwebhookconfigurations",
    ),
    Entry("ResourceQuota", "resource_quota:ResourceQuota", True),
    Entry("AlwaysDeny", "always:AlwaysDeny"),
)
NAMES: Final = frozenset(each.name for each in PLUGINS)


def check_names(enabled: Iterable[str], disabled: Iterable[str], alone: Iterable[str] | None = None) -> list[str]:
    """Errors in the plugin names of the flags; `alone` is the deprecated flag --admission-control."""
    enabled, disabled = list(enabled), list(disabled)
    problems = []
    if alone is not None:
        if enabled or disabled:
            problems.append(
                "admission-control and enable-admission-plugins/disable-admission-plugins flags are mutually exclusive"
            )
        problems += [f"admission-control plugin {quote(each)} is unknown" for each in alone if each not in NAMES]
    problems += [f"enable-admission-plugins plugin {quote(each)} is unknown" for each in enabled if each not in NAMES]
    problems += [f"disable-admission-plugins plugin {quote(each)} is unknown" for each in disabled if each not in NAMES]
    both = sorted(set(enabled) & set(disabled))
    if both:
        problems.append(f"[{' '.join(both)}] in enable-admission-plugins and disable-admission-plugins overlapped")
    return problems


def selected(enabled: Iterable[str], disabled: Iterable[str], alone: Iterable[str] | None = None) -> list[str]:
    """The names of the plugins that are on, in order."""
    usual = {each.name for each in PLUGINS if each.default} if alone is None else set(alone)
    on = usual - set(disabled) | set(enabled)
    return [each.name for each in PLUGINS if each.name in on]


def chain(registry: Registry, names: Iterable[str], configurations: Mapping[str, Any]) -> Chain:
    """The plugins of these names, each with its configuration. Raises ValueError if one does not like its own."""
    wanted = set(names)

    def made(entry: Entry) -> Plugin | Later:
        configuration = configurations.get(entry.name)

        def make() -> Plugin:
            return _load(entry.place)(registry, configuration)

        # A configuration may be wrong, which must be found out now; the flags have been checked.
        if configuration is not None and entry.name != "DefaultTolerationSeconds":
            return make()
        if entry.follows:
            return dormant(registry, entry.name, entry.follows, make)
        return Later(entry.name, entry.about, make) if entry.about else make()

    return Chain([made(each) for each in PLUGINS if each.place and each.name in wanted])


def _load(place: str) -> type[Plugin]:
    module, _, name = place.partition(":")
    found: type[Plugin] = getattr(import_module(f"{__package__}.{module}"), name)
    return found
