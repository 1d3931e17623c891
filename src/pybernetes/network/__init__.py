"""The network of a node.

`nftables`      packet rules of the kernel, by netlink
`overlay`       routes to the pods of other nodes
`node_dns`      the address of cluster DNS on each node
`policy`        NetworkPolicy: which connections pods may make and accept
`node_network`  `pyb node-network`: all that a node needs of the network, in one process
"""
