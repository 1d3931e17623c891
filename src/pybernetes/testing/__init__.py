"""Clusters for tests: real API, real controllers, in milliseconds, with time that the test controls.

- `cluster`: `Cluster`, what a test holds in its hand; the host process that clusters are forked from
- `options`: what a cluster is like
- `process`, `control_plane`, `loop`, `memory_network`, `virtual_time`: inside a cluster's process
- `channel`: how the two talk
- `plugin`: the fixtures of pytest
"""
