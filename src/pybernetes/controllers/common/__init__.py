"""Shared by several controllers; `controllers/base.py` is the loop of all of them.

- pods of a workload: `pods`, `pod_control`, `pod_ranks`, `replicas`, `template_hash`, `history`, `ownership`
- statuses: `conditions`, `status`, `disruption_target`, `selector_text`
- nodes: `nodes`
- anything: `meta`, `consistency`, `protection`, `scales`, `time_slices`
"""
