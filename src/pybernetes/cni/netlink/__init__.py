"""Links, addresses and routes of the kernel, over its netlink socket.

`wire.py` is the form of messages (pure), `connection.py` the socket, `rtnl.py` the few operations plugins need,
`conntrack.py` forgets connections, `namespace.py` is how something is done inside another network namespace. The
numbers are the kernel's (`linux/rtnetlink.h`, `if_link.h`, `nfnetlink_conntrack.h`).
"""
