"""Managed fields: the manager of each field of an object, and server-side apply, which is decided by it.

    apply(live, config, ...)        what an object becomes when a configuration is applied to it
    record_update(new, old, ...)    the managed fields of any other write
    node_of(cls)                    the schema of a built-in kind
    structural.node_of(schema)      the schema of a custom resource
    resetfields                     what a request cannot write, and so cannot own

All of it is pure: time, manager and schema come in, objects and entries go out, no input is changed.
"""

from __future__ import annotations

from .apply import apply
from .kinds import node_of
from .node import DEDUCED, Node
from .update import manager_name, record_update, same_but_times

__all__ = ["DEDUCED", "Node", "apply", "manager_name", "node_of", "record_update", "same_but_times"]
