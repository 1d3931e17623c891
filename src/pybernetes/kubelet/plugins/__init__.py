"""Plugins that register with the kubelet at a socket in `plugins_registry`: `registry` finds and asks them."""
