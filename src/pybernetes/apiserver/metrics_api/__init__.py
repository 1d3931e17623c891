"""metrics.k8s.io: the usage of nodes and pods, asked of their kubelets.

- `resources`: GET and LIST of NodeMetrics and PodMetrics
- `usage`: from a kubelet's /stats/summary to these objects
"""
