"""The functions of CEL: the standard ones and those that Kubernetes adds, one file a library."""
