"""Making room for a pod by evicting less important ones.

`victims` says who would have to go from one node (slow and general), `resources` says it for many nodes at once where
only resources are short, `search` looks through nodes, `ranking` chooses one, `executor` evicts;
`plugins/default_preemption.py` puts it together.
"""
