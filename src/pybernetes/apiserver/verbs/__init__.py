"""The verbs of the API, one module each: create, get, list, watch, update, patch, apply, delete, deletecollection.

What they share is in `pipeline/`, one module a stage.
"""
