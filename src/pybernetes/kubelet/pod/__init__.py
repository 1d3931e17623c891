"""Pods on their way through the kubelet, from the first event to the last cleanup.

manager             the pods of this node from all sources, and their mirror pods
intake              admits new pods one by one, hands changes and deletions to the workers
admission           node resources, labels, taints and OS: can this node run the pod? Pure
refusal             the reason and message of a rejected pod
preemption          which pods make room for a critical pod. Pure
critical            static, mirror and critical pods: how to recognise them
mirrors             mirror pods: static pods shown in the API
workers             one worker per pod: syncing, terminating, terminated
syncer              one pass of a worker: cgroup, volumes, sandbox, containers, status
actions             `compute_pod_actions`: which containers to start, kill or resize. Pure
restarts            restart policy and restart rules by exit code
killing             stopping containers: preStop hook, stop signal, grace period
termination_order   the order in which containers of a pod stop
active_deadline     `spec.activeDeadlineSeconds`
evictor             terminates pods for eviction, node shutdown and preemption
restored            a terminated pod rebuilt from the labels of its containers
"""
