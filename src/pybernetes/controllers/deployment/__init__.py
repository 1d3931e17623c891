"""Deployments: a ReplicaSet for each pod template, scaled against each other until only the newest has pods.

annotations   revisions and sizes that ReplicaSets carry
replicasets   which ReplicaSet is the new one, and sums over them
scaling       how large each ReplicaSet should be now
progress      conditions and counters
controller    the loop
"""
