"""CEL, the expression language of policies, of rules in schemas and of match conditions.

The engine is our own; docs/design.md says why. `Environment` is where to start.
"""
