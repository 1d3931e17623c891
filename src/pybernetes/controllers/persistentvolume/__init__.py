"""Volumes: bound to claims, attached to nodes, made larger."""
