"""StatefulSets: pods with names, order and storage of their own.

identity     ordinals, names, and what a pod of an ordinal looks like
retention    the owner of the claims: the set, the pod, or none
plan         what to do next, in order or all at once, and the status
controller   the loop
"""
