"""Nodes that are only pretended, thousands of them in one process, with pods that behave by rules.

behaviour   what pods and nodes shall do, from their annotations and a file of rules: pure
settings    the settings by name, and how their texts are read: pure
curves      how much of something a container uses, over its life: pure
answers     lines of logs, answers to commands and on ports: pure
probing     what probes find out, and when (`pod_probes`: all of a pod's): pure
hooks       how long a container's hooks take, and whether they fail: pure
ending      when terminated containers end: pure
pod         a pod that pretends: sandbox, containers and their ends in simulated time, by the kubelet's own decisions
usage       what a container uses, and when that is too much: pure
references  ConfigMaps and Secrets that a pod waits for: pure
restoring   what was pretended before, from a pod's status: pure
admitting   whether a node takes a pod
pressure    nodes that are short of something, and the pods that go for it
resizing    pods that ask for other resources while they run
agent       all pods of all simulated nodes: from the API server's watch to statuses
nodes       the Nodes themselves: registered, with heartbeats, or silent
addresses   of nodes and pods
identities  each node speaks for itself
server      the kubelets' servers, a port for each
connecting  logs, exec, attach, port-forward
stats       what is used, as a kubelet measures it: pure
rules_file  the file of rules, read again when it has changed
command     `pyb simulated-nodes`; its flags are in `options`
"""
