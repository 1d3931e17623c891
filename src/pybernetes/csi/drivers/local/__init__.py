"""`local.csi.pybernetes.io`: volumes on the node's own disk, the default StorageClass of a cluster with nodes.

`state` (what there is: a folder for each volume and snapshot), `copying` (reflink or copy), `loops` (images of a fixed
size as devices), `driver` (the specification's calls), `command` (one process: driver, registrar, controllers).
"""
