"""The network between nodes: each node's pod ranges are reached from every other node.

`peers`       Nodes as the overlay sees them: pod ranges, addresses, annotations (pure)
`plan`        which routes, neighbours and forwarding entries a node needs for its peers (pure)
`rtnetlink`   tunnel devices, neighbours, forwarding entries and change notifications of the kernel
`kernel`      makes the kernel agree with a plan
`udp_tunnel`  the backend `udp`: a TUN device served by this process
`agent`       watches Nodes and the kernel, and brings plan and kernel together
`command`     `pyb network-agent`
"""
