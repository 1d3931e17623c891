"""Where each class of a large group lives, and what a class is, in a sentence of our own.

The modules of a group are listed so that each one needs only those above it.
"""

from __future__ import annotations


def modules(layout: dict[str, str]) -> dict[str, str]:
    """Class -> module, in the order of the layout."""
    return {name: module for module, names in layout.items() for name in names.split()}


CORE = modules(
    {
        "reference": (
            "ObjectReference LocalObjectReference SecretReference TypedLocalObjectReference TypedObjectReference"
        ),
        "configuration": "ConfigMap Secret",
        "env": (
            "EnvVar EnvVarSource EnvFromSource ConfigMapEnvSource ConfigMapKeySelector SecretEnvSource"
            " SecretKeySelector FileKeySelector ObjectFieldSelector ResourceFieldSelector"
        ),
        "compute": "ResourceRequirements ResourceClaim ResourceStatus ResourceHealth ContainerResizePolicy",
        "security": (
            "SecurityContext PodSecurityContext AppArmorProfile Capabilities SELinuxOptions SeccompProfile Sysctl"
            " WindowsSecurityContextOptions"
        ),
        "probe": (
            "Probe Lifecycle LifecycleHandler ExecAction GRPCAction HTTPGetAction HTTPHeader SleepAction"
            " TCPSocketAction"
        ),
        "affinity": (
            "Affinity NodeAffinity PodAffinity PodAntiAffinity PreferredSchedulingTerm PodAffinityTerm"
            " WeightedPodAffinityTerm NodeSelector NodeSelectorTerm NodeSelectorRequirement Taint Toleration"
            " TopologySpreadConstraint TopologySelectorTerm TopologySelectorLabelRequirement"
        ),
        "volumesource": (
            "EmptyDirVolumeSource HostPathVolumeSource PersistentVolumeClaimVolumeSource ImageVolumeSource"
            " CSIVolumeSource FCVolumeSource FlexVolumeSource FlockerVolumeSource GitRepoVolumeSource"
            " GlusterfsVolumeSource ISCSIVolumeSource NFSVolumeSource PortworxVolumeSource QuobyteVolumeSource"
            " RBDVolumeSource ScaleIOVolumeSource StorageOSVolumeSource AWSElasticBlockStoreVolumeSource"
            " AzureDiskVolumeSource AzureFileVolumeSource CephFSVolumeSource CinderVolumeSource"
            " GCEPersistentDiskVolumeSource PhotonPersistentDiskVolumeSource VsphereVirtualDiskVolumeSource"
        ),
        "persistentvolumeclaim": (
            "PersistentVolumeClaim PersistentVolumeClaimSpec PersistentVolumeClaimStatus PersistentVolumeClaimCondition"
            " PersistentVolumeClaimTemplate ModifyVolumeStatus VolumeResourceRequirements"
        ),
        "persistentvolume": (
            "PersistentVolume PersistentVolumeSpec PersistentVolumeStatus VolumeNodeAffinity LocalVolumeSource"
            " AzureFilePersistentVolumeSource CSIPersistentVolumeSource CephFSPersistentVolumeSource"
            " CinderPersistentVolumeSource FlexPersistentVolumeSource GlusterfsPersistentVolumeSource"
            " ISCSIPersistentVolumeSource RBDPersistentVolumeSource ScaleIOPersistentVolumeSource"
            " StorageOSPersistentVolumeSource"
        ),
        "volume": (
            "Volume ConfigMapVolumeSource SecretVolumeSource KeyToPath DownwardAPIVolumeSource DownwardAPIVolumeFile"
            " EphemeralVolumeSource ProjectedVolumeSource VolumeProjection ClusterTrustBundleProjection"
            " ConfigMapProjection DownwardAPIProjection PodCertificateProjection SecretProjection"
            " ServiceAccountTokenProjection VolumeDevice VolumeMount VolumeMountStatus VolumeStatus ImageVolumeStatus"
        ),
        "container": (
            "Container EphemeralContainer ContainerPort ContainerRestartRule ContainerRestartRuleOnExitCodes"
            " ContainerStatus ContainerState ContainerStateRunning ContainerStateTerminated ContainerStateWaiting"
            " ContainerUser LinuxContainerUser"
        ),
        "pod": (
            "Pod PodSpec PodStatus PodCondition PodIP HostIP HostAlias PodDNSConfig PodDNSConfigOption PodOS"
            " PodReadinessGate PodSchedulingGate PodSchedulingGroup PodResourceClaim PodResourceClaimStatus"
            " PodExtendedResourceClaimStatus ContainerExtendedResourceRequest NodeAllocatableResourceClaimStatus"
            " PodTemplate PodTemplateSpec Binding"
        ),
        "replicationcontroller": (
            "ReplicationController ReplicationControllerSpec ReplicationControllerStatus ReplicationControllerCondition"
        ),
        "service": (
            "Service ServiceSpec ServiceStatus ServicePort SessionAffinityConfig ClientIPConfig LoadBalancerStatus"
            " LoadBalancerIngress PortStatus Endpoints EndpointSubset EndpointAddress EndpointPort"
        ),
        "node": (
            "Node NodeSpec NodeStatus NodeCondition NodeAddress NodeDaemonEndpoints DaemonEndpoint NodeSystemInfo"
            " NodeSwapStatus NodeFeatures NodeRuntimeHandler NodeRuntimeHandlerFeatures AttachedVolume ContainerImage"
            " NodeConfigSource NodeConfigStatus ConfigMapNodeConfigSource"
        ),
        "namespace": "Namespace NamespaceSpec NamespaceStatus NamespaceCondition",
        "quota": (
            "LimitRange LimitRangeSpec LimitRangeItem ResourceQuota ResourceQuotaSpec ResourceQuotaStatus ScopeSelector"
            " ScopedResourceSelectorRequirement"
        ),
        "event": "Event EventSeries EventSource",
        "serviceaccount": "ServiceAccount",
        "componentstatus": "ComponentStatus ComponentCondition",
    }
)

META = modules(
    {
        "objectmeta": "ObjectMeta OwnerReference ManagedFieldsEntry Condition",
        "listmeta": "ListMeta ShardInfo",
        "labelselector": "LabelSelector LabelSelectorRequirement FieldSelectorRequirement",
        "deleteoptions": "DeleteOptions Preconditions",
        "status": "Status StatusDetails StatusCause",
        "discovery": (
            "APIVersions APIGroupList APIGroup GroupVersionForDiscovery ServerAddressByClientCIDR APIResourceList"
            " APIResource GroupResource"
        ),
        "watch": "WatchEvent",
    }
)

# The schemas know these not: they never appear in a request's path or are answers by content negotiation.
META_HAND_WRITTEN = {
    "options": ["CreateOptions", "GetOptions", "ListOptions", "PatchOptions", "UpdateOptions"],
    "table": ["PartialObjectMetadata", "Table", "TableColumnDefinition", "TableRow", "TableRowCondition"],
}

MODULES = {"core.v1": CORE, "meta.v1": META}

CLASS_DOCS: dict[str, dict[str, str]] = {}
