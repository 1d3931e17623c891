"""Faults on demand (`--enable-test-endpoints`): by rule, requests are refused, delayed, lost, done twice or held back.

- `rules`: what a rule says and which requests it matches; pure
- `filter`: applies the rules to requests and watches, and serves them at `/debug/faults`

Only for tests: permission to write `/debug/faults` (RBAC: a non-resource URL) is permission to stop the cluster.
"""
