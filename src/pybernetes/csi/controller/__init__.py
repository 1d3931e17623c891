"""The controllers beside a CSI driver: upstream's sidecars, as a library and as `pyb csi` commands.

`loop` (what they share), `provisioner` (with `requests`, `topology`, `sources`), `attacher`, `resizer`, `snapshotter`
(with `snapshot_crds`, `snapshot_objects`); each works for one driver at a socket, and several may be in one process.
"""
