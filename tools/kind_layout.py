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

# Fields that the schemas do not have and a feature adds: module, class -> the feature, the field, its import.
GATED_FIELDS = {
    ("meta.v1.objectmeta", "ObjectMeta"): (
        "INITIALIZERS",
        "initializers: Initializers | None = None",
        "from .initializers import Initializers",
    ),
}

CLASS_DOCS: dict[str, dict[str, str]] = {
    "core.v1": {
        "Binding": "The scheduler's verdict: this pod goes to that node.",
        "ComponentStatus": "Health of a control plane component; kept for old clients.",
        "ConfigMap": "Configuration for pods, readable by everyone who may read it.",
        "Container": "A process to run, from an image, inside a pod.",
        "Endpoints": "Where a service is reachable; EndpointSlice took its place.",
        "EphemeralContainer": "A container put into a running pod, for debugging.",
        "Event": "Something that happened to an object, kept for an hour.",
        "LimitRange": "Bounds and defaults for what one pod, container or claim in a namespace may ask for.",
        "Namespace": "A room for names.",
        "Node": "A machine that runs pods.",
        "PersistentVolume": "A piece of storage that outlives pods.",
        "PersistentVolumeClaim": "A request for storage, bound to a PersistentVolume.",
        "Pod": "Containers that live and die together on one node.",
        "PodTemplate": "A pod to be made, kept as an object.",
        "ReplicationController": "Keeps a number of pods alive; ReplicaSet took its place.",
        "ResourceQuota": "The sum of what a namespace may use.",
        "Secret": "Small confidential data for pods.",
        "Service": "A stable name and address for a changing set of pods.",
        "ServiceAccount": "The identity of a pod at the API server.",
        "Volume": "A folder for the containers of a pod, filled from one of many sources.",
    },
    "meta.v1": {
        "APIGroup": "A group in discovery.",
        "APIResource": "A resource in discovery.",
        "Condition": "One aspect of an object's state, in the shape that all newer kinds share.",
        "DeleteOptions": "How to delete.",
        "LabelSelector": "Which objects, by their labels; all requirements must hold.",
        "ListMeta": "The metadata of a list.",
        "ManagedFieldsEntry": "Which fields an applier owns.",
        "ObjectMeta": "The metadata of a stored object.",
        "OwnerReference": "An object that this one belongs to, and goes away with.",
        "Status": "The answer when there is no object to answer with, mostly an error.",
        "WatchEvent": "A change, as a watch delivers it.",
    },
    "admissionregistration.v1": {
        "MutatingAdmissionPolicy": "Expressions that change requests.",
        "MutatingAdmissionPolicyBinding": "Where a MutatingAdmissionPolicy applies, and its parameters.",
        "MutatingWebhookConfiguration": "Servers that may change requests.",
        "ValidatingAdmissionPolicy": "Expressions that refuse requests.",
        "ValidatingAdmissionPolicyBinding": "Where a ValidatingAdmissionPolicy applies, and its parameters.",
        "ValidatingWebhookConfiguration": "Servers that may refuse requests.",
    },
    "apiextensions.v1": {
        "CustomResourceDefinition": "A kind that users add to the API.",
        "JSONSchemaProps": "A JSON schema, as far as custom resources use it.",
    },
    "apiregistration.v1": {"APIService": "A group and version, and who serves it."},
    "apps.v1": {
        "ControllerRevision": "A snapshot of what a controller ran, to roll back to.",
        "DaemonSet": "A pod on every node that fits.",
        "Deployment": "Pods without identity, replaced step by step when the template changes.",
        "ReplicaSet": "Keeps a number of equal pods alive.",
        "StatefulSet": "Pods with identity: stable names, order, storage of their own.",
    },
    "authentication.v1": {
        "SelfSubjectReview": "Asks for the user of the request itself.",
        "TokenRequest": "Asks for a token of a service account.",
        "TokenReview": "Asks for the user of a token.",
    },
    "authorization.v1": {
        "LocalSubjectAccessReview": "May this user do that in this namespace?",
        "SelfSubjectAccessReview": "May I do that?",
        "SelfSubjectRulesReview": "Asks for the user's permissions in a namespace.",
        "SubjectAccessReview": "May this user do that?",
    },
    "autoscaling.v1": {
        "HorizontalPodAutoscaler": "Sets the number of replicas by the load of the CPU.",
        "Scale": "The number of replicas of anything that can be scaled.",
    },
    "autoscaling.v2": {"HorizontalPodAutoscaler": "Sets the number of replicas by metrics."},
    "batch.v1": {
        "CronJob": "Makes jobs on a schedule.",
        "Job": "Runs pods until enough of them have succeeded.",
    },
    "certificates.v1": {"CertificateSigningRequest": "Asks a signer for a certificate."},
    "coordination.v1": {"Lease": "The holder of a lock, and its expiry; also the heartbeat of nodes."},
    "discovery.v1": {"EndpointSlice": "Some of the endpoints of a service."},
    "events.v1": {"Event": "Something that happened to an object, kept for an hour."},
    "flowcontrol.v1": {
        "FlowSchema": "Which requests belong to which priority level.",
        "PriorityLevelConfiguration": "How many requests of a level run at once, and how the others queue.",
    },
    "networking.v1": {
        "IPAddress": "An address that a service has taken.",
        "Ingress": "HTTP routes from outside to services.",
        "IngressClass": "Which controller implements an Ingress.",
        "NetworkPolicy": "The allowed connections of the pods it selects.",
        "ServiceCIDR": "A range that services get their addresses from.",
    },
    "node.v1": {"RuntimeClass": "A way to run containers that a pod can ask for."},
    "policy.v1": {
        "Eviction": "Asks to delete a pod, unless a PodDisruptionBudget objects.",
        "PodDisruptionBudget": "How many pods may be missing on purpose.",
    },
    "rbac.v1": {
        "ClusterRole": "Permissions, in all namespaces or outside of them.",
        "ClusterRoleBinding": "The subjects of a ClusterRole in the whole cluster.",
        "Role": "Permissions in one namespace.",
        "RoleBinding": "The subjects of a role in one namespace.",
    },
    "resource.v1": {
        "DeviceClass": "A kind of devices that claims can ask for.",
        "ResourceClaim": "A request for devices, and what was allocated for it.",
        "ResourceClaimTemplate": "A ResourceClaim to be made for each pod.",
        "ResourceSlice": "Devices that a driver offers.",
    },
    "scheduling.v1": {"PriorityClass": "A name for the importance of pods."},
    "storage.v1": {
        "CSIDriver": "The capabilities of a storage driver.",
        "CSINode": "Which storage drivers run on a node.",
        "CSIStorageCapacity": "How much storage a driver has left, and where.",
        "StorageClass": "How claims of this class get their volumes.",
        "VolumeAttachment": "A request to attach a volume to a node, and its status.",
        "VolumeAttributesClass": "Attributes of a volume that can change while it is in use.",
    },
}
