"""The node's agent: runs the pods that the API server assigned to this node as containers, and reports their status.

sources (watch, folder, URL) -> admission -> one worker for each pod -> volumes, cgroups, images, CRI
runtime events or a relist -> observed pods -> pure `compute_pod_actions` and `pod_status` -> runtime and API server

command, options, settings, config/    flags and KubeletConfiguration
kubelet, upkeep, servers               the wiring
sources/, watched_objects              pods from files and URLs; the ConfigMaps and Secrets that pods use
pod/, status/                          pods: intake, workers, actions, restarts, killing; their statuses
runtime/, container/, images/          CRI: what the runtime has, one container, image pulls
volumes/, csi/, service_account_tokens volumes of pods, CSI drivers, projected tokens
probes/                                startup, readiness and liveness probes
node/                                  the Node object, Lease, certificates, allocatable, shutdown
cgroups/, cpumanager/, resources/      cgroups, exclusive CPUs, in-place resize
devices/, dra/, plugins/, podresources/  device plugins, ResourceClaims, plugin registration, pod-resources API
eviction/, gc/, logind/                node pressure, garbage collection, shutdown signals of systemd
server/, stats/, metrics/              the HTTPS API, usage, the kubelet's own metrics
simulated/                             nodes without a machine, for tests of scale
backoff, checkpoints, events, error_text   shared by these
"""
