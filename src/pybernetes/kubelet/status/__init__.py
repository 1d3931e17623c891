"""The status of pods: computed from the runtime's state, kept, and written to the API server.

pod_status         PodStatus of a pod. Pure
container_status   ContainerStatus of one container, with its waiting reason (CrashLoopBackOff). Pure
conditions         PodScheduled, Initialized, ContainersReady, Ready and the others. Pure
phase              Pending, Running, Succeeded, Failed. Pure
facts              what a status takes from probes, resources, devices and the node
manager            the latest status of each pod, and its way to the API server
merge              joins a status with that of the API server, and makes the patch. Pure
"""
