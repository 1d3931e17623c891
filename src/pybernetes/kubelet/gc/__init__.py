"""Garbage collection on the node.

containers             dead containers and sandboxes, logs without a container
images                 unused images: age and disk thresholds (imageGCHighThresholdPercent)
orphaned_pods          volumes, cgroups, statuses of pods that no source knows any more
written_files          the size limit of hosts files and termination messages
containerd_leftovers   bundles and networks that a killed containerd left
"""
