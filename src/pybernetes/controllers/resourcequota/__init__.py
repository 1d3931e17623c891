"""Counts what namespaces use of their quotas."""
