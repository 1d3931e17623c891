"""Devices that plugins offer over a socket in the node's plugin folder (deviceplugin/v1beta1)."""
