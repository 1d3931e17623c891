"""Loads the scheduler's configuration: `KubeSchedulerConfiguration` files, and legacy policy files.

`load.load(bytes)` and `policy.load(bytes)` answer a `v1.types.KubeSchedulerConfiguration` that has all defaults and is
valid. `plugins.expand` says which plugins run at which extension point.
"""
