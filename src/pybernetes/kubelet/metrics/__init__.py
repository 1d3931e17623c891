"""The kubelet's metrics about its own work, with upstream's names. Usage of pods and the node is in `stats`.

kubelet    the registry, and the metrics of the sync loop
pods       pods admitted, rejected, started, preempted, reported
managers   CPUs, devices, images, resizes, volumes, hooks, certificates, node start-up
node       relists, images, cgroups, API requests, the process
"""
