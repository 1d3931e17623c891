"""The node authorizer: a kubelet sees only what its pods need."""
