"""Measures the resource usage of the node, its pods and their containers.

usage       what one cgroup has used, read from the kernel (v1 and v2)
network     bytes through the interfaces of a network namespace
filesystem  sizes of file systems and folders
sampler     all cgroups every ten seconds, and the rates between
summary     /stats/summary
resource    /metrics/resource
cadvisor    /metrics/cadvisor
log_sizes   sizes of containers' logs, in /metrics
claims      the volumes behind claims, for /metrics
provider    `StatsProvider`: puts them together
"""
