"""The node's agent: makes the pods that the API server assigns to this node into containers, and reports them.

    sources (watch, folder, URL) -> admission -> one worker for each pod -> volumes, cgroups, images, CRI
    runtime events or a relist -> observed pods -> pure `compute_pod_actions` and `pod_status` -> runtime and API server

`kubelet.py` wires the parts together; each part knows only what it is given.
"""
