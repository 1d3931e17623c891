"""The CSI driver of volumes: `driver` (the calls), `request` (what they ask for), `pod_mounts` and `process_mounts`
(where the client runs), `manifests` (what is created in the cluster), `state` (what a node has published), `command`.
"""
