"""The Container Storage Interface: between the cluster and drivers of storage.

`v1` (messages, from `csi.proto`), `client` (calls to a driver's socket), `errors`; for authors of drivers `driver` (a
driver is a class with the specification's methods) and `node` (registrar, liveness probe).
"""
