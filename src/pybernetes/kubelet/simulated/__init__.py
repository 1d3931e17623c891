"""Nodes that are only pretended, thousands of them in one process, with pods that behave by rules.

behaviour   what a pod shall pretend to do, from its annotations and a file of rules: pure
pod         a pod that pretends: sandbox, containers and their ends in simulated time, by the kubelet's own decisions
agent       all pods of all simulated nodes: from the API server's watch to statuses
nodes       the Nodes themselves: registered, with heartbeats
usage       the kubelets' servers, as far as metrics go
command     `pyb simulated-nodes`
"""
