"""The kubelet's side of CRI: it reads pods from the runtime and carries out what was decided for them.

manager         carries out the actions of `pod.actions.compute_pod_actions`
types           ObservedPod, ObservedSandbox, ObservedContainer: pods as the runtime reports them
pod_observer    builds ObservedPods from CRI messages
pleg            Pod Lifecycle Event Generator: which pods have changed
state           name, version, readiness and handlers of the runtime
runtime_class   RuntimeClass to runtime handler
labels          labels and annotations by which the kubelet recognises its containers
exec_command    runs a command in a container (probes, hooks)
"""
