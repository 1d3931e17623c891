"""The table of kubectl's commands: the module of each, and the help group that lists it."""

from __future__ import annotations

_BASIC = "Basic Commands (Beginner)"
_INTERMEDIATE = "Basic Commands (Intermediate)"
_DEPLOY = "Deploy Commands"
_CLUSTER = "Cluster Management Commands"
_TROUBLE = "Troubleshooting and Debugging Commands"
_ADVANCED = "Advanced Commands"
_SETTINGS = "Settings Commands"
_OTHER = "Other Commands"
_BEYOND = "Commands beyond upstream"

# name -> (module, group of `kubectl help`, one line)
COMMANDS: dict[str, tuple[str, str, str]] = {
    "create": ("create", _BASIC, "Create a resource from a file or from stdin"),
    "get": ("get", _INTERMEDIATE, "Display one or many resources"),
    "delete": ("delete", _INTERMEDIATE, "Delete resources by file names, stdin, resources and names, or by selector"),
    "scale": ("scale", _DEPLOY, "Set a new size for a deployment, replica set, or replication controller"),
    "patch": ("patch", _ADVANCED, "Update fields of a resource"),
    "replace": ("replace", _ADVANCED, "Replace a resource by file name or stdin"),
    "apply": ("apply", _ADVANCED, "Apply a configuration to a resource by file name or stdin"),
    "label": ("label", _SETTINGS, "Update the labels on a resource"),
    "annotate": ("annotate", _SETTINGS, "Update the annotations on a resource"),
    "edit": ("edit", _INTERMEDIATE, "Edit a resource on the server"),
    "plugin": ("plugin", _OTHER, "Provides utilities for interacting with plugins"),
}
