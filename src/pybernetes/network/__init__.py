"""The network of a node.

`nftables`      packet rules of the kernel, by netlink
`node_network`  `pyb node-network`: all that a node needs of the network, in one process
"""
