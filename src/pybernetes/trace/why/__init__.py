"""Why something is as it is: one sentence, what shows it, what would help. All but `asking` and `cluster` are pure.

asking       asks the API server for an object and what explains it
cluster      how the explanations of other kinds read what they need
facts        what is known of a pod, the answer, and how both are read
pods         why a pod is as it is: in the order of its life, from scheduling to its deletion
claims       why a claim has no volume
makers       why a Deployment, a Job or another maker of pods has not made all of them
others       why a node is not ready, and why a namespace does not end
workloads    CronJobs and HorizontalPodAutoscalers
network      Services, Ingresses, NetworkPolicies
storage      volumes, their attachment, classes
machinery    quotas, budgets, roles, certificates, extensions; any kind that is not known
deleting     what keeps an object that is being deleted
kinds        who explains which kind
fields       who has set a field
"""

WHY = "/debug/pyb/why"
"""Where the API server answers it, for an object's path."""
