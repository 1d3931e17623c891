"""Control groups: `/kubepods` by quality of service and pod, on cgroup v1 and v2."""
