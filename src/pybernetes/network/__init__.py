"""The network of a node.

`nftables`      packet rules of the kernel, by netlink
`node_dns`      the address of cluster DNS on each node
`node_network`  `pyb node-network`: all that a node needs of the network, in one process
"""
