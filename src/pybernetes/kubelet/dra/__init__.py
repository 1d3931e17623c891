"""Dynamic resource allocation on the node: devices that ResourceClaims allocate, prepared by their drivers.

`claims` (pure: which claims a pod has, and what is wrong with them), `plugin` (drivers that are registered, and calls
to them), `checkpoint` (what is prepared for whom, on disk), `manager` (prepares before a pod's sandbox is made,
unprepares after its last container has ended).
"""
