"""Upstream's plugins, one a file; `registry.py` says which name is where."""
