"""The network of a node.

`nftables`  packet rules of the kernel, by netlink
"""
