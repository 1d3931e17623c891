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
    "expose": ("expose", _BASIC, "Expose a workload, a pod or a service as a new service"),
    "run": ("run", _BASIC, "Run a particular image on the cluster"),
    "set": ("set", _BASIC, "Set specific features on objects"),
    "explain": ("explain", _INTERMEDIATE, "Get documentation for a resource"),
    "get": ("get", _INTERMEDIATE, "Display one or many resources"),
    "edit": ("edit", _INTERMEDIATE, "Edit a resource on the server"),
    "delete": ("delete", _INTERMEDIATE, "Delete resources by file names, stdin, resources and names, or by selector"),
    "rollout": ("rollout", _DEPLOY, "Manage the rollout of a resource"),
    "scale": ("scale", _DEPLOY, "Set a new size for a deployment, replica set, or replication controller"),
    "autoscale": ("autoscale", _DEPLOY, "Auto-scale a workload"),
    "certificate": ("certificate", _CLUSTER, "Modify certificate resources"),
    "cluster-info": ("cluster_info", _CLUSTER, "Display cluster information"),
    "top": ("top", _CLUSTER, "Display resource (CPU/memory) usage"),
    "cordon": ("cordon", _CLUSTER, "Mark node as unschedulable"),
    "uncordon": ("uncordon", _CLUSTER, "Mark node as schedulable"),
    "drain": ("drain", _CLUSTER, "Drain node in preparation for maintenance"),
    "taint": ("taint", _CLUSTER, "Update the taints on one or more nodes"),
    "describe": ("describe", _TROUBLE, "Show details of a specific resource or group of resources"),
    "logs": ("logs", _TROUBLE, "Print the logs for a container in a pod"),
    "attach": ("attach", _TROUBLE, "Attach to a running container"),
    "exec": ("exec", _TROUBLE, "Execute a command in a container"),
    "port-forward": ("port_forward", _TROUBLE, "Forward one or more local ports to a pod"),
    "proxy": ("proxy", _TROUBLE, "Run a proxy to the Kubernetes API server"),
    "cp": ("cp", _TROUBLE, "Copy files and directories to and from containers"),
    "auth": ("auth", _TROUBLE, "Inspect authorization"),
    "debug": ("debug", _TROUBLE, "Create debugging sessions for troubleshooting workloads and nodes"),
    "events": ("events", _TROUBLE, "List events"),
    "diff": ("diff", _ADVANCED, "Diff the live version against a would-be applied version"),
    "apply": ("apply", _ADVANCED, "Apply a configuration to a resource by file name or stdin"),
    "patch": ("patch", _ADVANCED, "Update fields of a resource"),
    "replace": ("replace", _ADVANCED, "Replace a resource by file name or stdin"),
    "kustomize": ("kustomize", _ADVANCED, "Build a kustomization target from a directory or URL"),
    "wait": ("wait", _ADVANCED, "Wait for a specific condition on one or many resources"),
    "label": ("label", _SETTINGS, "Update the labels on a resource"),
    "annotate": ("annotate", _SETTINGS, "Update the annotations on a resource"),
    "completion": ("completion", _SETTINGS, "Output shell completion code for the specified shell"),
    "api-resources": ("api_resources", _OTHER, "Print the supported API resources on the server"),
    "api-versions": ("api_versions", _OTHER, "Print the supported API versions on the server"),
    "config": ("config", _OTHER, "Modify kubeconfig files"),
    "kuberc": ("kuberc", _OTHER, "Manage kuberc configuration files"),
    "convert": ("convert", _OTHER, "Convert config files between different API versions"),
    "options": ("options", "", "Print the list of flags inherited by all commands"),
    "plugin": ("plugin", _OTHER, "Provides utilities for interacting with plugins"),
    "ctx": ("ctx", _BEYOND, "List contexts, or switch to one"),
    "ns": ("ns", _BEYOND, "List namespaces, or switch the current context to one"),
    "undo": ("undo", _BEYOND, "Undo the last apply of an object"),
    "why": ("why", _BEYOND, "Explain why an object is not as it should be"),
    "tree": ("tree", _BEYOND, "Show what owns an object and what it owns"),
    "version": ("version", _OTHER, "Print the client and server version information"),
}
