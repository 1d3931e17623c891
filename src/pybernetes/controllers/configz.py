"""`/configz` and `/flagz` of the controller manager: its options in the two forms that upstream shows them in.

The configuration is upstream's KubeControllerManagerConfiguration (v1alpha1), as far as there is something here that it
configures. A name of an option in `_SECTIONS` stands for its value.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, Final

from pybernetes.api.times import format_duration
from pybernetes.flags import go_text

from .options import Options

GROUP: Final = "kubecontrollermanager.config.k8s.io"
_SIGNERS: Final = {
    "KubeletServingSignerConfiguration": "kubelet_serving",
    "KubeletClientSignerConfiguration": "kubelet_client",
    "KubeAPIServerClientSignerConfiguration": "kube_apiserver_client",
    "LegacyUnknownSignerConfiguration": "legacy_unknown",
}
_SECTIONS: Final[dict[str, Any]] = {
    "Generic": {
        "Port": "secure_port",
        "Address": "bind_address",
        "MinResyncPeriod": "min_resync_period",
        "ClientConnection": {"kubeconfig": "kubeconfig", "qps": "kube_api_qps", "burst": "kube_api_burst"},
        "ControllerStartInterval": "controller_start_interval",
        "LeaderElection": {
            "leaderElect": "leader_elect",
            "leaseDuration": "leader_elect_lease_duration",
            "renewDeadline": "leader_elect_renew_deadline",
            "retryPeriod": "leader_elect_retry_period",
            "resourceName": "leader_elect_resource_name",
            "resourceNamespace": "leader_elect_resource_namespace",
        },
        "Controllers": "controllers",
    },
    "KubeCloudShared": {
        "UseServiceAccountCredentials": "use_service_account_credentials",
        "NodeMonitorPeriod": "node_monitor_period",
        "ClusterName": "cluster_name",
        "ClusterCIDR": "cluster_cidr",
        "AllocateNodeCIDRs": "allocate_node_cidrs",
        "CIDRAllocatorType": "cidr_allocator_type",
    },
    "AttachDetachController": {
        "DisableAttachDetachReconcilerSync": "disable_attach_detach_reconcile_sync",
        "ReconcilerSyncLoopPeriod": "attach_detach_reconcile_sync_period",
        "disableForceDetachOnTimeout": "disable_force_detach_on_timeout",
    },
    "CSRSigningController": {
        "ClusterSigningCertFile": "cluster_signing_cert_file",
        "ClusterSigningKeyFile": "cluster_signing_key_file",
        **{
            name: {"CertFile": f"cluster_signing_{flag}_cert_file", "KeyFile": f"cluster_signing_{flag}_key_file"}
            for name, flag in _SIGNERS.items()
        },
        "ClusterSigningDuration": "cluster_signing_duration",
    },
    "DaemonSetController": {"ConcurrentDaemonSetSyncs": "concurrent_daemonset_syncs"},
    "DeploymentController": {"ConcurrentDeploymentSyncs": "concurrent_deployment_syncs"},
    "StatefulSetController": {"ConcurrentStatefulSetSyncs": "concurrent_statefulset_syncs"},
    "EndpointController": {
        "ConcurrentEndpointSyncs": "concurrent_endpoint_syncs",
        "EndpointUpdatesBatchPeriod": "endpoint_updates_batch_period",
    },
    "EndpointSliceController": {
        "ConcurrentServiceEndpointSyncs": "concurrent_service_endpoint_syncs",
        "MaxEndpointsPerSlice": "max_endpoints_per_slice",
        "EndpointUpdatesBatchPeriod": "endpointslice_updates_batch_period",
    },
    "EndpointSliceMirroringController": {
        "MirroringConcurrentServiceEndpointSyncs": "mirroring_concurrent_service_endpoint_syncs",
        "MirroringMaxEndpointsPerSubset": "mirroring_max_endpoints_per_subset",
        "MirroringEndpointUpdatesBatchPeriod": "mirroring_endpointslice_updates_batch_period",
    },
    "EphemeralVolumeController": {"ConcurrentEphemeralVolumeSyncs": "concurrent_ephemeralvolume_syncs"},
    "GarbageCollectorController": {
        "EnableGarbageCollector": "enable_garbage_collector",
        "ConcurrentGCSyncs": "concurrent_gc_syncs",
    },
    "HPAController": {
        "ConcurrentHorizontalPodAutoscalerSyncs": "concurrent_horizontal_pod_autoscaler_syncs",
        "HorizontalPodAutoscalerSyncPeriod": "horizontal_pod_autoscaler_sync_period",
        "HorizontalPodAutoscalerDownscaleStabilizationWindow": "horizontal_pod_autoscaler_downscale_stabilization",
        "HorizontalPodAutoscalerTolerance": "horizontal_pod_autoscaler_tolerance",
        "HorizontalPodAutoscalerCPUInitializationPeriod": "horizontal_pod_autoscaler_cpu_initialization_period",
        "HorizontalPodAutoscalerInitialReadinessDelay": "horizontal_pod_autoscaler_initial_readiness_delay",
    },
    "JobController": {"ConcurrentJobSyncs": "concurrent_job_syncs"},
    "CronJobController": {"ConcurrentCronJobSyncs": "concurrent_cron_job_syncs"},
    "LegacySATokenCleaner": {"CleanUpPeriod": "legacy_service_account_token_clean_up_period"},
    "NamespaceController": {
        "NamespaceSyncPeriod": "namespace_sync_period",
        "ConcurrentNamespaceSyncs": "concurrent_namespace_syncs",
    },
    "NodeIPAMController": {
        "NodeCIDRMaskSize": "node_cidr_mask_size",
        "NodeCIDRMaskSizeIPv4": "node_cidr_mask_size_ipv4",
        "NodeCIDRMaskSizeIPv6": "node_cidr_mask_size_ipv6",
    },
    "NodeLifecycleController": {
        "NodeEvictionRate": "node_eviction_rate",
        "SecondaryNodeEvictionRate": "secondary_node_eviction_rate",
        "NodeStartupGracePeriod": "node_startup_grace_period",
        "NodeMonitorGracePeriod": "node_monitor_grace_period",
        "LargeClusterSizeThreshold": "large_cluster_size_threshold",
        "UnhealthyZoneThreshold": "unhealthy_zone_threshold",
    },
    "PersistentVolumeBinderController": {
        "PVClaimBinderSyncPeriod": "pvclaimbinder_sync_period",
        "VolumeConfiguration": {
            "EnableHostPathProvisioning": "enable_hostpath_provisioner",
            "EnableDynamicProvisioning": "enable_dynamic_provisioning",
        },
    },
    "PodGCController": {"TerminatedPodGCThreshold": "terminated_pod_gc_threshold"},
    "ReplicaSetController": {"ConcurrentRSSyncs": "concurrent_replicaset_syncs"},
    "ReplicationController": {"ConcurrentRCSyncs": "concurrent_rc_syncs"},
    "ResourceQuotaController": {
        "ResourceQuotaSyncPeriod": "resource_quota_sync_period",
        "ConcurrentResourceQuotaSyncs": "concurrent_resource_quota_syncs",
    },
    "SAController": {
        "ServiceAccountKeyFile": "service_account_private_key_file",
        "ConcurrentSATokenSyncs": "concurrent_serviceaccount_token_syncs",
        "RootCAFile": "root_ca_file",
    },
    "TTLAfterFinishedController": {"ConcurrentTTLSyncs": "concurrent_ttl_after_finished_syncs"},
    "ValidatingAdmissionPolicyStatusController": {
        "ConcurrentPolicySyncs": "concurrent_validating_admission_policy_status_syncs"
    },
    "DeviceTaintEvictionController": {"ConcurrentSyncs": "concurrent_device_taint_eviction_syncs"},
    "ResourceClaimController": {"ConcurrentSyncs": "concurrent_resourceclaim_syncs"},
}
_DURATIONS: Final = frozenset(each.name for each in fields(Options) if str(each.type) == "Seconds")


def configuration(options: Options) -> dict[str, Any]:
    """The content of `/configz`."""
    service, _, secondary = options.service_cluster_ip_range.partition(",")
    found = {"kind": "KubeControllerManagerConfiguration", "apiVersion": f"{GROUP}/v1alpha1"}
    found |= _filled(_SECTIONS, options)
    found["NodeIPAMController"] |= {"ServiceCIDR": service, "SecondaryServiceCIDR": secondary}  # type: ignore[operator]
    return {GROUP: found}


def _filled(section: Mapping[str, Any], options: Options) -> dict[str, Any]:
    return {
        key: _filled(each, options) if isinstance(each, Mapping) else _value(each, options)
        for key, each in section.items()
    }


def _value(name: str, options: Options) -> Any:
    value = getattr(options, name)
    return format_duration(round(value * 1e9)) if name in _DURATIONS else value


def flag_values(options: Options) -> dict[str, str]:
    """The flags by name, their values in Go's forms, for `/flagz`."""
    return {
        each.name.replace("_", "-"): go_text(getattr(options, each.name), duration=each.name in _DURATIONS)
        for each in fields(Options)
    }
