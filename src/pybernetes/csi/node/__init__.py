"""Beside a driver on its node: `registrar` makes it known to the kubelet, `liveness` answers probes for it."""
