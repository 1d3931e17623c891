"""The kernel's netlink sockets: the part that all of its protocols share.

`wire.py` is the form of messages (pure), `connection.py` the socket, `conntrack.py` lists and deletes tracked
connections. Links, addresses and routes are in `pybernetes.cni.netlink`, packet rules in `pybernetes.network.nftables`.
"""
