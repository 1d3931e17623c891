"""Why something is not as asked for: one sentence, then what shows it. All but `asking` are pure functions.

asking       asks the API server for an object and what explains it
facts        what is known of a pod, the answer, and how both are read
pods         why a pod is as it is: in the order of its life, from scheduling to its deletion
claims       why a claim has no volume
makers       why a Deployment, a Job or another maker of pods has not made all of them
others       why a node is not ready, and why a namespace does not end
"""
